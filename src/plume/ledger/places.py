"""From what a caller writes to the store it means: the address of a database, or else a file."""

from pathlib import Path
from typing import Any

from plume.errors import LedgerError, MissingPackage
from plume.ledger.sqlite import SQLite
from plume.ledger.store import Store

_ADDRESSES = ("postgresql://", "postgres://")


def is_address(place: str) -> bool:
    """Return whether a name is the address of a database."""
    return place.startswith(_ADDRESSES)


def store_at(place: Any) -> Store:
    """Find the store that a path or an address stands for; whether a ledger is there is another matter."""
    if isinstance(place, str) and is_address(place):
        try:
            from plume.ledger.postgresql import database_at  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingPackage("a ledger in PostgreSQL", "psycopg") from None
        return database_at(place)
    if not isinstance(place, str | Path) or "\0" in str(place):
        raise LedgerError(f"the ledger is {place!r}; it must be the path of a file, or postgresql://host/database.")
    return SQLite(Path(place))
