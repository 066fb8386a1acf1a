"""DuckDB, the engine on this machine. Nothing else imports duckdb, but for `duckdb_session` and `duckdb_silence`.

Every call into DuckDB passes `withheld`: its errors quote data, so they end here and a plain sentence goes on. `plan/printing/spark.py`
lists where Spark differs from DuckDB.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from plume.arguments import making_checked
from plume.engines.arrow_values import in_microseconds, refuse_unreadable, sound
from plume.engines.buckets import copied
from plume.engines.databases import let_database_in
from plume.engines.duckdb_session import DuckDBSession, PackingSession, RereadingSession
from plume.engines.duckdb_silence import withheld
from plume.engines.duckdb_types import column_type, is_handed_over
from plume.engines.engine import DatabaseTable, Table
from plume.engines.failures import blaming_data
from plume.engines.files import Files, find_files, is_parquet, with_plain_names
from plume.engines.frames import to_arrow
from plume.engines.json_records import with_records_in_lines
from plume.engines.parquet_values import read_by_arrow, refuse_types_of_no_other_reader, select_reading
from plume.engines.pinned import PinnedTable
from plume.engines.reading import refuse_ambiguous, selecting
from plume.errors import ColumnTypeError, EngineError, InputError, ResourceError, SettingError
from plume.plan.dialect import Dialect, constant, identifier, typed
from plume.plan.expressions import Value
from plume.plan.printing.duckdb import DUCKDB
from plume.plan.types import Kind
from plume.redaction import redacting

_Result = TypeVar("_Result")
# Grouping many rows takes a third less time in pieces that fit a cache than in all of memory. Small files want smaller pieces than
# large ones, which would be cut into too many, and of pieces too small for the largest only one is worked on at a time. Each thread works
# on a piece of its own. Measured in docs/performance.md; it changes time only.
_MB = 10**6
_MEMORY_PER_THREAD_FOR_SMALL_FILES, _MEMORY_PER_THREAD, _MEMORY_PER_THREAD_FOR_LARGE_FILES = (
    32 * _MB,
    256 * _MB,
    512 * _MB,
)
_SMALL_FILES_BYTES, _LARGE_FILES_BYTES = 2**27, 2**31
# This part of the memory for large files is held until the session closes, where it would be given back and asked for block by block.
_HELD_MEMORY = "80%"
_MEMORY = r"(?i)[0-9]+(\.[0-9]+)? ?([KMGT]i?B|%)"
_MOST_THREADS = 4096
# Those that move expressions as wholes, if at all. Not `common_subexpressions`, `in_clause`, `type_pushdown` and `scalar_fn_pushdown`,
# which take parts out of them; nor any that a later DuckDB brings, before somebody has looked at it.
_OPTIMIZERS = frozenset({
    "expression_rewriter", "filter_pullup", "filter_pushdown", "empty_result_pullup", "cte_filter_pusher", "regex_range", "join_order",
    "deliminator", "unnest_rewriter", "unused_columns", "statistics_propagation", "common_aggregate", "column_lifetime",
    "limit_pushdown", "row_group_pruner", "top_n", "top_n_window_elimination", "build_side_probe_side", "compressed_materialization",
    "duplicate_groups", "reorder_filter", "sampling_pushdown", "join_filter_pushdown", "materialized_cte",
    "aggregate_function_rewriter", "late_materialization", "cte_inlining", "common_subplan", "join_elimination", "window_self_join",
    "projection_pullup", "outer_join_simplification", "window_rewriter", "partitioned_execution", "partial_aggregate_pushdown",
    "grouping_sets", "distinct_aggregate_rewrite", "aggregate_reuse", "projection_placement", "redundant_order_keys",
})  # fmt: skip


@making_checked()
@dataclass(frozen=True)
class DuckDB:
    """DuckDB in this process; works past memory by writing to `temp_directory`."""

    memory_limit: str | None = None
    """Such as "4GB"; DuckDB's own default is four fifths of the machine."""
    threads: int | None = None
    temp_directory: str | Path | None = None
    """Where a private folder for data that outgrows memory is made, and removed afterwards."""

    def __post_init__(self) -> None:
        if self.memory_limit is not None and not re.fullmatch(_MEMORY, str(self.memory_limit)):
            raise _refusal("memory_limit", repr(self.memory_limit), "write it with its unit, such as '4GB' or '512MiB'")
        if self.threads is not None and (type(self.threads) is not int or not 1 <= self.threads <= _MOST_THREADS):
            raise _refusal("threads", repr(self.threads), f"it must be a whole number from 1 to {_MOST_THREADS}")

    @property
    def dialect(self) -> Dialect:
        """The SQL it speaks."""
        return DUCKDB

    @property
    def reads_here(self) -> bool:
        """Yes: DuckDB is part of this process."""
        return True

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator["DuckDBSession"]:
        """Open a connection of our own, let the tables in, then close every other way in or out."""
        spill = _private_folder(self.temp_directory)
        try:
            with duckdb.connect(":memory:") as connection:
                self._configure(connection, spill)
                session = DuckDBSession(connection)
                paths = [path for name, table in tables.items() for path in _let_in(session, name, table, spill)]
                if any(table.stated for table in tables.values()):
                    _leave_expressions_whole(connection)
                size = sum(path.stat().st_size for path in paths)
                _divide_memory(connection, size)
                _lock(connection, paths, spill)
                yield _session(connection, tables, paths, spill)
        finally:
            shutil.rmtree(spill, ignore_errors=True)

    def _configure(self, connection: duckdb.DuckDBPyConnection, spill: Path) -> None:
        settings: dict[str, Value] = {
            "temp_directory": str(spill),
            "preserve_insertion_order": False,
            # Notebooks would show one, and it tells of the data.
            "enable_progress_bar": False,
            # Timestamps with a time zone come back the same wherever this runs.
            "TimeZone": "UTC",
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
            # A notebook without ipywidgets refuses to set a progress bar, even to what it is.
            if _setting(connection, name) != value:
                _set(connection, name, constant(value, DUCKDB))


def _leave_expressions_whole(connection: duckdb.DuckDBPyConnection) -> None:
    """Turn off every optimizer that might compute a part of an expression outside of its TRY, where it may fail."""
    others = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers() ORDER BY name").fetchall()]
    listed = ",".join(name for name in others if name not in _OPTIMIZERS)
    _set(connection, "disabled_optimizers", constant(listed, DUCKDB))


def _divide_memory(connection: duckdb.DuckDBPyConnection, size: int) -> None:
    """Choose by the size of the files; that of tables in memory is not known, and 0 here."""
    quarter = _bytes(_setting(connection, "memory_limit")) // 4
    wanted = min(_setting(connection, "threads") * _memory_per_thread(size), quarter)
    _set(connection, "operator_memory_limit", constant(f"{max(wanted // _MB, 1)}MB", DUCKDB))
    if size >= _LARGE_FILES_BYTES:
        # DuckDB refuses to hold more than the machine has, and a limit may be more.
        with suppress(SettingError):
            _set(connection, "block_allocator_memory", constant(_HELD_MEMORY, DUCKDB))


def _memory_per_thread(size: int) -> int:
    if size >= _LARGE_FILES_BYTES:
        return _MEMORY_PER_THREAD_FOR_LARGE_FILES
    return _MEMORY_PER_THREAD_FOR_SMALL_FILES if 0 < size < _SMALL_FILES_BYTES else _MEMORY_PER_THREAD


def _bytes(shown: str) -> int:
    """Read a size as DuckDB shows it, such as 18.8 GiB."""
    number, unit = shown.split()
    return int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit))


