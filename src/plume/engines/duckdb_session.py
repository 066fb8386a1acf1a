"""One run on DuckDB. Steps become temporary views and tables of a database in memory or, where they would not fit, of a file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from plume.engines.duckdb_pass import make_pass, with_passes
from plume.engines.duckdb_ranges import select_within_ranges
from plume.engines.duckdb_silence import withheld
from plume.engines.duckdb_types import column_type
from plume.engines.engine import Noising, Table
from plume.engines.files import versions
from plume.errors import InputError
from plume.plan.dialect import constant, identifier, typed
from plume.plan.nodes import Lookup, Noise, OnePass
from plume.plan.printing.duckdb import DUCKDB, DuckDBPrinter
from plume.plan.printing.printer import SALT_UNKNOWN
from plume.plan.rereading import reread
from plume.plan.types import Schema

_PACKED = "packed"
# Lists may have thousands of entries in each row.
_ROWS_PER_BATCH, _ROWS_WITH_LISTS_PER_BATCH = 2**20, 2**14
_ROWS_OF_STREAM = 2**16


class DuckDBSession:
    """One run on DuckDB: steps become temporary views and tables of one in-memory database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, files: Sequence[Path] = (), room: int = 0) -> None:
        """Take a connection, the files of its tables, and the bytes that passes may take beside it; without any there are none."""
        self._connection, self._room = connection, room
        self._files, self._found = files, versions(files)

    def rewrite(self, plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
        """Give a plan that gathers by user in one pass, where that is quicker."""
        return with_passes(self, plan, self._room)

    def printer(self, salt: str = SALT_UNKNOWN) -> DuckDBPrinter:
        """Give what prints steps for DuckDB."""
        return DuckDBPrinter(salt)

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""
        return _described(withheld(name, lambda: self._connection.table(name)))

    def columns(self, select: str) -> Schema:
        """Say what columns a checked SELECT has; no row is read."""
        return _described(withheld("input", lambda: self._connection.sql(select)))

    def let_through(self, name: str, table: Table, *, given: str) -> None:
        """Make a table readable under its name without what lies beyond the types of its columns; as it is, it has another."""
        self.define(name, select_within_ranges(given, self.types(given), table))

    def types(self, name: str) -> dict[str, Any]:
        """Say of what types the columns of a table are, as DuckDB's Python package gives them."""
        relation = withheld(name, lambda: self._connection.table(name))
        return dict(zip(relation.columns, relation.types, strict=True))

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""
        self._execute(name, f"CREATE OR REPLACE TEMP VIEW {identifier(name, DUCKDB)} AS\n{select}")

    def define_relation(self, name: str, select: str) -> None:
        """Make the rows of a checked SELECT readable; it says itself, by TRY, that what fails on a row is NULL.

        What fails without a row, such as a constant that is not a condition, fails here, where it is planned.
        """
        self.define(name, select)
        self._execute(name, f"EXPLAIN SELECT * FROM {identifier(name, DUCKDB)}")

    def keep(self, name: str, select: str) -> None:
        """Compute a step once, for the several steps that read it."""
        self._execute(name, f"CREATE TEMP TABLE {identifier(name, DUCKDB)} AS\n{select}")

    def pass_over(self, step: OnePass, salt: str) -> bool:
        """Make the steps of a pass at once, in this process."""
        return make_pass(self, step, salt, self._room)

    def refuse_changed_files(self) -> None:
        """End the run if a file of the table is not what it was: rows that were read twice might be others."""
        if versions(self._files) != self._found:
            raise InputError("a file of the table changed while it was read; run again when nobody writes to it.")

    def lookup(self, selected: str, keys: tuple[str, ...]) -> Lookup:
        """Every worker is a thread of this process, and holds all selected keys."""
        del selected, keys
        return Lookup.BROADCAST

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Pass the rows of `source` through Python, once, batch by batch, and write down what comes back."""
        batches = withheld(name, lambda: [noising(batch) for batch in self._batches(source)])
        self.write(name, pa.Table.from_batches(batches), types=self.schema(source))

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types, which Arrow may not know."""
        arrow = f"{name}_arrow"
        self.read(arrow, rows)
        columns = ", ".join(typed(column, types, DUCKDB) for column in rows.column_names)
        self.keep(name, f"SELECT {columns} FROM {identifier(arrow, DUCKDB)}")
        self._connection.unregister(arrow)

    def fetch(self, name: str, order: tuple[str, ...]) -> pa.Table:
        """Return the rows of a step that may leave, sorted."""
        by = ", ".join(identifier(column, DUCKDB) for column in order)
        select = f"SELECT * FROM {identifier(name, DUCKDB)} ORDER BY {by}"
        return withheld(name, lambda: self._connection.sql(select).to_arrow_table())

    def look_at(self, name: str) -> pa.Table:
        """NOT PRIVATE: return the rows of a step as they come, for people who may look at the data."""
        return withheld(name, lambda: self._connection.table(name).to_arrow_table())

    def hand_over(self, name: str, select: str) -> list[pa.RecordBatch]:
        """Give the rows of a SELECT to this process, for exact steps that are made here."""
        batches: list[pa.RecordBatch] = withheld(
            name, lambda: self._connection.sql(select).to_arrow_table().to_batches()
        )
        return batches

    def stream(self, name: str, select: str) -> Iterator[pa.RecordBatch]:
        """Give the rows of a SELECT to this process as they are found, for exact steps that are made here."""
        reader = withheld(name, lambda: self._connection.sql(select).to_arrow_reader(_ROWS_OF_STREAM))
        while (batch := withheld(name, lambda: next(reader, None))) is not None:
            yield batch

    def read(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Let the rows of an Arrow table or stream be read under a name, without copying them."""
        withheld(name, lambda: self._connection.register(name, rows))

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer a statement about columns; rows leave by `noise` and `fetch` only, but where it says NOT PRIVATE."""
        return withheld("input", lambda: self._connection.execute(statement).fetchall())

    def attach(self, path: str, database: str) -> None:
        """Open a database file for reading."""
        self._execute("input", f"ATTACH {constant(path, DUCKDB)} AS {database} (TYPE duckdb, READ_ONLY)")

    def _execute(self, name: str, statement: str) -> None:
        withheld(name, lambda: self._connection.execute(statement))

    def _batches(self, source: str) -> Iterator[pa.RecordBatch]:
        relation = self._connection.table(source)
        has_lists = any(kind.id == "list" for kind in relation.types)
        reader = relation.to_arrow_reader(_ROWS_WITH_LISTS_PER_BATCH if has_lists else _ROWS_PER_BATCH)
        # Never no batch at all, so that the columns of an empty step come through.
        yield pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in reader.schema.types], schema=reader.schema)
        yield from reader


