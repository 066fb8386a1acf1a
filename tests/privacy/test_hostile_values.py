"""No row makes a run fail: with a hostile value or without it, a query ends alike, and the rows of others count as before."""

# ruff: noqa: DTZ001 - moments of no zone

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from outcomes import RELEASED, outcome
from plume.engines.engine import Engine
from plume.errors import ColumnTypeError
from questions import answer, asking, people

FAR = {"s": 10**15, "ms": 2**55, "us": -(2**63), "ns": -(2**63)}
UNITS = list(FAR)
BEYOND = "name = 'alice' AND t <= TIMESTAMP '9999-12-31 00:00:00'"


def moments(unit: str, *values: int, zone: str | None = None) -> pa.Array:
    """Moments as Arrow holds them: any number of 64 bits is one."""
    return pa.array(values, pa.int64()).view(pa.timestamp(unit, zone))


def text(*values: bytes) -> pa.Array:
    """Text as Arrow holds it: any bytes are."""
    return pa.array(values, pa.binary()).view(pa.string())


def ended(where: str, **columns: Any) -> str:
    query = asking(measures=[plume.users()], public_keys=["x"], where=where)
    rows = people(k=["x"] * max(map(len, columns.values())), **columns)
    return outcome(lambda: plume.run(query, rows))


@pytest.mark.parametrize("where", [BEYOND, BEYOND.replace("=", "<>", 1).replace("AND", "OR")])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(2020, 1, 1)] * 3, pa.timestamp("ns")),
        pa.array([datetime(2020, 1, 1)] * 3, pa.timestamp("us")),
    ],
    ids=["nanoseconds", "microseconds"],
)
def test_a_constant_beyond_a_type_is_refused_or_compared_whatever_the_rows(where: str, column: pa.Array) -> None:
    assert ended(where, t=column, name=["bob", "cem", "dia"]) == ended(where, t=column, name=["bob", "cem", "alice"])


def test_a_constant_too_long_for_a_decimal_is_refused_whatever_the_rows() -> None:
    column = pa.array([Decimal("1.5")] * 2, pa.decimal128(38, 30))
    where = "name = 'alice' AND x < 9000000000000000000"
    without, with_her = (ended(where, x=column, name=names) for names in (["bob", "cem"], ["bob", "alice"]))
    assert without == with_her
    assert "'x', whose type DECIMAL(38,30) holds numbers with 8 digits before the point" in with_her


def test_the_condition_of_a_measure_is_refused_whatever_the_rows() -> None:
    query = asking(measures=[plume.users(where=BEYOND)])
    rows = people(k=["x"], name=["bob"], t=pa.array([datetime(2020, 1, 1)], pa.timestamp("ns")))
    with pytest.raises(ColumnTypeError, match=r"'t', whose type TIMESTAMP_NS holds moments between .* with 9999-12-31"):
        plume.run(query, rows)


@pytest.mark.parametrize("unit", UNITS)
def test_a_condition_on_far_moments_never_fails(unit: str) -> None:
    assert ended("t < TIMESTAMP '2020-01-01 00:00:00'", t=moments(unit, 0, FAR[unit])) == RELEASED


@pytest.mark.parametrize("unit", UNITS)
def test_far_moments_and_spoilt_text_in_memory_end_no_run_on_any_engine(engine: Engine, unit: str) -> None:
    """Nanoseconds that microseconds do not hold among them."""
    query = asking(
        where="t < TIMESTAMP '2020-01-01 00:00:00'",
        measures=[plume.mean("t", datetime(1970, 1, 1), datetime(1971, 1, 1))],
    )
    rows = people(k=text(b"x", b"x", b"x", b"\xff"), t=moments(unit, 0, 1, FAR[unit], 2**63 - 2))
    assert outcome(lambda: plume.run(query, rows, engine=engine)) == RELEASED


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_far_moment_as_a_key_never_fails(unit: str, zone: str | None) -> None:
    keys = moments(unit, 1, FAR[unit], 1, 1, 2, zone=zone)
    query = asking(max_keys_per_user=1)
    rows = pa.table({"u": ["ann", "ann", "bob", "cem", "bob"], "k": keys})
    assert outcome(lambda: plume.run(query, rows)) == RELEASED


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_the_keys_of_others_count_as_without_the_far_one(unit: str) -> None:
    rows = people(k=moments(unit, 1_000_000, 1_000_000, FAR[unit]))
    assert answer(asking(), rows) == answer(asking(), rows.slice(0, 2))


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_far_moment_in_a_parquet_file_never_fails(tmp_path: Path, zone: str | None) -> None:
    pq.write_table(people(k=moments("ms", 5, 5, FAR["ms"], zone=zone)), tmp_path / "far.parquet")
    pq.write_table(people(k=moments("ms", 5, 5, zone=zone)), tmp_path / "near.parquet")
    far, near = (answer(asking(), tmp_path / name) for name in ("far.parquet", "near.parquet"))
    assert far == near
    assert far["count"] == [2]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([-1, 2**62, 1, 1], pa.int64()).view(pa.time64("us")),
        pa.array([-1, 2**31 - 1, 1, 1], pa.int32()).view(pa.time32("s")),
        pa.StructArray.from_arrays([moments("s", FAR["s"], -FAR["s"], 1, 1)], ["t"]),
        pa.ListArray.from_arrays([0, 1, 2, 3, 4], moments("ms", FAR["ms"], FAR["ms"] + 1, 1, 1, zone="UTC")),
        pa.MapArray.from_arrays([0, 1, 2, 3, 4], moments("us", FAR["us"], FAR["us"] + 2, 1, 1), [1, 2, 3, 3]),
    ],
    ids=["times", "times in seconds", "structures", "lists", "maps"],
)
def test_what_lies_beyond_a_type_is_no_key_wherever_it_is_inside(keys: pa.Array) -> None:
    rows = pa.table({"u": ["ann", "ann", "bob", "cem"], "k": keys})
    assert answer(asking(max_keys_per_user=1), rows)["count"] == [2]


