"""`plume.sql`: a statement in, a release out. Everything private is the query's; this only makes its rows, and sorts what was released."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from plume.arguments import call_checked
from plume.declaration import PrivateTable, PublicTable
from plume.engines.default_engine import default_engine, refuse_other_than_engine, refuse_uncomputing
from plume.engines.engine import DatabaseTable, Engine, Relation, Table
from plume.engines.execute import OnStep
from plume.errors import without_secrets
from plume.explanation import Explanation
from plume.ledger.ledger import Dataset, Ledger
from plume.missing_column import pointing_to_names
from plume.output.reliability import RELIABLE
from plume.plan.types import Kind
from plume.query import Query
from plume.redaction import redacting
from plume.relation.printing import print_relation
from plume.relation.relations import BaseTable, Select, tables_of
from plume.relation.text import Text
from plume.release import Release
from plume.running import explain, run
from plume.statement.meetings import meetings_of
from plume.statement.private_select import Statement, read_statement
from plume.statement.tables import Tables

_PUBLIC = "public_groups"


@dataclass(frozen=True)
class StatementQuery:
    """A statement as a query, and the data it is about."""

    query: Query
    data: Any
    statement: Statement

    @property
    def files(self) -> tuple[str, ...]:
        """The paths among the data."""
        listed = (
            [table.content for table in self.data.tables.values()] if isinstance(self.data, Relation) else [self.data]
        )
        paths = (data.path if isinstance(data, DatabaseTable) else data for data in listed)
        return tuple(str(path) for path in paths if isinstance(path, str | Path))


@call_checked()
def sql(  # noqa: PLR0913 - all of them are the caller's
    text: str,
    *,
    engine: Engine | None = None,
    tables: Mapping[str, Any] | None = None,
    public_tables: Mapping[str, Any] | None = None,
    pipeline: str = "plume",
    ledger: Ledger | Dataset | None = None,
    dataset: str | None = None,
    release_id: str | None = None,
    on_step: OnStep | None = None,
    progress: bool = False,
) -> Release:
    """Answer a statement in BigQuery's differential-privacy syntax, around the engine's own dialect.

    `tables` and `public_tables` give data their names in the statement; whatever `plume.run` reads is data. Nobody's rows are in public
    tables, which may be joined freely. Where the owner declares a table by `plume.private` or `plume.public`, all tables must be declared,
    and the statement can name no others. The rest is as in `plume.run`.

    Guarantee: that of `plume.run`, for one value of the privacy unit column in all private tables. docs/guarantees/sql.md.
    """
    engine = engine or _engine_for(tables, public_tables)
    stated = ask(text, engine=engine, tables=tables, public_tables=public_tables)
    charged = {"ledger": ledger, "dataset": dataset, "release_id": release_id}
    return answer(stated, engine=engine, pipeline=pipeline, on_step=on_step, progress=progress, **charged)


def answer(stated: StatementQuery, **settings: Any) -> Release:
    """Answer the query of a statement with the settings of `plume.run`, and sort what was released."""
    with pointing_to_names([stated.statement.text.text]):
        release = run(stated.query, stated.data, **settings)
    ordering = stated.statement.ordering
    sorted_release = release.taken(ordering.places(release.rows))
    rows = sorted_release.rows.select(list(shown_columns(stated)))
    return replace(sorted_release, rows=rows, statement=without_secrets(stated.statement.text.text))


def shown_columns(stated: StatementQuery) -> tuple[str, ...]:
    """The columns of a statement's result, and behind them those that say of computed columns where they are reliable."""
    listed = stated.statement.ordering.columns
    computed = (name for name in stated.query.computed_columns if name in listed)
    return (*listed, *(f"{name}{RELIABLE}" for name in computed))


@call_checked()
def explain_sql(
    text: str,
    *,
    engine: Engine | None = None,
    tables: Mapping[str, Any] | None = None,
    public_tables: Mapping[str, Any] | None = None,
    pipeline: str = "plume",
) -> Explanation:
    """Say how a statement would be answered. No private data is touched; public groups are read."""
    engine = engine or _engine_for(tables, public_tables)
    return explain(ask(text, engine=engine, tables=tables, public_tables=public_tables).query, pipeline=pipeline)


def ask(
    text: str,
    *,
    engine: Engine,
    tables: Mapping[str, Any] | None = None,
    public_tables: Mapping[str, Any] | None = None,
) -> StatementQuery:
    """Read a statement as a query and its data."""
    refuse_other_than_engine(engine)
    refuse_uncomputing(engine)
    dialect = engine.dialect
    known = Tables(Text(text, dialect.name), dialect, tables or {}, public_tables or {})
    statement = read_statement(text, dialect.name, known.find)
    known.refuse_two_units(statement.units, statement.settings.unit)
    listed = statement.public_keys
    query = statement.query(_fetch(listed, statement, known, engine) if listed is not None else None)
    if statement.table is not None:
        return StatementQuery(query, known.found[statement.table.name], statement)
    return StatementQuery(query, _relation(statement.relation, statement, known), statement)


def _engine_for(*tables: Mapping[str, Any] | None) -> Engine:
    """Look at the data behind all names."""
    given = [content for each in tables if isinstance(each, Mapping) for content in each.values()]
    return default_engine(
        content.data if isinstance(content, PrivateTable | PublicTable) else content for content in given
    )


def _relation(select: Select, statement: Statement, known: Tables) -> Relation:
    """Hand a relation over to an engine, with the tables and columns it reads."""
    kinds = {
        table.name: {column: kind or Kind.TEXT for column, kind in statement.uses.kinds.get(table.name, {}).items()}
        for table in tables_of(select)
    }
    for table in tables_of(select):
        if not kinds[table.name]:
            raise statement.text.refusal(statement.clause, f"no column of {table.written} is used; leave it out.")
    with redacting(RecursionError, to=statement.text.refusal(statement.clause, "the statement is nested too deeply.")):
        printed, meetings = print_relation(select, known.dialect), tuple(meetings_of(select, known.dialect))
    return Relation(
        tables={name: Table(known.found[name], columns, stated=True) for name, columns in kinds.items()},
        written={table.name: table.written for table in tables_of(select)},
        select=printed,
        units=tuple(dict.fromkeys((table.name, column) for table, column in statement.units)),
        meetings=meetings,
        statement=(statement.words, *sorted({_told(table) for table in tables_of(select)})),
    )


def _told(table: BaseTable) -> str:
    kind = "public" if table.public else "private" if table.unit is None else f"private by {table.unit}"
    return f"{table.written}: {kind}"


def _fetch(listed: Select, statement: Statement, known: Tables, engine: Engine) -> pa.Table:
    """Read the public list, which is made of public tables alone."""
    relation = _relation(listed, statement, known)
    with engine.open(relation.tables) as session:
        session.define_relation(_PUBLIC, relation.select)
        return session.fetch(_PUBLIC, statement.keys)
