"""What only a process of its own can show: codes, streams, signals and imports."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plume.progress import STAGES
from plume.version import __version__

PLUME = [sys.executable, "-m", "plume"]
# A shell may start background jobs with interrupts ignored; here they must arrive.
INTERRUPTIBLE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from plume.cli.main import main; main(sys.argv[1:])"
)
HEAVY = {"duckdb", "numpy", "pyarrow", "rich", "sqlglot", "mpmath", "pandas", "polars"}
# What few runs need, and every run would wait for. Arrow loads pandas where it is given objects of Python or NumPy.
SELDOM_NEEDED = {
    "pandas",
    "polars",
    "sqlglot",
    "dp_accounting",
    "numba",
    "pyspark",
    "scipy.stats",
    "jinja2",
    "rich",
    "redis",
}


def plume(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PLUME, *map(str, args)], capture_output=True, text=True, check=False)  # noqa: S603


def test_results_and_remarks_go_their_own_ways(searches: Path, asked: list[str]) -> None:
    run = plume("run", searches, *asked)
    assert run.returncode == 0
    assert run.stdout.startswith('"recipe","count"\n')
    assert run.stderr.splitlines()[1:5] == list(STAGES.values())  # after the caution against epsilon = 50


def test_wrong_use_ends_with_2(searches: Path, asked: list[str]) -> None:
    run = plume("run", searches, *asked, "--key", "recipie", "--quiet")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1


def test_the_installed_command_is_the_same() -> None:
    command = Path(sys.executable).with_name("plume")
    assert subprocess.check_output([command, "--version"], text=True) == f"plume {__version__}\n"  # noqa: S603


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["demo", "--help"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = f"import sys; from plume.cli.main import main; main({args}, standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert not HEAVY & set(run.stderr.split())


def test_a_plain_run_imports_nothing_that_it_does_not_need(searches: Path, asked: list[str]) -> None:
    args = ["run", str(searches), *asked, "--quiet"]
    code = f"import sys; from plume.cli.main import main; main({args}, standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert "duckdb" in run.stderr.split()
    assert not SELDOM_NEEDED & set(run.stderr.split())


def test_a_reader_who_leaves_early_hears_nothing(searches: Path, asked: list[str]) -> None:
    run = subprocess.Popen(  # noqa: S603
        [*PLUME, "run", str(searches), *asked, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    assert run.stderr.read() == b""
    run.stderr.close()
    assert run.wait() == 1


def test_an_interrupt_ends_with_130_and_leaves_no_file(tmp_path: Path) -> None:
    out = tmp_path / "made_up.parquet"
    command = [sys.executable, "-c", INTERRUPTIBLE, "synth", "--users", "1e12", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:  # noqa: S603
        assert run.stderr is not None
        assert run.stderr.readline() == "Making up 1,000,000,000,000 users\n"
        run.send_signal(signal.SIGINT)
        assert run.stderr.read() == "Error: interrupted.\n"
    assert run.returncode == 130
    assert list(tmp_path.iterdir()) == []


# The same for the other signals that end a command, whatever the tests themselves were told to ignore.
ENDED = (
    "import os, signal, sys; "
    "[signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)]; {before}; "
    "from plume.cli.main import main; main(sys.argv[1:])"
)


@contextmanager
def reading_rows(
    folder: Path, asked: list[str], before: str = "pass"
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a run that keeps its standard input in a file and waits for the rest of it; `before` is Python to run first."""
    run = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", ENDED.format(before=before), "run", "-", *asked, "--quiet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    with run:
        while not (found := list(folder.glob("plume-*/standard_input.csv"))):
            assert run.poll() is None
        yield run, found[0]


@pytest.mark.parametrize(
    ("sent", "times"),
    [
        *((sent, 1) for sent in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)),
        (signal.SIGTERM, 2),
        *(pytest.param(sent, 2, marks=pytest.mark.engines) for sent in (signal.SIGHUP, signal.SIGQUIT)),
    ],
)
def test_whatever_ends_a_run_leaves_no_rows_of_standard_input(
    tmp_path: Path, asked: list[str], sent: signal.Signals, times: int
) -> None:
    with reading_rows(tmp_path, asked) as (run, _):
        for _ in range(times):
            run.send_signal(sent)
        _, said = run.communicate()
    assert (run.returncode, said) == (130, b"Error: interrupted.\n")
    assert list(tmp_path.iterdir()) == []


def test_rows_of_standard_input_are_kept_for_their_owner_only(tmp_path: Path, asked: list[str]) -> None:
    with reading_rows(tmp_path, asked, before="os.umask(0)") as (run, rows):
        assert (rows.stat().st_mode & 0o777, rows.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        run.send_signal(signal.SIGTERM)


def test_a_run_that_shall_outlive_its_terminal_does(tmp_path: Path, asked: list[str]) -> None:
    with reading_rows(tmp_path, asked, before="signal.signal(signal.SIGHUP, signal.SIG_IGN)") as (run, _):
        run.send_signal(signal.SIGHUP)
        shown, _ = run.communicate(b"user_id,recipe\n")
    assert (run.returncode, shown) == (0, b'"recipe","count"\n')


def test_a_terminal_sees_stages_come_and_go(searches: Path, asked: list[str]) -> None:
    ours, theirs = pty.openpty()
    run = subprocess.run(  # noqa: S603
        [*PLUME, "run", str(searches), *asked],
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(theirs)
    seen = os.read(ours, 100_000).decode()
    os.close(ours)
    assert f"Stage 4 of 4: {list(STAGES.values())[-1]}" in seen
    assert "differential privacy for every user_id" in seen
    assert run.stdout.startswith(b'"recipe","count"\n')


def test_a_dumb_terminal_gets_plain_lines(searches: Path, asked: list[str]) -> None:
    ours, theirs = pty.openpty()
    env = os.environ | {"TERM": "dumb"}
    subprocess.run([*PLUME, "run", str(searches), *asked], stdout=subprocess.PIPE, stderr=theirs, check=True, env=env)  # noqa: S603
    os.close(theirs)
    seen = os.read(ours, 100_000).decode()
    os.close(ours)
    assert seen.splitlines()[1:5] == list(STAGES.values())  # after the caution against epsilon = 50


def test_the_tidying_up_is_not_interrupted() -> None:
    """A second signal at the wrong moment would leave rows of standard input behind."""
    program = (
        "import os, signal, sys\nfrom plume.cli.main import _end_as_if_interrupted\n_end_as_if_interrupted()\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\nexcept KeyboardInterrupt:\n"
        "    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):\n        os.kill(os.getpid(), number)\n"
        "    print('tidied up')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout == "tidied up\n"
