"""Values of Arrow that engines fail on, although they know the types: spoilt text, long decimals, far dates, maps with a key twice.

Such a value becomes NULL before an engine sees it, row by row: what is left of the others is the same whether it is there or not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plume.errors import ColumnTypeError

_LOWEST = (-(2**127)).to_bytes(16, "little", signed=True)
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
# Extension types that DuckDB knows; of all others it gets what they are made of.
_KNOWN_EXTENSIONS = (pa.uuid(), pa.bool8(), pa.json_(), pa.json_(pa.large_string()))
_NESTED = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_struct,
    pa.types.is_map,
)
_HUGEINT = pa.opaque(pa.binary(16), "hugeint", "DuckDB")


def refuse_unreadable(schema: pa.Schema, wanted: Collection[str]) -> None:
    """Refuse columns whose rows cannot be looked at one by one, so that one of them would spoil others."""
    for field in schema:
        if field.name in wanted and not _is_readable(_decoded(field.type)):
            raise ColumnTypeError(
                f"column {field.name!r} is {field.type}, which is not read row by row; cast it first."
            )


def _is_readable(data_type: pa.DataType) -> bool:
    """Return whether a type is none of unions, runs, views of lists, extensions of views, and dictionaries of lists and structures."""
    if isinstance(data_type, pa.BaseExtensionType):
        # Arrow may crash where it casts an extension of views.
        return _is_readable(data_type.storage_type) and _without_views(data_type.storage_type) == data_type.storage_type
    if pa.types.is_dictionary(data_type):
        return _is_readable(data_type.value_type) and not pa.types.is_nested(data_type.value_type)
    inside = (data_type.field(place).type for place in range(data_type.num_fields))
    known = not pa.types.is_nested(data_type) or any(is_known(data_type) for is_known in _NESTED)
    return known and all(map(_is_readable, inside))


def sound(
    rows: pa.Table | pa.RecordBatchReader, target: Callable[[pa.DataType], pa.DataType]
) -> pa.Table | pa.RecordBatchReader:
    """Bring columns to the types in which an engine takes them, and make what has no value there NULL."""
    schema = pa.schema([field.with_type(target(plain_type(_decoded(field.type)))) for field in rows.schema])
    if isinstance(rows, pa.Table):
        columns = [_sound_chunks(column, kind) for column, kind in zip(rows.columns, schema.types, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)
    return pa.RecordBatchReader.from_batches(schema, sound_batches(rows, schema))


def in_microseconds(data_type: pa.DataType) -> pa.DataType:
    """Give the type in which durations, and timestamps with a zone, are microseconds as in DuckDB, also inside of lists and structures."""
    if pa.types.is_duration(data_type):
        return pa.duration("us")
    if pa.types.is_timestamp(data_type):
        return (
            pa.timestamp("us", data_type.tz)
            if data_type.tz is not None and data_type.unit in ("s", "ms")
            else data_type
        )
    return with_children(data_type, in_microseconds)


def with_children(data_type: pa.DataType, target: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Give the same type with other types inside."""
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(target(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(target(data_type.key_type), data_type.item_field.with_type(target(data_type.item_type)))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(data_type.value_field.with_type(target(data_type.value_type)), data_type.list_size)
    if pa.types.is_large_list(data_type):
        return pa.large_list(data_type.value_field.with_type(target(data_type.value_type)))
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(target(data_type.value_type)))
    return data_type


def sound_batches(rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Bring batches to the types of a schema, column by column, and make what has no value there NULL."""
    for batch in rows:
        columns = [
            pa.concat_arrays(_sound(_plain(column), kind))
            for column, kind in zip(batch.columns, schema.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _sound_chunks(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([part for chunk in column.chunks for part in _sound(_plain(chunk), kind)], kind)


def _plain(values: pa.Array) -> pa.Array:
    """Give values with nothing that rows share: a dictionary inside, or what a view shows, would spoil all rows with one of its values.

    These casts look at no value. A dictionary of text stays one, and its entries are looked at instead.
    """
    if _decoded(values.type) != values.type:
        values = pc.run_end_decode(values)
    for target in (_without_views(values.type), plain_type(values.type)):
        values = values if values.type == target else values.cast(target)
    return values


def _decoded(data_type: pa.DataType) -> pa.DataType:
    """Give the type of what a column of runs repeats; runs that Arrow cannot write out, or inside of other types, stay and are refused."""
    if not pa.types.is_run_end_encoded(data_type):
        return data_type
    inside = data_type.value_type
    shared = pa.types.is_nested(inside) or pa.types.is_dictionary(inside) or inside in _VIEWS
    return data_type if shared or isinstance(inside, pa.BaseExtensionType) else inside


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Give the type in which rows share nothing but the entries of a dictionary of text."""
    shown = _without_views(data_type)
    is_text = pa.types.is_dictionary(shown) and shown.value_type in (pa.string(), pa.large_string())
    return shown if is_text else _without_dictionaries(shown)


def _without_views(data_type: pa.DataType) -> pa.DataType:
    if isinstance(data_type, pa.BaseExtensionType):
        return data_type if data_type in (*_KNOWN_EXTENSIONS, _HUGEINT) else _without_views(data_type.storage_type)
    if pa.types.is_dictionary(data_type):
        return pa.dictionary(data_type.index_type, _without_views(data_type.value_type), data_type.ordered)
    return with_children(_VIEWS.get(data_type, data_type), _without_views)


def _without_dictionaries(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(data_type):
        return _without_dictionaries(data_type.value_type)
    return with_children(data_type, _without_dictionaries)


def _sound(values: pa.Array, kind: pa.DataType) -> list[pa.Array]:
    """Bring values to a type: all at once if they can be, else by halves, down to the ones that cannot."""
    with suppress(pa.ArrowException):
        return [_converted(values, kind)]
    if pa.types.is_dictionary(values.type):
        return [_sound_dictionary(values, kind)]
    if len(values) == 1:
        return [pa.nulls(1, kind)]
    half = len(values) // 2
    # Taken, not sliced: a slice of lists still has all that is inside of them.
    parts = (values.take(pa.array(range(*ends), pa.int64())) for ends in ((0, half), (half, len(values))))
    return [part for taken in parts for part in _sound(taken, kind)]


def _sound_dictionary(values: pa.DictionaryArray, kind: pa.DataType) -> pa.Array:
    """Leave entries out that have no value, which would spoil all rows of the dictionary."""
    entries = pa.concat_arrays(_sound(values.dictionary, values.type.value_type))
    return pa.DictionaryArray.from_arrays(values.indices, entries).dictionary_decode().dictionary_encode().cast(kind)


def _converted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if _is_checked(values.type):
        values.validate(full=True)
        _refuse_unknown(values)
    # Nanoseconds that microseconds do not hold are cut off; what would overflow is an error.
    return values if values.type == kind else values.cast(options=pc.CastOptions(kind, allow_time_truncate=True))


def _refuse_unknown(values: pa.Array) -> None:
    """Raise on what Arrow takes for a value and engines do not: the lowest decimal of 128 bits, and maps in which a key stands twice."""
    if pa.types.is_decimal128(values.type):
        # Arrow takes it for a short one, since it has no positive counterpart.
        lowest = pa.Array.from_buffers(values.type, 1, [None, pa.py_buffer(_LOWEST)])
        if pc.any(pc.equal(values, lowest[0])).as_py():
            raise pa.ArrowInvalid
    if pa.types.is_map(values.type):
        _refuse_keys_twice(values)
    for inside in _inside(values):
        _refuse_unknown(inside)


def _refuse_keys_twice(maps: pa.MapArray) -> None:
    """Raise on a map with equal keys; floating-point keys, of which different ones are equal, and nested keys are not allowed here."""
    if pa.types.is_floating(maps.type.key_type) or pa.types.is_nested(maps.type.key_type):
        raise pa.ArrowInvalid
    offsets = maps.offsets.to_numpy()
    keys = maps.keys.slice(offsets[0], offsets[-1] - offsets[0])
    pairs = pa.table({"map": np.repeat(np.arange(len(maps)), np.diff(offsets)), "key": keys})
    if pairs.group_by(["map", "key"]).aggregate([]).num_rows < len(keys):
        raise pa.ArrowInvalid


def _inside(values: pa.Array) -> list[pa.Array]:
    if pa.types.is_dictionary(values.type):
        return [values.dictionary]
    if pa.types.is_map(values.type):
        return [values.keys, values.items]
    if pa.types.is_struct(values.type):
        return list(values.flatten())
    is_list = pa.types.is_list(values.type) or pa.types.is_large_list(values.type)
    return [values.flatten()] if is_list or pa.types.is_fixed_size_list(values.type) else []


def _is_checked(data_type: pa.DataType) -> bool:
    """Return whether text, decimals, times or maps, which Arrow takes any bytes for, are of a type or inside of it."""
    if isinstance(data_type, pa.BaseExtensionType):
        return _is_checked(data_type.storage_type)
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _is_checked(data_type.value_type)
    is_text = pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type)
    inside = (data_type.field(place).type for place in range(data_type.num_fields))
    is_other = pa.types.is_decimal(data_type) or pa.types.is_time(data_type) or pa.types.is_map(data_type)
    return is_text or is_other or any(map(_is_checked, inside))
