"""Rows as CSV that a spreadsheet can open: what it would run as a formula is text there."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from plume.far_dates import far_as_text
from plume.output.files import write_whole
from plume.output.pieces import pieces_of

# Spreadsheets run cells that begin so: some do behind spaces and what nobody sees, some take the wide and small forms of these signs, in
# which they are written in East Asia.
_SIGNS = r"=+\-@" "\uff1d\uff0b\uff0d\uff20" "\ufe66\ufe62\ufe63\ufe6b"
_FORMULA = rf"^[\s\p{{Z}}\p{{C}}]*[{_SIGNS}]|^[\t\r]"


def write_csv(path: Path, rows: pa.Table, *, overwrite: bool) -> None:
    """Write rows as a file, which appears whole or not at all."""
    write_whole(path, lambda file: pyarrow.csv.write_csv(csv_safe(rows), file), overwrite=overwrite)


def csv_pieces(rows: pa.Table) -> Iterator[bytes]:
    """Give rows as CSV, one piece after another, in bytes that are the same whatever the locale."""
    yield _to_csv(rows.slice(0, 0), header=True)
    for piece in pieces_of(rows):
        yield _to_csv(piece, header=False)


def _to_csv(rows: pa.Table, *, header: bool) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(csv_safe(rows), sink, pyarrow.csv.WriteOptions(include_header=header))
    return bytes(sink.getvalue())


def csv_safe(rows: pa.Table) -> pa.Table:
    """Make rows fit for CSV: bytes and far dates become text, and text or names that are formulas to a spreadsheet get an apostrophe."""
    columns = [_safe_column(column) for column in rows.columns]
    return pa.table(columns, names=_defused(_text_column(rows.column_names)).to_pylist())


def _text_column(texts: Sequence[str]) -> pa.Array:
    """Give texts as a column; not by `pyarrow.array`, which loads pandas."""
    written = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, written)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(written), pa.py_buffer(ends), pa.py_buffer(b"".join(written)))


def _safe_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = far_as_text(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.chunked_array([pa.array([value.hex() for value in column.to_pylist()], pa.string())])
    return _defused(column) if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else column


def _defused(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.replace_substring_regex(texts, f"({_FORMULA})", r"'\1")
