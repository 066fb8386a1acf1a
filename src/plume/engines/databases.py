"""Tables of DuckDB database files: opened for reading, byte by byte, no views and no computed columns."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from plume.engines.engine import DatabaseTable
from plume.engines.failures import blaming_data
from plume.errors import ColumnTypeError, InputError, printable
from plume.plan.dialect import constant, identifier
from plume.plan.printing.duckdb import DUCKDB


class Databases(Protocol):
    """What of a session is needed here."""

    def attach(self, path: str, database: str) -> None:
        """Open a database file for reading."""

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer a statement about columns."""

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""


def let_database_in(session: Databases, name: str, table: DatabaseTable, wanted: Collection[str]) -> Path:
    """Let a table of a database file in, and say which file that needs.

    A view might mix the rows of users, and is refused. So is a column that is computed when it is read, which may fail on a row.
    """
    path = Path(table.path).absolute()
    shown = printable(path.name)
    if not path.is_file():
        raise InputError(f"no file {str(table.path)!r}; give the path of a DuckDB database.")
    database = identifier(f"database_of_{name}", DUCKDB)
    refusal = InputError(
        f"{shown} could not be opened as a DuckDB database; check that it is one, that this version of DuckDB can read it, "
        "and that no other program is writing to it."
    )
    with blaming_data(refusal):
        session.attach(str(path), database)
    named = f"database_name = {constant(f'database_of_{name}', DUCKDB)} AND NOT internal"
    tables = session.ask(f"SELECT schema_name, table_name FROM duckdb_tables() WHERE {named}")
    schemas = [schema for schema, own in tables if table.table in (own, f"{schema}.{own}")]
    if len(schemas) != 1:
        raise InputError(f"{shown} has no table {table.table!r}, or several; write schema.table, and no views.")
    own = table.table.removeprefix(f"{schemas[0]}.")
    placed = f"{named} AND schema_name = {constant(schemas[0], DUCKDB)} AND table_name = {constant(own, DUCKDB)}"
    asked_for = {column.casefold() for column in wanted}
    for (column,) in session.ask(f"SELECT column_name FROM duckdb_columns() WHERE {placed} AND is_generated"):
        if column.casefold() in asked_for:
            raise ColumnTypeError(
                f"column {column!r} of {shown} is GENERATED, so computed from others whenever it is read, which may fail on a row; "
                "write the table anew, with CREATE TABLE ... AS SELECT."
            )
    columns = session.ask(f"SELECT column_name, data_type FROM duckdb_columns() WHERE {placed} ORDER BY column_index")
    listed = ", ".join(_byte_by_byte(*column) for column in columns)
    session.define(name, f"SELECT {listed} FROM {database}.{identifier(schemas[0], DUCKDB)}.{identifier(own, DUCKDB)}")
    return path


def _byte_by_byte(column: str, kind: str) -> str:
    """Print a column; text of a table may have a collation, by which Bob and bob would be one."""
    quoted = identifier(column, DUCKDB)
    return f'({quoted} COLLATE "C") AS {quoted}' if kind == "VARCHAR" else quoted
