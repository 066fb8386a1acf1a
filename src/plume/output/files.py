"""Files that appear whole or not at all: written beside their place, then moved there in one go. No reader ever sees half a file."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from plume.errors import OutputError, OutputExists
from plume.redaction import Redaction, redacting

_OPEN_TO_ALL = 0o666
_OWNER_ONLY_FOLDER = 0o700
OWNER_ONLY = 0o600
"""A mode for files that no other user of the machine may read."""
_MARK = "NOT-PRIVATE"


def with_not_private_suffix(path: Path) -> Path:
    """Put the words NOT-PRIVATE into the name of a file."""
    return path if _MARK in path.name or not path.name else path.with_name(f"{path.stem}.{_MARK}{path.suffix}")


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, overwrite: bool) -> None:
    """Write a file, in the place of one that is there only if asked to; it is open to whom the umask of the process lets in."""
    failed = f"{str(path)!r} could not be written;"
    with (
        Redaction((OSError, ValueError), lambda error: _failure(path, error)),
        redacting(pa.ArrowException, to=OutputError(f"{failed} this format cannot hold one of the columns.")),
        whole_file(path, _replace if overwrite else _place_new) as partial,
    ):
        write_new(partial, write)


def write_text(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a text as a file, in the same way."""
    write_whole(path, lambda file: file.write(text.encode()), overwrite=overwrite)


def _failure(path: Path, error: Exception) -> OutputError:
    if isinstance(error, FileExistsError) and not path.is_dir():
        return OutputExists(f"{str(path)!r} exists; give another name, or overwrite=True to replace it.")
    return OutputError(
        f"{str(path)!r} could not be written; check that its folder exists, is writable and has free space."
    )


def _replace(partial: Path, path: Path) -> None:
    partial.replace(path)


def _place_new(partial: Path, path: Path) -> None:
    """Give a file its place if there is none, in one go: what appears there in the meantime is not replaced either."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:  # some file systems have no links; there the name is taken first
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
        try:
            partial.replace(path)
        except BaseException:
            path.unlink()
            raise


@contextmanager
def whole_file(path: Path, place: Callable[[Path, Path], None] = _replace) -> Iterator[Path]:
    """Yield a name in a folder beside `path` that is closed to others; what is written there gets its place, or vanishes on failure.

    With `os.link` for `place` a file that is there is never replaced.
    """
    with private_folder(path.parent, ".plume-") as folder:
        partial = folder / "partial"
        yield partial
        place(partial, path)


@contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a folder that is closed to others, for as long as the context lasts.

    It has its name before it is made: `tempfile` tells the name afterwards, and an interrupt between the two leaves the folder behind.
    """
    folder = parent / f"{prefix}{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir(mode=_OWNER_ONLY_FOLDER)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_new(path: Path, write: Callable[[BinaryIO], object], mode: int = _OPEN_TO_ALL) -> None:
    """Write a file that is not there yet; its bytes are on disk when this returns."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def owned_file(path: Path, first: str, *, overwrite: bool) -> Iterator[Callable[[str], None]]:
    """Make a file that only its owner can read, with a first line, and give what adds to it; one that is there is replaced if asked to.

    What finds no room later on, or comes when the context is over, is lost: whether anything is added may tell of data, so no run fails
    on it.
    """
    with Redaction((OSError, ValueError), lambda error: _failure(path, error)):
        if overwrite:
            path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY)
    # A thread may outlive the context. By its number alone it would write to whatever file has that number by then; the file knows better.
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        with Redaction((OSError,), lambda error: _failure(path, error)):
            os.write(file.fileno(), first.encode())

        def add(text: str) -> None:
            with suppress(OSError, ValueError):
                os.write(file.fileno(), text.encode(errors="backslashreplace"))

        yield add


def sync_folder(folder: Path) -> None:
    """Make names in a folder survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
