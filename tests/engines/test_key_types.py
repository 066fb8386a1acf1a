"""Keys of every type: they group, they come back as they were, and types whose equal values can differ are refused."""

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plume
from plume.errors import ColumnTypeError, PublicKeysError
from questions import answer, asking, people

UUIDS = ["00000000-0000-0000-0000-000000000001", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"]
MOMENT = datetime(2026, 1, 31, 12, 30, 15, 123456)  # noqa: DTZ001 - a moment of no zone
BEFORE = datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001

# Two keys in order, as DuckDB's type and constants, and as they come back from a release.
TYPES: dict[str, tuple[str, str, pa.DataType, list[Any]]] = {
    "VARCHAR": ("''", "'ß'", pa.string(), ["", "ß"]),
    "JSON": ("'1'", "'{\"a\":1}'", pa.string(), ["1", '{"a":1}']),
    "ENUM('x', 'y')": ("'x'", "'y'", pa.string(), ["x", "y"]),
    "UUID": (f"'{UUIDS[0]}'", f"'{UUIDS[1]}'", pa.string(), UUIDS),
    "TINYINT": ("-128", "127", pa.int8(), [-128, 127]),
    "SMALLINT": ("-32768", "32767", pa.int16(), [-(2**15), 2**15 - 1]),
    "INTEGER": ("-2147483648", "2147483647", pa.int32(), [-(2**31), 2**31 - 1]),
    "BIGINT": ("-9223372036854775808", "9223372036854775807", pa.int64(), [-(2**63), 2**63 - 1]),
    "UTINYINT": ("0", "255", pa.uint8(), [0, 255]),
    "USMALLINT": ("0", "65535", pa.uint16(), [0, 2**16 - 1]),
    "UINTEGER": ("0", "4294967295", pa.uint32(), [0, 2**32 - 1]),
    "UBIGINT": ("0", "18446744073709551615", pa.uint64(), [0, 2**64 - 1]),
    "HUGEINT": (str(-(2**120)), str(2**120), pa.decimal128(38, 0), [Decimal(-(2**120)), Decimal(2**120)]),
    "BOOLEAN": ("false", "true", pa.bool_(), [False, True]),
    "DECIMAL(4,1)": ("-2.5", "1.5", pa.decimal128(4, 1), [Decimal("-2.5"), Decimal("1.5")]),
    "DECIMAL(38,10)": ("-2.5", "1.5", pa.decimal128(38, 10), [Decimal("-2.5000000000"), Decimal("1.5000000000")]),
    "DATE": ("'0001-01-01'", "'2026-01-31'", pa.date32(), [date(1, 1, 1), date(2026, 1, 31)]),
    "TIME": ("'00:00'", "'12:30:15.123456'", pa.time64("us"), [time(0), MOMENT.time()]),
    "TIMESTAMP": (f"'{BEFORE}'", f"'{MOMENT}'", pa.timestamp("us"), [BEFORE, MOMENT]),
    "TIMESTAMP_S": (f"'{BEFORE}'", "'2026-01-31'", pa.timestamp("s"), [BEFORE, datetime(2026, 1, 31)]),  # noqa: DTZ001
    "TIMESTAMP_MS": (f"'{BEFORE}'", "'2026-01-31'", pa.timestamp("ms"), [BEFORE, datetime(2026, 1, 31)]),  # noqa: DTZ001
    "TIMESTAMP_NS": (f"'{BEFORE}'", f"'{MOMENT}'", pa.timestamp("ns"), [pd.Timestamp(BEFORE), pd.Timestamp(MOMENT)]),
    "TIMESTAMPTZ": (
        f"'{BEFORE}+00'",
        f"'{MOMENT}+00'",
        pa.timestamp("us", "UTC"),
        [BEFORE.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC)],
    ),
    "BLOB": ("''::BLOB", "'\\xFF\\x00'::BLOB", pa.binary(), [b"", b"\xff\x00"]),
    "INTEGER[]": ("[]", "[1, NULL, 2]", pa.list_(pa.field("l", pa.int32())), [[], [1, None, 2]]),
    "VARCHAR[]": ("['a', 'b']", "['a,b']", pa.list_(pa.field("l", pa.string())), [["a", "b"], ["a,b"]]),
    "INTEGER[2]": ("[1, 2]", "[1, 3]", pa.list_(pa.field("", pa.int32()), 2), [[1, 2], [1, 3]]),
    "STRUCT(a INTEGER, b VARCHAR)": (
        "{'a': 1, 'b': 'x'}",
        "{'a': 1, 'b': 'y'}",
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}],
    ),
    'STRUCT("double" INTEGER)': ("{'double': 1}", "{'double': 2}", None, [{"double": 1}, {"double": 2}]),
    "MAP(VARCHAR, INTEGER)": ("MAP {'a': 1}", "MAP {'b': 1}", None, [[("a", 1)], [("b", 1)]]),
    "STRUCT(a DATE[])[]": (
        "[{'a': [DATE '2026-01-31']}]",
        "[{'a': [DATE '2026-02-01']}]",
        None,
        [[{"a": [date(2026, 1, 31)]}], [{"a": [date(2026, 2, 1)]}]],
    ),
}


