"""Parquet files with values that DuckDB's reader fails on, where no TRY can stand: text that is not UTF-8, milliseconds too far away.

Which columns can hold such values is known from their types. They are read once before all else; if that fails, Arrow reads the files,
and what has no value is NULL. All other values are the same in both ways, so that no row tells which one it was: each column must have
one type, whoever reads it, and files whose types Arrow lacks are refused. Writers leave notes for Arrow in a file, which DuckDB ignores:
that integers are durations, for instance.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from plume.engines.arrow_values import refuse_unreadable, sound, with_children
from plume.engines.duckdb_types import is_handed_over
from plume.engines.files import Files
from plume.errors import ColumnTypeError, InputError
from plume.plan.dialect import constant, identifier
from plume.plan.printing.duckdb import DUCKDB
from plume.redaction import placed, redacting

# Types whose values DuckDB takes from a file bit by bit, whatever they are.
_COPIED = frozenset(
    {
        *("boolean", "float", "double", "date", "timestamp_ns", "uuid", "blob"),
        *("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    }
)
_NESTED = frozenset({"list", "array", "struct", "map"})
# Extensions that are types of Parquet as well; of all others DuckDB reads what they are made of.
_KNOWN_EXTENSIONS = (pa.uuid(), pa.json_(), pa.json_(pa.large_string()))
_MOST_DIGITS = 38
# What writers call the folder of rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class Reading(Protocol):
    """What of a session is needed here."""

    def read(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Let the rows of an Arrow table or stream be read under a name."""

    def types(self, name: str) -> dict[str, Any]:
        """Say of what types the columns of a table are, as DuckDB's Python package gives them."""

    def keep(self, name: str, select: str) -> None:
        """Compute a step once."""

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer a statement about columns."""


def refuse_types_of_no_other_reader(session: Reading, files: Files, types: Mapping[str, Any]) -> None:
    """Refuse columns that only DuckDB could read: which of the two reads a file must make no difference."""
    for name, data_type in types.items():
        if data_type.id != "null" and not is_handed_over(data_type):
            raise ColumnTypeError(f"column {name!r} is {data_type}, which only DuckDB can read; cast it in the file.")
    _refuse_wide_decimals(session, files, types)


def refuse_types_read_otherwise(session: Reading, files: Files, types: Mapping[str, Any]) -> None:
    """Refuse columns that are of one type to DuckDB and of another one to Arrow, and files whose types Arrow lacks."""
    refusal = InputError(
        f"{files.names} has types that Arrow lacks, and the query reads columns that DuckDB alone may fail on; "
        "write the file without such types."
    )
    for number, schema in enumerate(dict.fromkeys(_schema(path, refusal) for path in files.paths)):
        refuse_unreadable(schema, types)
        inside = pa.table({name: pa.nulls(0, schema.field(name).type) for name in types if name in schema.names})
        session.read(f"types_of_files_{number}", sound(inside, _as_in_files))
        for name, data_type in session.types(f"types_of_files_{number}").items():
            if str(data_type) != str(types[name]):
                raise ColumnTypeError(
                    f"column {name!r} is {types[name]} to DuckDB and {data_type} to Arrow; cast it in the file."
                )


def _schema(path: Path, refusal: InputError) -> pa.Schema:
    with placed(str(path.resolve())), redacting(pa.ArrowException, OSError, to=refusal):
        return _opened(path).schema_arrow.remove_metadata()


def _opened(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")


def _refuse_wide_decimals(session: Reading, files: Files, types: Mapping[str, Any]) -> None:
    listed = ", ".join(constant(str(path), DUCKDB) for path in files.paths)
    if not session.ask(f"SELECT 1 FROM parquet_schema([{listed}]) WHERE precision > {_MOST_DIGITS} LIMIT 1"):
        return
    for path in files.paths:
        schema = pq.read_schema(path)
        for name in types:
            if name in schema.names and _has_wide_decimal(schema.field(name).type):
                raise ColumnTypeError(
                    f"column {name!r} has decimals of more than {_MOST_DIGITS} digits, which DuckDB would read as floating-point numbers; "
                    f"cast them in the file, to these or to decimals of {_MOST_DIGITS} digits."
                )


def _has_wide_decimal(data_type: pa.DataType) -> bool:
    inside = (data_type.field(place).type for place in range(data_type.num_fields))
    return pa.types.is_decimal256(data_type) or any(map(_has_wide_decimal, inside))


def of_fixed_length(session: Reading, files: Files) -> set[str]:
    """Name the columns of bytes of one length, which a file may have encoded in a way that DuckDB cannot read."""
    listed = ", ".join(constant(str(path), DUCKDB) for path in files.paths)
    return {
        name
        for (name,) in session.ask(
            f"SELECT DISTINCT name FROM parquet_schema([{listed}]) WHERE type = 'FIXED_LEN_BYTE_ARRAY'"
        )
    }


def select_reading(source: str, types: Mapping[str, Any], fixed: Collection[str]) -> str | None:
    """Print a SELECT of one row for which every value that could fail must be read; None if no column can hold any."""
    read = [
        _reading(identifier(name, DUCKDB), data_type)
        for name, data_type in types.items()
        if data_type.id not in _COPIED or name in fixed
    ]
    return f"SELECT {', '.join(read)} FROM {identifier(source, DUCKDB)}" if read else None


def _reading(column: str, data_type: Any) -> str:
    """Print what fails on values of a column; decimals of more digits than their type has would end a run later, past any TRY."""
    if data_type.id != "decimal":
        return f"bit_xor(hash({column}))"
    digits, places = (dict(data_type.children)[name] for name in ("precision", "scale"))
    most = f"CAST('{'9' * (digits - places) or '0'}.{'9' * places}' AS {data_type})"
    return f"count(CASE WHEN {column} BETWEEN -{most} AND {most} OR {column} IS NULL THEN 1 ELSE error('too many digits') END)"


def read_by_arrow(session: Reading, name: str, files: Files, types: Mapping[str, Any]) -> None:
    """Make columns of Parquet files readable under a name, in the types that DuckDB has for them, by way of Arrow."""
    for number, path in enumerate(files.paths):
        stream, kept = f"{name}_stream_{number}", _kept(name, number)
        with placed(str(path.resolve())):
            session.read(stream, sound(_rows(path, types), _as_in_files))
            session.keep(kept, f"SELECT {_typed(path, types)} FROM {identifier(stream, DUCKDB)}")
    members = (f"SELECT * FROM {identifier(_kept(name, number), DUCKDB)}" for number in range(len(files.paths)))
    session.define(name, "\nUNION ALL\n".join(members))


def _as_in_files(data_type: pa.DataType) -> pa.DataType:
    """Give the type that DuckDB has for one of a file, whatever notes for Arrow say of it."""
    if isinstance(data_type, pa.BaseExtensionType):
        return data_type if data_type in _KNOWN_EXTENSIONS else _as_in_files(data_type.storage_type)
    if pa.types.is_duration(data_type):
        return pa.int64()
    if pa.types.is_timestamp(data_type) and data_type.unit in ("s", "ms"):
        return pa.timestamp("us", data_type.tz)
    if pa.types.is_float16(data_type):
        return pa.float32()  # from Arrow, DuckDB takes none of 16 bits
    if pa.types.is_decimal256(data_type) and data_type.precision <= _MOST_DIGITS:
        return pa.decimal128(data_type.precision, data_type.scale)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(data_type.value_field.with_type(_as_in_files(data_type.value_type)))
    return with_children(data_type, _as_in_files)


def _kept(name: str, number: int) -> str:
    return f"{name}_file_{number}"


def _rows(path: Path, wanted: Iterable[str]) -> pa.RecordBatchReader:
    file = _opened(path)
    inside = [name for name in wanted if name in file.schema_arrow.names]
    schema = pa.schema([file.schema_arrow.field(name) for name in inside])
    batches = (batch.select(inside) for batch in file.iter_batches(columns=inside))
    return pa.RecordBatchReader.from_batches(schema, batches)


def _typed(path: Path, types: Mapping[str, Any]) -> str:
    """Print the columns of a file, those that stand in the names of its folders as constants."""
    folders = dict(part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    inside = pq.read_schema(path).names
    values = {name: identifier(name, DUCKDB) if name in inside else _in_folder(folders[name]) for name in types}
    return ", ".join(
        f"TRY_CAST({value} AS {types[name]}) AS {identifier(name, DUCKDB)}" for name, value in values.items()
    )


def _in_folder(text: str) -> str:
    return "NULL" if text == _NO_VALUE else constant(unquote(text), DUCKDB)
