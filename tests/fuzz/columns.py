"""Columns of every type that DuckDB, Arrow, Parquet, CSV and JSON know: three ordinary values, and the hostile ones that one user has."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Hostile:
    """A type as Arrow has it, or as SQL writes it."""

    name: str
    kind: str
    """What conditions may compare it with."""
    ordinary: pa.Array | tuple[str, ...]
    hostile: pa.Array | tuple[str, ...]

    @property
    def is_arrow(self) -> bool:
        """Whether it is one of Arrow's."""
        return isinstance(self.ordinary, pa.Array)


def _raw(kind: pa.DataType, *values: int) -> pa.Array:
    """Values by their bits: Arrow checks none of them."""
    wide = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(values, wide).view(kind)


def _wide(kind: pa.DataType, *values: int) -> pa.Array:
    """Decimals by their bits, more digits than they may have among them."""
    data = b"".join(value.to_bytes(kind.bit_width // 8, "little", signed=True) for value in values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def _plain(name: str, kind: str, found: pa.DataType, ordinary: list[Any], hostile: Iterable[Any]) -> Hostile:
    return Hostile(name, kind, pa.array(ordinary, found), pa.array(list(hostile), found))


def _integers() -> Iterable[Hostile]:
    for bits in (8, 16, 32, 64):
        signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
        yield _plain(str(signed), "integer", signed, [1, 2, 3], [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, None])
        yield _plain(str(unsigned), "integer", unsigned, [1, 2, 3], [2**bits - 1, 2 ** (bits - 1), 0, None])


def _floats() -> Iterable[Hostile]:
    values = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1.7e308, -1.7e308, None]
    yield _plain("double", "float", pa.float64(), [1.5, 2.5, 3.5], values)
    yield _plain(
        "float", "float", pa.float32(), [1.5, 2.5, 3.5], [v if v is None or abs(v) < 1e38 else 3.4e38 for v in values]
    )
    yield _plain("halffloat", "float", pa.float16(), [1.5, 2.5, 3.5], [math.nan, math.inf, -0.0, None])


def _decimals() -> Iterable[Hostile]:
    for width, scale in ((38, 0), (38, 30), (38, 38), (18, 3), (9, 9), (4, 1)):
        found, step = pa.decimal128(width, scale), Decimal(1).scaleb(-scale)
        ordinary = pa.array([step, 2 * step, 3 * step], found)
        extreme = [10**width - 1, 1 - 10**width, 0, -1]
        yield Hostile(str(found), "decimal", ordinary, _wide(found, *extreme))
        yield Hostile(f"{found} by its bits", "decimal", ordinary, _wide(found, 2**127 - 1, -(2**127), 10**width))
    yield _plain("decimal256", "decimal", pa.decimal256(76, 0), [1, 2, 3], [Decimal("9" * 76), None])
    yield _plain("decimal64", "decimal", pa.decimal64(18, 2), [Decimal(1)] * 3, [Decimal("9" * 16), None])


def _lists(values: pa.Array) -> pa.Array:
    """Lists of one value each."""
    return pa.ListArray.from_arrays(range(len(values) + 1), values)


def _texts() -> Iterable[Hostile]:
    words = [
        b"",
        b"\0",
        b"a\0b",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        "é".encode(),
        b"7",
        b"NaN",
        b"%_\\",
        b"x" * 5000,
        None,
    ]
    ordinary = pa.array(["a", "b", "c"])
    hostile = pa.array(words, pa.binary()).view(pa.string())
    yield Hostile("string", "text", ordinary, hostile)
    yield Hostile(
        "large_string",
        "text",
        ordinary.cast(pa.large_string()),
        pa.array(words, pa.large_binary()).view(pa.large_string()),
    )
    yield Hostile("dictionary", "text", ordinary.dictionary_encode(), hostile.dictionary_encode())
    views = pa.array(words, pa.binary_view()).view(pa.string_view())
    yield Hostile("string_view", "text", ordinary.cast(pa.string_view()), views)
    yield Hostile("list<string_view>", "other", pa.array([["a"], ["b"], []], pa.list_(views.type)), _lists(views))
    yield Hostile("runs", "text", *(pc.run_end_encode(found) for found in (ordinary, hostile)))
    encoded = ordinary.dictionary_encode(), hostile.dictionary_encode()
    yield Hostile("list<dictionary>", "other", *map(_lists, encoded))
    yield Hostile("struct<dictionary>", "other", *(pa.StructArray.from_arrays([found], ["a"]) for found in encoded))
    yield Hostile("empty list<dictionary>", "other", pa.array([[]] * 3, pa.list_(encoded[0].type)), _lists(encoded[1]))
    shown = (pa.ListViewArray.from_arrays(range(len(v)), [1] * len(v), v) for v in (ordinary, hostile))
    yield Hostile("list_view", "other", *shown)
    yield _plain("binary", "other", pa.binary(), [b"a", b"b", b"c"], words)
    yield _plain("fixed binary", "other", pa.binary(2), [b"aa", b"bb", b"cc"], [b"\0\0", b"\xff\xff", None])
    yield Hostile("list<string>", "other", pa.array([["a"], ["b"], []]), _lists(hostile))
    yield Hostile("struct<string>", "other", pa.array([{"a": "x"}] * 3), pa.StructArray.from_arrays([hostile], ["a"]))


def _moments() -> Iterable[Hostile]:
    near = [1_500_000, 2_500_000, 3_500_000]
    far = [
        2**63 - 1,
        -(2**63),
        -(2**63) + 1,
        -(2**63) + 2,
        2**62,
        2**55,
        -(2**55),
        10**15,
        0,
        -1,
        253402300800,
        -62135596801,
    ]
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Asia/Kathmandu"):
            found = pa.timestamp(unit, zone)
            kind, both = "other" if zone else "timestamp", (_raw(found, *near), _raw(found, *far))
            yield Hostile(str(found), kind, *both)
            yield Hostile(f"dictionary<{found}>", kind, *(values.dictionary_encode() for values in both))
        lists, more = (pa.ListArray.from_arrays(range(len(v) + 1), _raw(pa.timestamp(unit), *v)) for v in (near, far))
        yield Hostile(f"list<{unit}>", "other", lists, more)
        maps = (
            pa.MapArray.from_arrays(range(len(v) + 1), _raw(pa.timestamp(unit, "UTC"), *v), range(len(v)))
            for v in (near, far)
        )
        yield Hostile(f"map<{unit}>", "other", *maps)
    yield Hostile(
        "date32",
        "date",
        _raw(pa.date32(), 1, 2, 3),
        _raw(pa.date32(), 2**31 - 1, -(2**31), -(2**31) + 1, -(2**31) + 2, -719529),
    )
    days = [86_400_000 * n for n in (1, 2, 3)]
    yield Hostile("date64", "date", _raw(pa.date64(), *days), _raw(pa.date64(), 2**63 - 1, -(2**63), 1, -1, 2**55))
    for found in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        top = 2 ** (found.bit_width - 1)
        yield Hostile(str(found), "other", _raw(found, 1, 2, 3), _raw(found, top - 1, -top, -1, 86_400, 86_400_001))
    yield Hostile("duration", "other", _raw(pa.duration("s"), 1, 2, 3), _raw(pa.duration("s"), 2**63 - 1, -(2**63)))


def _others() -> Iterable[Hostile]:
    yield _plain("bool", "boolean", pa.bool_(), [True, False, True], [False, None])
    yield _plain(
        "uuid", "uuid", pa.uuid(), [bytes(15) + bytes([n]) for n in (1, 2, 3)], [bytes(16), b"\xff" * 16, None]
    )
    yield Hostile("null", "other", pa.nulls(3), pa.nulls(2))
    eight, wide = pa.bool8(), pa.opaque(pa.binary(16), "hugeint", "DuckDB")
    bits = (pa.array(found, pa.int8()) for found in ([1, 2, 7], [-128, 127, 0, None]))
    yield Hostile("bool8", "other", *(pa.ExtensionArray.from_storage(eight, found) for found in bits))
    numbers = (pa.array([bytes([n] * 16) for n in found], pa.binary(16)) for found in ((1, 2, 3), (0, 255)))
    yield Hostile("hugeint of Arrow", "other", *(pa.ExtensionArray.from_storage(wide, found) for found in numbers))
    pairs = pa.list_(pa.int8(), 2)
    yield _plain("lists of one length", "other", pairs, [[1, 2], [3, 4], [5, 6]], [[None, -128], None])
    yield _plain("list<double>", "other", pa.list_(pa.float64()), [[1.5]] * 3, [[math.nan], [-0.0], None])


def _in_sql() -> Iterable[Hostile]:
    """Types that Arrow lacks, as DuckDB writes them."""
    most = 2**127 - 1
    yield Hostile("HUGEINT", "integer", ("1", "2", "3"), (str(most), str(-most - 1), str(10**38), "0", "-1", "NULL"))
    yield Hostile("UHUGEINT", "integer", ("1", "2", "3"), (str(2**128 - 1), str(2**127), "0", "NULL"))
    yield Hostile("ENUM('a', 'b', '')", "text", ("'a'", "'b'", "'a'"), ("''", "NULL"))
    yield Hostile("VARCHAR COLLATE NOCASE", "text", ("'a'", "'b'", "'c'"), ("'A'", "'é'", "''", "NULL"))
    yield Hostile("JSON", "text", ("'1'", "'2'", "'3'"), ("'{\"a\": 1e999}'", "'null'", "NULL"))
    yield Hostile("UUID", "uuid", *(tuple(f"'{n:032x}'" for n in found) for found in ((1, 2, 3), (0, 2**128 - 1))))
    yield Hostile(
        "INTERVAL", "other", ("'1 day'", "'1 day'", "'2 days'"), ("'30 days'", "'1 month'", "'178000000 years'")
    )
    yield Hostile("TIMETZ", "other", ("'01:00+00'",) * 3, ("'24:00:00-15:59:59'", "'00:00+15:59:59'"))
    yield Hostile(
        "TIMESTAMPTZ", "other", ("'2020-01-01'",) * 3, ("'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00+00'")
    )
    yield Hostile("TIMESTAMP", "timestamp", ("'2020-01-01'",) * 3, ("'infinity'", "'290309-12-22 (BC) 00:00:00'"))
    yield Hostile("DATE", "date", ("'2020-01-01'",) * 3, ("'infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'"))
    yield Hostile("BIT", "other", ("'1'", "'0'", "'11'"), ("'0000'", "NULL"))
    yield Hostile("BIGNUM", "other", ("1", "2", "3"), (f"'{'9' * 300}'", "'-1'"))
    yield Hostile("UNION(a INTEGER, b VARCHAR)", "other", ("1", "2", "3"), ("'x'", "NULL"))
    yield Hostile("BLOB", "other", ("'a'", "'b'", "'c'"), ("'\\xFF\\x00'", "''", "NULL"))
    yield Hostile("DECIMAL(38,30)", "decimal", ("1", "2", "3"), ("99999999", "-99999999", "0"))
    yield Hostile(
        "STRUCT(a HUGEINT, b TIMESTAMP_S)",
        "other",
        ("{'a': 1, 'b': NULL}",) * 3,
        (f"{{'a': {most}, 'b': 'infinity'}}", "NULL"),
    )
    yield Hostile("MAP(VARCHAR, DOUBLE)", "other", ("MAP {'a': 1}",) * 3, ("MAP {'a': 'nan'}", "NULL"))


COLUMNS = (*_integers(), *_floats(), *_decimals(), *_texts(), *_moments(), *_others(), *_in_sql())

# Fields of files that do not say their types; the others of a line are never hurt by one, as long as it is one field.
FIELDS = {
    "csv": [b"", b"NaN", b"-inf", b"1e999", b"9" * 400, b"-0", b"0x1F", b"1_000", b"\xff\xfe", b"\xed\xa0\x80", b"a\0b", b"NULL", b"true",
            b"2026-02-30", b"infinity", b"epoch", b"290309-12-22 (BC)", b"9999999-01-01", b"'", b"\\", b'"a""b"', b"x" * 5000],
    "jsonl": [b"null", b"1e999", b"-0.0", b"9" * 400, b'"NaN"', b'"\\u0000"', b'"\\ud800"', b'"\xff"', b"{}", b"[1, [2]]", b"true", b'""',
              b'{"a": {"b": 1}}', b'"2026-02-30"', b'"infinity"', b"1.5", b'"9999999-01-01"', b"NaN", b"", b'"a'],
}  # fmt: skip
# In an array every record must be JSON, as far as quotes and brackets go.
FIELDS["json"] = [field for field in FIELDS["jsonl"] if field not in (b"", b'"a')] + [
    b'"]}{[,\\\\"',
    b'"' + b"x" * 5000 + b'"',
]
ORDINARY_FIELDS = (b"1", b"2", b"3")
MOMENTS = (datetime(2020, 1, 1), datetime(9999, 12, 31), datetime(1, 1, 1), datetime(2300, 1, 1))  # noqa: DTZ001 - of no zone
DAYS = (date(2020, 1, 1), date(9999, 12, 31), date(1, 1, 1))
NOON = time(12)
