"""Datasets of Arrow: Parquet files of this machine, with what the names of their folders say."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plume.engines.pinned import PinnedFile, PinnedTable
from plume.errors import InputError

_KIND = "dataset"


def pin_dataset(dataset: Any) -> PinnedTable:
    """Pin a dataset to the files that it lists."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - whoever has a dataset has imported it already

    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # not passed on, since it may quote the filter
        fragments = None
    if fragments is None:
        raise InputError(f"this {_KIND} has a filter or chosen columns; give it without, and filter by where=.")
    if not all(_is_local_parquet(fragment, ds) for fragment in fragments):
        raise InputError(
            f"this {_KIND} is not made of Parquet files on this machine; read it into a table, or give {_KIND}.scanner().to_reader()."
        )
    files = tuple(_pin_file(fragment, dataset.schema, ds) for fragment in fragments)
    return PinnedTable(_KIND, dataset.schema, files)


def _is_local_parquet(fragment: Any, ds: Any) -> bool:
    return (
        isinstance(fragment, ds.ParquetFileFragment)
        and fragment.filesystem.type_name == "local"
        and bool(fragment.path)
    )


def _pin_file(fragment: Any, schema: pa.Schema, ds: Any) -> PinnedFile:
    path = Path(fragment.path)
    inside = pq.read_schema(path).names
    keys = {
        name: value
        for name, value in ds.get_partition_keys(fragment.partition_expression).items()
        if name in schema.names
    }
    if twice := sorted(keys.keys() & set(inside)):
        raise InputError(f"column {twice[0]!r} is in the files and in the names of their folders; rename one of them.")
    constants = {name: pa.array([value], _value_type(schema.field(name).type)) for name, value in keys.items()}
    groups = tuple(group.id for group in fragment.row_groups)
    return PinnedFile(path, {name: name for name in inside if name in schema.names}, constants, row_groups=groups)


def _value_type(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type
