"""No row makes a run fail: with a hostile value or without it, a query ends alike, and the rows of others count as before."""

# ruff: noqa: DTZ001 - moments of no zone

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import plume
from exact import exact_release
from outcomes import RELEASED, outcome
from pairs import pairs
from plume.engines.engine import Engine
from plume.errors import ColumnTypeError, InputError
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


@pytest.mark.parametrize("where", ["x = 'hello'", "x <> y", "x IN ('1', '[')", "x LIKE '%'"])
def test_json_beside_text_is_refused_whatever_the_rows(where: str) -> None:
    """DuckDB would cast the text, and fail on what is no JSON."""
    columns = {"x": pa.array(["1", "2"], pa.json_()), "y": ["1", "hello"]}
    ends = {ended(f"name = 'alice' AND {where}", name=names, **columns) for names in (["bob", "cem"], ["bob", "alice"])}
    assert len(ends) == 1
    assert "column 'x', which is JSON, with" in ends.pop()


def test_the_condition_of_a_measure_is_refused_whatever_the_rows() -> None:
    query = asking(measures=[plume.users(where=BEYOND)])
    rows = people(k=["x"], name=["bob"], t=pa.array([datetime(2020, 1, 1)], pa.timestamp("ns")))
    with pytest.raises(
        ColumnTypeError, match=r"'t', whose type TIMESTAMP_NS holds timestamps between .* with 9999-12-31"
    ):
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


def shared(*values: bytes) -> dict[str, pa.Array]:
    """Text in what rows share: a dictionary inside of something, or the bytes that views show."""
    words = text(*values)
    views = pa.array(values, pa.binary_view()).view(pa.string_view())
    entries, ends = words.dictionary_encode(), range(len(values) + 1)
    return {
        "views": views,
        "lists of views": pa.ListArray.from_arrays(ends, views),
        "dictionaries of views": views.cast(pa.large_string())
        .dictionary_encode()
        .cast(pa.dictionary(pa.int8(), views.type)),
        "structures of dictionaries": pa.StructArray.from_arrays([entries], ["a"]),
        "lists of dictionaries": pa.ListArray.from_arrays(ends, entries),
        "maps of dictionaries": pa.MapArray.from_arrays(ends, entries, pa.array([1] * len(values))),
    }


@pytest.mark.parametrize("form", ["arrow", "stream", "parquet"])
@pytest.mark.parametrize("kind", shared(b"x"))
def test_a_spoilt_text_spoils_no_text_of_others_that_rows_share(tmp_path: Path, kind: str, form: str) -> None:
    keys = {last: shared(b"x", b"x", b"y", b"y", last)[kind] for last in (b"z", b"\xff")}
    if form == "parquet" and kind == "dictionaries of views":
        pytest.skip("Parquet files hold none")
    answers = [answer(asking(), given(people(k=found), form, "k", tmp_path)) for found in keys.values()]
    assert answers[0] == answers[1]
    assert answers[0]["count"] == [2, 2]


@pytest.mark.parametrize("form", ["arrow", "stream"])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_far_moment_in_a_dictionary_is_no_key(tmp_path: Path, unit: str, form: str, *, inside: bool) -> None:
    keys: Any = moments(unit, 5, 5, FAR[unit], zone="UTC").dictionary_encode()
    rows = people(k=pa.StructArray.from_arrays([keys], ["t"]) if inside else keys)
    assert answer(asking(), given(rows, form, "k", tmp_path))["count"] == [2]


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_lists_of_a_dictionary_are_read_whether_or_not_all_of_them_are_empty(tmp_path: Path, form: str) -> None:
    """DuckDB fails where all are, so that one value of one user would decide."""
    kind = pa.list_(pa.dictionary(pa.int8(), pa.string()))
    for more in ([], [["z"]]):
        rows = people(k=pa.array([[], [], *more], kind))
        assert answer(asking(), given(rows, form, "k", tmp_path)) == {"k": [[]], "count": [2]}


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_a_spoilt_text_in_runs_spoils_no_other(tmp_path: Path, form: str) -> None:
    rows = people(k=pc.run_end_encode(text(b"x", b"x", b"\xff", b"\xff")))
    assert answer(asking(), given(rows, form, "k", tmp_path)) == {"k": ["x"], "count": [2]}


UNREADABLE = {
    "structures of runs": pa.StructArray.from_arrays([pc.run_end_encode(pa.array([1, 1]))], ["r"]),
    "runs of views": pa.RunEndEncodedArray.from_arrays([2], pa.array(["x"], pa.string_view())),
    "views of lists": pa.array([["x"], ["x"]], pa.list_view(pa.string())),
    "dictionaries of lists": pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([["x"]])),
    "unions": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array(["x", "x"])]),
    "extensions of views": pa.ExtensionArray.from_storage(
        pa.json_(pa.string_view()), pa.array(["1", "1"], pa.string_view())
    ),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_cannot_be_looked_at_row_by_row_is_refused_by_its_type(kind: str) -> None:
    with pytest.raises(ColumnTypeError, match=r"column 'k' is .*, which is not read row by row; cast it first\."):
        answer(asking(), people(k=UNREADABLE[kind]))


