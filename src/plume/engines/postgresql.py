"""PostgreSQL: a plan runs where the table lies, in one transaction of a connection of our own, and no row of a user leaves it.

Steps become views and tables of the session, which are gone with it; nothing else is written. What the server says when it fails is
withheld, since it may quote data. docs/guarantees/postgresql.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
from psycopg import errors

from plume.arguments import making_checked
from plume.engines.engine import Noising, Table
from plume.engines.failures import redacted
from plume.engines.frames import to_arrow
from plume.engines.postgresql_table import find_table, refuse_unsound
from plume.engines.postgresql_types import Found, printed_type, type_for
from plume.errors import (
    ColumnTypeError,
    EngineError,
    InputError,
    PlumeBug,
    PlumeError,
    ResourceError,
    SettingError,
    type_in_words,
)
from plume.plan.dialect import Dialect
from plume.plan.nodes import Lookup, Noise, OnePass
from plume.plan.printing.postgresql import PAIR, POSTGRESQL, SALT_SETTING, PostgreSQLPrinter, name_inside
from plume.plan.printing.printer import SALT_UNKNOWN
from plume.plan.types import Kind, Schema
from plume.redaction import redacting

_Result = TypeVar("_Result")
_OLDEST = 150000
_OUT_OF_ROOM = (
    errors.DiskFull,
    errors.OutOfMemory,
    errors.ConfigurationLimitExceeded,
    errors.ProgramLimitExceeded,
    MemoryError,
)
_ROWS_PER_BATCH = 2**16
# Of the transaction alone, and the first before anything else is asked: no function or operator of anybody else's is found.
_SETTINGS = {
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    # A policy on rows is an error then, and not a filter.
    "row_security": "off",
    "default_table_access_method": "heap",
    "client_min_messages": "error",
}

_UNWRITABLE = InputError("public_keys holds what PostgreSQL has no value for, such as a text with a zero byte.")


@making_checked()
@dataclass(frozen=True)
class PostgreSQL:
    """A table of a PostgreSQL database, and the engine that answers queries about it there."""

    connection: str = field(repr=False)
    """How to reach the database, as libpq takes it; what it leaves out is taken from the environment, as everywhere."""
    table: str
    """The table, with its schema, such as "public.visits"."""

    @property
    def dialect(self) -> Dialect:
        """The SQL it speaks."""
        return POSTGRESQL

    @property
    def reads_here(self) -> bool:
        """No: the server reads."""
        return False

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator["PostgreSQLSession"]:
        """Connect, and let tables of the database in, and public keys; the transaction is rolled back at the end."""
        self._refuse_elsewhere([table.content for table in tables.values()])
        with _connected(self.connection) as connection:
            session = PostgreSQLSession(connection)
            for name, table in tables.items():
                if isinstance(table.content, PostgreSQL):
                    session.let_in(name, table.content.table, table.kinds)
                    continue
                rows = to_arrow(table.content, table.kinds)
                with redacting(EngineError, to=_UNWRITABLE):
                    session.write(name, rows if isinstance(rows, pa.Table) else rows.read_all(), types={})
            yield session

    def _refuse_elsewhere(self, contents: Sequence[Any]) -> None:
        """Refuse rows of any other place, but for public keys beside a table."""
        places = {one.connection for one in contents if isinstance(one, PostgreSQL)}
        if places != {self.connection}:
            raise InputError(
                f"data is {type_in_words(contents[0])}; this engine reads tables of its own database only, "
                "such as plume.PostgreSQL(connection, 'public.visits')."
            )


@contextmanager
def _connected(address: str) -> Iterator["psycopg.Connection[Any]"]:
    """Open a connection of our own and one transaction, in which all steps see the same rows."""
    refusal = InputError(
        "the PostgreSQL server could not be reached, or refused; check the address, the user and the password, "
        "the last of which may stand in PGPASSWORD or in a .pgpass file."
    )
    with redacting(Exception, to=refusal):
        connection = psycopg.connect(address, prepare_threshold=None)
    try:
        _refuse_unfit(connection)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = False  # whatever the role does by default: steps are temporary tables
        yield connection
    finally:
        with suppress(Exception):  # whoever has to clean up must not fail
            connection.rollback()
        with suppress(Exception):
            connection.close()


def _refuse_unfit(connection: "psycopg.Connection[Any]") -> None:
    """Refuse a wire that others may read, and servers that a plan cannot run on; nothing was asked of it yet."""
    info = connection.info
    if not (_is_local(info.host, info.hostaddr) or connection.pgconn.ssl_in_use):
        raise SettingError(
            "the connection to PostgreSQL is not encrypted, and exact sums would pass it; "
            "use TLS, by sslmode=verify-full in the address, or a server on this machine."
        )
    if info.server_version < _OLDEST:
        raise SettingError(f"the server is PostgreSQL {info.server_version // 10000}; it must be 15 or newer.")
    if info.parameter_status("server_encoding") != "UTF8":
        raise SettingError(f"the database's encoding is {info.parameter_status('server_encoding')}; it must be UTF8.")
    if info.parameter_status("in_hot_standby") == "on":
        raise SettingError(
            "this server is a hot standby, which allows no temporary tables; connect to the primary, or to a logical replica."
        )


def _is_local(host: str, address: str) -> bool:
    """Return whether a connection stays on this machine: a socket of files, or the loopback address."""
    return host.startswith(("/", "@")) or (bool(address) and ip_address(address).is_loopback)


class PostgreSQLSession:
    """One run: steps become views and tables of the session, those read twice are tables."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._given: dict[str, tuple[Found, ...]] = {}
        self._named: dict[str, str] = {}
        for setting in _SETTINGS.items():
            self.ask("SELECT pg_catalog.set_config(%s, %s, true)", setting)
        refuse_unsound(self.ask)
        self._execute("input", f"CREATE TEMP TABLE {PAIR} (leaf INTEGER, weight BIGINT) ON COMMIT DROP")

    def let_in(self, name: str, table: str, kinds: Mapping[str, Kind]) -> None:
        """Make the columns of a table that are wanted readable under a name, in types of our list."""
        place = find_table(self.ask, table)
        numbers = {column for column, kind in kinds.items() if kind is Kind.FLOAT}
        wanted = [(found, _quoted(found.name)) for found in place.columns if found.name in kinds]
        listed = ", ".join(f"{found.let_in(of, number=found.name in numbers)} AS {of}" for found, of in wanted)
        self._given[name] = place.columns
        unreadable = InputError(
            f"table {table!r} could not be read; check that the role has SELECT on all columns that the query reads."
        )
        with redacting(EngineError, to=unreadable):
            self.define(name, f"SELECT {listed}\nFROM {_quoted(place.schema)}.{_quoted(place.table)}")
            # The table is locked by now; reading no row finds out whether rows may be read.
            self._execute(name, f"SELECT FROM {_quoted(name)} LIMIT 0")
        if find_table(self.ask, table) != place:
            raise InputError(f"table {table!r} was altered while it was opened; run again when nobody alters it.")

    def rewrite(self, plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
        """Give a plan as it is."""
        return plan

    def printer(self, salt: str = SALT_UNKNOWN) -> PostgreSQLPrinter:
        """Give what prints steps, and note the secret of the run where they read it: it is a parameter, and in no text."""
        if salt != SALT_UNKNOWN:
            self.ask("SELECT set_config(%s, %s, true)", (SALT_SETTING, salt))
        return PostgreSQLPrinter()

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""
        described = {self._named.get(found.name, found.name): found.column_type for found in self._columns(name)}
        # What was not let in, or not as it is, is what it was given as.
        outside = {found.name for found in self._given.get(name, ()) if found.known is None}
        given = {found.name: found.column_type for found in self._given.get(name, ())}
        return given | {column: kind for column, kind in described.items() if column not in outside}

    def _columns(self, name: str) -> tuple[Found, ...]:
        return find_table(self.ask, _quoted(name), temporary=True).columns

    def columns(self, select: str) -> Schema:
        """Nobody asks: statements are refused."""
        raise PlumeBug(f"PostgreSQL takes no statement, and none to describe, of {len(select)} characters")

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""
        self._execute(name, f"CREATE OR REPLACE TEMP VIEW {_quoted(name)} AS\n{select}")

    def define_relation(self, name: str, select: str) -> None:
        """Nobody asks: statements are refused."""
        raise PlumeBug(f"PostgreSQL takes no statement, and none for {name}, of {len(select)} characters")

    def keep(self, name: str, select: str) -> None:
        """Compute a step once, for the several steps that read it.

        It is not analysed: what ANALYZE finds would be written to the server's log of changes, which goes to other servers.
        """
        self._execute(name, f"CREATE TEMP TABLE {_quoted(name)} ON COMMIT DROP AS\n{select}")

    def pass_over(self, step: OnePass, salt: str) -> bool:
        """Leave a pass to SQL: rows are on the server."""
        del step, salt
        return False

    def lookup(self, selected: str, keys: tuple[str, ...]) -> Lookup:
        """The server chooses how it joins."""
        del selected, keys
        return Lookup.BROADCAST

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Pass the rows of `source` through Python, once, batch by batch, and write down what comes back."""
        batches = withheld(name, lambda: [noising(batch) for batch in self._leaving(source, as_text=True)])
        self.write(name, pa.Table.from_batches(batches), types=self.schema(source))

    def fetch(self, name: str, order: tuple[str, ...]) -> pa.Table:
        """Return the rows of a step that may leave, sorted."""
        by = f" ORDER BY {', '.join(map(_quoted, order))}" if order else ""
        return withheld(name, lambda: pa.Table.from_batches(self._leaving(name, by)))

    def _leaving(self, name: str, by: str = "", *, as_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Give rows to this process; never no batch at all, so that the columns of an empty step come through."""
        columns = self._columns(name)
        names = [self._named.get(found.name, found.name) for found in columns]
        leaving = [found.leaving(_quoted(found.name), as_text=as_text) for found in columns]
        select = f"SELECT {', '.join(printed for printed, _ in leaving)} FROM {_quoted(name)}{by}"
        with self._connection.cursor(name="leaving", binary=True) as cursor:
            cursor.execute(select)
            rows: Sequence[Any] | None = None
            while rows is None or rows:
                rows = cursor.fetchmany(_ROWS_PER_BATCH)
                values = list(zip(*rows, strict=True)) or [()] * len(columns)
                arrays = [read(of) for (_, read), of in zip(leaving, values, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=names)

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step, by way of text; columns named in `types` get these types."""
        self._named |= {name_inside(column): column for column in rows.column_names}
        targets = {column: _type_of(column, rows, types) for column in rows.column_names}
        staged = f"{name}_as_text"
        columns = ", ".join(map(_quoted, targets))
        self._execute(
            name, f"CREATE TEMP TABLE {_quoted(staged)} ({columns.replace(', ', ' TEXT, ')} TEXT) ON COMMIT DROP"
        )
        withheld(name, lambda: self._copy(f"COPY {_quoted(staged)} ({columns}) FROM STDIN", rows))
        cast = ", ".join(f"CAST({_quoted(one)} AS {printed_type(to)} AS {_quoted(one)}" for one, to in targets.items())
        self.keep(name, f"SELECT {cast} FROM {_quoted(staged)}")
        self._execute(name, f"DROP TABLE {_quoted(staged)}")

    def _copy(self, statement: str, rows: pa.Table) -> None:
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for batch in rows.to_batches(_ROWS_PER_BATCH):
                texts = [column.cast(pa.string()).to_pylist() for column in batch.columns]
                for row in zip(*texts, strict=True):
                    copy.write_row(row)

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Answer a statement about the catalogue; rows leave by `noise` and `fetch` only."""
        return withheld("input", lambda: self._connection.execute(statement, parameters).fetchall())

    def _execute(self, name: str, statement: str) -> None:
        withheld(name, lambda: self._connection.execute(statement))


def _quoted(name: str) -> str:
    return PostgreSQLPrinter().name(name)


def _type_of(column: str, rows: pa.Table, types: Schema) -> str:
    """Say in which type a column is written down."""
    name = types[column].engine_name if column in types else type_for(rows.schema.field(column).type)
    if name is None:
        raise ColumnTypeError(f"column {column!r} is {rows.schema.field(column).type}, which PostgreSQL does not take.")
    return name


def withheld(step: str, call: Callable[[], _Result]) -> _Result:
    """Call the server; what it says of a failure is kept back, and a sentence of our own goes on."""
    return redacted(call, lambda error: _failure(step, error))


def _failure(step: str, error: Exception) -> PlumeError:
    if isinstance(error, _OUT_OF_ROOM):
        return ResourceError(f"step {step} ran out of memory or disk space, on the server or here.")
    return EngineError(f"PostgreSQL failed at step {step}; its message is withheld, since it may quote data.")
