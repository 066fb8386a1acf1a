"""A ledger in PostgreSQL: entries, released rows and locks in the schema `plume_ledger` of one database, for as many machines as there are.

What a server must do for it, and what happens when a connection is lost, stands in docs/guarantees/ledger.md.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg

from plume.errors import LedgerDamaged, LedgerError, ResourceError
from plume.ledger.postgresql_address import read_address
from plume.ledger.postgresql_schema import MARK, VERSION, refuse_changed_schema, tables
from plume.ledger.store import WAIT_SECONDS, Refused, Result, Shelf, Store, Use
from plume.redaction import Redaction

# What a database or a role may have been set to otherwise. A name of ours is looked for where no other role can put one before it; a
# commit is on disk when it is answered; who hangs in a transaction, or is gone, is not waited for; no policy hides an entry unseen.
_SESSION = f"""
SET search_path = pg_catalog, plume_ledger, pg_temp;
SET timezone = 'UTC';
SET lock_timeout = '{WAIT_SECONDS}s';
SET idle_in_transaction_session_timeout = '{WAIT_SECONDS // 2}s';
SET idle_session_timeout = 0;
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
SET row_security = off;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
"""
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class _Session:
    """An open connection."""

    connection: psycopg.Connection[Any]

    def execute(self, statement: str, *values: Any) -> list[Any]:
        cursor = self.connection.execute(statement.replace("?", "%s").encode(), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def now(self) -> datetime:
        ((now,),) = self.execute("SELECT clock_timestamp()")
        return now.astimezone(UTC)  # type: ignore[no-any-return]  # a row holds anything

    def refuse_changed_schema(self) -> None:
        refuse_changed_schema(self)


@dataclass(frozen=True)
class PostgreSQL(Store):
    """A ledger in a database."""

    name: str
    parameters: str = field(repr=False)
    """How to connect; they may hold a password."""

    def __str__(self) -> str:
        return self.name

    @property
    def shelf(self) -> "TableShelf":
        """The table `releases`."""
        return TableShelf(self)

    @property
    def caution(self) -> str | None:
        """Say if all roles may charge."""
        statement = "SELECT has_table_privilege('public', 'plume_ledger.entries', 'INSERT, UPDATE, DELETE, TRUNCATE')"
        ((others,),) = self.read(lambda book: book.execute(statement))
        return f"All roles may change {self}; REVOKE keeps them out." if others else None

    def is_there(self) -> bool:
        """Return whether the database has a schema of that name."""
        return bool(self._marks())

    def refuse_other(self) -> None:
        """Refuse a database without a ledger this version can read."""
        marks = self._marks()
        if not marks:
            raise LedgerError(
                f"no ledger in {str(self)!r}; make one with plume.Ledger.create or `plume ledger create`."
            )
        ((mark, usable),) = marks
        if not usable:
            raise _forbidden(str(self))
        _, is_ledger, version = mark.partition(MARK)
        if not is_ledger:
            raise LedgerError(f"the schema plume_ledger in {str(self)!r} is not a Plume ledger.")
        if version != VERSION:
            raise LedgerError(f"{str(self)!r} is a ledger of version {version}; this Plume reads version {VERSION}.")

    def refuse_damaged(self) -> None:
        """Refuse a ledger that lacks what keeps entries in order; whether its pages are whole is for the server's own checks."""
        self.read(lambda book: book.refuse_changed_schema())

    def make(self, fill: Use[None]) -> None:
        """Make the schema, in one transaction with what fills it."""
        if self.is_there():
            raise LedgerError(f"{str(self)!r} has a ledger already, which is one at most for a database.")
        with _plainly(self), self._session(0) as session:
            if session.execute("SELECT current_setting('server_encoding')") != [("UTF8",)]:
                raise LedgerError(f"{str(self)!r} cannot hold all names; a ledger's database is encoded in UTF-8.")

            def make(session: _Session) -> None:
                session.connection.execute(tables().encode())
                fill(session)

            _commit(session, make)

    def read(self, look: Use[Result]) -> Result:
        """Look into the database."""
        with _plainly(self), self._session(WAIT_SECONDS) as session:
            return look(session)

    def write(self, change: Use[Result]) -> Result:
        """Change the ledger while no other process does.

        Where the connection is lost, `change` is called once more by another one. It waits for the lock of the first, which the server
        keeps until that transaction has ended.
        """
        with _plainly(self):
            try:
                return self._write(change)
            except psycopg.OperationalError as error:
                if not _is_lost(error):
                    raise
            return self._write(change)

    def _write(self, change: Use[Result]) -> Result:
        def alone(session: _Session) -> Result:
            session.execute("SELECT pg_advisory_xact_lock(?)", _lock_of("entries"))
            return change(session)

        with self._session(WAIT_SECONDS) as session:
            if session.execute("SELECT current_setting('fsync')") != [("on",)]:
                raise LedgerError(f"{str(self)!r} runs with fsync off, so that a crash forgets charges; turn it on.")
            return _commit(session, alone)

    def _marks(self) -> list[tuple[str, bool]]:
        """Read what the schema says of itself, and whether this role may use it; a wrong address is said without waiting for a server."""
        with _plainly(self), self._session(0) as session:
            return session.execute(
                "SELECT coalesce(obj_description(oid, 'pg_namespace'), ''), has_schema_privilege(oid, 'USAGE') "
                "FROM pg_namespace WHERE nspname = 'plume_ledger'"
            )

    @contextmanager
    def _session(self, patience: float) -> Iterator[_Session]:
        connection = self._connect(time.monotonic() + patience)
        try:
            connection.execute(_SESSION.encode())
            yield _Session(connection)
        finally:
            connection.close()

    def _connect(self, until: float) -> psycopg.Connection[Any]:
        """Connect to a server that may be starting again just now."""
        while True:
            try:
                return psycopg.connect(self.parameters, autocommit=True, prepare_threshold=None)
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_SECONDS)


