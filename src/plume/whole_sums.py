"""Sums of whole numbers are released as whole numbers.

Separate from the measures, which say whether they are whole: their noise knows no types of columns. docs/guarantees/sum.md.
"""

import numpy as np
import pyarrow as pa

from plume.plan.types import Schema
from plume.query import Query

# The outermost floating-point numbers that 64-bit integers hold.
_LEAST, _MOST = -(2.0**63), 2.0**63 - 1024


def with_whole_sums(rows: pa.Table, query: Query, schema: Schema) -> pa.Table:
    """Round noised sums to whole numbers, halves up, if the types of their columns and their bounds are whole.

    Guarantee: it reads noised rows, the query and the types of columns, none of which a row decides. docs/guarantees/sum.md.
    """
    names = query.released_columns
    for measure in query.measures:
        if measure.is_whole({column: schema[column].kind for column in measure.value_columns}):
            place = names.index(measure.name)
            column = rows.schema.field(place).name
            rows = rows.set_column(place, column, _rounded(rows.column(place)))
    return rows


def _rounded(sums: pa.ChunkedArray) -> pa.Array:
    values = np.clip(sums.to_numpy(), _LEAST, _MOST)
    below = np.floor(values)
    return pa.array((below + (values - below >= 1 / 2)).astype(np.int64))
