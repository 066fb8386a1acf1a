"""DuckDB, the engine on this machine. The only file that imports duckdb.

Every call into DuckDB passes `_quietly`: its errors quote data, so they end here and a plain sentence goes on.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import duckdb
import pyarrow as pa

from plume.engines.engine import Noising, Table
from plume.engines.files import Files, casting, find_files, reading
from plume.errors import EngineError, InputError, PlumeError, ResourceError, UsageError
from plume.plan.expressions import Value
from plume.plan.dialect import DUCKDB, Dialect, constant, identifier
from plume.plan.types import ColumnType, Kind, Schema

_KINDS = {
    "varchar": Kind.TEXT,
    "enum": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "decimal": Kind.DECIMAL,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
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
# Fits a cache rather than memory: grouping many rows takes a third less time, see docs/performance.md.
_OPERATOR_MEMORY = "256MB"
_ROWS_PER_BATCH = 2**20

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class DuckDB:
    """DuckDB in this process; works past memory by writing to `temp_directory`."""

    memory_limit: str | None = None
    """Such as "4GB"; DuckDB's own default is four fifths of the machine."""
    threads: int | None = None
    temp_directory: str | Path | None = None
    """Where a private folder for data that outgrows memory is made, and removed afterwards."""

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator["DuckDBSession"]:
        """Open a connection of our own, let the tables in, then close every other way in or out."""
        spill = _quietly("its temporary folder", lambda: tempfile.mkdtemp(prefix="plume-", dir=self.temp_directory))
        try:
            with duckdb.connect(":memory:") as connection:
                self._configure(connection, spill)
                session = DuckDBSession(connection)
                paths = [path for name, table in tables.items() for path in _let_in(session, name, table)]
                _lock(connection, paths, spill)
                yield session
        finally:
            shutil.rmtree(spill, ignore_errors=True)

    def _configure(self, connection: duckdb.DuckDBPyConnection, spill: str) -> None:
        settings: dict[str, Value] = {
            "temp_directory": spill,
            "operator_memory_limit": _OPERATOR_MEMORY,
            "preserve_insertion_order": False,
            # Otherwise a table name could capture a variable of the caller.
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        if self.memory_limit is not None:
            settings["memory_limit"] = self.memory_limit
        if self.threads is not None:
            settings["threads"] = self.threads
        for name, value in settings.items():
            _set(connection, name, value)


def _set(connection: duckdb.DuckDBPyConnection, name: str, value: Value) -> None:
    refused = False
    try:
        connection.execute(f"SET {name} = {constant(value, DUCKDB)}")
    except duckdb.Error:
        refused = True
    if refused:
        raise UsageError(
            f"DuckDB does not take {name} = {value!r}; write memory such as '4GB' and threads as a whole number."
        )


def _lock(connection: duckdb.DuckDBPyConnection, paths: list[Path], spill: str) -> None:
    """Close the file system but for the tables' own files: no name in a plan can reach another one."""
    allowed = ", ".join(constant(str(path), DUCKDB) for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute(f"SET allowed_directories = [{constant(spill, DUCKDB)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


class DuckDBSession:
    """One run on DuckDB: steps become temporary views and tables of one in-memory database."""

    dialect: ClassVar[Dialect] = DUCKDB

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""
        relation = _quietly(name, lambda: self._connection.table(name))
        return {column: _column_type(kind) for column, kind in zip(relation.columns, relation.types, strict=True)}

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""
        self._execute(name, f"CREATE TEMP VIEW {identifier(name, DUCKDB)} AS\n{select}")

    def keep(self, name: str, select: str) -> None:
        """Compute a step once, for the several steps that read it."""
        self._execute(name, f"CREATE TEMP TABLE {identifier(name, DUCKDB)} AS\n{select}")

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Pass the rows of `source` through Python, once, batch by batch, and write down what comes back."""
        batches = _quietly(name, lambda: [noising(batch) for batch in self._batches(source)])
        self.write(name, pa.Table.from_batches(batches), types=self.schema(source))

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types, which Arrow may not know."""
        arrow = f"{name}_arrow"
        self.read(arrow, rows)
        columns = ", ".join(_typed(column, types) for column in rows.column_names)
        self.keep(name, f"SELECT {columns} FROM {identifier(arrow, DUCKDB)}")
        self._connection.unregister(arrow)

    def fetch(self, name: str, order: tuple[str, ...]) -> pa.Table:
        """Return the rows of a step that may leave, sorted."""
        by = ", ".join(identifier(column, DUCKDB) for column in order)
        select = f"SELECT * FROM {identifier(name, DUCKDB)} ORDER BY {by}"
        return _quietly(name, lambda: self._connection.sql(select).to_arrow_table())

    def read(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Let the rows of an Arrow table or stream be read under a name, without copying them."""
        _quietly(name, lambda: self._connection.register(name, rows))

    def _execute(self, name: str, statement: str) -> None:
        _quietly(name, lambda: self._connection.execute(statement))

    def _batches(self, source: str) -> Iterator[pa.RecordBatch]:
        reader = self._connection.table(source).to_arrow_reader(_ROWS_PER_BATCH)
        # Never no batch at all, so that the columns of an empty step come through.
        yield pa.RecordBatch.from_pylist([], schema=reader.schema)
        yield from reader


def _typed(column: str, types: Schema) -> str:
    quoted = identifier(column, DUCKDB)
    return f"CAST({quoted} AS {types[column].engine_name}) AS {quoted}" if column in types else quoted


def _column_type(found: Any) -> ColumnType:
    name = str(found)
    has_floats = found.id != "enum" and any(word in name.upper() for word in ("FLOAT", "DOUBLE"))
    return ColumnType(_KINDS.get(found.id, Kind.OTHER), name, has_floats)


def _let_in(session: DuckDBSession, name: str, table: Table) -> tuple[Path, ...]:
    """Make a table readable under a name, and say which files that needs."""
    if isinstance(table.content, str | Path | list | tuple):
        files = find_files(table.content)
        _open_files(session, name, files, table.kinds)
        return files.paths
    _open_memory(session, name, table.content)
    return ()


def _open_files(session: DuckDBSession, name: str, files: Files, kinds: Mapping[str, Kind]) -> None:
    columns: Schema | None = None
    try:
        session.define(f"{name}_files", f"SELECT * FROM {reading(files)}")
        columns = session.schema(f"{name}_files")
    except EngineError:
        pass
    if columns is None:
        raise InputError(f"{files.names} could not be read as {files.format}.")
    read_as = {column: kinds.get(column, Kind.TEXT) for column in columns}
    selected = "*" if files.typed else casting(read_as)
    session.define(name, f"SELECT {selected} FROM {reading(files, read_as)}")


def _open_memory(session: DuckDBSession, name: str, content: Any) -> None:
    rows = _to_arrow(content)
    _refuse_ambiguous(rows.schema.names)
    if isinstance(rows, pa.Table):
        session.read(name, rows)
        return
    # A stream can be read once only, and a plan may read its input twice.
    session.read(f"{name}_stream", rows)
    session.keep(name, f"SELECT * FROM {identifier(f'{name}_stream', DUCKDB)}")


def _to_arrow(content: Any) -> pa.Table | pa.RecordBatchReader:
    """Bring data in memory to Arrow: a table where it can be read again and again, else a stream."""
    if hasattr(content, "collect") and hasattr(content, "collect_schema"):  # a Polars LazyFrame
        content = content.collect()
    kind = type(content).__name__
    if not hasattr(content, "__arrow_c_stream__"):
        raise InputError(
            f"data is a {kind}; it must be a path or a list of paths, a pandas or Polars DataFrame, an Arrow table or stream, "
            "or a DuckDB relation."
        )
    rows = None
    try:
        streams = isinstance(content, pa.RecordBatchReader | duckdb.DuckDBPyRelation)
        rows = pa.RecordBatchReader.from_stream(content) if streams else pa.table(content)
    except (pa.ArrowException, duckdb.Error, TypeError, ValueError):
        pass
    if rows is None:
        raise InputError(
            f"this {kind} cannot be read as a table; does a column mix types, or have two columns one name?"
        )
    return rows


def _refuse_ambiguous(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other is not name:
            raise InputError(
                f"columns {other!r} and {name!r} are one to an engine, which ignores case; rename one of them."
            )


def _quietly(step: str, call: Callable[[], _Result]) -> _Result:
    """Call into DuckDB; what it raises is replaced outside of the handler, so that no exception chain keeps its words."""
    failure: PlumeError | KeyboardInterrupt
    try:
        return call()
    except duckdb.OutOfMemoryException:
        failure = ResourceError(
            f"memory or the temporary folder ran out at step {step}; "
            "give DuckDB(memory_limit=..., temp_directory=...) more room."
        )
    except duckdb.InterruptException:
        failure = KeyboardInterrupt()
    except (duckdb.Error, pa.ArrowException, OSError):
        failure = EngineError(f"DuckDB failed at step {step}; its message is withheld, since it may quote data.")
    except RuntimeError as error:
        interrupted = "interrupt" in str(error).lower()
        failure = KeyboardInterrupt() if interrupted else EngineError(f"step {step} failed.")
    raise failure
