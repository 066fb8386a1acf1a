"""Where results go: files, or standard output."""

import errno
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from plume.cli.terminal import Say, put
from plume.errors import OutputError
from plume.far_dates import python_rows
from plume.release import Release, harmless, show, write_whole


def _write_json(release: Release, path: Path) -> None:
    write_whole(path, lambda file: file.writelines(_json_pieces(release.to_arrow())))


_WRITERS = {".parquet": Release.write_parquet, ".csv": Release.write_csv, ".json": _write_json}
ROWS_ENDINGS = tuple(_WRITERS)
RECORD_ENDINGS = (".json",)
_TABLE_ROWS = 40
_ROWS_AT_ONCE = 2**16


def write_rows(release: Release, path: Path) -> None:
    """Write the rows in the format of the file's ending."""
    _WRITERS[path.suffix.lower()](release, path)


def write_record(release: Release, path: Path) -> None:
    """Write what was asked and spent."""
    write_whole(path, lambda file: file.write(f"{release.to_json()}\n".encode()))


def print_rows(release: Release, layout: str | None, say: Say) -> None:
    """Print the rows: what people read on a terminal, what programs read elsewhere, unless told otherwise."""
    full = False
    try:
        _print_rows(release.to_arrow(), layout, say)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has seen enough
        full = True
    if full:
        raise OutputError("standard output could not be written; is there room?")


def refuse_closed_output() -> None:
    """Refuse to compute what nobody could be given."""
    if sys.stdout is None:
        raise OutputError("standard output is closed; give a file with --out.")


def _print_rows(rows: pa.Table, layout: str | None, say: Say) -> None:
    match layout or ("table" if sys.stdout.isatty() else "csv"):
        case "table":
            put(f"{show(rows, _TABLE_ROWS)}\n")
            if rows.num_rows > _TABLE_ROWS:
                say(f"{_TABLE_ROWS} of {rows.num_rows} rows shown; --format csv and --out give all.")
        case "csv":
            _put_all(_csv_pieces(rows))
        case _:
            _put_all(_json_pieces(rows))


def _put_all(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        put(piece)


def _csv_pieces(rows: pa.Table) -> Iterable[bytes]:
    yield to_csv(rows.slice(0, 0), header=True)
    for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield to_csv(pa.Table.from_batches([batch]), header=False)


def to_csv(rows: pa.Table, *, header: bool) -> bytes:
    """Give rows as CSV, in bytes that are the same whatever the locale, and without formulas."""
    sink = pa.BufferOutputStream()
    try:
        pyarrow.csv.write_csv(harmless(rows), sink, pyarrow.csv.WriteOptions(include_header=header))
    except pa.ArrowException:
        sink = None
    if sink is None:
        raise OutputError("there is a key that CSV cannot hold; use --format json, or --out with .parquet.")
    return bytes(sink.getvalue())


def _json_pieces(rows: pa.Table) -> Iterable[bytes]:
    """Print one array with one row per line, so that both jq and grep can read it."""
    before = "[\n"
    for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield (
            before + ",\n".join(json.dumps(row, default=str) for row in python_rows(pa.Table.from_batches([batch])))
        ).encode()
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"
