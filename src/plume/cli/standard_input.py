"""Data that come through a pipe: a plan may read its rows twice, so they go to a file that only we can read, and it goes afterwards."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plume.errors import InputError, ResourceError
from plume.output.files import OWNER_ONLY, private_folder
from plume.redaction import redacting

DASH = "-"
_AT_ONCE = 2**20


@contextmanager
def files_behind(names: tuple[str, ...], form: str, folder: Path | None) -> Iterator[tuple[str, ...]]:
    """Give the names, with a file in the place of each dash."""
    if DASH not in names:
        yield names
        return
    if names.count(DASH) > 1:
        raise InputError("standard input, written -, can be read once only.")
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "standard input is closed or a terminal; pipe data into it, as in `cat searches.csv | plume run - ...`."
        )
    with private_folder(folder or Path(tempfile.gettempdir()), "plume-") as private:
        kept = private / f"standard_input.{form}"
        _keep(kept)
        yield tuple(str(kept) if name == DASH else name for name in names)


def _keep(path: Path) -> None:
    full = ResourceError(
        "standard input could not be kept for the run; check that the temporary folder has free space."
    )
    with (
        redacting(OSError, to=full),
        os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY), "wb") as file,
    ):
        shutil.copyfileobj(sys.stdin.buffer, file, _AT_ONCE)
