"""Entries in one SQLite file. A connection lives for one operation only, so that no fork and no crash ever inherits an open one."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from plume.errors import LedgerDamaged, LedgerError, PlumeBug, ResourceError
from plume.ledger.entry import BEGINNING, Entry, EntryKind, canonical_json, hash_of, read_content, refuse_broken_chain
from plume.ledger.schema import APPLICATION, VERSION, create_tables, refuse_changed_schema
from plume.output.files import OWNER_ONLY, sync_folder, whole_file, write_new
from plume.redaction import Redaction, redacting

_WAIT_SECONDS = 30
# SQLite's locks cannot be relied on there.
_NETWORK = ("nfs", "cifs", "smb", "afs", "ceph", "lustre", "glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse")
# The whole chain is read before what allows or spends a budget; the steps that follow a charge need not read it again.
_CHECKED_BEFORE = (EntryKind.DATASET, EntryKind.RESERVED)
_COLUMNS = "number, kind, dataset, release_id, at, content, previous, hash"

_Result = TypeVar("_Result")


def create_file(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a ledger; the file appears when it is filled, whole or not at all, and never takes the place of another."""
    _refuse_network(path)
    failure = LedgerError(
        f"{str(path)!r} could not be created; check that the folder exists, is writable and has free space."
    )
    with (
        redacting(OSError, sqlite3.Error, ResourceError, to=failure),
        redacting(FileExistsError, to=LedgerError(f"{str(path)!r} exists already; give another name.")),
    ):
        _create_beside(path, fill)


def _create_beside(path: Path, fill: Callable[[Path], None]) -> None:
    with whole_file(path, place=os.link) as made:
        write_new(made, lambda _: None, OWNER_ONLY)
        with _open(made) as connection:
            create_tables(connection)
        fill(made)
    sync_folder(path.parent)


def refuse_what_is_no_ledger(path: Path) -> None:
    """Refuse a path without a ledger this version can read; opening one never makes it."""
    if not _is_file(path):
        raise LedgerError(f"no ledger {str(path)!r}; make one with plume.Ledger.create or `plume ledger create`.")
    _refuse_network(path)
    pragmas = _reading(
        path, lambda connection: (_pragma(connection, "application_id"), _pragma(connection, "user_version"))
    )
    if pragmas[0] != APPLICATION:
        raise LedgerError(f"{str(path)!r} is not a Plume ledger.")
    if pragmas[1] != VERSION:
        raise LedgerError(f"{str(path)!r} is a ledger of version {pragmas[1]}; this Plume reads version {VERSION}.")


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # a name that is too long, or in a folder that is closed to us
        return path.is_file()
    return False


def read_entries(path: Path) -> tuple[Entry, ...]:
    """Read all entries in their order."""
    return _reading(path, lambda connection: _select(connection, "ORDER BY number"))


def entries_of(path: Path, release_id: str) -> tuple[Entry, ...]:
    """Read the entries of one release in their order."""
    return _reading(path, lambda connection: _select(connection, "WHERE release_id = ? ORDER BY number", release_id))


def refuse_damaged_file(path: Path) -> None:
    """Refuse a file that SQLite does not find whole, or that lacks what keeps entries in order."""
    answers: list[tuple[str]] = _reading(
        path, lambda connection: connection.execute("PRAGMA integrity_check").fetchall()
    )
    if answers != [("ok",)]:
        raise LedgerDamaged(f"SQLite finds {str(path)!r} damaged; put it back from a copy.")
    _reading(path, refuse_changed_schema)


def append(path: Path, kind: EntryKind, dataset: str, release_id: str | None, content: Mapping[str, Any]) -> Entry:
    """Add one entry, on disk when this returns; never to a ledger that was changed by hand."""

    def add(connection: sqlite3.Connection) -> Entry:
        refuse_changed_schema(connection)
        if kind in _CHECKED_BEFORE:
            refuse_broken_chain(_select(connection, "ORDER BY number"))
        last = _select(connection, "ORDER BY number DESC LIMIT 1")
        number, previous = (last[0].number + 1, last[0].hash) if last else (1, BEGINNING)
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(number, kind, dataset, release_id, at, content, previous)
        entry = replace(entry, hash=hash_of(entry))
        values = (number, kind, dataset, release_id, at, canonical_json(content), previous, entry.hash)
        connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return entry

    return _transaction(path, add)


def _select(connection: sqlite3.Connection, rest: str, *values: str) -> tuple[Entry, ...]:
    # All at once: a cursor that is left in the middle, by an entry that cannot be read, would keep the file locked.
    rows = connection.execute(f"SELECT {_COLUMNS} FROM entries {rest}", values).fetchall()
    return tuple(
        Entry(number, EntryKind(kind), dataset, release_id, at, read_content(EntryKind(kind), content), previous, hash_)
        for number, kind, dataset, release_id, at, content, previous, hash_ in rows
    )


def _transaction(path: Path, change: Callable[[sqlite3.Connection], _Result]) -> _Result:
    """Change the file in one transaction that nobody else is in."""
    with _plainly(path), _open(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = change(connection)
            connection.execute("COMMIT")
        except BaseException:
            # After a full disk SQLite has rolled back by itself; its complaint about that must not hide the reason.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return result


def _reading(path: Path, read: Callable[[sqlite3.Connection], _Result]) -> _Result:
    with _plainly(path), _open(path) as connection:
        return read(connection)


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    connection = _connect(path)
    try:
        yield connection
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_WAIT_SECONDS
    )
    for setting in ("journal_mode = DELETE", "synchronous = EXTRA", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    row: tuple[int] = connection.execute(f"PRAGMA {name}").fetchone()
    return row[0]


def _plainly(path: Path) -> Redaction:
    """Say what SQLite complains about in words of our own."""
    return Redaction((sqlite3.DatabaseError, ValueError), lambda error: _failure(path, error))


class Refused(PlumeBug):
    """What the database itself refuses, whatever the code above it says."""


def _failure(path: Path, error: Exception) -> Exception:
    if isinstance(error, sqlite3.IntegrityError):
        return Refused(str(error))
    match str(error) if isinstance(error, sqlite3.OperationalError) else "":
        case said if "locked" in said:
            return LedgerError(f"{str(path)!r} was in use for {_WAIT_SECONDS} seconds; try again.")
        case said if "readonly" in said or "unable to open" in said:
            return LedgerError(f"{str(path)!r} cannot be written; check that it and its folder are writable.")
        case said if "full" in said or "I/O" in said:
            return ResourceError(
                f"{str(path)!r} could not be written: the disk is full or failing. Its entries are unchanged."
            )
        case _:
            return LedgerDamaged(f"{str(path)!r} is not a Plume ledger, or is damaged.")


def _refuse_network(path: Path) -> None:
    kind = _file_system(path.absolute().parent)
    if kind.startswith(_NETWORK):
        raise LedgerError(
            f"{str(path)!r} is on a network file system ({kind}), where locks cannot be relied on; use a local disk."
        )


def _file_system(folder: Path) -> str:
    """Name the kind of file system a folder is on, as Linux tells; elsewhere nothing is known."""
    kinds: dict[Path, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, mounted, kind, *_ = line.split(" ")
            kinds[Path(mounted)] = kind
    return next((kinds[place] for place in (folder, *folder.parents) if place in kinds), "")