def decimals(*values: int) -> pa.Array:
    """Decimals as Arrow holds them: any number of 128 bits is one, however many digits it has."""
    data = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    return pa.Array.from_buffers(pa.decimal128(38, 30), len(values), [None, pa.py_buffer(data)])


@pytest.mark.parametrize("form", ["arrow", "stream", "parquet"])
def test_a_decimal_with_too_many_digits_is_no_value(tmp_path: Path, form: str) -> None:
    query = asking(measures=[plume.sum("v", 0, 10), plume.count(1)])
    rows = people(k=["x"] * 3, v=decimals(10**30, 10**30, 2**127 - 1))
    expected = answer(query, people(k=["x"] * 3, v=[1, 1, None]))
    assert answer(query, given(rows, form, "v", tmp_path)) == expected


@pytest.mark.parametrize("form", ["arrow", "stream", "parquet"])
def test_a_decimal_with_too_many_digits_is_no_key(tmp_path: Path, form: str) -> None:
    keys = decimals(10**30, 2**127 - 1, 10**30, -(2**127))
    rows = pa.table({"u": ["ann", "ann", "bob", "bob"], "k": keys})
    assert answer(asking(max_keys_per_user=1), given(rows, form, "k", tmp_path))["count"] == [2]


@pytest.mark.parametrize("width", [38, 18, 9, 4])
def test_the_lowest_number_of_128_bits_is_no_decimal(width: int) -> None:
    """Arrow takes it for a short one, and DuckDB reads what lies in memory instead."""
    lowest = pa.Array.from_buffers(
        pa.decimal128(width, 1), 1, [None, pa.py_buffer((-(2**127)).to_bytes(16, "little", signed=True))]
    )
    keys = pa.concat_arrays([pa.array([Decimal(1), Decimal(1)], lowest.type), lowest, lowest])
    assert answer(asking(), people(k=keys)) == {"k": [Decimal(1)], "count": [2]}


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_a_far_duration_is_refused_by_its_type(tmp_path: Path, form: str) -> None:
    rows = people(k=pa.array([1, 2**63 - 1], pa.int64()).view(pa.duration("s")))
    with pytest.raises(ColumnTypeError, match="key column 'k' is INTERVAL"):
        answer(asking(), given(rows, form, "k", tmp_path))


@pytest.mark.parametrize("column", ["u", "k", "name"])
@pytest.mark.parametrize("form", ["arrow", "dictionary", "stream", "parquet"])
def test_text_that_is_not_utf_8_is_no_value(tmp_path: Path, column: str, form: str) -> None:
    rows = people(k=["x"] * 3, name=["bob"] * 3)
    spoilt = rows.set_column(
        rows.schema.names.index(column),
        column,
        text(*(f"{value}".encode() for value in rows[column].to_pylist()[:2]), b"\xff"),
    )
    query = asking(where="name LIKE 'b%'")
    assert answer(query, given(spoilt, form, column, tmp_path)) == answer(query, rows.slice(0, 2))


def given(rows: pa.Table, form: str, column: str, folder: Path) -> Any:
    place = rows.schema.names.index(column)
    match form:
        case "dictionary":
            return rows.set_column(place, column, rows[column].dictionary_encode())
        case "stream":
            return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
        case "parquet":
            pq.write_table(rows, folder / "rows.parquet")
            return folder / "rows.parquet"
        case _:
            return rows


def test_files_with_a_spoilt_text_are_read_with_their_folders(tmp_path: Path) -> None:
    for day, users in {"day=1": [b"a", b"b"], "day=a%20b": [b"c", b"d", b"\xff"]}.items():
        (tmp_path / day).mkdir()
        pq.write_table(pa.table({"u": text(*users)}), tmp_path / day / "rows.parquet")
    assert answer(asking(keys="day"), tmp_path) == {"day": ["1", "a b"], "count": [2, 2]}


