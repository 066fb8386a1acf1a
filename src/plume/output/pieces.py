"""Rows in pieces, so that the text of many of them is never in memory as a whole."""

from collections.abc import Iterator

import pyarrow as pa

_ROWS_AT_ONCE = 2**16


def pieces_of(rows: pa.Table) -> Iterator[pa.Table]:
    """Give rows as tables of some thousands of them."""
    return (pa.Table.from_batches([batch]) for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE))
