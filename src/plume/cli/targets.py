"""Which files a command may write: checked before anything runs, since afterwards the budget is spent.

Files are compared by what they are, not by their names: a file may have several.
"""

import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from plume.cli.standard_input import DASH
from plume.cli.statement_text import is_statement_file
from plume.engines.files import find_files, on_this_machine
from plume.errors import InputError, OutputError
from plume.ledger.sqlite import SQLite
from plume.report.chart import refuse_without_charts

REPORT_ENDINGS = (".html",)
ERRORS_ENDINGS = (".txt", ".log")
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)

_Identity = tuple[object, ...]
Target = tuple[Path | None, Collection[str]]
"""A file to write, if any, and the endings it may have."""


def check_targets(targets: Iterable[Target], options: Mapping[str, Any], data: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written, that may not be replaced, or that is needed for something else."""
    given = [(path, endings) for path, endings in targets if path is not None]
    for path, endings in given:
        check_target(path, endings, force=options["force"])
    for (one, _), (other, _) in combinations(given, 2):
        if _identity(one) == _identity(other):
            raise OutputError(f"{str(one)!r} and {str(other)!r} are one file; give each result a file of its own.")
    for path, _ in given:
        _refuse_what_is_read(path, options, data)
    if any(endings == REPORT_ENDINGS for _, endings in given):
        refuse_without_charts()


def check_target(path: Path, endings: Collection[str], *, force: bool) -> None:
    """Refuse a file that could not be written, or that is there and may not be replaced."""
    name = str(path)
    if path.suffix.lower() not in endings:
        raise OutputError(f"{name!r} does not end in {' or '.join(endings)}; the ending says what to write.")
    if not _is_reachable(path):
        raise OutputError(
            f"{name!r} cannot be written: its name is too long, it is a link to itself, or its folder is closed to you."
        )
    if path.is_dir():
        raise OutputError(f"{name!r} is a folder; give the name of a file.")
    if path.exists() and not force:
        raise OutputError(f"{name!r} exists; give another name, or --force to replace it.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"the folder of {name!r} is not there or not writable; make it first.")


def _is_reachable(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno in _NOT_THERE
    except ValueError:
        return False
    return True


def _refuse_what_is_read(target: Path, options: Mapping[str, Any], data: Sequence[str]) -> None:
    """Refuse to replace what a command reads or charges, which --force alone must not be able to do."""
    target_identity = _identity(target)
    for what, identity in _read(options, data):
        if target_identity == identity:
            raise OutputError(f"{str(target)!r} is {what}; give another name.")
    ledger = options.get("ledger")
    if isinstance(ledger, Path) and _identity(target.resolve().parent) == _identity(SQLite(ledger).shelf.folder):
        raise OutputError(f"{str(target)!r} is in the folder of the ledger's releases; give another one.")


def _read(options: Mapping[str, Any], data: Sequence[str]) -> Iterator[tuple[str, _Identity]]:
    """List what a command reads, as words and as what it is."""
    named = {"the ledger": "ledger", "the list of public keys": "public_keys", "the file of the query": "query_file"}
    for what, option in named.items():
        if isinstance(options.get(option), Path):  # a ledger may be a database, public keys a list
            yield what, _identity(options[option])
    if is_statement_file(options.get("statement")):
        yield "the statement", _identity(Path(options["statement"]))
    for file in data:
        yield from (("part of the data", identity) for identity in _identities(file))


def _identities(file: str) -> Iterator[_Identity]:
    """Say what the files behind a name are; a table of Spark's has none here, and what is not there at all is said by the run."""
    if file == DASH:
        with suppress(OSError, ValueError, AttributeError):  # a closed standard input is None
            yield _of(os.fstat(sys.stdin.fileno()))
        return
    named = on_this_machine(file)
    paths: tuple[Path, ...] = (Path(named),)
    with suppress(InputError):
        paths = find_files(named).paths
    yield from map(_identity, paths)


def _identity(path: Path) -> _Identity:
    """Say which file a path means, whatever links lead to it; one that is not there yet is a name in a folder."""
    with suppress(OSError, ValueError):
        return _of(path.stat())
    with suppress(OSError, ValueError, RuntimeError):  # a link that leads to itself
        resolved = path.resolve()
        return (*_of(resolved.parent.stat()), resolved.name)
    return (path,)


def _of(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino
