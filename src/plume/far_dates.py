"""Dates and timestamps that Python's own cannot hold, before the year 1 and after 9999: engines have them, and so may released rows.

Years are counted as ISO 8601 does: the year before 1 is 0.
"""

from typing import Any

import numpy as np
import pyarrow as pa

# What Arrow and the datetime module raise on a date they cannot hold.
TOO_FAR = (OverflowError, ValueError)


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """Give the values of a column, the far dates among them as text."""
    try:
        values: list[Any] = column.to_pylist()
    except TOO_FAR:
        values = [_python_value(scalar) for scalar in column]
    return values


def python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Give rows by the names of their columns, the far dates among their values as text."""
    columns = (python_values(column) for column in rows.columns)
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def far_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make a column of dates or timestamps text if there is a far one among them; any other column stays as it is."""
    if not pa.types.is_date(column.type) and not pa.types.is_timestamp(column.type):
        return column
    values = python_values(column)
    if not any(isinstance(value, str) for value in values):
        return column
    return pa.chunked_array([pa.array([None if value is None else str(value) for value in values], pa.string())])


def _python_value(scalar: pa.Scalar) -> Any:
    """Read one value, however deep far dates lie in it."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _timestamp(scalar)
    if pa.types.is_struct(kind):
        return {field.name: _python_value(scalar[field.name]) for field in kind}
    if pa.types.is_map(kind):
        return [tuple(_python_value(entry[place]) for place in (0, 1)) for entry in scalar.values]
    if pa.types.is_nested(kind):
        return [_python_value(value) for value in scalar.values]
    return scalar.as_py()


def _timestamp(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except TOO_FAR:
        unit: Any = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(scalar.type)) or scalar.type.unit
        return _text(np.datetime64(scalar.value, unit)) + ("+00:00" if getattr(scalar.type, "tz", None) else "")


def _text(timestamp: np.datetime64) -> str:
    """Write a timestamp as Python writes the near ones, with a year of at least four digits."""
    day, _, time = str(timestamp).partition("T")
    sign, digits = ("-", day[1:]) if day.startswith("-") else ("", day)
    year, _, rest = digits.partition("-")
    return f"{sign}{year:0>4}-{rest}{f' {time}' if time else ''}"
