"""What a ledger's database consists of: made once, and compared before a charge, since the proof rests on its triggers and indexes."""

import sqlite3
from contextlib import closing
from functools import cache
from importlib.resources import files

from plume.ledger.store import refuse_unless_unchanged

# "plum" in ASCII: tells our files from other SQLite files.
APPLICATION = 0x706C756D
VERSION = 1

_Objects = frozenset[tuple[str, str, str, str | None]]


def create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty ledger of an empty database."""
    tables = (files("plume.ledger") / "sqlite_schema.sql").read_text(encoding="utf-8")
    connection.executescript(
        f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; BEGIN; {tables} COMMIT;"
    )


def refuse_changed_schema(connection: sqlite3.Connection) -> None:
    """Refuse a ledger whose tables, indexes and triggers are not, to the letter, the ones it was made with."""
    refuse_unless_unchanged(_objects(connection) == _expected())


def _objects(connection: sqlite3.Connection) -> _Objects:
    return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


@cache
def _expected() -> _Objects:
    """All ledgers so far are of version 1, which was made with these statements from the beginning."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_tables(connection)
        return _objects(connection)
