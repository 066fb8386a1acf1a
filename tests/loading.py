"""Tests hand tables in memory to every engine; PostgreSQL reads tables of its own alone, so they are written down there first."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import psycopg
import pyarrow as pa

import plume
from plume.engines.engine import Table
from plume.engines.frames import to_arrow

_NUMBERS = count(1)
_TYPES = {
    "string": "text",
    "large_string": "text",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20, 0)",
    "halffloat": "real",
    "float": "real",
    "double": "double precision",
    "bool": "boolean",
    "date32[day]": "date",
    "binary": "bytea",
    "extension<arrow.uuid>": "uuid",
}


class PostgreSQL(plume.PostgreSQL):
    """A server that takes in what it is to read, each table for one question."""

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator[Any]:
        loaded = {name: self._load(name, table) for name, table in tables.items()}
        try:
            with super().open(loaded) as session:
                yield session
        finally:
            with psycopg.connect(self.connection, autocommit=True) as connection:
                for table in loaded.values():
                    if isinstance(table.content, plume.PostgreSQL):
                        connection.execute(f"DROP TABLE {table.content.table}")

    def _load(self, name: str, table: Table) -> Table:
        if name == "public_keys" or isinstance(table.content, plume.PostgreSQL):
            return table
        given = to_arrow(table.content, table.kinds)
        rows = given if isinstance(given, pa.Table) else given.read_all()
        named = f"public.loaded_{next(_NUMBERS)}"
        with psycopg.connect(self.connection) as connection:
            load(connection, named, rows)
        return replace(table, content=plume.PostgreSQL(self.connection, named))


def load(connection: psycopg.Connection[Any], named: str, rows: pa.Table) -> None:
    """Write an Arrow table down under a name."""
    names = ['"' + name.replace('"', '""') + '"' for name in rows.schema.names]
    columns = ", ".join(f"{name} {_type(field.type)}" for name, field in zip(names, rows.schema, strict=True))
    connection.execute(f"CREATE TABLE {named} ({columns})")
    with connection.cursor() as cursor, cursor.copy(f"COPY {named} ({', '.join(names)}) FROM STDIN") as copy:
        for row in zip(*(_values(column) for column in rows.columns), strict=True):
            copy.write_row(row)


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        return [value if isinstance(value, bytes) else None for value in column.to_pylist()]
    if isinstance(column.type, pa.UuidType):
        return [None if value is None else str(value) for value in column.to_pylist()]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()).to_pylist()


def _type(data_type: pa.DataType) -> str:
    if pa.types.is_decimal(data_type):
        return f"numeric({data_type.precision}, {data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "timestamp" if data_type.tz is None else "timestamptz"
    if pa.types.is_dictionary(data_type):
        return _type(data_type.value_type)
    return _TYPES.get(str(data_type), "json")
