"""How DuckDB reads files: one SELECT per format.

Nothing about a file is guessed from its rows, since then a single row could change how all others are read.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from plume.engines.files import Files, columns_in_folders
from plume.engines.json_records import LONGEST_RECORD
from plume.errors import ColumnNotFound, InputError
from plume.plan.dialect import constant, identifier
from plume.plan.printing.duckdb import DUCKDB
from plume.plan.types import Kind
from plume.redaction import placed, redacting, tell_operator

_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.FLOAT: "DOUBLE",
    Kind.INTEGER: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_HEADER = 2**20

Kinds = Mapping[str, Kind]
"""The columns that are wanted, and how to read them where a file does not say."""
Ask = Callable[[str], Sequence[tuple[Any, ...]]]
"""Answers a statement about the columns of files, never one about their rows."""


def selecting(files: Files, kinds: Kinds, ask: Ask) -> str:
    """Print the SELECT that reads files as one table."""
    match files.format:
        case "Parquet":
            return _selecting_parquet(files, kinds, ask)
        case "CSV":
            return _selecting_csv(files, kinds)
        case _:
            return _selecting_json(files, kinds)


def refuse_ambiguous(names: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse two columns that an engine, which ignores case, would take for the one that is wanted."""
    for name in wanted:
        alike = [other for other in names if other.casefold() == name.casefold()]
        if len(alike) > 1:
            raise InputError(
                f"columns {alike[0]!r} and {alike[1]!r} are one to an engine, which ignores case; rename one of them."
            )


def _selecting_parquet(files: Files, kinds: Kinds, ask: Ask) -> str:
    """Read Parquet files, which say their types; all must say the same, or rows of some would be cast, which can fail."""
    schema = f"parquet_schema([{_listed(files.paths)}])"
    # Names in other cases as well, since DuckDB would take one of them for the wanted one.
    wanted = ", ".join(f"lower({constant(name, DUCKDB)})" for name in kinds)
    types = f"list((name, duckdb_type) ORDER BY name, column_id) FILTER (lower(name) IN ({wanted}))"
    if len(ask(f"SELECT DISTINCT {types} FROM {schema} GROUP BY file_name")) > 1:
        for path, columns in ask(f"SELECT file_name, {types} FROM {schema} GROUP BY file_name ORDER BY file_name"):
            tell_operator(f"{path}: the columns this query reads are {columns}")
        raise InputError(
            f"the {len(files.paths)} files differ in the columns this query reads, or in their types; "
            "give files that have the same (engine_errors_to says which have what)."
        )
    partitioned = constant(bool(files.partitions), DUCKDB)
    # Writers leave NaN out of the statistics of a file, by which DuckDB would decide for all rows of a group what a condition says of them.
    options = f"can_have_nan=true, hive_partitioning={partitioned}, hive_types_autocast=false"
    table = f"read_parquet([{_listed(files.paths)}], {options})"
    named = {name for (name,) in ask(f"SELECT DISTINCT name FROM {schema}")}
    in_folders = _columns_in_paths(files) if files.partitions else set[str]()
    if twice := sorted(in_folders & named):
        raise InputError(f"column {twice[0]!r} is in the files and in the names of their folders; rename one of them.")
    if {column for column, *_ in ask(f"DESCRIBE SELECT * FROM {table}")} - named - in_folders:
        # DuckDB renames columns that it cannot tell apart.
        raise InputError(f"{files.names} has columns whose names differ in case only; rename one of them.")
    return f"SELECT * FROM {table}"


def _columns_in_paths(files: Files) -> set[str]:
    """Name the columns DuckDB finds in whole paths, which may be more than those below the folder that was given."""
    in_paths = [list(columns_in_folders(path, below=Path(path.anchor))) for path in files.paths]
    for names in in_paths:
        folded = [name.casefold() for name in names]
        if twice := [name for name in names if folded.count(name.casefold()) > 1]:
            raise InputError(f"two folders of one path are called {twice[0]!r}=...; rename one of them.")
    return {name for names in in_paths for name in names}


