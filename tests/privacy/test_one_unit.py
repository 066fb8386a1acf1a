"""One table has one unit, by whatever names a statement calls it; and what the owner declares, no statement can change."""

import json
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.engines.spark import Spark
from plume.errors import InputError, PlumeError, StatementError
from plume.statement.answering import ask
from questions import write_text

ROWS = pa.table({"user_id": [1, 2], "friend_id": [2, 1]})
FORM = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1, privacy_unit_column = a.user_id) "
    "COUNT(DISTINCT a.user_id) AS n FROM {} AS a JOIN {} AS b ON a.user_id = b.{}"
)


def joined(one: str, other: str, column: str = "friend_id") -> str:
    return FORM.format(one, other, column)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file, under its name, a link, another link and a copy; and with a database."""
    (tmp_path / "rows").mkdir()
    pq.write_table(ROWS, tmp_path / "rows" / "t.parquet")
    pq.write_table(ROWS, tmp_path / "copy.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "rows" / "t.parquet")
    os.link(tmp_path / "rows" / "t.parquet", tmp_path / "hard.parquet")
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS user_id, 2 AS friend_id")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SAME = [
    "rows/*.parquet",
    "rows",
    "./rows/../rows/t.parquet",
    "link.parquet",
    "hard.parquet",
    "**/t.parquet",
    "*.parquet",
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("other", SAME)
def test_a_file_under_another_name_has_the_same_unit(other: str) -> None:
    with pytest.raises(StatementError, match="would belong to the user in 'user_id' and to the one in 'friend_id'"):
        plume.sql(joined("'rows/t.parquet'", f"'{other}'"))
    assert plume.sql(joined("'rows/t.parquet'", f"'{other}'", "user_id")).rows.num_rows == 1


@pytest.mark.usefixtures("folder")
def test_lists_of_files_that_share_one_have_the_same_unit() -> None:
    tables = {"a": ["copy.parquet", "rows/t.parquet"], "b": ["hard.parquet"]}
    with pytest.raises(StatementError, match="may hold the same rows"):
        plume.sql(joined("a", "b"), tables=tables)


@pytest.mark.usefixtures("folder")
def test_a_table_of_a_database_under_two_names_has_one_unit() -> None:
    with pytest.raises(StatementError, match="may hold the same rows"):
        plume.sql(joined("t", '"main.t"'), tables={"t": "one.duckdb", "main.t": "one.duckdb"})


@pytest.mark.usefixtures("folder")
def test_a_copy_is_another_table() -> None:
    assert plume.sql(joined("'rows/t.parquet'", "'copy.parquet'")).rows.num_rows == 1


@pytest.mark.usefixtures("folder")
def test_a_file_is_not_private_under_one_name_and_public_under_another() -> None:
    with pytest.raises(InputError, match="the same data, once private and once public"):
        plume.sql(joined("a", "b"), tables={"a": "rows"}, public_tables={"b": "hard.parquet"})


SPARK_NAMES = [
    ("searches", "default.searches"),
    ("searches", "spark_catalog.default.SEARCHES"),
    ("searches", "parquet.`/warehouse/searches`"),
    ("parquet.`/data/a`", "parquet.`/data/*`"),
    ("searches", "frame"),
]


@pytest.mark.parametrize(("one", "other"), SPARK_NAMES)
def test_on_spark_what_cannot_be_told_apart_has_one_unit(one: str, other: str) -> None:
    tables = {"frame": ROWS}
    with pytest.raises(StatementError, match="may hold the same rows"):
        ask(joined(one, other), engine=Spark(), tables=tables)
    assert ask(joined(one, other, "user_id"), engine=Spark(), tables=tables)


def test_on_spark_a_name_of_the_catalogue_may_be_a_view_of_any_table() -> None:
    with pytest.raises(StatementError, match="searches and people may hold the same rows"):
        ask(joined("searches", "people"), engine=Spark())
    assert ask(joined("searches", "people", "user_id"), engine=Spark())
    declared = {
        "searches": plume.private("searches", unit="user_id"),
        "people": plume.private("people", unit="friend_id"),
    }
    assert ask(joined("searches", "people"), engine=Spark(), tables=declared)


def test_on_spark_names_that_differ_in_case_are_two_columns() -> None:
    with pytest.raises(StatementError, match="rows of searches would belong"):
        ask(joined("searches", "searches", "USER_ID"), engine=Spark())


PRIVATE, FRIENDS = plume.private(ROWS, unit="user_id"), plume.private(ROWS.slice(0), unit="friend_id")


def test_a_declared_unit_is_the_unit() -> None:
    assert plume.sql(joined("a", "b"), tables={"a": PRIVATE, "b": FRIENDS}).rows.num_rows == 1


def test_a_declared_unit_cannot_be_another() -> None:
    with pytest.raises(
        StatementError, match="belong to the user in 'user_id', as declared, and not to the one in 'friend_id'"
    ):
        plume.sql(joined("a", "b"), tables={"a": PRIVATE, "b": plume.private(ROWS.slice(0), unit="user_id")})


@pytest.mark.parametrize("column", ["u\u017fer_id", "USER_ID", "user_\u0131d"])
@pytest.mark.parametrize("declared", [False, True])
def test_a_name_that_only_looks_like_the_units_is_another_column(tmp_path: Path, column: str, declared: bool) -> None:  # noqa: FBT001 - a case
    """A record of JSON may hold any name: by this one, a user would say whose rows hers are."""
    path = write_text(tmp_path / "t.jsonl", json.dumps({"user_id": "eve", column: "bob"}) + "\n")
    tables = {"t": plume.private(path, unit="user_id") if declared else path}
    with pytest.raises(StatementError, match="belong to the user in 'user_id'"):
        plume.sql(joined("t", "t", f'"{column}"'), tables=tables)
    if declared:
        with pytest.raises(StatementError, match="as declared"):
            plume.sql(joined("t", "t", f'"{column}"').replace("a.user_id", f'a."{column}"'), tables=tables)


@pytest.mark.usefixtures("folder")
def test_one_file_cannot_be_declared_with_two_units() -> None:
    tables = {"a": plume.private("rows", unit="user_id"), "b": plume.private("link.parquet", unit="friend_id")}
    with pytest.raises(StatementError, match="may hold the same rows"):
        plume.sql(joined("a", "b"), tables=tables)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("path", ["'copy.parquet'", "'/etc/passwd'", '"copy.parquet"'])
def test_beside_declared_tables_a_statement_names_no_paths(path: str) -> None:
    with pytest.raises(StatementError, match="a statement can name no others: a"):
        plume.sql(joined("a", path), tables={"a": PRIVATE})


def test_beside_declared_tables_spark_s_catalogue_is_closed() -> None:
    with pytest.raises(StatementError, match="a statement can name no others"):
        ask(joined("a", "people"), engine=Spark(), tables={"a": PRIVATE})


def test_beside_a_declared_table_every_table_is_declared() -> None:
    with pytest.raises(StatementError, match="the table 'b' is not declared and others are"):
        plume.sql(joined("a", "b"), tables={"a": PRIVATE, "b": ROWS})


@pytest.mark.usefixtures("folder")
def test_a_public_table_that_is_declared_asks_for_declared_units_wherever_it_stands() -> None:
    declared = {"p": plume.public(ROWS.slice(0))}
    with pytest.raises(StatementError, match="the table 'a' is not declared and others are"):
        plume.sql(joined("a", "p"), tables={"a": ROWS}, public_tables=declared)
    with pytest.raises(StatementError, match="a statement can name no others: p"):
        plume.sql(joined("'copy.parquet'", "p"), public_tables=declared)
    assert plume.sql(joined("a", "p"), tables={"a": PRIVATE}, public_tables=declared).rows.num_rows == 1


def test_a_table_declared_public_is_joined_freely() -> None:
    assert plume.sql(joined("a", "b"), tables={"a": PRIVATE, "b": plume.public(ROWS.slice(0))}).rows.num_rows == 1


def test_data_is_declared_once() -> None:
    with pytest.raises(InputError, match="declared already"):
        plume.public(PRIVATE)
    with pytest.raises(InputError, match="a table is private or public"):
        plume.sql(joined("a", "b"), tables={"a": ROWS}, public_tables={"b": PRIVATE})


def test_a_query_asks_about_the_declared_unit() -> None:
    query = plume.Query(
        user="friend_id", keys="user_id", measures=plume.users(), max_keys_per_user=1, budget=plume.Budget(1, 1e-6)
    )
    with pytest.raises(PlumeError, match="declared to belong to the users in 'user_id'"):
        plume.run(query, PRIVATE)
    assert plume.run(query, FRIENDS).private
