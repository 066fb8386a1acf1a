"""Delta tables, as the package deltalake opens them: which files the version of a table has. That package is not imported here.

Partition values and deleted rows come from the table's log by way of deltalake; statistics of the log, which hostile values spoil, do not.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plume.engines.pinned import PinnedFile, PinnedTable
from plume.errors import ColumnTypeError, InputError

_KIND = "Delta table"
# What readers of a table must know. Not on the list, for instance, is typeWidening, nor what a later Delta brings.
_FEATURES = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_MAPPING, _MAPPING_MODE = "columnMapping", "delta.columnMapping.mode"
_NEWEST_READER = 3
_PARTITION = "partition."


def pin_delta(table: Any) -> PinnedTable:
    """Pin a table of deltalake to the version that it has loaded."""
    _refuse_unknown_features(table)
    root = _local(table.table_uri)
    schema = pa.schema(table.schema().to_arrow())
    partitions = table.metadata().partition_columns
    if bytes_in := [name for name in partitions if pa.types.is_binary(schema.field(name).type)]:
        raise ColumnTypeError(
            f"the {_KIND} is partitioned by column {bytes_in[0]!r}, which is binary; that is not supported."
        )
    deleted = _deleted_rows(table)
    files = tuple(
        PinnedFile(
            path,
            {name: name for name in pq.read_schema(path).names if name in schema.names},
            constants,
            deleted.pop(path, None),
        )
        for path, constants in _listed(table, root, partitions)
    )
    if deleted or {file.path for file in files} != {_local(uri) for uri in table.file_uris()}:
        raise InputError(f"this {_KIND} has files outside of its folder, as a clone does; that is not supported.")
    source = {"table": _KIND, "id": str(table.metadata().id), "version": table.version()}
    return PinnedTable(_KIND, schema, files, root, source)


def _refuse_unknown_features(table: Any) -> None:
    """Refuse tables of which a reader must know more than is known here."""
    protocol, mode = table.protocol(), table.metadata().configuration.get(_MAPPING_MODE, "none")
    needed = {*(protocol.reader_features or ())} - {_MAPPING}
    if mode != "none":
        needed.add(_MAPPING)
    if protocol.min_reader_version > _NEWEST_READER:
        needed.add(f"version {protocol.min_reader_version} of the protocol")
    if unknown := sorted(needed - _FEATURES):
        raise InputError(
            f"this {_KIND} needs a reader that knows {unknown[0]}, which Plume does not; write its rows to a table without it."
        )


def _listed(table: Any, root: Path, partitions: list[str]) -> list[tuple[Path, Mapping[str, pa.Array]]]:
    """List the files with the values of their partitions, each an array of one value."""
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = {name: _whole(actions.column(f"{_PARTITION}{name}")) for name in partitions}
    paths = actions.column("path").to_pylist()
    return [
        (root / unquote(path), {name: values.slice(row, 1) for name, values in columns.items()})
        for row, path in enumerate(paths)
    ]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _deleted_rows(table: Any) -> dict[Path, NDArray[np.int64]]:
    """Say of files which of their rows are deleted, by position."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    if not hasattr(table, "deletion_vectors"):
        raise InputError(
            f"this {_KIND} has deletion vectors, which this version of deltalake cannot read; upgrade deltalake."
        )
    rows = pa.table(table.deletion_vectors())
    deleted = {}
    for uri, kept in zip(rows.column("filepath").to_pylist(), rows.column("selection_vector"), strict=True):
        mask = pc.invert(kept.values).to_numpy(zero_copy_only=False)
        deleted[_local(uri)] = np.flatnonzero(mask).astype(np.int64)
    return deleted


def _local(uri: str) -> Path:
    """Give the path of an address on this machine."""
    address = urlsplit(uri)
    if address.scheme in ("", "file"):
        return Path(unquote(address.path) if address.scheme else uri)
    raise InputError(f"this {_KIND} does not lie on this machine; tables in buckets are not supported.")