def _session(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], paths: list[Path], spill: Path
) -> DuckDBSession:
    """Choose how a run works: only what is quick to read is counted beforehand, or read again; not texts, nor what a statement computes."""
    quick = all(map(is_parquet, paths)) and not any(table.stated for table in tables.values())
    # A pass takes its memory beside DuckDB, which seldom needs all of its own meanwhile.
    room = _bytes(_setting(connection, "memory_limit")) // 2 if quick else 0
    if sum(path.stat().st_size for path in paths) < _LARGE_FILES_BYTES:
        return DuckDBSession(connection, paths, room)
    return (RereadingSession if quick else PackingSession)(connection, spill / "packed", paths, room)


def _private_folder(where: str | Path | None) -> Path:
    refusal = _refusal("temp_directory", repr(str(where)), "it must be a folder that can be written to")
    with redacting(OSError, ValueError, to=refusal):
        return Path(tempfile.mkdtemp(prefix="plume-", dir=where)).absolute()


def _set(connection: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    with redacting(duckdb.Error, to=_refusal(name, value, "another version of DuckDB might")):
        connection.execute(f"SET {name} = {value}")


def _setting(connection: duckdb.DuckDBPyConnection, name: str) -> Any:
    """Read a setting as it is."""
    with suppress(duckdb.Error):
        [(value,)] = connection.execute("SELECT current_setting(?)", [name]).fetchall()
        return value
    return None


def _refusal(name: str, value: str, right: str) -> SettingError:
    return SettingError(f"DuckDB does not take {name} = {value}; {right}.")


def _lock(connection: duckdb.DuckDBPyConnection, paths: list[Path], spill: Path) -> None:
    """Close the file system but for the tables' own files: no name in a plan can reach another one."""
    allowed = ", ".join(constant(str(path), DUCKDB) for path in paths)
    _set(connection, "allowed_paths", f"[{allowed}]")
    _set(connection, "allowed_directories", f"[{constant(str(spill), DUCKDB)}]")
    _set(connection, "enable_external_access", "false")
    _set(connection, "lock_configuration", "true")


def _let_in(session: DuckDBSession, name: str, table: Table, folder: Path) -> tuple[Path, ...]:
    """Make a table readable under a name, and say which files that needs; `folder` is for links to them."""
    given = f"{name}_as_given"
    paths = _open(session, given, table, folder)
    session.let_through(name, table, given=given)
    return paths


def _open(session: DuckDBSession, name: str, table: Table, folder: Path) -> tuple[Path, ...]:
    if isinstance(table.content, str | Path | list | tuple):
        files = find_files(copied(table.content, folder))
        plain = withheld(name, lambda: with_plain_names(files, folder))
        lined = _read(plain, lambda: withheld(name, lambda: with_records_in_lines(plain, folder)))
        _read(lined, lambda: session.define(name, selecting(lined, table.kinds, session.ask)))
        if files.format == "Parquet":
            _reread_by_arrow(session, name, lined, table.kinds)
        return lined.paths
    if isinstance(table.content, DatabaseTable):
        return (let_database_in(session, name, table.content, table.kinds),)
    _open_memory(session, name, table.content, table.kinds)
    return ()


def _read(files: Files, call: Callable[[], _Result]) -> _Result:
    """Call what reads files; if it fails, the files are not what their endings say."""
    with blaming_data(InputError(f"{files.names} could not be read as {files.format}.")):
        return call()


def _reread_by_arrow(session: DuckDBSession, name: str, files: Files, kinds: Mapping[str, Kind]) -> None:
    """Let Arrow read Parquet files that DuckDB fails on, because of a value in one of their rows."""
    types = {column: data_type for column, data_type in session.types(name).items() if column in kinds}
    withheld(name, lambda: refuse_types_of_no_other_reader(session, files, types))
    select = select_reading(name, types)
    if select is None or _answers(session, select):
        return
    _read(files, lambda: withheld(name, lambda: read_by_arrow(session, name, files, types)))


def _answers(session: DuckDBSession, select: str) -> bool:
    try:
        session.ask(select)
    except ResourceError:  # no fault of the data
        raise
    except EngineError:
        return False
    return True


def _open_memory(session: DuckDBSession, name: str, content: Any, kinds: Mapping[str, Kind]) -> None:
    kind, alone = type(content).__name__, ""
    if isinstance(content, PinnedTable):
        kind, alone = content.kind, "that nobody changes it meanwhile, "
    refusal = InputError(
        f"this {kind} could not be read; "
        f"check that all of it can be read, {alone}and that DuckDB knows the types of its columns."
    )
    with blaming_data(refusal):
        if isinstance(content, duckdb.DuckDBPyRelation):
            _keep_relation(session, name, content, kinds)
        else:
            _read_rows(session, name, to_arrow(content, kinds))


def _read_rows(session: DuckDBSession, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
    refuse_ambiguous(rows.schema.names, rows.schema.names)
    if isinstance(rows, pa.Table):
        session.read(name, rows)
        session.schema(name)
        return
    # A stream can be read once only, and a plan may read its input twice.
    session.read(f"{name}_stream", rows)
    session.keep(name, f"SELECT * FROM {identifier(f'{name}_stream', DUCKDB)}")


def _keep_relation(session: DuckDBSession, name: str, relation: Any, kinds: Mapping[str, Kind]) -> None:
    """Copy a relation, which lives in another database, by way of Arrow."""
    types = withheld(name, lambda: dict(zip(relation.columns, relation.types, strict=True)))
    for column in kinds:
        if column in types and not is_handed_over(types[column]):
            raise ColumnTypeError(
                f"DuckDB cannot export column {column!r} of type {types[column].id}; cast it to another type first."
            )
    wanted = list(kinds) if set(kinds) <= set(types) else list(types)
    # Arrow knows no integers of 128 bits; as text they come through whole.
    wide = {column: column_type(types[column]) for column in wanted if types[column].id == "hugeint"}
    listed = ", ".join(_as_text(column) if column in wide else identifier(column, DUCKDB) for column in wanted)
    stream = withheld(name, lambda: pa.RecordBatchReader.from_stream(relation.project(listed)))
    refuse_unreadable(stream.schema, kinds)
    session.read(f"{name}_stream", sound(stream, in_microseconds))
    columns = ", ".join(typed(column, wide, DUCKDB) for column in wanted)
    session.keep(name, f"SELECT {columns} FROM {identifier(f'{name}_stream', DUCKDB)}")


def _as_text(column: str) -> str:
    quoted = identifier(column, DUCKDB)
    return f"CAST({quoted} AS VARCHAR) AS {quoted}"
