"""What noise goes on: columns of exact integers, as engines hand them over."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.errors import PlumeBug


def exact_integers(batch: pa.RecordBatch, column: str) -> NDArray[np.int64]:
    """Give a column of 64-bit integers none of which is missing; a plan that makes another one is broken."""
    values = batch.column(column)
    if values.type != pa.int64() or values.null_count:
        raise PlumeBug(f"column {column} of exact states does not hold 64-bit integers only")
    # Not by `to_numpy`, which loads pandas.
    _, buffer = values.buffers()
    return np.frombuffer(buffer, np.int64, len(values), 8 * values.offset) if len(values) else np.empty(0, np.int64)


def column_of(values: NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]) -> pa.Array:
    """Give numbers, or what is true and false, as a column; not by `pyarrow.array`, which loads pandas."""
    held = np.packbits(values.view(np.uint8), bitorder="little") if values.dtype == np.bool_ else values.copy()
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(held)])
