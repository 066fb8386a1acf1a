"""Rows as JSON: one array with one row per line, so that both jq and grep can read it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from plume.far_dates import python_rows
from plume.output.files import write_whole
from plume.output.pieces import pieces_of


def write_json(path: Path, rows: pa.Table, *, overwrite: bool) -> None:
    """Write rows as a file, which appears whole or not at all."""
    write_whole(path, lambda file: file.writelines(json_pieces(rows)), overwrite=overwrite)


def json_pieces(rows: pa.Table) -> Iterator[bytes]:
    """Give rows as JSON, one piece after another."""
    before = "[\n"
    for piece in pieces_of(rows):
        yield (before + ",\n".join(json.dumps(row, default=str) for row in python_rows(piece))).encode()
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"
