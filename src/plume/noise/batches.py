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
    integers: NDArray[np.int64] = values.to_numpy(zero_copy_only=True)
    return integers
