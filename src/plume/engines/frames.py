"""Tables in memory: whatever library made them, they become Arrow, with the columns a query reads and no others."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from plume.engines.arrow_values import in_microseconds, refuse_unreadable, sound
from plume.engines.pinned import PinnedTable
from plume.engines.pinning import pinned
from plume.engines.python_values import TYPES, is_of_pandas, read_values
from plume.errors import InputError, type_in_words
from plume.plan.types import Kind
from plume.redaction import redacting


def to_arrow(content: Any, kinds: Mapping[str, Kind]) -> pa.Table | pa.RecordBatchReader:
    """Bring data to Arrow: a table, which can be read again and again, or a stream if that is what it is.

    `kinds` names the columns that are wanted; where one is missing all are taken, so that it can be said which there are.
    """
    kind, content = type(content).__name__, pinned(content)
    if isinstance(content, PinnedTable):
        return content.read(kinds)
    if not hasattr(content, "__arrow_c_stream__") and not _is_lazy(content):
        raise InputError(
            f"data is {type_in_words(content)}; it must be a path or a list of paths, a pandas or Polars DataFrame, "
            "an Arrow table, stream or dataset, a DuckDB relation, or a Delta or Iceberg table."
        )
    refusal = InputError(
        f"this {kind} cannot be read as a table; check that Arrow has a type for each column, and that no two columns have the same name."
    )
    with redacting(Exception, *_panics(), to=refusal):  # whatever a library raises here may quote data
        rows = _typed(_arrow(content, kinds), kinds)
    refuse_unreadable(rows.schema, kinds)
    with redacting(Exception, to=refusal):
        return sound(rows, in_microseconds)


def _panics() -> tuple[type[BaseException], ...]:
    """Name what Polars raises where it cannot compute a value, which is not an Exception; nothing where nobody has imported Polars."""
    polars = sys.modules.get("polars")
    return (polars.exceptions.PanicException,) if polars is not None else ()


def is_spark_frame(content: Any) -> bool:
    """Return whether data is a DataFrame of Spark, classic or Connect, without importing either."""
    return type(content).__module__.startswith("pyspark.sql.") and hasattr(content, "sparkSession")


def may_lose_integers(content: Any, kinds: Mapping[str, Kind], *, stated: bool) -> bool:
    """Return whether a column that is read as a number has a type of numpy's, which pandas makes another as soon as one value is missing.

    Then a row decides the type of the column, which must not show. What integers become counts as well, or sums over other columns would
    show that they did. Of a statement it is not known which columns become numbers.
    """
    if not any(map(is_of_pandas, type(content).__mro__)) or not hasattr(content, "dtypes"):
        return False
    numbers = {name for name, kind in kinds.items() if stated or kind is Kind.FLOAT}
    columns = zip(map(str, content.columns), content.dtypes, strict=True)
    frail = {label for label, dtype in columns if _is_frail(dtype)}
    return not numbers.isdisjoint(frail | set(map(str, content.index.names)))


def _is_frail(dtype: Any) -> bool:
    """Return whether a type of pandas, or that of its categories, is one of numpy's for numbers or booleans, or for any objects."""
    values = dtype.categories.dtype if hasattr(dtype, "categories") else dtype
    return isinstance(values, np.dtype) and values.kind in "biufO"


def _is_lazy(content: Any) -> bool:
    """Return whether the frame is a Polars LazyFrame."""
    return hasattr(content, "collect") and hasattr(content, "collect_schema")


def _arrow(content: Any, kinds: Mapping[str, Kind]) -> pa.Table | pa.RecordBatchReader:
    wanted = list(kinds)
    if any(map(is_of_pandas, type(content).__mro__)):
        return _pandas(content, kinds)
    if _is_lazy(content):
        complete = set(wanted) <= set(content.collect_schema().names())
        content = (content.select(wanted) if complete else content.head(0)).collect()
    if hasattr(content, "dtypes"):  # Polars
        content = content[wanted] if set(wanted) <= set(content.columns) else content.head(0)
        _refuse_objects(content)
    rows = content if isinstance(content, pa.RecordBatchReader) else pa.table(content)
    return _only(rows, wanted) if set(wanted) <= set(rows.schema.names) else rows


