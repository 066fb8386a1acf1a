"""On Spark too, one table has one unit: whatever its paths, names and DataFrames are, and those that cannot be told apart are one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.engines.duckdb import DuckDB
from plume.engines.spark import Spark
from plume.errors import InputError, StatementError
from plume.statement.answering import ask

ROWS = pa.table({"user_id": [1, 2], "friend_id": [2, 1]})
FORM = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1, privacy_unit_column = a.user_id) "
    "COUNT(DISTINCT a.user_id) AS n FROM a JOIN b ON a.user_id = b.{}"
)
pytestmark = pytest.mark.quick_on("spark")


def join(one: Any, other: Any, column: str = "friend_id") -> Any:
    return ask(FORM.format(column), engine=Spark(), tables={"a": one, "b": other})


def refuse_two_units(one: Any, other: Any) -> None:
    """A table has one unit under both names, in any order; by the same unit it is joined with itself."""
    for first, second in ((one, other), (other, one)):
        with pytest.raises(StatementError, match="would belong to the user in 'user_id' and to the one in 'friend_id'"):
            join(first, second)
    assert join(one, other, "user_id")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file, under its name, two links and a name without an ending; with a copy, and a link to the folder."""
    (tmp_path / "rows").mkdir()
    pq.write_table(ROWS, tmp_path / "rows" / "t.parquet")
    pq.write_table(ROWS, tmp_path / "copy.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "rows" / "t.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "rows")
    os.link(tmp_path / "rows" / "t.parquet", tmp_path / "hard.parquet")
    os.link(tmp_path / "rows" / "t.parquet", tmp_path / "no_ending")
    (tmp_path / "other").mkdir()
    os.link(tmp_path / "rows" / "t.parquet", tmp_path / "other" / "part-0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SAME = [
    "{}/rows",
    "{}/link",
    "{}/rows/../rows/t.parquet",
    "{}//rows/./t.parquet",
    "{}/link.parquet",
    "{}/hard.parquet",
    "{}/no_ending",
    "{}/other",
    "{}/*/t.parquet",
    "{}/rows/{{t,x}}.parquet",
    "/{}/rows/t.parquet",
    "file:{}/rows/t.parquet",
    "file://{}/link.parquet",
    "file:{}/*.parquet",
    "file:{}/link/t.parquet",
    "hdfs:/rows/t.parquet",
    "./rows/t.parquet",
    "rows/../hard.parquet",
    "hard.parquet",
]


@pytest.mark.parametrize("path", SAME)
def test_a_file_under_another_path_has_the_same_unit(folder: Path, path: str) -> None:
    named = path.format(folder)
    refuse_two_units(f"{folder}/rows/t.parquet", named)
    refuse_two_units(f"file:{folder}/hard.parquet", [named])
    refuse_two_units("rows/t.parquet", named)


@pytest.mark.parametrize("one", ["{}/rows", "{}/link.parquet", "file:{}/hard.parquet"])
@pytest.mark.parametrize("other", ["{}/copy.parquet", "file:{}/copy.parquet", "file://{}/copy.parquet"])
def test_files_that_are_told_apart_are_two_tables(folder: Path, one: str, other: str) -> None:
    assert join(one.format(folder), other.format(folder))


def test_a_file_called_like_a_pattern_is_one(folder: Path) -> None:
    """Spark takes the name of an existing file for a pattern, too, and then it means others."""
    pq.write_table(ROWS, folder / "c?py.parquet")
    refuse_two_units(f"{folder}/copy.parquet", f"{folder}/c?py.parquet")


def test_a_relative_path_may_lie_below_the_folder_that_spark_was_started_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "rows")
    pq.write_table(ROWS, folder / "rows" / "copy.parquet")
    refuse_two_units("copy.parquet", f"{folder}/copy.parquet")


