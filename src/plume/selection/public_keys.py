"""Keys known in advance: free, and complete. Checked here, since a list with holes or repetitions is not what the caller meant."""

from contextlib import suppress
from typing import Any

import pyarrow as pa

from plume.errors import PublicKeysError
from plume.far_dates import python_rows


def check_public_keys(keys: pa.Table) -> None:
    """Refuse an empty list, NULLs and duplicates; keys are public, so they may be counted."""
    if keys.num_rows == 0:
        raise PublicKeysError("public_keys is empty; list at least one key.")
    if any(column.null_count for column in keys.columns):
        raise PublicKeysError("public_keys holds NULL, which cannot be a key; remove it.")
    if any(pa.types.is_floating(column.type) for column in keys.columns):
        raise PublicKeysError("public_keys holds floating-point numbers, which cannot be keys; cast or bin them first.")
    distinct = _distinct(keys)
    if distinct < keys.num_rows:
        raise PublicKeysError(f"public_keys holds {keys.num_rows - distinct} duplicates; list each key once.")


def _distinct(keys: pa.Table) -> int:
    # By their places: a name such as "." is a path to Arrow.
    numbered = keys.rename_columns([str(place) for place in range(keys.num_columns)])
    with suppress(pa.ArrowNotImplementedError):
        return int(numbered.group_by(numbered.column_names).aggregate([]).num_rows)
    # Arrow does not group by lists and the like.
    return len({repr(key) for key in python_rows(keys)})


def table_of_keys(given: Any, names: tuple[str, ...]) -> pa.Table | None:
    """Make a table of the key columns, or nothing if that cannot be done, for whatever reason a library has."""
    if isinstance(given, list | tuple | set | frozenset | range):
        with suppress(Exception):
            rows = [row if isinstance(row, tuple | list) else (row,) for row in given]
            columns = list(zip(*rows, strict=True)) or [()] * len(names)
            return pa.table(dict(zip(names, map(_column_of, columns), strict=True)))
    if hasattr(given, "__arrow_c_stream__"):
        with suppress(Exception):
            return pa.table(given).select(list(names))
    if hasattr(given, "dtype") or hasattr(given, "type"):  # one column, of numpy, pandas, Polars or Arrow
        with suppress(Exception):
            return pa.table(dict(zip(names, [given], strict=True)))
    return None


def _column_of(values: tuple[Any, ...]) -> pa.Array:
    """Make a column of values of one type; Arrow by itself would cut timestamps to dates."""
    if len({type(value) for value in values if value is not None}) > 1:
        raise TypeError
    with suppress(OverflowError):
        return pa.array(values)
    # Arrow knows no integers of more than 64 bits; engines do, and read them as text.
    return pa.array([str(value) for value in values])
