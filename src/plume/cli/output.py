"""Where results go: files that are checked before anything runs, or standard output."""

import errno
import json
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.csv

from plume.cli.terminal import Say
from plume.engines.files import find_files
from plume.errors import InputError, OutputError, printable
from plume.far_dates import python_rows
from plume.release import Release, harmless, show, write_whole
from plume.report.chart import refuse_without_charts


def _write_json(release: Release, path: Path) -> None:
    write_whole(path, lambda file: file.writelines(_json_pieces(release.to_arrow())))


_WRITERS = {".parquet": Release.write_parquet, ".csv": Release.write_csv, ".json": _write_json}
ROWS_ENDINGS = tuple(_WRITERS)
RECORD_ENDINGS = (".json",)
REPORT_ENDINGS = (".html",)
_TABLE_ROWS = 40
_ROWS_AT_ONCE = 2**16


def check_target(path: Path, endings: Collection[str], *, force: bool) -> None:
    """Refuse a file that could not be written, or that is there and may not be replaced."""
    name = str(path)
    if path.suffix.lower() not in endings:
        raise OutputError(f"{name!r} does not end in {' or '.join(endings)}; the ending says what to write.")
    if path.is_dir():
        raise OutputError(f"{name!r} is a folder; give the name of a file.")
    if path.exists() and not force:
        raise OutputError(f"{name!r} exists; give another name, or --force to replace it.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"the folder of {name!r} is not there or not writable; make it first.")


def check_page(path: Path, *, force: bool) -> None:
    """Refuse a page that could not be written, or whose charts could not be drawn."""
    refuse_without_charts()
    check_target(path, REPORT_ENDINGS, force=force)


def refuse_input_as_target(files: Sequence[str], target: Path) -> None:
    """Refuse to replace the data itself, which --force alone must not be able to do."""
    if target.exists() and any(path.samefile(target) for file in files for path in _paths(file)):
        raise OutputError(f"{str(target)!r} is part of the data; give another name.")


def _paths(file: str) -> tuple[Path, ...]:
    """Find the files behind a name; a table of Spark's has none here, and what is not there at all is said by the run."""
    with suppress(InputError):
        return find_files(file).paths
    return ()


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
            click.echo(show(rows, _TABLE_ROWS))
            if rows.num_rows > _TABLE_ROWS:
                say(f"{_TABLE_ROWS} of {rows.num_rows} rows shown; --format csv and --out give all.")
        case "csv":
            _print_pieces(_csv_pieces(harmless(rows)))
        case _:
            _print_pieces(_json_pieces(rows))


def _print_pieces(pieces: Iterable[bytes]) -> None:
    """Print bytes as they are, whatever the locale; but on a terminal nothing that could command it."""
    for piece in pieces:
        click.echo(printable(piece.decode(errors="replace"), keep="\n") if sys.stdout.isatty() else piece, nl=False)


def _csv_pieces(rows: pa.Table) -> Iterable[bytes]:
    yield to_csv(rows.slice(0, 0), header=True)
    for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield to_csv(batch, header=False)


def to_csv(rows: pa.Table | pa.RecordBatch, *, header: bool) -> bytes:
    """Give rows as CSV, in bytes that are the same whatever the locale."""
    sink = pa.BufferOutputStream()
    try:
        pyarrow.csv.write_csv(rows, sink, pyarrow.csv.WriteOptions(include_header=header))
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
