"""Steps that are read twice are computed once: no part of a table is read twice in a run, so none can have changed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import SparkContext

import plume
from exact import exact_release
from plume.engines import spark_keeping
from plume.engines.duckdb import DuckDB
from plume.engines.spark import Spark
from plume.errors import ResourceError, SettingError
from questions import asking

TWO_ROUNDS = plume.Query(
    user="u",
    keys="k",
    measures=[plume.count(max_per_key=2), plume.median("v", 0, 9)],
    max_keys_per_user=3,
    selection="two_round_weighted_gaussian",
    budget=plume.Budget(epsilon=200, delta=0.5),
)
CHOSEN = plume.Query(
    user="u",
    keys="k",
    measures=[plume.count(max_per_key="auto"), plume.sum("v", 0, "auto")],
    max_keys_per_user="auto",
    budget=plume.Budget(epsilon=200, delta=0.5),
)
PAPER = asking(measures=[plume.count(max_per_key=2), plume.users(), plume.sum("v", 0, 9)])
QUESTIONS = {
    "plume": (PAPER, "plume"),
    "naive": (PAPER, "naive"),
    "runtime_optimized": (PAPER, "runtime_optimized"),
    "two rounds and a median": (TWO_ROUNDS, "plume"),
    "numbers are chosen": (CHOSEN, "plume"),
}
PIECES = 3
ONCE = [f"{piece} 0" for piece in range(PIECES)]


def made_up_rows(seed: int, keys: int) -> pa.Table:
    random = np.random.default_rng(seed)
    users = np.repeat(np.arange(60), random.integers(1, 9, 60))
    return pa.table({"u": users, "k": random.integers(0, keys, len(users)), "v": random.integers(0, 9, len(users))})


BEFORE, AFTER = made_up_rows(1, keys=8), made_up_rows(2, keys=2)


class ChangingTable:
    """A table that holds other rows after the first reading of each of its pieces; it counts the readings."""

    def __init__(self, folder: Path) -> None:
        self._readings = folder / "readings"
        self._readings.mkdir()

    def frame(self, session: Any) -> Any:
        folder, before, after = str(self._readings), BEFORE.to_pydict(), AFTER.to_pydict()

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            pieces = [number for batch in batches for number in batch.column(0).to_pylist()]
            for piece in pieces:
                earlier = len([path for path in Path(folder).iterdir() if path.name.startswith(f"{piece} ")])
                (Path(folder) / f"{piece} {earlier}").touch()
                rows = pa.table(after if earlier else before)
                yield from rows.take(pa.array(range(piece, rows.num_rows, PIECES))).to_batches()

        return session.range(0, PIECES, 1, PIECES).mapInArrow(read, "u long, k long, v long")

    def readings(self) -> list[str]:
        return sorted(path.name for path in self._readings.iterdir())


def context() -> Any:
    """Look inside of Spark, or of the server that runs in this process."""
    return SparkContext._active_spark_context


@pytest.fixture
def table(tmp_path: Path) -> ChangingTable:
    return ChangingTable(tmp_path)


def in_a_folder(session: Any, tmp_path: Path) -> Spark:
    return Spark(session, keep_in=str(tmp_path / "kept"))


def on_executors(session: Any, tmp_path: Path) -> Spark:
    del tmp_path
    return Spark(session)


KEEPING = pytest.mark.parametrize("keeping", [on_executors, in_a_folder])


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_table_that_changes_is_read_once(session: Any, table: ChangingTable, question: str) -> None:
    query, pipeline = QUESTIONS[question]
    plume.run(query, table.frame(session), engine=Spark(session), pipeline=pipeline)
    assert table.readings() == ONCE


@KEEPING
def test_the_answer_is_that_of_the_table_as_it_was_read(
    session: Any, table: ChangingTable, keeping: Callable[[Any, Path], Spark], tmp_path: Path
) -> None:
    expected = exact_release(PAPER, BEFORE, engine=DuckDB())
    assert expected.num_rows > 3
    assert exact_release(PAPER, table.frame(session), engine=keeping(session, tmp_path)).equals(expected)
    assert table.readings() == ONCE


@pytest.mark.quick_on("spark", "spark-connect")
def test_a_statement_reads_a_table_once(session: Any, table: ChangingTable) -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e6, delta = 0.5, max_groups_contributed = 2, privacy_unit_column = u) "
        "k, COUNT(*) AS n FROM t GROUP BY k"
    )
    plume.sql(text, tables={"t": table.frame(session)}, engine=Spark(session))
    assert table.readings() == ONCE


@pytest.mark.quick_on("spark", "spark-connect")
def test_kept_rows_that_are_lost_are_not_computed_again(session: Any, table: ChangingTable) -> None:
    def lose(step: str) -> None:
        if step == "release":
            for kept in dict(context()._jsc.getPersistentRDDs()).values():
                kept.unpersist()

    with pytest.raises(ResourceError, match=r"an executor was lost, and with it what step release reads"):
        plume.run(PAPER, table.frame(session), engine=Spark(session), on_step=lose)
    assert table.readings() == ONCE


def test_nothing_is_left_in_the_folder(session: Any, tmp_path: Path) -> None:
    exact_release(PAPER, BEFORE, engine=in_a_folder(session, tmp_path))
    assert list((tmp_path / "kept").iterdir()) == []


def test_where_spark_alone_gets_to_the_folder_its_files_are_emptied(session: Any, tmp_path: Path) -> None:
    kept = spark_keeping.InFolder(session, f"file:{tmp_path}/kept")
    assert kept.keep("step", session.range(3)).count() == 3
    kept.forget()
    assert session.read.parquet(*kept.paths).count() == 0


def test_a_folder_that_spark_cannot_write_to_is_said(session: Any) -> None:
    with pytest.raises(SettingError, match="step by_user could not be kept in the folder that keep_in names"):
        exact_release(PAPER, BEFORE, engine=Spark(session, keep_in="/proc/nowhere"))


@pytest.mark.quick_on("spark", "spark-connect")
def test_what_is_kept_on_executors_is_the_same_twice(session: Any) -> None:
    assert spark_keeping._is_same_twice(session, lambda frame: spark_keeping.OnExecutors().keep("probe", frame))


@pytest.mark.quick_on("spark", "spark-connect")
def test_what_is_not_kept_is_not_the_same_twice(session: Any) -> None:
    assert not spark_keeping._is_same_twice(session, lambda frame: frame)


def test_a_server_that_cannot_keep_is_refused(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_keeping, "_KEEPS", {})
    monkeypatch.setattr(spark_keeping, "_cut_off", lambda frame: frame)
    with pytest.raises(SettingError, match="this server does not keep what it has computed"):
        plume.run(PAPER, BEFORE, engine=Spark(connect))


def test_two_tasks_for_the_same_rows_need_a_folder(classic: Any, tmp_path: Path) -> None:
    guessing = classic.newSession()
    guessing.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    guessing.conf.set("spark.speculation", "true")
    with pytest.raises(SettingError, match=r"spark.speculation is on, .* give a folder"):
        plume.run(PAPER, BEFORE, engine=Spark(guessing))
    assert exact_release(PAPER, BEFORE, engine=in_a_folder(guessing, tmp_path)).num_rows > 3


def test_kept_rows_of_spark_connect_are_removed_with_its_garbage(connect: Any) -> None:
    exact_release(PAPER, BEFORE, engine=Spark(connect))
    for _ in range(100):
        context()._jvm.System.gc()
        if context()._jsc.getPersistentRDDs().isEmpty():
            return
    raise AssertionError("rows are still kept")