@pytest.mark.parametrize("last", [b"y", b"\xff"])
def test_a_parquet_file_of_views_of_lists_is_refused_whatever_lies_in_it(tmp_path: Path, last: bytes) -> None:
    """DuckDB could read them, and Arrow, which takes over where DuckDB fails, could not look at them row by row."""
    pq.write_table(people(k=pa.ListViewArray.from_arrays([0, 1], [1, 1], text(b"x", last))), tmp_path / "rows.parquet")
    with pytest.raises(ColumnTypeError, match=r"column 'k' is list_view<.*>, which is not read row by row"):
        answer(asking(), tmp_path / "rows.parquet")


def test_files_with_a_spoilt_text_are_read_with_their_folders(tmp_path: Path) -> None:
    for day, users in {"day=1": [b"a", b"b"], "day=a%20b": [b"c", b"d", b"\xff"]}.items():
        (tmp_path / day).mkdir()
        pq.write_table(pa.table({"u": text(*users)}), tmp_path / day / "rows.parquet")
    assert answer(asking(keys="day"), tmp_path) == {"day": ["1", "a b"], "count": [2, 2]}


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_spoilt_text_does_not_decide_which_of_two_columns_is_read(tmp_path: Path, *, spoilt: bool) -> None:
    """DuckDB takes the first of them for the user, and Arrow the one of that very name."""
    names = text(b"x", b"\xff" if spoilt else b"z")
    pq.write_table(pa.table({"u": ["a", "b"], "k": ["x", "x"], "n": ["x", "y"]}), tmp_path / "one.parquet")
    pq.write_table(
        pa.table({"U": ["c", "c"], "u": ["d", "e"], "k": ["x", "x"], "n": names}), tmp_path / "other.parquet"
    )
    with pytest.raises(InputError, match="the 2 files differ in the columns this query reads"):
        answer(asking(where="n <> 'y'"), tmp_path)


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_spoilt_text_does_not_decide_which_of_two_folders_is_read(tmp_path: Path, *, spoilt: bool) -> None:
    folder = tmp_path / "k=1" / "k=2"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"u": text(b"a", b"b", b"\xff" if spoilt else b"c")}), folder / "rows.parquet")
    with pytest.raises(InputError, match="two folders of one path are called 'k'="):
        answer(asking(), tmp_path)


@pytest.mark.parametrize("form", ["arrow", "stream"])
@pytest.mark.parametrize("role", ["key", "condition"])
def test_a_map_with_a_key_twice_ends_no_run(tmp_path: Path, role: str, form: str) -> None:
    kind = pa.map_(pa.string(), pa.int8())
    ends = []
    for last in ([("a", 1)], [("a", 1), ("a", 2)]):
        maps = pa.array([[("a", 1)], [("a", 1)], last], kind)
        rows = people(k=maps if role == "key" else ["x"] * 3, m=maps)
        query = asking(where="m IS NOT NULL" if role == "condition" else None)
        ends.append(outcome(lambda: plume.run(query, given(rows, form, "m", tmp_path))))  # noqa: B023 - called at once
    assert ends[0] == ends[1]


SPOILT = pd.Series(["y", "y", "\ud800"], dtype=object)
CATEGORIES = pd.Series(pd.Categorical.from_codes([0, 0, 1], pd.Index(["y", "\ud800"], dtype=object)))


@pytest.mark.parametrize(
    "texts", [SPOILT, SPOILT.astype("string[python]"), CATEGORIES], ids=lambda column: column.dtype
)
@pytest.mark.parametrize("role", ["user", "keys", "where"])
def test_half_of_a_surrogate_pair_in_pandas_is_no_value(texts: pd.Series, role: str) -> None:
    rows = pd.DataFrame({"u": ["a", "b", "c"], "k": ["x"] * 3, "t": texts})
    roles = {"user": {"user": "t"}, "keys": {"keys": "t"}, "where": {"where": "t = 'y'"}}
    assert answer(asking(**roles[role]), rows) == answer(asking(**roles[role]), rows[:2])


