"""Which types can be compared or put into one column: only where equal values stay equal, and no row can make the engine fail.

An engine brings two columns to one type first. From some types to some others that cast is inexact, or fails on some rows; so which
types may meet is decided here, by the types alone.
"""

import re
from datetime import datetime

from plume.plan.expressions import Value
from plume.plan.types import ColumnType, Kind

NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT})
# The one integer type that no other holds: beside signed integers it fails on some rows, and beside 128 bits it is compared as a double.
_WIDEST = "UHUGEINT"
_UNSIGNED = frozenset({"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", _WIDEST})
# What DuckDB and Spark call the type of NULL, which is cast to any other.
_NOTHING = frozenset({'"NULL"', "VOID"})
_DIGITS = {
    **dict.fromkeys(("TINYINT", "UTINYINT"), 3),
    **dict.fromkeys(("SMALLINT", "USMALLINT"), 5),
    **dict.fromkeys(("INTEGER", "INT", "UINTEGER"), 10),
    **dict.fromkeys(("BIGINT", "UBIGINT"), 20),
}
_MOST_DIGITS = 38
_FIRST_NANOSECOND, _LAST_NANOSECOND = datetime(1677, 9, 22), datetime(2262, 4, 11)  # noqa: DTZ001 - timestamps without a time zone


def can_meet(left: ColumnType, right: ColumnType) -> bool:
    """Return whether columns of two types can be compared, or become one column, on every row and without a loss."""
    if left.engine_name == right.engine_name or _NOTHING & {left.engine_name, right.engine_name}:
        return True
    kinds = {left.kind, right.kind}
    if kinds == {Kind.INTEGER}:
        names = {left.engine_name, right.engine_name}
        return _WIDEST not in names or names <= _UNSIGNED
    if Kind.FLOAT in kinds:
        return kinds <= NUMBERS
    return kinds == {Kind.TEXT} or (kinds <= NUMBERS and _fit_each_other(left, right))


def _fit_each_other(left: ColumnType, right: ColumnType) -> bool:
    """Return whether a decimal with room for both sides of the point of each is one that engines have."""
    (before, after), (other_before, other_after) = _size(left), _size(right)
    return max(before, other_before) + max(after, other_after) <= _MOST_DIGITS


def _size(column: ColumnType) -> tuple[int, int]:
    """Say how many digits stand before and after the point; of an unknown type, more than there can be."""
    decimal = re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", column.engine_name)
    if decimal:
        width, scale = map(int, decimal.groups())
        return width - scale, scale
    return _DIGITS.get(column.engine_name, _MOST_DIGITS + 1), 0


def limits(column: ColumnType, constant: Value) -> str | None:
    """Say what a type holds, if the constant lies beyond and comparing them would fail; None if they can be compared."""
    match constant:
        case datetime() if column.engine_name == "TIMESTAMP_NS" and not _FIRST_NANOSECOND < constant < _LAST_NANOSECOND:
            return f"timestamps between {_FIRST_NANOSECOND:%Y-%m-%d} and {_LAST_NANOSECOND:%Y-%m-%d}"
        case bool():
            return None
        case int() if column.engine_name == _WIDEST and constant < 0:
            return "no negative numbers"
        case int() if column.kind is Kind.DECIMAL and len(str(abs(constant))) + _size(column)[1] > _MOST_DIGITS:
            return f"numbers with {_MOST_DIGITS - _size(column)[1]} digits before the point"
        case _:
            return None
