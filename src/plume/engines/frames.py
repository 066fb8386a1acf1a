"""Tables in memory: whatever library made them, they become Arrow, with the columns a query reads and no others."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from plume.engines.arrow_values import in_microseconds, refuse_unreadable, sound
from plume.errors import InputError
from plume.plan.types import Kind
from plume.redaction import redacting

_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.FLOAT: pa.float64(),
    Kind.INTEGER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


def to_arrow(content: Any, kinds: Mapping[str, Kind]) -> pa.Table | pa.RecordBatchReader:
    """Bring data to Arrow: a table, which can be read again and again, or a stream if that is what it is.

    `kinds` names the columns that are wanted; where one is missing all are taken, so that it can be said which there are.
    """
    kind = type(content).__name__
    if not hasattr(content, "__arrow_c_stream__") and not _is_lazy(content):
        raise InputError(
            f"data is a {kind}; it must be a path or a list of paths, a pandas or Polars DataFrame, an Arrow table or stream, "
            "or a DuckDB relation."
        )
    refusal = InputError(
        f"this {kind} cannot be read as a table; does a column mix types, or have two columns one name?"
    )
    with redacting(Exception, to=refusal):  # whatever a library raises here may quote data
        rows = _typed(_arrow(content, list(kinds)), kinds)
    refuse_unreadable(rows.schema, kinds)
    with redacting(Exception, to=refusal):
        return sound(rows, in_microseconds)


def is_spark_frame(content: Any) -> bool:
    """Return whether data is a DataFrame of Spark, classic or Connect, without importing either."""
    return type(content).__module__.startswith("pyspark.sql.") and hasattr(content, "sparkSession")


def _is_lazy(content: Any) -> bool:
    """Return whether the frame is a Polars LazyFrame."""
    return hasattr(content, "collect") and hasattr(content, "collect_schema")


def _arrow(content: Any, wanted: list[str]) -> pa.Table | pa.RecordBatchReader:
    if _is_lazy(content):
        complete = set(wanted) <= set(content.collect_schema().names())
        content = (content.select(wanted) if complete else content).collect()
    if hasattr(content, "dtypes"):  # pandas and Polars
        content = content[wanted] if set(wanted) <= set(content.columns) else content
        _refuse_objects(content)
    rows = content if isinstance(content, pa.RecordBatchReader) else _table(content)
    return _only(rows, wanted) if set(wanted) <= set(rows.schema.names) else rows


def _table(content: Any) -> pa.Table:
    with suppress(UnicodeEncodeError):
        return pa.table(content)
    # Only texts of Python hold half of a surrogate pair, which no other text does, and of frames only those of pandas hold these.
    return pa.table(content.apply(_without_surrogates))


def _without_surrogates(column: Any) -> Any:
    """Make text that UTF-8 does not have NULL, and leave the type of a column of pandas as it is."""
    if hasattr(column, "cat"):
        known = column.cat.categories
        return column.cat.set_categories(known[[not _is_spoilt(category) for category in known]])
    return column.mask(column.map(_is_spoilt).astype(bool))


def _is_spoilt(value: Any) -> bool:
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _refuse_objects(frame: Any) -> None:
    """Refuse columns of Python objects in Polars, which gives Arrow their addresses in memory."""
    if any(str(kind) == "Object" for kind in frame.dtypes):
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
    return field.with_type(_TYPES[kinds.get(field.name, Kind.TEXT)]) if pa.types.is_null(field.type) else field