@dataclass(frozen=True)
class TableShelf(Shelf):
    """The table `releases`; the entries say which of its rows are released, and the database removes those that are lost."""

    store: PostgreSQL

    def stage(self, release_id: str, content: bytes) -> None:
        """Insert the bytes; a second try finds them."""
        self.store.write(
            lambda book: book.execute("INSERT INTO releases VALUES (?, ?) ON CONFLICT DO NOTHING", release_id, content)
        )

    def is_staged(self, release_id: str) -> bool:
        """Nothing is left to be done for bytes that are in the table."""
        del release_id
        return False

    def publish(self, release_id: str) -> None:
        """The entry that follows does it."""

    def drop_stage(self, release_id: str) -> None:
        """The entry that follows does it."""

    def read(self, release_id: str) -> bytes:
        """Give the bytes, or none."""
        found = self.store.read(
            lambda book: book.execute("SELECT content FROM releases WHERE release_id = ?", release_id)
        )
        return found[0][0] if found else b""

    def remedy(self, release_id: str) -> str:
        """Name the table."""
        del release_id
        return f"put its row in plume_ledger.releases of {str(self.store)!r} back from a copy."

    @contextmanager
    def lock_if_free(self, release_id: str) -> Iterator[bool]:
        """Hold a lock of the server's, which lets go of it when the connection ends.

        If the connection is lost earlier, another process may take the release over; the triggers then refuse the steps of this one.
        """
        lock = _lock_of(f"release {release_id}")
        with ExitStack() as stack:
            with _plainly(self.store):  # what fails while it is held is not the ledger's
                session = stack.enter_context(self.store._session(WAIT_SECONDS))  # noqa: SLF001 - of this module
                ((held,),) = session.execute("SELECT pg_try_advisory_lock(?)", lock)
            try:
                yield held
            finally:
                if held:
                    with suppress(psycopg.Error):
                        session.execute("SELECT pg_advisory_unlock(?)", lock)


def database_at(address: str) -> PostgreSQL:
    """Find the database that an address stands for."""
    return PostgreSQL(*read_address(address))


def _commit(session: _Session, change: Callable[[_Session], Result]) -> Result:
    # Each statement sees what was committed before it. A lock would be too late for a transaction that has chosen what it sees.
    session.connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    result = change(session)
    session.connection.execute("COMMIT")
    return result


def _lock_of(what: str) -> int:
    """Number a lock; they are counted apart in each database."""
    return int.from_bytes(hashlib.sha256(f"plume ledger: {what}".encode()).digest()[:8], signed=True)


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Return whether a connection ended: in its own words without a code, or in the server's when it stops."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _plainly(store: PostgreSQL) -> Redaction:
    """Say what the server and its library complain about in words of our own."""
    return Redaction((psycopg.Error, ValueError), lambda error: _failure(str(store), error))


def _failure(name: str, error: Exception) -> Exception:
    match error:
        case psycopg.errors.LockNotAvailable():
            return LedgerError(f"{name!r} was in use for {WAIT_SECONDS} seconds; try again.")
        case psycopg.IntegrityError():
            return Refused(str(error.diag.message_primary))
        case psycopg.errors.InsufficientPrivilege():
            return _forbidden(name)
        case psycopg.errors.ReadOnlySqlTransaction():
            return LedgerError(f"{name!r} takes no writes here; connect to the primary server.")
        case psycopg.OperationalError() if _is_lost(error):
            return LedgerError(
                f"{name!r} cannot be reached, has no such database, or refuses this role or its password; {_advice(str(error))}"
            )
        case psycopg.OperationalError() if str(error.sqlstate).startswith(("53", "58")):
            return ResourceError(f"{name!r} could not be written: the server has no room. Its entries are unchanged.")
        case psycopg.OperationalError() | psycopg.errors.IdleInTransactionSessionTimeout():
            return LedgerError(f"{name!r} stopped in the middle of this, so nothing of it was done; try again.")
        case _:
            return LedgerDamaged(f"{name!r} is not a Plume ledger, or is damaged.")


def _forbidden(name: str) -> LedgerError:
    return LedgerError(f"{name!r} does not let this role do that; its owner can grant it (docs/how-to/team-ledger.md).")


def _advice(words: str) -> str:
    if "SSL" in words or "certificate" in words:
        return "TLS failed, so check sslmode and sslrootcert."
    return "a release that was begun goes on by its release_id."
