"""Iceberg tables, as the package pyiceberg opens them: which files the snapshot of a table has. That package is not imported here.

Columns are found by the numbers that they keep when they are renamed.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plume.engines.pinned import PinnedFile, PinnedTable
from plume.errors import InputError

_KIND = "Iceberg table"
_NUMBER = b"PARQUET:field_id"
_PARQUET, _POSITION_DELETES = "PARQUET", 1


def pin_iceberg(table: Any) -> PinnedTable:
    """Pin a table of pyiceberg, or a scan of one, to its snapshot."""
    scan = table.scan() if hasattr(table, "scan") else table
    _refuse_partial(scan)
    schema, snapshot, metadata = scan.projection(), scan.snapshot(), scan.table_metadata
    tasks = list(scan.plan_files())
    specs = metadata.specs()
    files = tuple(_pin_file(task, schema.fields, specs[task.file.spec_id]) for task in tasks)
    fields = [column for column in schema.as_arrow() if not pa.types.is_nested(column.type)]
    source = {
        "table": _KIND,
        "id": str(metadata.table_uuid),
        "snapshot": None if snapshot is None else str(snapshot.snapshot_id),
    }
    return PinnedTable(_KIND, pa.schema(fields), files, _local(metadata.location), source)


def _refuse_partial(scan: Any) -> None:
    """Refuse a scan that leaves rows out: which ones pyiceberg would decide by statistics."""
    if str(scan.row_filter) != "AlwaysTrue()" or scan.limit is not None:
        raise InputError(f"this scan of an {_KIND} leaves rows out; scan all of it, and filter by where=.")


def _pin_file(task: Any, fields: Collection[Any], spec: Any) -> PinnedFile:
    if task.file.file_format.name != _PARQUET:
        raise InputError(
            f"this {_KIND} has files of the format {task.file.file_format.name}; Plume reads Parquet alone."
        )
    path = _local(task.file.file_path)
    numbered = {_number(column): column.name for column in pq.read_schema(path)}
    if None in numbered:
        raise InputError(
            f"this {_KIND} has files whose columns have no numbers, as files that were added to it; write them anew."
        )
    for column in fields:
        if column.field_id not in numbered and column.initial_default is not None:
            raise InputError(
                f"column {column.name!r} of this {_KIND} has a default that stands in none of its files; write them anew."
            )
    partitioned = {part.source_id for part in spec.fields}
    if elsewhere := [column.name for column in fields if column.field_id in partitioned - numbered.keys()]:
        raise InputError(
            f"column {elsewhere[0]!r} of this {_KIND} stands in its partitions, and not in all of its files; write them anew."
        )
    columns = {column.name: numbered[column.field_id] for column in fields if column.field_id in numbered}
    return PinnedFile(path, columns, deleted=_deleted_rows(task))


def _number(column: pa.Field) -> int | None:
    number = (column.metadata or {}).get(_NUMBER)
    return None if number is None else int(number)


def _deleted_rows(task: Any) -> NDArray[np.int64] | None:
    """Say which rows of a file are deleted, by position."""
    if not task.delete_files:
        return None
    places = []
    for file in task.delete_files:
        if int(file.content) != _POSITION_DELETES or file.file_format.name != _PARQUET:
            raise InputError(
                f"this {_KIND} deletes rows otherwise than by position in a Parquet file; compact it first, as by rewrite_data_files."
            )
        rows = pq.read_table(_local(file.file_path), columns=["file_path", "pos"], partitioning=None)
        places.append(rows.filter(pc.equal(rows.column("file_path"), task.file.file_path)).column("pos").to_numpy())
    return np.unique(np.concatenate(places)).astype(np.int64)


def _local(uri: str) -> Path:
    """Give the path of an address on this machine, as pyiceberg writes it: not encoded, but for what a catalogue encoded."""
    scheme, separator, rest = uri.partition(":")
    if not separator or "/" in scheme:
        return Path(uri)
    if scheme != "file":
        raise InputError(f"this {_KIND} does not lie on this machine; tables in buckets are not supported.")
    path = Path("/" + rest.lstrip("/"))
    return path if path.exists() else Path(unquote(str(path)))