READ = {
    "a sum": (plume.sum("v", 0, 10), None),
    "a mean": (plume.mean("v", 0, 10), None),
    "a histogram": (plume.histogram("v", [0, 2, 10]), None),
    "a condition": (plume.users(), "v > 3"),
    "a condition that all but NaN meet": (plume.users(), "v BETWEEN 0 AND 3"),
    "a condition of a measure": (plume.users(where="NOT v < 3"), None),
}


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize(("read", "more"), pairs(READ, [5.0, float("inf"), -1e308]))
def test_a_value_does_not_decide_how_nan_of_others_is_read_from_a_file(
    engine: Engine, tmp_path: Path, read: str, more: float, kind: pa.DataType
) -> None:
    """The statistics of a file know no NaN: an engine that trusts them reads NaN by what the other rows of a group hold."""
    measure, where = READ[read]
    query = asking(measures=[measure], where=where, public_keys=["x"])
    values = [float("nan")] * 4 + [1.0] * 3
    answers = []
    for name, column in {"without": values, "with": [*values, more]}.items():
        rows = people(k=["x"] * 7 + ["y"] * (len(column) - 7), v=pa.array(column, kind))
        pq.write_table(rows, tmp_path / f"{name}.parquet")
        answers.append(exact_release(query, tmp_path / f"{name}.parquet", engine=engine).to_pydict())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("form", ["parquet", "orc", "cached"])
@pytest.mark.parametrize("where", ["v > 3", "NOT v < 3"])
def test_a_value_does_not_decide_how_nan_of_others_is_read_from_a_frame(
    engine: Engine, session: Any, tmp_path: Path, where: str, form: str
) -> None:
    """Spark only: a cache knows as little of NaN as the statistics of files."""
    from plume.engines.spark_rows import make_frame  # noqa: PLC0415 - the other engine does not need it

    query = asking(measures=[plume.users()], where=where, public_keys=["x"])
    values = [float("nan")] * 4 + [1.0] * 3
    answers = []
    for name, column in {"without": values, "with": [*values, 5.0]}.items():
        rows = people(k=["x"] * 7 + ["y"] * (len(column) - 7), v=column)
        frame = make_frame(rows, session).coalesce(1)
        if form == "cached":
            frame.cache().count()
        else:
            pq.write_table(rows, tmp_path / f"{name}.parquet")
            read = session.read.parquet(str(tmp_path / f"{name}.parquet"))
            if form == "orc":
                read.write.orc(str(tmp_path / name))
                read = session.read.orc(str(tmp_path / name))
            frame = read
        answers.append(exact_release(query, frame, engine=engine).to_pydict())
    assert answers[0] == answers[1] == {"k": ["x"], "users": [4]}


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
    "durations": pa.array([1, 2], pa.duration("s")),
    "lists of durations": pa.array([[1], [2]], pa.list_(pa.duration("ms"))),
    "structures of durations": pa.array([{"a": 1}, {"a": 2}], pa.struct([("a", pa.duration("ns"))])),
    "maps to durations": pa.array([[("a", 1)], [("a", 2)]], pa.map_(pa.string(), pa.duration("us"))),
    "lists of one length": pa.array([[1, 2], [1, None]], pa.list_(pa.int8(), 2)),
    "booleans of eight bits": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 7], pa.int8())),
    "lists of booleans of eight bits": pa.array([[1], [7]], pa.list_(pa.int8())).cast(pa.list_(pa.bool8())),
    "what only its writer knows": pa.ExtensionArray.from_storage(
        pa.opaque(pa.binary(16), "hugeint", "DuckDB"), pa.array([bytes(16), b"\1" * 16], pa.binary(16))
    ),
    "tensors": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2], [1, 3]], pa.list_(pa.int8(), 2))
    ),
    "decimals of 256 bits": pa.array([Decimal("1.5"), Decimal("-2.5")], pa.decimal256(38, 1)),
    "lists of decimals of 256 bits": pa.array([[Decimal("1.5")], []], pa.list_(pa.decimal256(20, 1))),
    "structures of dictionaries": pa.array(
        [{"a": "x"}, {"a": "y"}], pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))])
    ),
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


def test_uuids_that_duckdb_cannot_decode_are_the_same_beside_a_text_that_is_not_utf_8(tmp_path: Path) -> None:
    """A file may cut them into streams of bytes, which Arrow puts together and DuckDB does not."""
    ended = set()
    for last in (b"c", b"\xff"):
        rows = people(k=pa.array([bytes(16)] * 3, pa.uuid()), name=text(b"a", b"b", last))
        pq.write_table(rows, tmp_path / "rows.parquet", use_byte_stream_split=["k"], use_dictionary=False)
        ended.add(str(answer(asking(where="name <> 'c'"), tmp_path / "rows.parquet")["count"]))
    assert ended == {"[2]"}