def table_of(name: str) -> duckdb.DuckDBPyRelation:
    """Three users have the first key, two the second, and one has none."""
    first, second, _, _ = TYPES[name]
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (u VARCHAR, k {name})")
    connection.execute(f"INSERT INTO t SELECT 'key 1 user ' || n, {first} FROM range(3) AS r(n)")
    connection.execute(f"INSERT INTO t SELECT 'key 2 user ' || n, {second} FROM range(2) AS r(n)")
    connection.execute("INSERT INTO t VALUES ('nobody', NULL)")
    return connection.table("t")


def keys_of(name: str) -> duckdb.DuckDBPyRelation:
    return table_of(name).filter("k IS NOT NULL").project("k").distinct()


@pytest.mark.parametrize(
    "pipeline",
    [
        "plume",
        pytest.param("naive", marks=pytest.mark.engines),
        pytest.param("runtime_optimized", marks=pytest.mark.engines),
    ],
)
@pytest.mark.parametrize("name", TYPES)
def test_keys_of_a_type_are_selected_and_counted(name: str, pipeline: str) -> None:
    assert answer(asking(), table_of(name), pipeline=pipeline) == {"k": TYPES[name][3], "count": [3, 2]}


@pytest.mark.parametrize("name", [name for name in TYPES if TYPES[name][2] is not None])
def test_keys_come_back_in_their_type(name: str) -> None:
    assert plume.run(asking(), table_of(name)).to_arrow().schema.field("k").type == TYPES[name][2]


@pytest.mark.parametrize("name", TYPES)
def test_public_keys_of_a_type_are_counted(name: str) -> None:
    assert answer(asking(public_keys=keys_of(name)), table_of(name)) == {"k": TYPES[name][3], "count": [3, 2]}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.engines] * (number % 2)) for number, name in enumerate(TYPES)]
)
def test_users_with_too_many_keys_of_a_type_are_cut(name: str) -> None:
    both = table_of(name).project("u[7:] AS u, k")
    counts = answer(asking(max_keys_per_user=1, public_keys=keys_of(name)), both)["count"]
    assert sum(counts) == 3


@pytest.mark.parametrize(
    "name",
    [
        "FLOAT",
        "DOUBLE",
        "DOUBLE[]",
        "FLOAT[2]",
        "STRUCT(a INTEGER, b FLOAT)",
        "MAP(VARCHAR, DOUBLE)",
        "STRUCT(a DOUBLE[])[]",
    ],
)
def test_keys_with_floating_point_numbers_anywhere_inside_are_refused(name: str) -> None:
    rows = duckdb.connect().sql(f"SELECT 'a' AS u, CAST(NULL AS {name}) AS k")
    with pytest.raises(ColumnTypeError, match=r"key column 'k' is .*equal values of this type can differ"):
        answer(asking(), rows)


