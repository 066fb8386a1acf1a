"""Rows as a table of plain text, to be read by people."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from plume.errors import printable
from plume.far_dates import python_values
from plume.output.reliability import TOO_NOISY

SHOWN_ROWS = 10
"""The first rows, which are enough to see what there is."""
_WIDEST_CELL = 80
_WIDE = 9_999.5  # from here on four digits of a number need an exponent
_LARGE, _LARGEST = 999_999.5, 1e15


def show(
    rows: pa.Table,
    limit: int = SHOWN_ROWS,
    *,
    unreliable: Mapping[str, pa.ChunkedArray] = MappingProxyType({}),
    leading: int = 0,
) -> str:
    """Draw the first rows as plain text; control characters in keys are escaped, since keys are strangers' words.

    Where a column is unreliable, words stand in the place of its values. On a terminal, columns that do not fit beside each other stand
    below each other, behind the `leading` ones each time.
    """
    first = rows.slice(0, limit)
    columns = [_aligned([cell(name), *_cells(first.column(name), unreliable.get(name))]) for name in rows.column_names]
    drawn = ["\n".join(map("  ".join, zip(*some, strict=True))) for some in _fitting(columns, leading)]
    more = (
        [f"... {rows.num_rows} rows"] if rows.num_rows > limit else [] if rows.num_rows else ["no keys were selected"]
    )
    return "\n".join(["\n\n".join(drawn), *more])


def _aligned(cells: list[str]) -> list[str]:
    width = max(map(len, cells))
    return [f"{one:>{width}}" for one in cells]


def _fitting(columns: list[list[str]], leading: int) -> Iterator[list[list[str]]]:
    """Give the columns that fit the terminal beside each other, one after another; all at once where none is printed to."""
    room = _width_of_terminal()
    first, rest = columns[:leading], columns[leading:]
    if room is None or not rest:
        yield columns
        return
    taken: list[list[str]] = []
    for column in rest:
        if taken and sum(len(one[0]) + 2 for one in [*first, *taken, column]) - 2 > room:
            yield [*first, *taken]
            taken = []
        taken.append(column)
    yield [*first, *taken]


def _width_of_terminal() -> int | None:
    """How many letters fit a line of the terminal that is printed to; nothing, if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


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


def four_digits(number: float) -> str:
    """Write the width of noise or an error: four digits, or all that stand before the point."""
    return f"{number:,.0f}" if number >= _WIDE else f"{number:.4g}"


def _number(value: float) -> str:
    """Write six digits; of larger numbers all that stand before the point, which people read more easily than an exponent."""
    return f"{value:.0f}" if _LARGE <= abs(value) < _LARGEST else f"{value:.6g}"