def _pandas(frame: Any, kinds: Mapping[str, Kind]) -> pa.Table:
    """Read the wanted columns of a pandas DataFrame, among them levels of its index that have a name; of any others the names alone."""
    labels = [str(label) for label in frame.columns]
    levels = [None if name is None else str(name) for name in frame.index.names]
    names = [*labels, *filter(None, levels)]
    if not set(kinds) <= set(names):
        return pa.table({name: pa.nulls(0) for name in names})
    if any(names.count(name) > 1 for name in kinds):
        raise TypeError
    # Where a column has its index with it, a label there can pass for an attribute of the column, such as one called "cat".
    columns = {name: frame.iloc[:, labels.index(name)].reset_index(drop=True) for name in kinds if name in labels}
    columns |= {name: _level(frame.index, levels.index(name)) for name in kinds.keys() - columns}
    return pa.table({name: _pandas_column(columns[name], kind) for name, kind in kinds.items()})


def _level(index: Any, place: int) -> Any:
    """Give a level of an index as a column, but Python objects as they are: pandas would guess a type from all of them."""
    level = index.get_level_values(place)
    return level if level.dtype == object else level.to_series(range(len(level)))


def _pandas_column(column: Any, kind: Kind) -> pa.Array | pa.ChunkedArray:
    """Read a column by what its type says, whatever its values are."""
    categories = column.cat.categories if hasattr(column, "cat") else column
    if categories.dtype == object:
        values = read_values(categories, kind)
        return values if categories is column else values.take(_places(column))
    if not is_of_pandas(type(column.dtype)) and not isinstance(column.dtype, np.dtype):
        raise TypeError  # a type of somebody else's, which may look at values
    with suppress(UnicodeEncodeError):
        return pa.array(column, from_pandas=True)
    return pa.array(_without_surrogates(column), from_pandas=True)


def _places(column: Any) -> pa.Array:
    """Say where among its categories the values of a column are."""
    codes = column.cat.codes.to_numpy()
    return pa.array(codes, mask=codes < 0)


def _without_surrogates(column: Any) -> Any:
    """Make halves of surrogate pairs, which UTF-8 does not have, NULL, and leave the type of a column of pandas as it is."""
    if hasattr(column, "cat"):
        known = column.cat.categories
        return column.cat.set_categories(known[[not _is_spoilt(category) for category in known]])
    return column.mask(column.map(_is_spoilt).astype(bool))


def _is_spoilt(value: Any) -> bool:
    """Return whether a text has no UTF-8, whatever its class says."""
    try:
        if isinstance(value, str):
            str.encode(value)
    except UnicodeEncodeError:
        return True
    return False


def _refuse_objects(frame: Any) -> None:
    """Refuse columns of Python objects, of which Polars gives Arrow the addresses in memory; other libraries look at all values."""
    if any(str(kind).lower() == "object" for kind in frame.dtypes):
        raise TypeError


def _only(rows: pa.Table | pa.RecordBatchReader, wanted: list[str]) -> pa.Table | pa.RecordBatchReader:
    if isinstance(rows, pa.Table):
        return rows.select(wanted)
    schema = pa.schema([rows.schema.field(name) for name in wanted])
    return pa.RecordBatchReader.from_batches(schema, _selected(rows, wanted))


def _selected(rows: pa.RecordBatchReader, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield batch.select(wanted)


def _typed(rows: pa.Table | pa.RecordBatchReader, kinds: Mapping[str, Kind]) -> pa.Table | pa.RecordBatchReader:
    """Give a type to columns that hold nothing and therefore have none, as in an empty pandas DataFrame."""
    fields = [_typed_field(field, kinds) for field in rows.schema]
    return rows if fields == list(rows.schema) else rows.cast(pa.schema(fields))


def _typed_field(field: pa.Field, kinds: Mapping[str, Kind]) -> pa.Field:
    return field.with_type(TYPES[kinds.get(field.name, Kind.TEXT)]) if pa.types.is_null(field.type) else field
