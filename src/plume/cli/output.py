"""Where results go: files, or standard output."""

import errno
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from plume.cli.terminal import Say, put
from plume.errors import OutputError
from plume.output.csv_rows import csv_pieces
from plume.output.files import write_text
from plume.output.json_rows import json_pieces, write_json
from plume.redaction import Redaction, redacting
from plume.release import Release, draw

if TYPE_CHECKING:
    from plume.tuning.expectation import Expectation
    from plume.tuning.need import Need
    from plume.tuning.tuning import NotPrivateTuning

# Whether a file may be replaced was checked before the run. One that appeared since then would cost a release that is paid for.
_WRITERS: dict[str, Callable[[Release, Path], None]] = {
    ".parquet": lambda release, path: release.write_parquet(path, overwrite=True),
    ".csv": lambda release, path: release.write_csv(path, overwrite=True),
    ".json": lambda release, path: write_json(path, release.to_arrow(), overwrite=True),
}
ROWS_ENDINGS = tuple(_WRITERS)
RECORD_ENDINGS = (".json",)
_TABLE_ROWS = 40


def write_rows(release: Release, path: Path) -> None:
    """Write the rows in the format of the file's ending."""
    _WRITERS[path.suffix.lower()](release, path)


def write_record(release: Release, path: Path) -> None:
    """Write what was asked and spent."""
    write_text(path, f"{release.to_json()}\n", overwrite=True)


def print_result(result: "Expectation | Need | NotPrivateTuning", layout: str) -> None:
    """Print what to expect, what is needed, or what would suit the data: for people unless told otherwise."""
    match layout:
        case "csv":
            _put_csv(csv_pieces(result.to_arrow()))
        case "json":
            put(f"{result.to_json()}\n")
        case _:
            put(f"{result}\n")


def print_rows(release: Release, layout: str | None, say: Say) -> None:
    """Print the rows: what people read on a terminal, what programs read elsewhere, unless told otherwise."""
    with Redaction((OSError,), _failure):
        _print_rows(release, layout, say)


def _failure(error: Exception) -> Exception:
    has_seen_enough = isinstance(error, OSError) and error.errno == errno.EPIPE
    return (
        error
        if has_seen_enough
        else OutputError("standard output could not be written; check that there is free space.")
    )


def refuse_closed_output() -> None:
    """Refuse to compute what nobody could be given."""
    if sys.stdout is None:
        raise OutputError("standard output is closed; give a file with --out.")


def _print_rows(release: Release, layout: str | None, say: Say) -> None:
    rows = release.to_arrow()
    match layout or ("table" if sys.stdout.isatty() else "csv"):
        case "table":
            put(f"{draw(release, _TABLE_ROWS)}\n")
            if rows.num_rows > _TABLE_ROWS:
                say(f"{_TABLE_ROWS} of {rows.num_rows} rows shown; --format csv and --out give all.")
        case "csv":
            _put_csv(csv_pieces(rows))
        case _:
            _put_all(json_pieces(rows))


def _put_csv(pieces: Iterable[bytes]) -> None:
    refusal = OutputError("there is a key that CSV cannot hold; use --format json, or --out with .parquet.")
    with redacting(pa.ArrowException, to=refusal):
        _put_all(pieces)


def _put_all(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        put(piece)