def _selecting_csv(files: Files, kinds: Kinds) -> str:
    """Read CSV files by what the first line of each says; rows with too few fields or a broken quote are dropped.

    Not in parallel: DuckDB then cuts a file into pieces and guesses where a record begins, and a text with line ends in one user's record
    can become records of many others.
    """
    alike: dict[tuple[str, ...], list[Path]] = {}
    headers = [(path, _header(path, files, kinds)) for path in files.paths]
    # A writer that had no rows for one of its files may have left it empty, or without a name in its first line.
    for path, header in [(path, header) for path, header in headers if header] or headers:
        with placed(str(path.resolve())):
            _refuse_wrong_header(header[1:], files, kinds)
        alike.setdefault(header, []).append(path)
    return "\nUNION ALL\n".join(_selecting_csv_of(header, paths, kinds) for header, paths in alike.items())


def _selecting_csv_of(header: tuple[str, ...], paths: Sequence[Path], kinds: Kinds) -> str:
    """Read CSV files whose first lines are the same."""
    delimiter, *names = header
    return (
        f"SELECT {_casting(kinds)}\nFROM read_csv([{_listed(paths)}], columns={_texts(_told_apart(names))}, header=true, "
        f"delim={constant(delimiter, DUCKDB)}, quote='\"', escape='\"', auto_detect=false, strict_mode=false, ignore_errors=true, "
        f"parallel=false, max_line_size={LONGEST_RECORD}, hive_partitioning=false)"
    )


def _refuse_wrong_header(names: Sequence[str], files: Files, kinds: Kinds) -> None:
    """Refuse a first line without the columns of the query. It may be a row, so nothing of it is said but what the query says."""
    if missing := [name for name in kinds if name not in names]:
        tell_operator(
            f"the first line does not name {', '.join(map(repr, missing))}; it names {', '.join(map(repr, names))}"
        )
        raise ColumnNotFound(
            f"no column {missing[0]!r} in {files.names}; its first line must name the columns, in UTF-8, spelled exactly like this.",
            name=missing[0],
        )
    as_asked = {name.casefold(): name for name in kinds}
    refuse_ambiguous([as_asked.get(name.casefold(), name) for name in names], kinds)


def _header(path: Path, files: Files, wanted: Iterable[str]) -> tuple[str, ...]:
    """Read the first line: the delimiter that finds most of the wanted columns, then all columns; nothing of a file without a text.

    pandas writes two quotes for a table without columns, which it makes of a list without records.
    """
    refusal = InputError(f"{files.names} could not be read as CSV.")
    with (
        placed(str(path.resolve())),
        redacting(OSError, pa.ArrowException, to=refusal),
        pa.input_stream(str(path), compression="detect") as stream,
    ):
        head: bytes = stream.read(_LONGEST_HEADER)
    text = head.decode("utf-8-sig", errors="replace")
    if not text.strip('\r\n\t "') and len(head) < _LONGEST_HEADER:
        return ()
    headers = {delimiter: _split(text, delimiter) for delimiter in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda delimiter: len(set(headers[delimiter]) & set(wanted)))
    return (best, *headers[best])


def _split(text: str, delimiter: str) -> list[str]:
    with suppress(csv.Error):
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    return []  # a name longer than any sensible one


def _told_apart(names: Sequence[str]) -> list[str]:
    """Number the columns that have no name of their own; none of them is wanted."""
    seen: set[str] = set()
    columns = []
    for number, name in enumerate(names, start=1):
        new = name and name.casefold() not in seen
        columns.append(name if new else f"column {number} of {len(names)}")
        seen.add(name.casefold())
    return columns


def _selecting_json(files: Files, kinds: Kinds) -> str:
    """Read JSON files with a record in each line; a line that is not a record is NULL.

    No column is looked for: whether there is one would depend on the records.
    """
    return (
        f"SELECT {_casting(kinds)}\nFROM read_json([{_listed(files.paths)}], columns={_texts(kinds)}, format='newline_delimited', "
        "ignore_errors=true, hive_partitioning=false)"
    )


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(constant(str(path), DUCKDB) for path in paths)


def _texts(columns: Iterable[str]) -> str:
    return "{" + ", ".join(f"{constant(name, DUCKDB)}: 'VARCHAR'" for name in columns) + "}"


def _casting(kinds: Kinds) -> str:
    """Print columns of text, each read as its kind; what does not fit is NULL, never an error."""
    quoted = ((identifier(name, DUCKDB), _TYPES[kind]) for name, kind in kinds.items())
    return ", ".join(f"TRY_CAST({name} AS {type_name}) AS {name}" for name, type_name in quoted)
