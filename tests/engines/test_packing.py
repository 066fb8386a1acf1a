"""Large files: kept steps are packed, and everything is as it would be without."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import plume
from exact import exact_release
from plume.engines import duckdb as engine
from plume.engines.duckdb import DuckDB
from plume.engines.duckdb_session import DuckDBSession
from plume.engines.engine import Table
from plume.errors import InputError, PlumeBug
from plume.plan.analysis import steps
from plume.plan.nodes import Noise
from plume.plan.rereading import reread
from plume.plan.types import Kind
from plume.planning import make_plan
from plume.progress import stage_of

QUERY = plume.Query(
    user="user",
    keys=["word", "number"],
    measures=[
        plume.count(max_per_key=3),
        plume.mean("value", low=0, high=9),
        plume.median("value", low=0, high=9),
    ],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=20, delta=1e-3),
)

THRESHOLD = replace(QUERY, keys="word", measures=plume.count(max_per_key=3), selection="gaussian_threshold")
PAPER = plume.Query.paper(user="user", keys="word", measures=[plume.count(1)], max_keys_per_user=2, budget=QUERY.budget)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """People of whom some have more keys than the limit and some many records of one key."""
    rows = [
        (user, f"w{(user * step) % 7}", step % 3, float(step % 10)) for user in range(120) for step in range(user % 13)
    ]
    columns = dict(zip(("user", "word", "number", "value"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_large_files_give_the_release_that_small_ones_give(
    pipeline: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = exact_release(QUERY, path, engine=DuckDB(), pipeline=pipeline)
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    assert small.num_rows > 0
    assert exact_release(QUERY, path, engine=DuckDB(), pipeline=pipeline).equals(small)


@pytest.mark.parametrize(("limit", "is_held"), [(None, True), ("1000GB", False)])
def test_memory_is_held_unless_it_might_be_more_than_there_is(
    limit: str | None, is_held: object, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    with DuckDB(memory_limit=limit).open({"input": Table(path, {})}) as session:
        ((held,),) = session.ask("SELECT current_setting('block_allocator_memory')")
        assert (held != "0 bytes") is is_held


@pytest.mark.parametrize("stated", [False, True])
@pytest.mark.parametrize("file", ["rows.parquet", "ROWS.PQ", "rows.csv"])
def test_only_what_is_quick_to_read_is_read_again(
    file: str, stated: object, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    if file.endswith("csv"):
        csv.write_csv(pq.read_table(path), tmp_path / file)
    else:
        path.rename(tmp_path / file)
    table = Table(tmp_path / file, {"number": Kind.INTEGER}, stated=bool(stated))
    plan = make_plan(PAPER).plan
    with DuckDB().open({"input": table}) as session:
        assert (session.rewrite(plan) == reread(plan)) is (not stated and not file.endswith("csv"))


@pytest.mark.parametrize("step", ["above_limit", "keyed", "exact"])
def test_a_file_that_changes_between_two_readings_is_refused(
    step: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with few rows when they were counted could have any number of them when they are added up."""
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    rows = pq.read_table(path)

    def write_again(name: str) -> None:
        if name == step:
            pq.write_table(rows, path)

    assert plume.run(PAPER, path).to_arrow().num_rows > 0
    with pytest.raises(InputError, match="a file of the table changed while it was read"):
        plume.run(PAPER, path, on_step=write_again)


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_a_release_does_not_say_whether_its_file_is_large(
    pipeline: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How large a file is depends on each row, and has no noise: all that is kept beside the rows is made from the query alone."""
    planned = plume.explain(THRESHOLD, pipeline=pipeline).plan
    small, told_of_small = kept(pipeline, path)
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    large, told_of_large = kept(pipeline, path)
    assert small == large
    assert told_of_small == [step.name for step in steps(planned)]
    assert told_of_large == [step.name for step in steps(reread(planned))] != told_of_small


def kept(pipeline: str, path: Path) -> tuple[list[Any], list[str]]:
    """What is kept of a run beside its rows and how many there are, and the steps that ran."""
    told: list[str] = []
    release = plume.run(THRESHOLD, path, pipeline=pipeline, on_step=told.append)
    explained, record = release.explanation, release.record() | {"rows": None}
    in_a_log = [stage_of(step) for step in told if stage_of(step)]
    return [record, explained.plan, explained.sql(), str(explained), explained._repr_html_(), in_a_log], told


def test_numbers_are_chosen_where_rows_are_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    query = plume.Query(
        user="user",
        keys="word",
        measures=[plume.count("auto")],
        max_keys_per_user="auto",
        budget=QUERY.budget,
        selection="gaussian_threshold",
    )
    told: list[str] = []
    release = plume.run(query, path, pipeline="naive", on_step=told.append)
    assert set(release.explanation.chosen) == set(query.choices)
    assert "by_user_combined_few" in told
    assert "by_user_combined_few" not in {step.name for step in steps(release.explanation.plan)}
    assert {step.name for step in steps(release.explanation.plan)} < set(told)
    assert len(told) == len(set(told))


def test_a_rewritten_plan_is_checked_before_a_row_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rewrite(session: object, plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
        del session
        return (replace(plan[-1], source=next(step for step in steps(plan) if step.name == "uncut_weights")),)

    monkeypatch.setattr(DuckDBSession, "rewrite", rewrite)
    told: list[str] = []
    with pytest.raises(PlumeBug, match="would release something noise does not cover"):
        plume.run(PAPER, path, on_step=told.append)
    assert not told


def test_kept_steps_take_less_room_and_are_gone_afterwards(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_LARGE_FILES_BYTES", 1)
    rows, bytes_per_row = 1_000_000, 16
    (room := tmp_path / "room").mkdir(mode=0o700)
    with DuckDB(temp_directory=room).open({"input": Table(path, {})}) as session:
        session.keep("numbers", f"SELECT range // 7 AS a, range % 1000 AS b FROM range({rows})")
        assert sum(file.stat().st_size for file in room.rglob("packed*")) < rows * bytes_per_row / 2
    assert not list(room.iterdir())
