"""The privacy unit: which ids are one user and which are two, in every kind of data, and which are no ids at all."""

import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import plume
from plume.errors import ColumnNotFound, ColumnTypeError, InputError
from questions import answer, asking, write_text

# Text ids: each is one user, whatever it looks like. The empty one is missing in CSV.
TEXTS = [
    "007", "7", "07", "7.0", "7e0", " 7", "7 ", "+7", "-7", "0x7", "1e1", "10", "9007199254740992", "9007199254740993",
    "18446744073709551616", "18446744073709551617", "-0", "0", "-0.0", "0.0", "nan", "NaN", "inf", "-inf", "NULL", "null", "None",
    "true", "True", "TRUE", "é", "e\u0301", "bob", "Bob", "bob ", "bob\u00a0", "bob\u200b", "b\u043eb", "\U0001f600", "a\0b", "a,b",
    'a"b', "2026-01-31", "2026-1-31",
]  # fmt: skip
USERS = asking(measures=[plume.users()], public_keys=["x"])


def users(content: Any) -> int:
    (number,) = answer(USERS, content)["users"]
    return number


def rows(ids: Any) -> pa.Table:
    return pa.table({"u": ids, "k": ["x"] * len(ids)})


def as_csv(folder: Path, table: pa.Table) -> Path:
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    return folder / "rows.csv"


