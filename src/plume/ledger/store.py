"""What a ledger needs of the place where it is kept, and its entries there: how they are read, and how one is added.

A store keeps entries, released rows and who works on a release: `sqlite.py` in a file and in the folder beside it, `postgresql.py` in a
database. Both admit the same entries, and what an entry says is nothing to them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

from plume.errors import LedgerDamaged, LedgerError, PlumeBug
from plume.ledger.entry import BEGINNING, Entry, EntryKind, canonical_json, hash_of, read_content, refuse_broken_chain

WAIT_SECONDS = 30
"""How long somebody waits for a ledger that another one writes to."""
# The whole chain is read before what allows or spends a budget; the steps that follow a charge need not read it again.
_CHECKED_BEFORE = (EntryKind.DATASET, EntryKind.RESERVED)
_COLUMNS = "number, kind, dataset, release_id, at, content, previous, hash"

Result = TypeVar("Result")


class Refused(PlumeBug):
    """What the database itself refuses, whatever the code above it says."""


class Book(Protocol):
    """A ledger that is open, for one operation only: no fork and no crash inherits an open one."""

    def execute(self, statement: str, *values: Any) -> list[Any]:
        """Run one of our statements, with a ? where each value goes, and give its rows."""

    def now(self) -> datetime:
        """Give the time by the one clock that this ledger goes by."""

    def refuse_changed_schema(self) -> None:
        """Refuse a ledger whose tables, indexes and triggers are not, to the letter, the ones it was made with."""


Use = Callable[[Book], Result]


class Shelf(Protocol):
    """Released rows, as bytes that are kept for ever, and who works on which release."""

    def stage(self, release_id: str, content: bytes) -> None:
        """Write the bytes where nobody looks for them, safe from crashes when this returns."""

    def is_staged(self, release_id: str) -> bool:
        """Return whether there are bytes that wait for `publish`."""

    def publish(self, release_id: str) -> None:
        """Let everybody see them, in one go."""

    def drop_stage(self, release_id: str) -> None:
        """Remove bytes that were drawn and must not be seen."""

    def read(self, release_id: str) -> bytes:
        """Give what was released, or nothing if it is not there."""

    def remedy(self, release_id: str) -> str:
        """Say how to put it back."""

    def lock_if_free(self, release_id: str) -> AbstractContextManager[bool]:
        """Hold a release for this process, and return whether that worked; whoever dies lets go of it."""

    @contextmanager
    def lock(self, release_id: str) -> Iterator[None]:
        """Hold a release for this process, or refuse if another one does."""
        with self.lock_if_free(release_id) as held:
            if not held:
                raise LedgerError(
                    f"release {release_id!r} is being made by another process; wait for it, then ask again."
                )
            yield


class Store(Protocol):
    """Where a ledger is kept; its `str` is what messages call it."""

    @property
    def shelf(self) -> Shelf:
        """Where its released rows are."""

    @property
    def caution(self) -> str | None:
        """Say who else may change it, if that is more people than it should be."""

    def is_there(self) -> bool:
        """Return whether something is there, be it a ledger or not."""

    def refuse_other(self) -> None:
        """Refuse what is not a ledger that this version can read; looking never makes one."""

    def refuse_damaged(self) -> None:
        """Refuse what the database does not find whole, or what lacks something that keeps entries in order."""

    def make(self, fill: Use[None]) -> None:
        """Make a ledger where there is none; it is there when it is filled, whole or not at all."""

    def read(self, look: Use[Result]) -> Result:
        """Look into the ledger."""

    def write(self, change: Use[Result]) -> Result:
        """Change the ledger in one transaction that no other writes beside; safe from crashes when this returns.

        Where it is not known what became of a transaction, `change` is called once more after its end, and finds what it wrote.
        """


def refuse_unless_unchanged(unchanged: bool) -> None:  # noqa: FBT001 - what it is about
    """Refuse a ledger that was changed by hand."""
    if not unchanged:
        raise LedgerDamaged(
            "the ledger's tables, indexes or triggers are not the ones it was made with: it was damaged or changed by hand; "
            "put it back from a copy."
        )


def read_entries(store: Store) -> tuple[Entry, ...]:
    """Read all entries in their order."""
    return store.read(lambda book: _select(book, "ORDER BY number"))


def entries_of(store: Store, release_id: str) -> tuple[Entry, ...]:
    """Read the entries of one release in their order."""
    return store.read(lambda book: _select(book, "WHERE release_id = ? ORDER BY number", release_id))


def append(store: Store, kind: EntryKind, dataset: str, release_id: str | None, content: Mapping[str, Any]) -> Entry:
    """Add one entry, safe from crashes when this returns; never to a ledger that was changed by hand."""
    tried: list[Entry] = []

    def add(book: Book) -> Entry:
        for entry in tried:
            if entry in _select(book, "WHERE hash = ?", entry.hash):
                return entry
        tried.append(add_entry(book, kind, dataset, release_id, content))
        return tried[-1]

    return store.write(add)


def add_entry(book: Book, kind: EntryKind, dataset: str, release_id: str | None, content: Mapping[str, Any]) -> Entry:
    """Add one entry within a transaction."""
    book.refuse_changed_schema()
    if kind in _CHECKED_BEFORE:
        refuse_broken_chain(_select(book, "ORDER BY number"))
    last = _select(book, "ORDER BY number DESC LIMIT 1")
    number, previous = (last[0].number + 1, last[0].hash) if last else (1, BEGINNING)
    at = book.now().isoformat(timespec="milliseconds")
    entry = Entry(number, kind, dataset, release_id, at, content, previous)
    entry = replace(entry, hash=hash_of(entry))
    values = (number, str(kind), dataset, release_id, at, canonical_json(content), previous, entry.hash)
    book.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *values)
    return entry


def _select(book: Book, rest: str, *values: str) -> tuple[Entry, ...]:
    return tuple(
        Entry(number, EntryKind(kind), dataset, release_id, at, read_content(EntryKind(kind), content), previous, hash_)
        for number, kind, dataset, release_id, at, content, previous, hash_ in book.execute(
            f"SELECT {_COLUMNS} FROM entries {rest}", *values
        )
    )
