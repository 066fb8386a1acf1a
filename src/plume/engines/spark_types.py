"""Spark's types as queries see them: which kind they are, which can be keys, and how SQL writes them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from plume.engines.arrow_values import sound, with_children
from plume.plan.dialect import identifier
from plume.plan.printing.spark import SPARK
from plume.plan.types import ColumnType, Kind

_KINDS = {
    "string": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "decimal": Kind.DECIMAL,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP,
    "byte": Kind.INTEGER,
    "short": Kind.INTEGER,
    "integer": Kind.INTEGER,
    "long": Kind.INTEGER,
}
# Types of which equal values are the same in every respect, also after they left Spark and came back; equal maps differ in order.
_EXACT = frozenset(_KINDS) - {"float", "double"} | {"binary", "array", "struct"}
_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def column_type(data_type: Any) -> ColumnType:
    """Describe a type as PySpark gives it."""
    kind = _KINDS.get(_name(data_type), Kind.OTHER)
    return ColumnType(kind, in_sql(data_type), exact=_EXACT.issuperset(_inside(data_type)))


def is_flat(column: ColumnType) -> bool:
    """Return whether a type can be written as bytes: it is not made of others."""
    return column.kind is not Kind.OTHER or column.engine_name == "BINARY"


def in_sql(data_type: Any) -> str:
    """Write a type as a CAST wants it, with the names inside it quoted."""
    match data_type.typeName():
        case "struct":
            fields = (f"{identifier(field.name, SPARK)}: {in_sql(field.dataType)}" for field in data_type.fields)
            return f"STRUCT<{', '.join(fields)}>"
        case "array":
            return f"ARRAY<{in_sql(data_type.elementType)}>"
        case "map":
            return f"MAP<{in_sql(data_type.keyType)}, {in_sql(data_type.valueType)}>"
        case "timestamp":
            # Its short name means timestamps without a time zone in the session of a run.
            return "TIMESTAMP_LTZ"
        case _:
            return str(data_type.simpleString()).upper()


def _name(data_type: Any) -> str:
    """Name a type; text whose equality is not that of its bytes is a type of its own."""
    name = str(data_type.typeName())
    collated = name == "string" and getattr(data_type, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    return "collated" if collated else name


def _inside(data_type: Any) -> Iterator[str]:
    """Name the types that a type is made of."""
    yield _name(data_type)
    match data_type.typeName():
        case "struct":
            for field in data_type.fields:
                yield from _inside(field.dataType)
        case "array":
            yield from _inside(data_type.elementType)


def known_to_spark(rows: pa.Table) -> pa.Table:
    """Bring types of Arrow that Spark lacks to ones it has: dictionaries, integers without a sign, small floats, units of time."""
    return sound(rows, _known)


def _known(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(data_type):
        return _known(data_type.value_type)
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us", data_type.tz)
    if pa.types.is_duration(data_type):
        return pa.duration("us")
    return with_children(_SIGNED.get(data_type, data_type), _known)