def as_parquet(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


def as_json(folder: Path, table: pa.Table) -> Path:
    return write_text(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def as_relation(folder: Path, table: pa.Table) -> Any:
    del folder
    connection = duckdb.connect()
    connection.register("t", table)
    return connection.table("t")


KINDS = {
    "CSV": as_csv,
    "Parquet": as_parquet,
    "JSON": as_json,
    "pandas": lambda _, table: table.to_pandas(),
    "Polars": lambda _, table: pl.from_arrow(table),
    "Arrow": lambda _, table: table,
    "DuckDB": as_relation,
}
KINDS_WITH_NAMES = [kind for kind in KINDS if kind != "JSON"]
"""Kinds of data that say which columns they have, whatever their rows."""


@pytest.mark.parametrize("kind", KINDS)
def test_each_text_is_one_user_in_every_kind_of_data(tmp_path: Path, kind: str) -> None:
    twice = rows(TEXTS * 2)
    assert users(KINDS[kind](tmp_path, twice)) == len(TEXTS) == 44


WHOLE = [0, 1, -1, 7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_integer_is_one_user_in_every_kind_of_data(tmp_path: Path, kind: str) -> None:
    assert users(KINDS[kind](tmp_path, rows(WHOLE * 2))) == len(WHOLE)


@pytest.mark.parametrize("name", ["uint64", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_of_any_width_are_users(name: str) -> None:
    assert users(rows(pa.array([0, 1, 1], name))) == 2


def test_huge_integers_of_duckdb_are_users() -> None:
    ids = f"unnest([{2**100}, {2**100 + 1}, {2**100}])::HUGEINT"
    assert users(duckdb.connect().sql(f"SELECT {ids} AS u, 'x' AS k")) == 2


def test_uuids_are_users() -> None:
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    assert users(rows(pa.array([first.bytes, second.bytes, first.bytes], pa.uuid()))) == 2


def test_categories_are_users() -> None:
    assert users(pd.DataFrame({"u": pd.Categorical(["a", "b", "a"]), "k": ["x"] * 3})) == 2


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["7", '"7"'], 1),
        (["7", "7.0"], 2),
        (["10", "1e1"], 2),
        (["9007199254740992", "9007199254740993"], 2),
        (["18446744073709551616", "18446744073709551617"], 2),
        (["true", '"true"'], 1),
        (["null", '"null"'], 1),
        (["[1]", '{"a":1}'], 2),
    ],
)
def test_json_ids_are_the_text_of_their_value(tmp_path: Path, numbers: list[str], expected: int) -> None:
    text = "".join(f'{{"u":{number},"k":"x"}}\n' for number in numbers)
    assert users(write_text(tmp_path / "rows.jsonl", text)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_user_are_nobodys(tmp_path: Path, kind: str) -> None:
    table = rows(["a", *[None] * 10_000])
    query = asking(measures=[plume.count(max_per_key=2), plume.users()], public_keys=["x"])
    assert answer(query, KINDS[kind](tmp_path, table)) == {"k": ["x"], "count": [1], "users": [1]}


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_rows_without_a_key_count_nowhere(pipeline: str) -> None:
    table = pa.table({"u": list("abcab"), "k": ["x", "x", None, None, "x"]})
    assert answer(asking(), table, pipeline=pipeline) == {"k": ["x"], "count": [3]}


def test_rows_without_a_part_of_the_key_count_nowhere() -> None:
    table = pa.table({"u": list("abcd"), "k": ["x", "x", None, "x"], "l": ["y", "y", "y", None]})
    assert answer(asking(keys=["k", "l"]), table) == {"k": ["x"], "l": ["y"], "count": [2]}


NO_IDS = {
    "floats": pa.array([1.0]),
    "small floats": pa.array([1.0], pa.float32()),
    "decimals": pa.array([Decimal(1)]),
    "booleans": pa.array([True]),
    "dates": pa.array([date(2026, 1, 31)]),
    "moments": pa.array([datetime(2026, 1, 31, tzinfo=UTC)]),
    "moments without a zone": pa.array([datetime(2026, 1, 31)]),  # noqa: DTZ001
    "bytes": pa.array([b"a"]),
    "durations": pa.array([1], pa.duration("s")),
    "lists": pa.array([["a"]]),
    "structs": pa.array([{"a": 1}]),
    "lists of floats": pa.array([[1.0]]),
}


@pytest.mark.parametrize("kind", NO_IDS)
def test_users_must_be_text_integers_or_uuids(kind: str) -> None:
    with pytest.raises(ColumnTypeError, match=r"user column 'u' is .*; an identifier must be text, integer or uuid"):
        users(rows(NO_IDS[kind]))


@pytest.mark.parametrize("kind", KINDS_WITH_NAMES)
def test_a_missing_column_called_user_is_not_the_user_of_the_session(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ColumnNotFound, match="no column 'user' in"):
        answer(asking(user="user"), KINDS[kind](tmp_path, rows(["a", "b"])))


@pytest.mark.parametrize(
    "name", ["user", "current_user", "session_user", "rowid", "filename", "file_row_number", "current_date"]
)
@pytest.mark.parametrize("role", ["user", "keys"])
def test_names_that_engines_know_by_themselves_are_no_columns(tmp_path: Path, role: str, name: str) -> None:
    with pytest.raises(ColumnNotFound, match=f"no column '{name}' in rows.parquet"):
        answer(asking(**{role: name}), as_parquet(tmp_path, rows(["a", "b"])))


@pytest.mark.parametrize("name", ["user", "USER", "User", "rowid", "group", "select"])
def test_columns_may_be_called_like_words_of_sql(name: str) -> None:
    table = pa.table({name: ["a", "b", "b"], "k": ["x"] * 3})
    assert answer(asking(user=name, public_keys=["x"]), table) == {"k": ["x"], "count": [3]}


@pytest.mark.parametrize("kind", KINDS_WITH_NAMES)
def test_a_name_in_other_letters_is_another_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ColumnNotFound, match="no column 'U' in"):
        answer(asking(user="U"), KINDS[kind](tmp_path, rows(["a", "b"])))


def test_a_parquet_file_with_names_that_differ_in_case_only_is_refused(tmp_path: Path) -> None:
    table = pa.table({"u": ["a"], "U": ["b"], "k": ["x"]})
    with pytest.raises(
        InputError, match=r"rows.parquet has columns whose names differ in case only; rename one of them"
    ):
        answer(asking(), as_parquet(tmp_path, table))


def test_a_query_for_names_that_differ_in_case_only_is_refused() -> None:
    table = pa.table({"u": ["a"], "U": [1], "k": ["x"]})
    with pytest.raises(InputError, match="columns 'u' and 'U' are one to an engine, which ignores case"):
        answer(asking(measures=[plume.sum("U", 0, 1)]), table)


def test_of_names_that_differ_in_case_only_a_frame_gives_the_one_that_was_asked_for() -> None:
    table = pa.table({"u": ["a", "a"], "U": ["b", "c"], "k": ["x", "x"]})
    assert users(table) == 1
