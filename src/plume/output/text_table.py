"""Rows as a table of plain text, to be read by people."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from plume.errors import printable
from plume.far_dates import python_values
from plume.output.reliability import TOO_NOISY

SHOWN_ROWS = 10
"""The first rows, which are enough to see what there is."""
_WIDEST_CELL = 80
_LARGE, _LARGEST = 999_999.5, 1e15


def show(
    rows: pa.Table, limit: int = SHOWN_ROWS, *, unreliable: Mapping[str, pa.ChunkedArray] = MappingProxyType({})
) -> str:
    """Draw the first rows as plain text; control characters in keys are escaped, since keys are strangers' words.

    Where a column is unreliable, words stand in the place of its values.
    """
    first = rows.slice(0, limit)
    cells = [_cells(first.column(name), unreliable.get(name)) for name in rows.column_names]
    names = [cell(name) for name in rows.column_names]
    widths = [max(map(len, [name, *column])) for name, column in zip(names, cells, strict=True)]
    lines = [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
        for line in zip(*cells, strict=True)
    ]
    head = "  ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    more = (
        [f"... {rows.num_rows} rows"] if rows.num_rows > limit else [] if rows.num_rows else ["no keys were selected"]
    )
    return "\n".join([head, *lines, *more])


def _cells(column: pa.ChunkedArray, unreliable: pa.ChunkedArray | None) -> list[str]:
    cells = map(cell, python_values(column))
    if unreliable is None:
        return list(cells)
    noisy = unreliable.slice(0, len(column)).to_pylist()
    return [TOO_NOISY if is_noise else cell for cell, is_noise in zip(cells, noisy, strict=True)]


def cell(value: Any) -> str:
    """Write a value as a table shows it."""
    text = printable(_number(value) if isinstance(value, float) else str(value))
    return text if len(text) <= _WIDEST_CELL else f"{text[: _WIDEST_CELL - 3]}..."


def _number(value: float) -> str:
    """Write six digits; of larger numbers all that stand before the point, which people read more easily than an exponent."""
    return f"{value:.0f}" if _LARGE <= abs(value) < _LARGEST else f"{value:.6g}"
