"""Values that a column of DuckDB can hold although its type has none such: they become NULL where tables are let in.

Arrow, Parquet and database files hold any 64 bits as a timestamp, and any 128 as a decimal. DuckDB takes them over, and fails where it
compares, casts or prints them; some of these failures no TRY catches. So they are sorted out by comparisons within their own type,
which never fail.
"""

from collections.abc import Mapping
from typing import Any

from plume.engines.engine import Table
from plume.plan.dialect import constant, identifier
from plume.plan.printing.duckdb import DUCKDB

_FIRST, _LAST = "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54"
_INFINITE = ("infinity", "-infinity")
# The first and the last value of a type, and those beyond that mean something.
_RANGES = {
    "timestamp": (_FIRST, f"{_LAST}.775806", _INFINITE),
    "timestamp_s": (_FIRST, _LAST, _INFINITE),
    "timestamp_ms": (_FIRST, f"{_LAST}.775", _INFINITE),
    "time": ("00:00:00", "24:00:00", ()),
    "time_ns": ("00:00:00", "24:00:00", ()),
}
# Comparing these with a timestamp of microseconds, or reading them as numbers, is a cast that fails; the others fail as text only.
_READ_BY_CASTS = frozenset({"timestamp_s", "timestamp_ms", "decimal"})


def select_within_ranges(source: str, types: Mapping[str, Any], table: Table) -> str:
    """Print a SELECT of the columns of a source without what lies beyond their types."""
    columns = ", ".join(_printed(name, data_type, table) for name, data_type in types.items())
    return f"SELECT {columns} FROM {identifier(source, DUCKDB)}"


def _printed(name: str, data_type: Any, table: Table) -> str:
    quoted = identifier(name, DUCKDB)
    needed = table.stated or name in table.grouped or data_type.id in _READ_BY_CASTS
    within = _within(quoted, data_type) if needed and name in table.kinds else None
    return quoted if within is None else f"CASE WHEN {within} THEN {quoted} END AS {quoted}"


def _within(value: str, data_type: Any, depth: int = 0) -> str | None:
    """Print the condition that a value lies within its type, and so does what is inside of it; None if it always does."""
    match data_type.id:
        case "list" | "array":
            return _all_within(value, dict(data_type.children)["child"], depth)
        case "map":
            sides = zip(("map_keys", "map_values"), data_type.children, strict=True)
            parts = [_all_within(f"{side}({value})", child, depth) for side, (_, child) in sides]
        case "struct":
            parts = [
                _within(f"struct_extract({value}, {constant(name, DUCKDB)})", child, depth)
                for name, child in data_type.children
            ]
        case _:
            return _fitting(value, data_type)
    return " AND ".join(filter(None, parts)) or None


def _all_within(values: str, child: Any, depth: int) -> str | None:
    each = f"value_{depth}"
    within = _within(each, child, depth + 1)
    # Of no values at all DuckDB says NULL.
    return within and f"coalesce(list_bool_and(list_transform({values}, lambda {each}: {within})), TRUE)"


def _fitting(value: str, data_type: Any) -> str | None:
    if str(data_type) == "JSON":
        # What is not JSON is text all the same, until it has left DuckDB and comes back.
        return f"({value} IS NULL OR json_valid({value}))"
    return _in_range(value, data_type, *_range(data_type)) if data_type.id in {*_RANGES, "decimal"} else None


def _range(data_type: Any) -> tuple[str, str, tuple[str, ...]]:
    if data_type.id != "decimal":
        return _RANGES[data_type.id]
    size = dict(data_type.children)
    digits = "9" * (size["precision"] - size["scale"]) + "." + "9" * size["scale"]
    return f"-{digits}", digits, ()


def _in_range(value: str, data_type: Any, first: str, last: str, beyond: tuple[str, ...]) -> str:
    among = "".join(f" OR {value} = CAST({constant(text, DUCKDB)} AS {data_type})" for text in beyond)
    low, high = (f"CAST({constant(text, DUCKDB)} AS {data_type})" for text in (first, last))
    return f"({value} IS NULL OR {value} BETWEEN {low} AND {high}{among})"