@pytest.mark.parametrize("last", ["c", "\xff"])
def test_a_file_whose_types_arrow_lacks_is_refused_whatever_lies_in_it(tmp_path: Path, last: str) -> None:
    """Such as integers of 128 bits from Polars, in a column that the query does not even read."""
    path = tmp_path / "rows.parquet"
    rows = pl.DataFrame({"u": ["ann", "alice"], "k": ["x", "x"], "wide": pl.Series([1, 2], dtype=pl.Int128)})
    rows.write_parquet(path, compression="uncompressed", statistics=False)
    if last != "c":
        hostile_text(path)
    with pytest.raises(InputError, match="types that Arrow lacks"):
        plume.run(asking(measures=[plume.users()]), path)


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


@pytest.mark.parametrize(
    "expression",
    ["DATE_TRUNC('YEAR', d)", "DATE_TRUNC('WEEK', t)", "EXTRACT(HOUR FROM d)", "d < t", "COALESCE(d, t)"],
)
def test_a_far_day_or_moment_in_a_statement_never_fails(engine: Engine, expression: str) -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1, privacy_unit_column = u) "
        f"COUNT(e, contribution_bounds_per_group => (0, 1)) AS n FROM (SELECT u, {expression} AS e FROM rows)"
    )
    days = pa.array([1, 2**31 - 1], pa.int32()).view(pa.date32())
    rows = people(d=days, t=moments("us", 1, -(2**63) + 2))
    ends = [
        outcome(lambda some=some: plume.sql(text, tables={"rows": some}, engine=engine)) for some in (rows[:1], rows)
    ]
    assert ends == [RELEASED, RELEASED]


SMALLEST = (0).to_bytes(8, "little") + (2**63).to_bytes(8, "little")
FIVE = (5).to_bytes(16, "little")


@pytest.mark.parametrize("key", ["CAST(d AS DECIMAL(38, 10))", "CAST(d AS DECIMAL(38, 2))", "d"])
@pytest.mark.parametrize("places", [0, 10, 38])
def test_a_decimal_of_the_smallest_bits_in_a_parquet_file_never_fails(tmp_path: Path, key: str, places: int) -> None:
    ended = set()
    for hers in (FIVE, SMALLEST):
        column = pa.Array.from_buffers(pa.decimal128(38, places), 2, [None, pa.py_buffer(FIVE + hers)])
        pq.write_table(pa.table({"u": ["a", "b"], "d": column}), tmp_path / "rows.parquet")
        ended.add(
            outcome(lambda: plume.run(asking(keys={"k": key}, measures=[plume.users()]), tmp_path / "rows.parquet"))
        )
    assert ended == {"released"}


def test_small_floating_point_numbers_beside_a_far_moment_in_a_parquet_file_never_fail(tmp_path: Path) -> None:
    ended = set()
    query = asking(measures=[plume.users(where="h > 1 OR t IS NULL"), plume.sum("h", 0, 5)])
    for milliseconds in (0, 2**62):
        moments = pa.array([0, milliseconds], pa.timestamp("ms", "UTC"))
        rows = pa.table({"u": ["a", "b"], "k": ["x", "x"], "h": pa.array([1.5, 2.5], pa.float16()), "t": moments})
        pq.write_table(rows, tmp_path / "rows.parquet")
        ended.add(outcome(lambda: plume.run(query, tmp_path / "rows.parquet")))
    assert ended == {"released"}


@pytest.mark.parametrize("where", ["LIKE", "NOT LIKE"])
def test_a_long_text_ends_a_run_with_a_pattern_of_many_wildcards_as_a_short_one_does(
    engine: Engine, where: str
) -> None:
    """On Spark ten thousand wildcards ended a run where a text was as long; a hundred, which a pattern may have, do not."""
    pattern = "_" * 99 + "a" * 10_000 + "%"
    query = asking(measures=[plume.users()], public_keys=["x"], where=f"t {where} '{pattern}'")
    for longest in ("a", "a" * 20_000):
        rows = people(k=["x"] * 3, t=["b", "c", longest])
        assert outcome(lambda rows=rows: plume.run(query, rows, engine=engine)) == RELEASED


def test_a_pattern_of_ten_thousand_wildcards_is_refused_before_a_row_is_read(engine: Engine) -> None:
    options = "OPTIONS (epsilon = 1, max_groups_contributed = 1, privacy_unit_column = u)"
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY {options} COUNT(DISTINCT u) AS n FROM t\nWHERE t LIKE '{'_' * 10_000}'"
    for asked in (text, text.replace("LIKE", "ILIKE")):
        ends = {
            outcome(lambda t=t, asked=asked: plume.sql(asked, tables={"t": people(t=["b", t])}, engine=engine))
            for t in ("a", "a" * 10_000)
        }
        assert ends == {"StatementError: line 2, column 7: the pattern of LIKE may hold up to 100 wildcards, % and _."}
