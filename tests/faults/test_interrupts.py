"""Ctrl-C, SIGTERM and SIGKILL at random moments of `plume run`: no half a file, nothing left behind, and a ledger that tells the truth."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.errors import EngineError

USERS = 200_000
# A shell may start background jobs with interrupts ignored; here they must arrive.
COMMAND = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from plume.cli.main import main; main(sys.argv[1:])"
)
INTERRUPTED = 130


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(
        pa.table({"u": [n // 3 for n in range(3 * USERS)], "k": [f"key {n % 997}" for n in range(3 * USERS)]}), path
    )
    return path


def interrupted(rows: Path, folder: Path, sent: signal.Signals, delay: float) -> int:
    """Run until the first stage is told and a moment longer, then send a signal; give the exit code."""
    query = "--user u --key k --measure count(3) --epsilon 1 --delta 1e-6 --max-keys-per-user 2"
    charged = f"--ledger {folder / 'l'} --dataset d --release-id r --out {folder / 'out.parquet'} --temp-directory {folder / 't'}"
    command = [sys.executable, "-c", COMMAND, "run", str(rows), *query.split(), *charged.split()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:  # noqa: S603
        assert run.stderr is not None
        run.stderr.readline()
        time.sleep(delay)
        run.send_signal(sent)
        said = run.stderr.read()
    assert "Traceback" not in said
    return run.returncode


def moments() -> list[object]:
    dice = random.Random(1)  # noqa: S311
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    listed = [(sent, dice.uniform(0, 0.8)) for sent in signals for _ in range(10)]
    return [pytest.param(*one, marks=[] if n % 10 < 2 else pytest.mark.slow) for n, one in enumerate(listed)]


@pytest.mark.parametrize(("sent", "delay"), moments())
def test_an_interrupt_leaves_nothing_half_done(rows: Path, tmp_path: Path, sent: signal.Signals, delay: float) -> None:
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("d", plume.Budget(1, 1e-6))
    (tmp_path / "t").mkdir()
    code = interrupted(rows, tmp_path, sent, delay)
    assert code in (0, -sent, INTERRUPTED)
    # Who asks politely is answered, but for the moment in which all is done and Python itself is ending.
    assert code != -sent or sent == signal.SIGKILL or (tmp_path / "out.parquet").exists()
    ledger.verify()
    ledger.recover()
    ends = [str(entry.kind) for entry in ledger.history()][-1]
    assert ends in ("dataset", "reserved", "lost", "released")
    written = tmp_path / "out.parquet"
    if written.exists():
        assert pq.read_table(written).equals(pq.read_table(ledger.shelf.released("r")))
    if sent != signal.SIGKILL:
        assert list((tmp_path / "t").iterdir()) == []
        assert [path for path in tmp_path.iterdir() if path.name.startswith(".plume-")] == []


def test_too_little_memory_leaves_the_release_reserved(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("d", plume.Budget(1, 1e-6))
    many = pa.table({"u": range(300_000), "k": [str(number) for number in range(300_000)]})
    query = plume.Query(user="u", keys="k", measures=[plume.users()], max_keys_per_user=2, budget=plume.Budget(1, 1e-6))
    with pytest.raises(EngineError, match=r"ran out of memory or temporary disk space|withheld"):
        plume.run(query, many, engine=plume.DuckDB(memory_limit="1MB"), ledger=ledger, dataset="d", release_id="r")
    assert [str(entry.kind) for entry in ledger.history()] == ["dataset", "reserved"]
    assert len(plume.run(query, many.slice(0, 10), ledger=ledger, dataset="d", release_id="r")) == 0
    assert str(ledger.history()[-1].kind) == "released"
