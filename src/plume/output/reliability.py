"""Numbers that are mostly noise, in released rows: beside them a column says so, and people read so in their place."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

RELIABLE = "_reliable"
"""How the column ends that says of another one, row by row, whether it is more than noise."""
TOO_NOISY = "too noisy"
"""What people read in the place of a number that is not."""
KEEP, NULL = "keep", "null"
"""What becomes of such numbers where programs read them: they stay, unless asked to be NULL."""


def unreliable_values(rows: pa.Table, columns: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Say of each of these columns that the rows have where it is unreliable; where nothing is known, it is not said to be."""
    shown = (name for name in columns if {name, f"{name}{RELIABLE}"} <= set(rows.column_names))
    return {name: pc.fill_null(pc.invert(rows.column(f"{name}{RELIABLE}")), fill_value=False) for name in shown}


def noisy_keys(noisy: pa.ChunkedArray) -> str:
    """Say in how many keys a column is too noisy; where that is in all of them, it may hold no such values as are asked for."""
    many, keys = pc.sum(noisy).as_py(), len(noisy)
    advice = (
        " (raise epsilon, or check that the values have the type and the range of their bounds)" if many == keys else ""
    )
    return f"too noisy in {many:,} of {keys:,} {'keys' if keys > 1 else 'key'}{advice}"


def without_unreliable(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Put NULL in the place of unreliable values of these columns."""
    for name, unreliable in unreliable_values(rows, columns).items():
        place, column = rows.column_names.index(name), rows.column(name)
        known = pc.if_else(unreliable, pa.scalar(None, column.type), column)
        rows = rows.set_column(place, rows.schema.field(name), known)
    return rows


def rows_to_read(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Leave out the columns that say where these are reliable; a text or page says it in their place."""
    answers = {f"{name}{RELIABLE}" for name in columns}
    return rows.select([name for name in rows.column_names if name not in answers])