KEYS = {
    "integers": pa.array([1, 2], pa.uint16()),
    "decimals": pa.array([Decimal("1.5"), Decimal("-2.5")], pa.decimal128(38, 10)),
    "short decimals": pa.array([Decimal("1.5"), Decimal("-2.5")], pa.decimal128(4, 1)),
    "dates": pa.array([0, -719_528], pa.int32()).view(pa.date32()),
    "times": pa.array([0, 1], pa.time64("us")),
    "times in milliseconds": pa.array([0, 1], pa.time32("ms")),
    "milliseconds": moments("ms", 5, -62_135_596_800_001),
    "microseconds": moments("us", 5, -62_135_596_800_000_001),
    "nanoseconds": moments("ns", 5, -1),
    "milliseconds in a zone": moments("ms", 5, -1, zone="Asia/Kathmandu"),
    "bytes": pa.array([b"\xff", b""], pa.binary()),
    "bytes of one length": pa.array([b"ab", b"\0\0"], pa.binary(2)),
    "uuids": pa.array([bytes(16), b"\xff" * 16], pa.uuid()),
    "json": pa.array(["1", '{"a": [1e999]}'], pa.json_()),
    "dictionaries": pa.array(["a", ""]).dictionary_encode(),
    "large text": pa.array(["a", ""], pa.large_string()),
    "lists": pa.array([["a", None], []]),
    "structures": pa.array([{"a": 1, "b": ["x"]}, {"a": None, "b": None}]),
    "maps": pa.array([[("a", 1)], [("b", None)]], pa.map_(pa.string(), pa.int8())),
    "booleans": pa.array([True, False]),
}


@pytest.mark.parametrize("moments_are", ["new", "old"])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_a_parquet_file_are_the_same_beside_a_text_that_is_not_utf_8(
    tmp_path: Path, kind: str, moments_are: str
) -> None:
    """Another reader takes over where DuckDB's fails, and must read every type as it does."""
    keys = pa.concat_arrays([KEYS[kind], KEYS[kind], KEYS[kind]])
    for name, last in {"clean": b"b", "spoilt": b"\xff"}.items():
        rows = people(k=keys).append_column(
            "name", text(b"b", b"b", b"b", b"b", b"c", last if name == "spoilt" else b"c")
        )
        pq.write_table(rows, tmp_path / f"{name}.parquet", use_deprecated_int96_timestamps=moments_are == "old")
    query = asking(where="name = 'b'")
    clean, spoilt = (plume.run(query, tmp_path / f"{name}.parquet").to_arrow() for name in ("clean", "spoilt"))
    assert spoilt.schema == clean.schema
    assert spoilt["k"] == clean["k"]
    assert len(clean) == 2


def test_what_is_no_json_is_no_key_of_that_type() -> None:
    """Keys leave DuckDB as text, and come back as their type."""
    rows = people(k=pa.array(["1", "no json", "1", "no json"], pa.json_()))
    assert answer(asking(), rows) == {"k": ["1"], "count": [2]}


ONLY_DUCKDB = {
    "interval": "INTERVAL 1 DAY",
    "time with a zone": "'01:02:03+05'::TIMETZ",
    "list of intervals": "[INTERVAL 1 DAY]",
}


def hostile_text(path: Path) -> None:
    """Write a text that is not UTF-8 over one that is, of the same length, so that Arrow must read the file."""
    content = path.read_bytes()
    assert b"alice" in content
    path.write_bytes(content.replace(b"alice", b"al\xffce"))


@pytest.mark.parametrize("kind", ONLY_DUCKDB)
@pytest.mark.parametrize("where", ["x IS NULL", "x IS NOT NULL"])
def test_what_only_duckdb_reads_is_refused_whatever_lies_beside_it(tmp_path: Path, kind: str, where: str) -> None:
    path = tmp_path / "rows.parquet"
    rows = f"SELECT unnest(['ann', 'bob', 'alice']) AS u, 'x' AS k, {ONLY_DUCKDB[kind]} AS x"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)")
    query = asking(where=where)
    before = outcome(lambda: plume.run(query, path))
    assert before.startswith("ColumnTypeError: column 'x' is")
    hostile_text(path)
    assert outcome(lambda: plume.run(query, path)) == before


@pytest.mark.parametrize("wide", [pa.decimal256(76, 0), pa.list_(pa.decimal256(40, 2))])
def test_wide_decimals_in_a_parquet_file_are_refused_whatever_lies_beside_them(
    tmp_path: Path, wide: pa.DataType
) -> None:
    """DuckDB reads them as doubles, and Arrow does not hand them over."""
    value = [Decimal(7)] if pa.types.is_list(wide) else Decimal(7)
    ends = []
    for milliseconds in (0, 2**62):
        moments = pa.array([milliseconds], pa.timestamp("ms", "UTC"))
        rows = pa.table({"u": ["ann"], "k": ["x"], "x": pa.array([value], wide), "y": moments})
        pq.write_table(rows, tmp_path / "rows.parquet")
        ends.append(outcome(lambda: plume.run(asking(where="x IS NOT NULL"), tmp_path / "rows.parquet")))
    assert ends[0] == ends[1]
    assert ends[0].startswith("ColumnTypeError: column 'x' has decimals of more than 38 digits")