ELSEWHERE = [
    ("s3a://bucket/rows", "s3a://bucket/rows/", True),
    ("s3a://bucket/rows", "s3a://bucket//rows", True),
    ("s3a://bucket/rows", "s3a://bucket/rows/day=1", True),
    ("s3a://bucket/rows", "s3a://bucket/./rows", True),
    ("s3a://bucket/rows", "s3://bucket/rows", True),
    ("s3a://key:secret@bucket/rows", "s3a://bucket/rows", True),
    ("hdfs://one/rows", "hdfs://one:8020/rows", True),
    ("hdfs://one/rows", "hdfs:///rows", True),
    ("hdfs:/rows", "/rows_that_are_not_here", True),
    ("/not_here/rows", "/not_here/people", True),
    ("file:/not_here/rows", "file:/not_here/people", True),
    ("s3a://bucket/rows", "s3a://bucket/people", False),
    ("s3a://bucket/rows", "s3a://bucket/rows_of_others", False),
    (["s3a://bucket/rows", "s3a://bucket/people"], "s3a://bucket/people", True),
    (["s3a://bucket/rows", "s3a://bucket/more"], "s3a://bucket/people", False),
]


@pytest.mark.parametrize(("one", "other", "same"), ELSEWHERE, ids=str)
def test_addresses_are_told_apart_where_their_text_says_so(one: Any, other: Any, same: bool) -> None:  # noqa: FBT001 - a case
    if same:
        refuse_two_units(one, other)
    else:
        assert join(one, other)


def _view(frame: Any, name: str) -> str:
    frame.createOrReplaceTempView(name)
    return name


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "path": lambda _, folder: f"{folder}/rows/t.parquet",
    "relative path": lambda *_: "t.parquet",
    "frame": lambda session, folder: session.read.parquet(f"{folder}/rows"),
    "another frame": lambda session, folder: session.read.parquet(f"{folder}/rows").select("*").where("user_id > 0"),
    "view": lambda session, folder: _view(session.read.parquet(f"{folder}/rows"), "people_of_one_unit"),
    "view of a view": lambda session, _: _view(session.table("people_of_one_unit"), "searches_of_one_unit"),
    "quoted": lambda *_: "`people_of_one_unit`",
}


@pytest.mark.quick_on("spark-connect")
def test_views_frames_and_paths_of_one_file_have_one_unit(session: Any, folder: Path) -> None:
    made = {name: make(session, folder) for name, make in SOURCES.items()}
    for name, one in made.items():
        for another, other in made.items():
            if name < another:
                refuse_two_units(one, other)
    frame, derived = made["frame"], made["another frame"]
    with pytest.raises(StatementError, match="may hold the same rows"):  # DuckDB reads DataFrames of Spark, too
        ask(FORM.format("friend_id"), engine=DuckDB(), tables={"a": frame, "b": derived})
    assert join(plume.private(frame, unit="user_id"), plume.private(derived, unit="friend_id"))


def test_what_cannot_be_told_apart_is_refused_with_what_to_do() -> None:
    with pytest.raises(StatementError, match="if they are different tables, declare their units, with"):
        join("people", "searches")
    assert join(plume.private("people", unit="user_id"), plume.private("searches", unit="friend_id"))


def test_tables_in_memory_are_two() -> None:
    assert join(ROWS, ROWS.slice(0))


@pytest.mark.parametrize("path", ["{}/link", "file:{}/hard.parquet", "{}/no_ending", "{}/other", "{}/r*/t.parquet"])
def test_what_is_certainly_one_file_is_not_declared_twice(folder: Path, path: str) -> None:
    one, other = f"{folder}/rows/t.parquet", path.format(folder)
    with pytest.raises(StatementError, match="may hold the same rows"):
        join(plume.private(one, unit="user_id"), plume.private(other, unit="friend_id"))
    with pytest.raises(InputError, match="the same data, once private and once public"):
        ask(FORM.format("friend_id"), engine=Spark(), tables={"a": one}, public_tables={"b": other})
