"""Places for ledgers, so that a test runs on each kind: a file, and a database of a real PostgreSQL server that the tests start.

What only the database of one kind says or does, such as leaving its triggers out, is said here once.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

import plume
import postgresql_servers
from postgresql_servers import Server

KINDS = ("file", "database")
# A ledger refuses a server without fsync. Commits are not on disk when they are answered, unless a ledger asks for it.
SERVER = "PLUME_TESTS_LEDGER_SERVER"
HELD = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
SETTINGS = {"fsync": "on", "synchronous_commit": "off", "max_connections": "200"}


@pytest.fixture(scope="session")
def ledger_server() -> Iterator[Server]:
    """One server for all tests of this process."""
    with server_in_memory() as server:
        yield server


@contextmanager
def server_in_memory() -> Iterator[Server]:
    """Start a server whose disk is as quick as memory, where the machine has one."""
    usual, tempfile.tempdir = tempfile.tempdir, "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
    started = postgresql_servers.server(**SETTINGS)
    with ExitStack() as stack:
        try:
            server = stack.enter_context(started)
        finally:
            tempfile.tempdir = usual
        yield server


@pytest.fixture
def new_database(ledger_server: Server) -> Callable[[], str]:
    """Give the address of one empty database after another; making one takes longer than emptying it."""
    numbers = count()

    def new() -> str:
        return empty_database(ledger_server.url, f"ledger_{next(numbers)}")

    return new


@pytest.fixture(params=KINDS)
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Path | str]:
    """Give one place for a ledger after another, on each kind of store."""
    if request.param == "database":
        return request.getfixturevalue("new_database")
    numbers = count()
    return lambda: tmp_path / f"{next(numbers)}.ledger"


@pytest.fixture
def place(new_place: Callable[[], Path | str]) -> Path | str:
    return new_place()


def place_of(folder: Path, number: int) -> Path | str:
    """Give a place to a program that a test starts: in a folder, or on the server that the environment names."""
    server = os.environ.get(SERVER)
    return folder / f"{number}.ledger" if server is None else empty_database(server, f"ledger_{number + 100}")


def empty_database(server: str, name: str) -> str:
    address = f"{server.rpartition('/')[0]}/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchall():
            connection.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET client_min_messages = error; DROP SCHEMA IF EXISTS plume_ledger CASCADE")
    return address


def settle(ledger: plume.Ledger) -> None:
    """Wait until a server has noticed that clients of a ledger were killed, which a file knows at once."""
    if not is_file(ledger):
        with psycopg.connect(ledger.store.parameters, autocommit=True) as connection:
            while connection.execute(HELD).fetchall():
                time.sleep(0.002)


def is_file(ledger: plume.Ledger) -> bool:
    return not hasattr(ledger.store, "parameters")


def change(ledger: plume.Ledger, *statements: str) -> None:
    """Run statements as the owner, who has all rights and no more."""
    if is_file(ledger):
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(ledger.store.parameters, autocommit=True) as connection:
        connection.execute("SET search_path = plume_ledger")
        for statement in statements:
            connection.execute(statement)


def force(ledger: plume.Ledger, *statements: str) -> None:
    """Change a ledger as somebody would who takes the triggers out first, and puts them back."""
    if is_file(ledger):
        with closing(sqlite3.connect(ledger.path)) as connection:
            triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        change(ledger, *(f"DROP TRIGGER {name}" for name, _ in triggers), *statements, *(text for _, text in triggers))
        return
    tables = ("entries", "releases")
    without = (f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables)
    again = (f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}" for table, name in _triggers(ledger))
    change(ledger, *without, *statements, *again)


def _triggers(ledger: plume.Ledger) -> list[tuple[str, str]]:
    asked = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal"
    with psycopg.connect(ledger.store.parameters) as connection:
        return connection.execute(asked).fetchall()


def lose_release(ledger: plume.Ledger, release_id: str) -> None:
    """Remove the rows of a release by hand."""
    if is_file(ledger):
        ledger.shelf.released(release_id).unlink()
    else:
        force(ledger, f"DELETE FROM releases WHERE release_id = '{release_id}'")


def spoil_release(ledger: plume.Ledger, release_id: str) -> None:
    """Put other bytes where the rows of a release are."""
    if is_file(ledger):
        ledger.shelf.released(release_id).write_bytes(b"other")
    else:
        force(ledger, f"UPDATE releases SET content = 'other' WHERE release_id = '{release_id}'")


def kept(ledger: plume.Ledger) -> dict[str, bytes]:
    """What is kept of releases that are written, under their names."""
    if is_file(ledger):
        return {path.stem: path.read_bytes() for path in ledger.shelf.folder.glob("*.parquet")}
    asked = "SELECT release_id, content FROM releases WHERE plume_ledger.last_kind(release_id) <> 'drawing'"
    return dict(ledger.store.read(lambda book: book.execute(asked)))


def leftovers(ledger: plume.Ledger) -> list[str]:
    """What is staged and belongs to no release that goes on; in a database the entries would say so."""
    if is_file(ledger):
        return [path.name for path in ledger.shelf.folder.iterdir() if path.name.startswith(".stage")]
    asked = "SELECT release_id FROM releases WHERE plume_ledger.last_kind(release_id) <> 'released'"
    return [name for (name,) in ledger.store.read(lambda book: book.execute(asked))]
