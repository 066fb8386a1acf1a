"""A ledger in one SQLite file, and its released rows in the folder beside it."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plume.errors import LedgerDamaged, LedgerError, ResourceError
from plume.ledger.shelf import FolderShelf
from plume.ledger.sqlite_schema import APPLICATION, VERSION, create_tables, refuse_changed_schema
from plume.ledger.store import WAIT_SECONDS, Refused, Result, Store, Use
from plume.output.files import OWNER_ONLY, sync_folder, whole_file, write_new
from plume.redaction import Redaction, redacting

# SQLite's locks cannot be relied on there.
_NETWORK = ("nfs", "cifs", "smb", "afs", "ceph", "lustre", "glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse")
_OTHERS_MAY_WRITE = 0o022


@dataclass(frozen=True)
class _File:
    """An open file."""

    connection: sqlite3.Connection

    def execute(self, statement: str, *values: Any) -> list[Any]:
        # All at once: a cursor that is left in the middle, by an entry that cannot be read, would keep the file locked.
        return self.connection.execute(statement, values).fetchall()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def refuse_changed_schema(self) -> None:
        refuse_changed_schema(self.connection)


@dataclass(frozen=True)
class SQLite(Store):
    """A ledger in a file on this machine."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def shelf(self) -> FolderShelf:
        """The folder `<ledger>.releases` beside the file itself, whatever links lead to it."""
        file = self.path.resolve()
        return FolderShelf(file.with_name(f"{file.name}.releases"))

    @property
    def caution(self) -> str | None:
        """Say if other users of the machine may write to the file."""
        others = self.path.stat().st_mode & _OTHERS_MAY_WRITE
        return f"Others may change {self}; chmod 600 keeps them out." if others else None

    def is_there(self) -> bool:
        """Return whether there is anything of that name."""
        return _answer(self.path.exists)

    def refuse_other(self) -> None:
        """Refuse a path without a ledger this version can read."""
        if not _answer(self.path.is_file):
            raise LedgerError(f"no ledger {str(self)!r}; make one with plume.Ledger.create or `plume ledger create`.")
        _refuse_network(self.path)
        marks = self._reading(
            lambda connection: (_pragma(connection, "application_id"), _pragma(connection, "user_version"))
        )
        if marks[0] != APPLICATION:
            raise LedgerError(f"{str(self)!r} is not a Plume ledger.")
        if marks[1] != VERSION:
            raise LedgerError(f"{str(self)!r} is a ledger of version {marks[1]}; this Plume reads version {VERSION}.")

    def refuse_damaged(self) -> None:
        """Refuse a file that SQLite does not find whole, or that lacks what keeps entries in order."""
        answers = self.read(lambda book: book.execute("PRAGMA integrity_check"))
        if answers != [("ok",)]:
            raise LedgerDamaged(f"SQLite finds {str(self)!r} damaged; put it back from a copy.")
        self._reading(refuse_changed_schema)

    def make(self, fill: Use[None]) -> None:
        """Make the file, which appears when it is filled and never takes the place of another."""
        _refuse_network(self.path)
        failure = LedgerError(
            f"{str(self)!r} could not be created; check that the folder exists, is writable and has free space."
        )
        with (
            redacting(OSError, sqlite3.Error, ResourceError, to=failure),
            redacting(FileExistsError, to=LedgerError(f"{str(self)!r} exists already; give another name.")),
        ):
            _create_beside(self.path, fill)

    def read(self, look: Use[Result]) -> Result:
        """Look into the file."""
        return self._reading(lambda connection: look(_File(connection)))

    def write(self, change: Use[Result]) -> Result:
        """Change the file in one transaction that nobody else is in."""
        with _plainly(self.path), _open(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = change(_File(connection))
                connection.execute("COMMIT")
            except BaseException:
                # After a full disk SQLite has rolled back by itself; its complaint about that must not hide the reason.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return result

    def _reading(self, look: Callable[[sqlite3.Connection], Result]) -> Result:
        with _plainly(self.path), _open(self.path) as connection:
            return look(connection)


def _create_beside(path: Path, fill: Use[None]) -> None:
    with whole_file(path, place=os.link) as made:
        write_new(made, lambda _: None, OWNER_ONLY)
        with _open(made) as connection:
            create_tables(connection)
            fill(_File(connection))
    sync_folder(path.parent)


def _answer(question: Callable[[], bool]) -> bool:
    with suppress(OSError):  # a name that is too long, or in a folder that is closed to us
        return question()
    return False


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    connection = _connect(path)
    try:
        yield connection
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=WAIT_SECONDS
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


def _failure(path: Path, error: Exception) -> Exception:
    if isinstance(error, sqlite3.IntegrityError):
        return Refused(str(error))
    match str(error) if isinstance(error, sqlite3.OperationalError) else "":
        case said if "locked" in said:
            return LedgerError(f"{str(path)!r} was in use for {WAIT_SECONDS} seconds; try again.")
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
            f"{str(path)!r} is on a network file system ({kind}), where locks cannot be relied on; use a local disk, "
            "or keep the ledger in PostgreSQL."
        )


def _file_system(folder: Path) -> str:
    """Name the kind of file system a folder is on, as Linux tells; elsewhere nothing is known."""
    kinds: dict[Path, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, mounted, kind, *_ = line.split(" ")
            kinds[Path(mounted)] = kind
    return next((kinds[place] for place in (folder, *folder.parents) if place in kinds), "")
