"""What an engine is: somewhere a plan can run.

docs/adding-an-engine.md says how a new one is added, by the example of PostgreSQL. `plan/printing/spark.py` shows by that of Spark what
engines differ in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from plume.arguments import making_checked
from plume.errors import InputError, type_in_words
from plume.plan.dialect import Dialect
from plume.plan.nodes import Lookup, Noise, OnePass
from plume.plan.printing.printer import SALT_UNKNOWN, Printer
from plume.plan.types import Kind, Schema

Noising = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Table:
    """Data to let in: anything the engine can read, and how to read the columns of files that do not say their types."""

    content: Any
    kinds: Mapping[str, Kind]
    stated: bool = False
    """Whether SQL of a statement reads it, whose expressions an engine must not take apart."""
    grouped: frozenset[str] = frozenset()
    """The columns that rows are grouped by, each value of which must have a text."""


@making_checked()
@dataclass(frozen=True)
class DatabaseTable:
    """A table of a DuckDB database file.

    >>> DatabaseTable("shop.duckdb", "visits").table
    'visits'
    """

    path: str | Path
    table: str
    """Its name, alone or behind that of its schema and a point; no view, since a view may mix users."""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | Path):
            raise InputError(f"path is {type_in_words(self.path)}; it must be the path of a DuckDB database.")
        if not isinstance(self.table, str) or not self.table:
            raise InputError(f"table is {self.table!r}; it must be the name of a table in the database.")


@dataclass(frozen=True)
class Meeting:
    """Two SELECTs whose columns an engine brings to one type: the sides of a join, or members of a union."""

    what: str
    """What to call it in a message: what it does to columns."""
    left: str
    right: str
    columns: tuple[tuple[str, str], ...] | None = None
    """Which columns meet; None if all do, by position."""

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Iterable[tuple[str, str]]:
        """Pair the columns that meet, given those there are."""
        return zip(left, right, strict=True) if self.columns is None else self.columns


@dataclass(frozen=True)
class Relation:
    """Rows that a checked SELECT makes of tables; each belongs to one user."""

    tables: Mapping[str, Table]
    """The tables it reads, under the names they have in it."""
    written: Mapping[str, str]
    """What to call them in a message."""
    select: str
    units: tuple[tuple[str, str], ...]
    """The columns of private tables that say whose a row is: table and column."""
    meetings: tuple[Meeting, ...] = ()
    """Where columns of two parts of it are compared as they are, or become one column."""
    statement: tuple[str, ...] = ()
    """The statement that asked for it, in its words, and what its tables are; a ledger knows it by this."""


class Noisy(Protocol):
    """What a noiser needs of a session."""

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Pass the rows of `source` through Python, once, batch by batch, and write down what comes back."""


class Session(Noisy, Protocol):
    """One run on an engine: the tables that were let in are there, every step is made here."""

    def rewrite(self, plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
        """Give a plan as it is better run here, for the same release; whoever runs it checks it again, and keeps nothing of it."""

    def printer(self, salt: str = SALT_UNKNOWN) -> Printer:
        """Give what prints steps for this session, with the secret of a run."""

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""

    def columns(self, select: str) -> Schema:
        """Say what columns a checked SELECT has; no row is read."""

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""

    def define_relation(self, name: str, select: str) -> None:
        """Make the rows of a checked SELECT readable; what fails on a row is NULL there."""

    def keep(self, name: str, select: str) -> None:
        """Compute a step once, for the several steps that read it."""

    def pass_over(self, step: OnePass, salt: str) -> bool:
        """Make the steps of a pass at once, with the secret of a run; False if SQL must make them one by one."""

    def lookup(self, selected: str, keys: tuple[str, ...]) -> Lookup:
        """Choose how rows find out whether their key is among the rows of a step, and make ready what that needs."""

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types."""

    def fetch(self, name: str, order: tuple[str, ...]) -> pa.Table:
        """Return the rows of a step that may leave, sorted."""


class Engine(Protocol):
    """Somewhere a plan can run."""

    @property
    def dialect(self) -> Dialect:
        """The SQL it speaks."""

    @property
    def reads_here(self) -> bool:
        """Whether this process reads the data, so that the operating system can say how many bytes it has read."""

    def open(self, tables: Mapping[str, Table]) -> AbstractContextManager[Session]:
        """Let tables in under their names, and nothing else; everything is gone when the session closes."""
