"""DuckDB's types as queries see them: which kind they are, and which can be keys."""

from collections.abc import Iterator
from typing import Any

from plume.plan.types import ColumnType, Kind

_KINDS = {
    "varchar": Kind.TEXT,
    "enum": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "decimal": Kind.DECIMAL,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_s": Kind.TIMESTAMP,
    "timestamp_ms": Kind.TIMESTAMP,
    "timestamp_ns": Kind.TIMESTAMP,
    "uuid": Kind.UUID,
} | dict.fromkeys(
    [
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "hugeint",
        "utinyint",
        "usmallint",
        "uinteger",
        "ubigint",
        "uhugeint",
    ],
    Kind.INTEGER,
)
_NESTED = frozenset({"list", "array", "struct", "map"})
# Types of which equal values are the same in every respect, also after they left DuckDB and came back.
_EXACT = frozenset(_KINDS) - {"enum", "float", "double", "uhugeint"} | {
    "blob",
    "time",
    "time_ns",
    "timestamp with time zone",
    "timestamptz_ns",
}
_HANDED_OVER = _EXACT | {"enum", "float", "double"}


def column_type(data_type: Any) -> ColumnType:
    """Describe a type as DuckDB's Python package gives it."""
    # JSON is text by its id, but DuckDB compares text with it by a cast to JSON, which fails on what is not JSON.
    kind = Kind.OTHER if str(data_type) == "JSON" else _KINDS.get(data_type.id, Kind.OTHER)
    return ColumnType(kind, str(data_type), exact=_EXACT.issuperset(_inside(data_type)))


def is_handed_over(data_type: Any) -> bool:
    """Return whether Arrow carries values of a type from one database to another as they are."""
    return _HANDED_OVER.issuperset(_inside(data_type))


def _inside(data_type: Any) -> Iterator[str]:
    """Name the types that a type is made of."""
    if data_type.id not in _NESTED:
        yield data_type.id
        return
    for _, child in data_type.children:
        if hasattr(child, "id"):  # an array also has its length there
            yield from _inside(child)
