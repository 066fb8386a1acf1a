"""Tables that are pinned: the Parquet files of one version of a table, the columns of each, and the rows of each that are deleted.

Files are read here, and not by the library that made the table: libraries fail on single values, such as text that is not UTF-8 or the year
10000, and decide by statistics. Nothing is asked of statistics here, and each value is brought to the type of the table by itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plume.engines.arrow_values import in_microseconds, plain_type, refuse_unreadable, sound_batches
from plume.engines.files import versions
from plume.errors import ColumnTypeError, InputError

SOURCES = "sources"
"""Where records keep which versions of tables were read."""


@dataclass(frozen=True)
class PinnedFile:
    """A Parquet file of a table, and what the table says about it."""

    path: Path
    columns: Mapping[str, str]
    """The columns it holds, by their names in the table; those that are in neither this nor `constants` are NULL."""
    constants: Mapping[str, pa.Array] = field(default_factory=dict)
    """Columns that have one value in the whole file, which is written elsewhere."""
    deleted: NDArray[np.int64] | None = None
    """The rows that are deleted, by position in the file."""
    row_groups: tuple[int, ...] | None = None
    """The parts of it that belong to the table; None for all."""


@dataclass(frozen=True)
class PinnedTable:
    """One version of a table, which stays what it is whatever is written to the table."""

    kind: str
    """What to call it in a message, such as Delta table."""
    schema: pa.Schema
    files: tuple[PinnedFile, ...]
    root: Path | None = None
    """The folder in which all versions of it lie, if there is one."""
    source: Mapping[str, Any] | None = None
    """The table and the version of it, for the record."""

    def read(self, wanted: Iterable[str]) -> pa.Table | pa.RecordBatchReader:
        """Give the rows, with the columns that are wanted; where one is missing no rows, so that it can be said which columns there are."""
        names = list(wanted)
        if not set(names) <= set(self.schema.names):
            return pa.table({name: pa.nulls(0) for name in dict.fromkeys(self.schema.names)})
        schema = pa.schema([(name, _target(self.schema.field(name).type)) for name in names])
        refuse_unreadable(schema, names)
        for file in self.files:
            self._refuse_unlike(file, schema)
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _refuse_unlike(self, file: PinnedFile, schema: pa.Schema) -> None:
        """Refuse a file that has a column in a type from which not every value comes to the type of the table as it is."""
        found = _schema_of(file.path)
        for column in schema:
            name = file.columns.get(column.name)
            held = found.field(name).type if name is not None else None
            if held is not None and not becomes(_target(held), column.type):
                raise ColumnTypeError(
                    f"column {column.name!r} of this {self.kind} is {column.type}, and {held} in one of its files; write that file anew."
                )

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        paths = [file.path for file in self.files]
        found = versions(paths)
        for file in self.files:
            try:
                yield from _batches_of(file, schema)
            except Exception as error:
                # An operator may hear where it was. Not by `placed`: an engine asks for each batch in a thread of its own.
                error.add_note(str(file.path))
                raise
        if versions(paths) != found:
            raise InputError(
                f"a file of this {self.kind} changed while it was read; run again when nobody writes to it."
            )


def _schema_of(path: Path) -> pa.Schema:
    return pq.read_schema(path)


def _target(data_type: pa.DataType) -> pa.DataType:
    """Give the type in which a column is read."""
    found = in_microseconds(plain_type(data_type))
    return found.value_type if pa.types.is_dictionary(found) else found


def becomes(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of one type become another as they are, or NULL, each by itself; which is a closed list."""
    match held, wanted:
        case _ if held == wanted:
            return True
        case _ if _is_text(held):
            return _is_text(wanted)
        case _ if _is_bytes(held):
            return _is_bytes(wanted)
        case _ if pa.types.is_signed_integer(held):
            return pa.types.is_signed_integer(wanted) and bool(held.bit_width <= wanted.bit_width)
        case _ if pa.types.is_floating(held):
            return pa.types.is_floating(wanted) and bool(held.bit_width <= wanted.bit_width)
        case _ if pa.types.is_decimal(held):
            return (
                pa.types.is_decimal(wanted) and held.scale == wanted.scale and bool(held.precision <= wanted.precision)
            )
        case _ if pa.types.is_timestamp(held):
            # Timestamps of 96 bits have no zone in the file, and are in UTC.
            return pa.types.is_timestamp(wanted) and (held.tz == wanted.tz or (held.tz is None and wanted.tz == "UTC"))
        case _:
            return False


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _batches_of(file: PinnedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    opened = pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us")
    held = [name for name in schema.names if name in file.columns]
    inside = [file.columns[name] for name in held]
    own = pa.schema([schema.field(name) for name in held])
    rows = opened.iter_batches(columns=inside, row_groups=file.row_groups)
    first = 0
    for batch in rows:
        kept = _kept(batch.num_rows, first, file.deleted)
        first += batch.num_rows
        chosen = batch.select(inside) if kept is None else batch.select(inside).take(kept)
        count = batch.num_rows if kept is None else len(kept)
        read = dict(zip(held, next(sound_batches([chosen], own)).columns, strict=True)) if held else {}
        columns = [
            read[name] if name in read else _repeated(file.constants.get(name), count, column_type)
            for name, column_type in zip(schema.names, schema.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _kept(rows: int, first: int, deleted: NDArray[np.int64] | None) -> pa.Array | None:
    """Say which rows of a batch are not deleted; None if all are there."""
    if deleted is None:
        return None
    mask = np.ones(rows, dtype=bool)
    mask[deleted[(deleted >= first) & (deleted < first + rows)] - first] = False
    return None if mask.all() else pa.array(np.flatnonzero(mask))


def _repeated(constant: pa.Array | None, rows: int, column_type: pa.DataType) -> pa.Array:
    if constant is None:
        return pa.nulls(rows, column_type)
    [batch] = sound_batches([pa.record_batch([constant], ["value"])], pa.schema([("value", column_type)]))
    return pc.take(batch.column(0), pa.array(np.zeros(rows, dtype=np.int64)))