@pytest.mark.parametrize(
    "name", ["UHUGEINT", "TIMETZ", "BIT", "BIGNUM", "INTERVAL", "UNION(a INTEGER)", "VARIANT", "BIT[]"]
)
def test_keys_that_do_not_leave_duckdb_as_they_are_are_refused(name: str) -> None:
    rows = duckdb.connect().sql(f"SELECT 'a' AS u, CAST(NULL AS {name}) AS k")
    with pytest.raises(ColumnTypeError, match="DuckDB cannot export column 'k' of type"):
        answer(asking(), rows)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, 2], pa.duration("s")),
        pa.array([pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0])]),
        pa.array([1.5, 2.5]),
        pa.array([1.5, 2.5], pa.float32()),
        pa.array([1.5, 2.5]).dictionary_encode(),
        pa.array([[1.5], [2.5]]),
    ],
)
def test_arrow_keys_of_which_equal_ones_can_differ_are_refused(keys: pa.Array) -> None:
    with pytest.raises(ColumnTypeError, match="equal values of this type can differ"):
        answer(asking(), people(k=keys))


ARROW_KEYS = {
    "large text": pa.array(["x", "y", "x", "y"], pa.large_string()),
    "text views": pa.array(["x", "y", "x", "y"], pa.string_view()),
    "dictionaries": pa.array(["x", "y", "x", "y"]).dictionary_encode(),
    "dictionaries of integers": pa.array([1, 2, 1, 2]).dictionary_encode(),
    "run-end encoded text": pa.RunEndEncodedArray.from_arrays([2, 4], ["x", "y"]),
    "bytes of one length": pa.array([b"ab", b"cd"] * 2, pa.binary(2)),
    "uuids": pa.array([uuid.UUID(text).bytes for text in UUIDS] * 2, pa.uuid()),
    "dates in milliseconds": pa.array([date(2026, 1, 30), date(2026, 1, 31)] * 2, pa.date64()),
    "times in seconds": pa.array([time(1), time(2)] * 2, pa.time32("s")),
    "moments in a zone": pa.array([BEFORE, MOMENT] * 2, pa.timestamp("ns", "Europe/Berlin")),
    "large lists": pa.array([[1], [2]] * 2, pa.large_list(pa.int64())),
    "lists of dictionaries": pa.ListArray.from_arrays(range(5), pa.array(["x", "y"] * 2).dictionary_encode()),
}


@pytest.mark.parametrize("kind", ARROW_KEYS)
def test_arrow_keys_of_any_layout_are_counted(kind: str) -> None:
    assert answer(asking(measures=[plume.users()]), people(k=ARROW_KEYS[kind]))["users"] == [2, 2]


def test_only_released_categories_are_in_the_result(tmp_path: Path) -> None:
    keys = pd.Categorical(["common"] * 50 + ["rarest"], categories=["common", "rarest", "absent"])
    release = plume.run(asking(budget=plume.Budget(50, 1e-9)), pd.DataFrame({"u": range(51), "k": keys}))
    release.write_parquet(tmp_path / "r.parquet")
    written = (tmp_path / "r.parquet").read_bytes()
    assert [word in written for word in (b"common", b"rarest", b"absent")] == [True, False, False]


def test_categories_of_polars_come_back_as_text() -> None:
    frame = pl.DataFrame({"u": list("abcd"), "k": list("xxyy")}, schema_overrides={"k": pl.Categorical})
    assert plume.run(asking(), frame).to_arrow().schema.field("k").type == pa.string()


def test_composite_keys_of_mixed_types_are_told_apart() -> None:
    parts = {
        "text": ["a", "a", "a", "a"] * 2,
        "number": pa.array([1, 1, 2, 2] * 2, pa.int16()),
        "day": [date(2026, 1, 31), date(2026, 2, 1), date(2026, 1, 31), None] * 2,
        "flag": [True] * 8,
    }
    found = answer(asking(keys=list(parts)), people(**parts))
    assert found == {
        "text": ["a", "a", "a"],
        "number": [1, 1, 2],
        "day": [date(2026, 1, 31), date(2026, 2, 1), date(2026, 1, 31)],
        "flag": [True, True, True],
        "count": [2, 2, 2],
    }


def test_composite_keys_that_look_alike_when_joined_are_told_apart() -> None:
    first, second = ["a", "a|b", "a,b", ""] * 2, ["b|c", "c", "c", "a,b,c"] * 2
    found = answer(asking(keys=["k", "l"]), people(k=first, l=second))
    assert list(zip(found["k"], found["l"], strict=True)) == [("", "a,b,c"), ("a", "b|c"), ("a,b", "c"), ("a|b", "c")]


