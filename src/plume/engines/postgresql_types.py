"""PostgreSQL's types as queries see them: a closed list, by the numbers that its catalogue has for its own types.

A type is known by its number and never by its name, which anybody may give to a type of theirs. All others are refused: domains, `citext`
and what else extensions add, `char(n)`, to which texts with more blanks are equal, and texts whose collation takes several for one.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from plume.errors import ColumnTypeError
from plume.plan.types import ColumnType, Kind

COMPUTED = 0
"""The number of no type."""
_NUMERIC, _VARCHAR = 1700, 1043
# Lists of leaves are arrays of integers, of 32 bits or 64, before they are tallies.
_LEAVES = (1007, 1016)
_TALLY = pa.list_(pa.struct({"leaf": pa.int32(), "weight": pa.int64()}))
# The largest double, and what lies nearer to zero than half of the smallest: a cast of anything beyond or between fails.
_LARGEST, _SMALLEST = "1.7976931348623157e308", "5e-324"
_MOST_DIGITS = 38
# Far below what fits into a value of PostgreSQL, together with all other texts of a row.
_LONGEST_TEXT = 2**24
# Beyond, and for infinities, casts fail.
_FIRST, _LAST = "4713-01-01 00:00:00 BC", "294246-12-31 23:59:59.999999"
Read = Callable[[Sequence[Any]], pa.Array]
_AS_TEXT, _DAYS = "CAST({} AS TEXT)", "{} - DATE '1970-01-01'"
_MICROSECONDS = "CAST(extract(epoch FROM {}) * 1000000 AS BIGINT)"


@dataclass(frozen=True)
class Type:
    """One of the types: how it leaves the database, and what it is on the other side."""

    kind: Kind
    name: str
    arrow: pa.DataType
    leaves_as: str = "{}"

    @property
    def exact(self) -> bool:
        """Whether equal values are the same in every respect."""
        return self.kind not in (Kind.FLOAT, Kind.OTHER)

    def read(self, values: Sequence[Any]) -> pa.Array:
        """Read what left the database."""
        counted = {_AS_TEXT: pa.string(), _DAYS: pa.int32(), _MICROSECONDS: pa.int64()}.get(self.leaves_as, self.arrow)
        return pa.array(values, counted).cast(self.arrow)


TYPES = {
    16: Type(Kind.BOOLEAN, "BOOLEAN", pa.bool_()),
    21: Type(Kind.INTEGER, "SMALLINT", pa.int16()),
    23: Type(Kind.INTEGER, "INTEGER", pa.int32()),
    20: Type(Kind.INTEGER, "BIGINT", pa.int64()),
    700: Type(Kind.FLOAT, "REAL", pa.float32()),
    701: Type(Kind.FLOAT, "DOUBLE PRECISION", pa.float64()),
    25: Type(Kind.TEXT, "TEXT", pa.string()),
    _VARCHAR: Type(Kind.TEXT, "TEXT", pa.string()),
    1082: Type(Kind.DATE, "DATE", pa.date32(), _DAYS),
    1114: Type(Kind.TIMESTAMP, "TIMESTAMP", pa.timestamp("us"), _MICROSECONDS),
    1184: Type(Kind.TIMESTAMP, "TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC"), _MICROSECONDS),
    2950: Type(Kind.UUID, "UUID", pa.string(), _AS_TEXT),
}
_OF_ARROW = {known.arrow: known.name for known in TYPES.values() if known.kind is not Kind.UUID}
_OF_ARROW |= {pa.large_string(): "TEXT", pa.int8(): "SMALLINT", pa.uint8(): "SMALLINT", pa.uint16(): "INTEGER"}
_OF_ARROW |= {pa.uint32(): "BIGINT"}


@dataclass(frozen=True)
class Found:
    """A column as the catalogue describes it."""

    name: str
    type: int
    modifier: int
    written: str
    """The type in PostgreSQL's words, for messages."""
    deterministic: bool
    """Whether its collation takes no two texts for one."""

    @property
    def known(self) -> Type | None:
        """Give the type, if it is one of the list; a numeric without a precision is one that only leaves the database."""
        if self.type != _NUMERIC:
            return TYPES.get(self.type) if self.deterministic else None
        if self._digits is None:
            return Type(Kind.OTHER, self.written, pa.decimal128(_MOST_DIGITS, 0), _AS_TEXT)
        return Type(Kind.DECIMAL, "DECIMAL({},{})".format(*self._digits), pa.decimal128(*self._digits), _AS_TEXT)

    @property
    def _digits(self) -> tuple[int, int] | None:
        """Say how many digits a numeric has and how many of them after the point, if its type says so and they are few enough."""
        width, scale = (self.modifier - 4) >> 16 & 0xFFFF, ((self.modifier - 4 & 0x7FF) ^ 0x400) - 0x400
        return (width, scale) if self.modifier >= 0 and 0 <= scale <= width <= _MOST_DIGITS else None

    @property
    def column_type(self) -> ColumnType:
        """Describe the type to queries."""
        if self.known is None or self.known.kind is Kind.OTHER:
            collated = "" if self.deterministic else " with a collation by which several texts are equal"
            return ColumnType(Kind.OTHER, self.written + collated, exact=False)
        return ColumnType(self.known.kind, self.known.name, self.known.exact)

    def let_in(self, quoted: str, *, number: bool) -> str:
        """Print the column as its type is inside, where what lies beyond becomes NULL; of other types only whether there is a value."""
        if self.type == COMPUTED:
            raise ColumnTypeError(
                f"column {self.name!r} is computed from others whenever it is read, which may fail on a row; write the table anew."
            )
        if self.type == _NUMERIC and (number or self._digits is None):
            near = f"{quoted} > -{_SMALLEST} AND {quoted} < {_SMALLEST}"
            double = f"CAST(CASE WHEN {near} THEN 0 ELSE {quoted} END AS DOUBLE PRECISION)"
            return f"CASE WHEN {quoted} BETWEEN -{_LARGEST} AND {_LARGEST} THEN {double} END"
        match self.known.kind if self.known else None:
            case None:
                return f"CASE WHEN {quoted} IS NOT NULL THEN TRUE END"
            case Kind.DECIMAL:
                return f"NULLIF({quoted}, CAST('NaN' AS NUMERIC))"
            case Kind.TEXT:
                return (
                    f'CASE WHEN octet_length({quoted}) <= {_LONGEST_TEXT} THEN CAST({quoted} AS TEXT) END COLLATE "C"'
                )
            case Kind.BOOLEAN if number:
                return f"CAST({quoted} AS INTEGER)"
            case Kind.DATE | Kind.TIMESTAMP:
                return f"CASE WHEN {quoted} BETWEEN TIMESTAMP '{_FIRST}' AND TIMESTAMP '{_LAST}' THEN {quoted} END"
            case _:
                return quoted

    def leaving(self, quoted: str, *, as_text: bool = False) -> tuple[str, Read]:
        """Print the column as it leaves the database, and say how it is read; `as_text` where it only has to come back as it was."""
        if self.known is None:
            return f"CAST(to_json({quoted}) AS TEXT)", _read_leaves if self.type in _LEAVES else _read_tallies
        if as_text and self.known.kind is not Kind.INTEGER:
            return _AS_TEXT.format(quoted), TYPES[_VARCHAR].read
        return self.known.leaves_as.format(quoted), self.known.read


def _read_leaves(values: Sequence[str | None]) -> pa.Array:
    return pa.array([json.loads(value) if value is not None else None for value in values], pa.list_(pa.int64()))


def _read_tallies(values: Sequence[str | None]) -> pa.Array:
    return pa.array([json.loads(value) if value is not None else None for value in values], _TALLY)


def type_for(data_type: pa.DataType) -> str | None:
    """Name the type that takes values of Arrow in, if there is one."""
    if pa.types.is_decimal(data_type):
        return f"DECIMAL({data_type.precision},{data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "TIMESTAMP" if data_type.tz is None else "TIMESTAMP WITH TIME ZONE"
    return _OF_ARROW.get(data_type)


def printed_type(name: str) -> str:
    """Print a type behind CAST(x AS: texts are compared byte by byte."""
    return f'{name}) COLLATE "C"' if name == "TEXT" else f"{name})"