class PackingSession(DuckDBSession):
    """A run on files so large that kept steps would not fit into memory: they are packed, to a quarter, in a file of the run's own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, files: Sequence[Path], room: int = 0) -> None:
        super().__init__(connection, files, room)
        self._execute(_PACKED, f"ATTACH {constant(str(path), DUCKDB)} AS {_PACKED}")

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Noise the rows of `source`, unless a file is not what it was: users may have been within their limit in one reading only."""
        super().noise(name, source, noising)
        self.refuse_changed_files()

    def keep(self, name: str, select: str) -> None:
        """Compute a step once, for the several steps that read it."""
        packed = f"{_PACKED}.main.{identifier(name, DUCKDB)}"
        self._execute(name, f"CREATE TABLE {packed} AS\n{select}")
        self.define(name, f"SELECT * FROM {packed}")


class RereadingSession(PackingSession):
    """A run on large files that are quicker to read again than their rows are to keep."""

    def rewrite(self, plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
        """Give a plan that gathers by user in one pass, or else reads the files again."""
        passing = super().rewrite(plan)
        return reread(plan) if passing == plan else passing


def _described(relation: duckdb.DuckDBPyRelation) -> Schema:
    return {column: column_type(kind) for column, kind in zip(relation.columns, relation.types, strict=True)}