def test_composite_public_keys_of_mixed_types_are_all_released() -> None:
    query = asking(keys=["k", "day"], public_keys=[("x", date(2026, 1, 31)), ("y", date(2026, 2, 1))])
    rows = people(k=["x", "x", "y"], day=[date(2026, 1, 31), date(2026, 1, 31), date(2026, 1, 31)])
    assert answer(query, rows)["count"] == [2, 0]


def test_texts_that_differ_in_any_byte_are_different_keys() -> None:
    keys = [
        "é",
        "e\u0301",
        "a",
        "A",
        "a ",
        " a",
        "a\u00a0",
        "a\u200b",
        "a\0",
        "",
        "\U0001f600",
        "1",
        "01",
        "1.0",
        "NULL",
    ]
    found = answer(asking(public_keys=keys), people(k=keys))
    assert found["count"] == [1] * len(keys)
    assert sorted(found["k"]) == sorted(keys)


PUBLIC: dict[str, tuple[Any, Any]] = {
    "a list": (["x", "y"], ["x", "x", "y"]),
    "a tuple": (("x", "y"), ["x", "x", "y"]),
    "a list of tuples": ([("x",), ("y",)], ["x", "x", "y"]),
    "a range": (range(2), [0, 0, 1]),
    "an Arrow table": (pa.table({"k": ["x", "y"]}), ["x", "x", "y"]),
    "an Arrow array": (pa.array(["x", "y"]), ["x", "x", "y"]),
    "a pandas frame with more columns": (pd.DataFrame({"n": [1.5, 2], "k": ["x", "y"]}), ["x", "x", "y"]),
    "a pandas column": (pd.Series(["x", "y"]), ["x", "x", "y"]),
    "pandas categories": (pd.Series(["x", "y"], dtype="category"), ["x", "x", "y"]),
    "a Polars frame": (pl.DataFrame({"k": ["x", "y"]}), ["x", "x", "y"]),
    "a Polars column": (pl.Series(["x", "y"]), ["x", "x", "y"]),
    "a numpy array": (pd.array([0, 1], dtype="int64").to_numpy(), [0, 0, 1]),
    "integers for small integers": ([0, 1], pa.array([0, 0, 1], pa.int8())),
    "integers for text": ([0, 1], ["0", "0", "1"]),
    "text for integers": (["0", "1"], [0, 0, 1]),
    "text for dates": (["2026-01-31", "2026-02-01"], [date(2026, 1, 31), date(2026, 1, 31), date(2026, 2, 1)]),
    "dates": ([date(2026, 1, 31), date(2026, 2, 1)], [date(2026, 1, 31), date(2026, 1, 31), date(2026, 2, 1)]),
    "booleans": ([False, True], [False, False, True]),
    "bytes": ([b"", b"x"], [b"", b"", b"x"]),
    "uuids": ([uuid.UUID(text) for text in UUIDS], [UUIDS[0], UUIDS[0], UUIDS[1]]),
    "decimals": ([Decimal("1.5"), Decimal("2.5")], [Decimal("1.5"), Decimal("1.5"), Decimal("2.5")]),
    "huge integers": ([2**100, 2**101], [Decimal(2**100), Decimal(2**100), Decimal(2**101)]),
    "lists": ([([1],), ([2],)], [[1], [1], [2]]),
}


@pytest.mark.parametrize("kind", PUBLIC)
def test_public_keys_can_be_given_in_many_ways(kind: str) -> None:
    keys, found = PUBLIC[kind]
    assert answer(asking(public_keys=keys), people(k=found))["count"] == [2, 1]


def test_public_keys_can_be_a_duckdb_relation() -> None:
    keys = duckdb.connect().sql("SELECT unnest(['x', 'y']) AS k")
    assert answer(asking(public_keys=keys), people(k=["x", "x", "y"]))["count"] == [2, 1]


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (["1.5"], [1]),
        (["007"], [1]),
        (["x"], [1]),
        ([300], pa.array([1], pa.int8())),
        ([Decimal("1.5")], [1]),
        ([MOMENT], [date(2026, 1, 31)]),
        ([2], [True]),
        ([2**100], [1]),
    ],
)
def test_public_keys_that_the_column_cannot_hold_are_refused_rather_than_rounded(keys: list[Any], found: Any) -> None:
    with pytest.raises(PublicKeysError, match="values that the key columns' types cannot hold"):
        answer(asking(public_keys=keys), people(k=found))
