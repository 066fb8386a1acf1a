"""Where a run is: told to whoever waits for it, on a terminal or in a notebook, and nowhere else."""

import errno
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import plume
from plume import progress, running
from plume.engines.duckdb import DuckDB
from plume.engines.engine import DatabaseTable, Table
from plume.engines.input_size import bytes_read, bytes_to_read
from plume.plan.types import Kind
from plume.progress import Progress, on_terminal, show_progress, stage_of
from questions import ENGINE, asking, people, write_text

ROWS = people(k=pa.array(["x", "x", "y", "y"]))
GB = 10**9


class Watched:
    """What a run says to a display: which steps it will have, how much it will read, and each step that begins."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.size: int | None = None
        self.begun: list[str] = []

    @contextmanager
    def show(self, steps: Iterable[str], size: int | None) -> Iterator[Callable[[str], None]]:
        self.steps, self.size = list(steps), size
        yield self.begun.append


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched()
    monkeypatch.setattr(running, "show_progress", watched.show)
    return watched


BUDGET = plume.Budget(epsilon=100, delta=1e-5)
SHAPES: dict[str, tuple[dict[str, Any], int]] = {
    "keys that are selected": ({"max_keys_per_user": 4}, 4),
    "keys that are selected by what is released": ({"selection": "released_users"}, 3),
    "public keys": ({"public_keys": ["x"]}, 3),
    "two rounds": ({"selection": "two_round_weighted_gaussian", "max_keys_per_user": 4}, 5),
    "a limit that is chosen": ({"max_keys_per_user": "auto"}, 5),
    "a bound that is chosen": ({"measures": [plume.count("auto")], "max_keys_per_user": 4}, 5),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_stages_begin_one_after_the_other_up_to_the_last(watched: Watched, shape: str) -> None:
    changes, number = SHAPES[shape]
    query = plume.Query(
        **{"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 1, "budget": BUDGET} | changes
    )
    plume.run(query, ROWS, engine=ENGINE, progress=True)
    stages = [step for step in watched.steps if stage_of(step)]
    assert [stages.index(step) for step in watched.begun if stage_of(step)] == list(range(number))
    assert len(stages) == number


@pytest.mark.parametrize("pipeline", ["naive", "runtime_optimized"])
def test_other_pipelines_have_the_same_stages(watched: Watched, pipeline: str) -> None:
    plume.run(asking(), ROWS, engine=ENGINE, pipeline=pipeline, progress=True)
    told = [stage_of(step) for step in watched.begun if stage_of(step)]
    assert told == list(progress.STAGES.values())


def test_a_statement_has_progress_too(watched: Watched, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    plume.sql(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 9, delta = 1e-5, max_groups_contributed = 1, privacy_unit_column = u) k, "
        f"COUNT(*, contribution_bounds_per_group => (0, 1)) AS n FROM (SELECT u, k FROM '{tmp_path}/rows.parquet') GROUP BY k",
        engine=ENGINE,
        progress=True,
    )
    assert watched.begun
    assert watched.size


@pytest.mark.parametrize("here", [True, False])
def test_bytes_are_counted_only_where_this_process_reads_them(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, here: bool
) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    monkeypatch.setattr(DuckDB, "reads_here", here)
    plume.run(asking(), tmp_path / "rows.parquet", engine=DuckDB(threads=1), progress=True)
    assert (watched.size is not None) == here


def test_who_listens_to_steps_hears_them_beside_a_display(watched: Watched) -> None:
    heard: list[str] = []
    plume.run(asking(), ROWS, engine=ENGINE, progress=True, on_step=heard.append)
    assert heard == watched.begun != []


def test_a_run_that_cannot_be_planned_says_so_itself(watched: Watched) -> None:
    with pytest.raises(plume.PlumeError, match=r"no file 'absent\.csv'"):
        plume.run(asking(), "absent.csv", engine=ENGINE, progress=True)
    assert watched.size is None


def test_nothing_is_shown_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    plume.run(asking(), ROWS, engine=ENGINE, progress=True)
    assert capfd.readouterr() == ("", "")


REACHED = {
    "the beginning": (Progress("Opening the data", 0, 0, None), "Opening the data, 0:00"),
    "a long run": (Progress("Stage 1 of 4: Reading", 7325, 0, None), "Stage 1 of 4: Reading, 2:02:05"),
    "a file": (Progress("Stage 1 of 4: Reading", 75, GB, 4 * GB), "Stage 1 of 4: Reading, 1:15, 1.0 of 4.0 GB read"),
    "more read than there is": (
        Progress("Stage 1 of 4: Reading", 75, 5 * GB, 4 * GB),
        "Stage 1 of 4: Reading, 1:15, 4.0 of 4.0 GB read",
    ),
}


@pytest.mark.parametrize("reached", REACHED)
def test_progress_is_told_by_stage_time_and_bytes(reached: str) -> None:
    made, told = REACHED[reached]
    assert str(made) == told


class Closed:
    """A terminal that is gone."""

    def __init__(self, writes: int) -> None:
        self.writes = writes

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes -= 1
        if self.writes < 0:
            raise OSError(errno.EIO, "input/output error")
        return len(text)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("stream", [Closed(0), Closed(3), None])
def test_no_run_fails_where_its_display_does(monkeypatch: pytest.MonkeyPatch, stream: Closed | None) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    assert len(plume.run(asking(public_keys=["x"]), ROWS, engine=ENGINE, progress=True)) == 1


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_terminal_shows_one_line(columns: int) -> None:
    console = Console(width=columns, force_terminal=True, color_system=None)
    with console.capture() as drawn:
        console.print(progress._drawn(Progress(f"Stage 1 of 4: {progress.STAGES['rows']}", 75, 2 * GB, 4 * GB)))
    (line,) = drawn.get().splitlines()
    assert line.startswith("Stage 1 of 4: Reading and grouping by user, 1:15, 2.0 of")
    assert ("━" in line) == (columns >= 80)


def table(content: Any) -> Table:
    return Table(content, {"u": Kind.TEXT})


def test_of_a_csv_file_all_is_read(tmp_path: Path) -> None:
    assert bytes_to_read([table(write_text(tmp_path / "rows.csv", "u,k\na,x\n"))]) == 8


def test_of_a_parquet_file_only_columns_of_the_query_are_read(tmp_path: Path) -> None:
    rows = pa.table({"u": ["a"], "n": [{"u": "x" * 10_000}]})
    pq.write_table(rows, tmp_path / "rows.parquet", compression="none")
    assert 0 < (bytes_to_read([table(tmp_path)]) or 0) < 1000


@pytest.mark.parametrize("content", [ROWS, "absent.csv", DatabaseTable(Path("absent.duckdb"), "t"), []])
def test_what_is_not_a_file_has_no_size(content: Any) -> None:
    assert bytes_to_read([table(content)]) is None


def test_a_file_that_is_not_what_it_is_called_has_no_size(tmp_path: Path) -> None:
    assert bytes_to_read([table(write_text(tmp_path / "rows.parquet", "PAR1"))]) is None


def test_bytes_are_counted_as_they_are_read(tmp_path: Path) -> None:
    file, before = write_text(tmp_path / "rows.csv", b"0" * 10**6), bytes_read()
    file.read_bytes()
    after = bytes_read()
    assert before is None or after is None or after - before >= 10**6


def test_where_bytes_are_not_counted_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plume.engines.input_size._COUNTERS", Path("/nowhere"))
    assert bytes_read() is None


@pytest.mark.parametrize(
    ("step", "bar"), [("rows", True), ("keyed", False), ("release", False), ("a step without a stage", True)]
)
def test_only_the_stage_that_reads_the_files_has_a_bar(step: str, *, bar: bool) -> None:
    work = progress._Work(["rows", "keyed", "release"], GB)
    work.begin(step)
    assert (work.now().share is not None) == bar or bytes_read() is None


def test_small_files_have_no_bar() -> None:
    assert progress._Work(["rows"], 10**6).now().share is None


class Shell:
    """A notebook's, as far as it is asked for."""

    kernel = session = None

    def __init__(self) -> None:
        self.display_pub: Any = self
        self.published: list[tuple[str, bool]] = []
        self.lines: set[str] = set()

    def publish(self, data: dict[str, str], *, transient: dict[str, str], update: bool) -> None:
        self.lines.add(transient["display_id"])
        [text] = data.values()
        self.published.append((text, update))


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell


def test_a_notebook_shows_one_line_that_is_empty_at_the_end(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS", 0.001)
    with show_progress(["rows", "keyed", "safe", "release"], None) as begin:
        begin("keyed")
        while "keys" not in shell.published[-1][0]:
            time.sleep(0.001)
    first, *shown, last = shell.published
    assert {update for _, update in shown} == {True}
    assert (first, last, len(shell.lines)) == (("Opening the data", False), ("", True), 1)
    assert re.fullmatch(r"Stage 2 of 4: Selecting keys, \d:\d\d", shown[-1][0])


def test_a_line_is_empty_after_a_failure_too(shell: Shell) -> None:
    with pytest.raises(KeyboardInterrupt), show_progress([], None):
        raise KeyboardInterrupt
    assert shell.published[-1] == ("", True)


def test_a_line_is_empty_when_its_end_is_interrupted_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt), show_progress([], None):
        pass
    assert shell.published[-1] == ("", True)


def test_a_notebook_does_not_keep_whether_a_run_was_quick(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS", 600)
    plume.run(asking(), ROWS, engine=DuckDB(threads=1), progress=True)
    assert shell.published == [("Opening the data", False), ("", True)]


def test_no_run_fails_where_a_notebook_does_not_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(shell, "publish", closed)
    assert len(plume.run(asking(public_keys=["x"]), ROWS, engine=ENGINE, progress=True)) == 1


def test_where_a_notebook_keeps_all_that_is_shown_nothing_is(shell: Shell) -> None:
    """As %%capture does: it puts something in the place of what shows, and that has no session with a front end."""
    shell.display_pub = SimpleNamespace(publish=shell.publish)
    with show_progress([], None):
        pass
    assert shell.published == []


def test_tests_run_on_no_terminal() -> None:
    assert not on_terminal()
