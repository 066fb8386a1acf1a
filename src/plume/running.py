"""A query becomes a plan, an engine executes it, a release comes back."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pyarrow as pa

from plume.arguments import call_checked
from plume.calibration.calibrated_query import CalibratedQuery
from plume.cautions import warn
from plume.choosing.histogram import BUCKET, Share
from plume.choosing.open_query import OpenQuery, choose, decide, public_tables, share_above
from plume.declaration import rows_of
from plume.engines.default_engine import default_engine, refuse_other_than_engine, refuse_uncomputing
from plume.engines.engine import Engine, Relation, Session, Table
from plume.engines.execute import OnStep, Walk
from plume.engines.frames import may_lose_integers
from plume.engines.input_size import bytes_to_read
from plume.engines.pinned import PinnedTable
from plume.engines.pinning import pinned
from plume.errors import (
    ColumnTypeError,
    EngineError,
    LedgerError,
    PlumeBug,
    PublicKeysError,
    UsageError,
    type_in_words,
)
from plume.explanation import Explanation
from plume.ledger.charged_plan import as_charged, ever_explained
from plume.ledger.claim import Claim
from plume.ledger.entry import EntryKind
from plume.ledger.ledger import Dataset, Ledger
from plume.ledger.publishing import ChargedDraw, price_for, publish, released
from plume.ledger.request import Request
from plume.missing_column import pointing_to_names
from plume.noise.entropy import Entropy, SystemEntropy, salt
from plume.pipelines.pipeline import Planned, PlannedQuery, checked
from plume.pipelines.steps import INPUT, SELECTED_KEYS
from plume.plan.analysis import steps
from plume.plan.types import Kind, Schema
from plume.planning import make_plan, refuse_other_than_query
from plume.progress import show_progress
from plume.query import Query, written_texts
from plume.redaction import redacting
from plume.release import Release, release_of
from plume.schema import check_meetings, check_relation, check_schema, described, table_for
from plume.selection.public_keys import check_public_keys
from plume.whole_sums import with_whole_sums

_PUBLIC = "public_keys"


def _charge_nobody() -> None:
    """Where there is no ledger."""


@call_checked()
def run(  # noqa: PLR0913 - all of them are the caller's
    query: Query,
    data: Any,
    *,
    engine: Engine | None = None,
    pipeline: str = "plume",
    ledger: Ledger | Dataset | None = None,
    dataset: str | None = None,
    release_id: str | None = None,
    on_step: OnStep | None = None,
    progress: bool = False,
) -> Release:
    """Answer a query privately.

    `data` is a path or list of paths (Parquet, CSV, JSON), a pandas or Polars DataFrame, a DuckDB relation, a Spark DataFrame, or
    anything else that offers an Arrow stream; or one of these with its unit declared by `plume.private`. `on_step` is called with the
    name of each step as it starts, and learns nothing else. `progress=True` shows the stage, the time and, for large files, how much has
    been read, on a terminal or in a notebook, until the run ends.

    With `ledger=ledger.dataset("name")`, or `ledger=ledger, dataset="name"`, the release is charged to that dataset before its plan runs;
    the same `release_id` is charged once and always gives the same rows.

    Cautions about the query are issued as warnings, each a `plume.PlumeWarning`, before anything is charged.

    Guarantee: the release is (epsilon, delta)-differentially private for one value of the user column added or removed, with the query's
    budget. docs/privacy.md.
    """
    data = rows_of(data, query.user) if isinstance(query, Query) else data
    engine = engine or default_engine([data])
    charged = _charged_dataset(ledger, dataset, release_id)
    _refuse_wrong_arguments(query, engine)
    explanation = explain(query, pipeline=pipeline)
    shown = _show(explanation, data, engine) if progress else nullcontext(_say_nothing)
    with shown as show:
        settings: dict[str, Any] = {"engine": engine, "on_step": _both(show, on_step or _say_nothing)}
        if charged is None:
            warn(explanation.cautions)
            return _run_planned(SystemEntropy(), explanation.planned, data, **settings)
        return _run_charged(charged, release_id, explanation, data, **settings)


def _run_charged(
    charged: Dataset, release_id: str | None, explanation: Explanation, data: Any, **settings: Any
) -> Release:
    """Answer a query that is charged to a dataset, once."""
    named = release_id if release_id is not None else salt(SystemEntropy())
    request = Request(explanation, charged.name, data if isinstance(data, Relation) else None)
    with charged.claimed(named, request.digest, earlier=partial(_is_one_of_0_1_0, request)) as claim:
        explanation = as_charged(explanation, claim)
        if claim.state == EntryKind.RELEASED:
            return replace(released(claim, explanation), released_before=claim.released_at)
        warn(explanation.cautions)  # where warnings are errors, nothing is charged yet
        draw = ChargedDraw(SystemEntropy(), claim)
        charge = partial(charged.charged, partial(draw.charge, price_for(explanation)), explanation)
        release = _run_planned(draw, explanation.planned, data, charge=charge, **settings)
        return publish(claim, release, draw)


def _is_one_of_0_1_0(request: Request, written: str, claim: Claim) -> bool:
    """Return whether 0.1.0 wrote this request, which said how it was planned."""
    requests = (replace(request, explanation=one) for one in ever_explained(request.explanation))
    return any(one.is_one_of_0_1_0(written, claim) for one in requests)


def _show(explanation: Explanation, data: Any, engine: Engine) -> AbstractContextManager[OnStep]:
    """Show where a run is."""
    names = dict.fromkeys(step.name for stage in explanation.plan for step in steps(stage))
    tables = data.tables.values() if isinstance(data, Relation) else [table_for(explanation.query, data)]
    return show_progress(names, bytes_to_read(tables) if engine.reads_here else None)


def _both(one: OnStep, other: OnStep) -> OnStep:
    def tell(step: str) -> None:
        one(step)
        other(step)

    return tell


def _charged_dataset(ledger: Any, dataset: Any, release_id: Any) -> Dataset | None:
    match ledger, dataset:
        case None, None:
            if release_id is not None:
                raise UsageError("release_id is given without a ledger; it names a release in one.")
            return None
        case Dataset(), None:
            return ledger
        case Ledger(), str():
            return ledger.dataset(dataset)
        case _:
            raise LedgerError(
                f"ledger is {type_in_words(ledger)} and dataset is {dataset!r}; "
                "give ledger=ledger.dataset('name'), or ledger=plume.Ledger(path) and dataset='name'."
            )


def run_with(  # noqa: PLR0913 - `run` has them, too
    entropy: Entropy,
    query: Query,
    data: Any,
    *,
    engine: Engine,
    pipeline: str,
    on_step: OnStep,
    charge: Callable[[], None] = _charge_nobody,
) -> Release:
    """Answer a query with randomness from a given source; unless that is the operating system, the release says NOT PRIVATE.

    `charge` is called once: after data is opened, which may copy it, and before the first step.
    """
    _refuse_wrong_arguments(query, engine)
    return _run_planned(entropy, make_plan(query, pipeline), data, engine=engine, on_step=on_step, charge=charge)


def _run_planned(
    entropy: Entropy,
    planned: PlannedQuery,
    data: Any,
    *,
    engine: Engine,
    on_step: OnStep,
    charge: Callable[[], None] = _charge_nobody,
) -> Release:
    query = planned.query
    relation = relation_for(query, data, engine)
    tables = dict(relation.tables) if relation is not None else {INPUT: table_for(query, data)}
    if query.public_keys is not None:
        tables[_PUBLIC] = Table(query.public_keys, dict.fromkeys(query.keys, Kind.TEXT))
    tables = {name: replace(table, content=pinned(table.content)) for name, table in tables.items()}
    with pointing_to_names(written_texts(query)), engine.open(tables) as session:
        schema = read_rows(session, query, relation, source=described(data))
        if query.public_keys is not None:
            _write_public_keys(session, planned.calibrated, schema)
        elif not query.keys:
            session.write(SELECTED_KEYS, _the_one_key(), types={})
        for name, table in public_tables(planned).items():
            session.write(name, table, types={})
        walk = Walk(session, entropy, on_step)
        charge()
        above: dict[str, Share] = {}
        while isinstance(planned, OpenQuery):
            what = planned.open[0]
            planned, above[what] = _choose_next(planned, walk, session)
        running = _rewritten_for(session, planned)
        rows = walk.through(running.plan, to=running.plan[-1], order=planned.calibrated.keys)
    released = rows.drop_columns(list(planned.calibrated.unnamed_keys))
    if not any(may_lose_integers(table.content, table.kinds, stated=table.stated) for table in tables.values()):
        released = with_whole_sums(released, planned.calibrated.query, schema)
    # Of the plan as the query has it, which no row decides: how it is rewritten tells how large the files are.
    release = release_of(released, Explanation(planned), private=entropy.private, above=above)
    return replace(release, sources=_sources(tables.values()))


def _sources(tables: Iterable[Table]) -> tuple[Mapping[str, Any], ...]:
    """Say of tables that have versions which ones were read."""
    contents = (table.content for table in tables)
    return tuple(one.source for one in contents if isinstance(one, PinnedTable) and one.source is not None)


def _the_one_key() -> pa.Table:
    """As the plan of a query without keys has it, in the type of the plan's constant."""
    return pa.table({"key_1": pa.array([1], pa.int32())})


def relation_for(query: Query, data: Any, engine: Engine) -> Relation | None:
    """Give the relation that makes the rows of a query; None if they are those of its table, as they are."""
    if isinstance(data, Relation):
        return data
    if not query.key_expressions:
        return None
    refuse_uncomputing(engine)
    from plume.computed_keys import rows_of_query  # noqa: PLC0415 - a parser takes long to load, and most keys are columns

    return rows_of_query(query, data, engine.dialect)


def read_rows(session: Session, query: Query, relation: Relation | None, *, source: str) -> Schema:
    """Make the rows of a query readable in a session that has its tables, and refuse those that do not fit it."""
    if relation is not None:
        _define_relation(session, relation)
    schema = session.schema(INPUT)
    check_schema(query, schema, source=source)
    return schema


def _choose_next(planned: OpenQuery, walk: Walk, session: Session) -> tuple[PlannedQuery, Share]:
    """Run the stage that decides the next number, choose it, and plan the stages after it; say how much lies above it.

    Guarantee: nothing is looked at but what was noised, and the number of selected keys. docs/guarantees/auto-limit.md.
    """
    running = _rewritten_for(session, planned)
    histogram = walk.through(running.plan, to=running.deciding, order=(BUCKET,))
    selected = session.fetch(SELECTED_KEYS, planned.calibrated.keys).num_rows
    number = choose(planned, histogram, selected=selected)
    return decide(planned, number), share_above(planned, histogram, number, selected=selected)


def _rewritten_for(session: Session, planned: Planned) -> Planned:
    """Let a session rewrite the stages for its data, and check them once more, as they will run."""
    return checked(replace(planned, plan=session.rewrite(planned.plan)))


def _define_relation(session: Session, relation: Relation) -> None:
    """Make the rows of a relation, once its tables fit it."""
    check_relation(relation, {name: session.schema(name) for name in relation.tables})
    misfit = ColumnTypeError(
        f"{'the statement' if relation.statement else 'an expression of keys'} does not fit the types of its columns; "
        "check that text is not compared with numbers and that dates are not added up, and CAST what must be of another type."
    )
    with redacting(EngineError, to=misfit):
        check_meetings(relation.meetings, cache(session.columns))
        session.define_relation(INPUT, relation.select)


def _refuse_wrong_arguments(query: Any, engine: Any) -> None:
    refuse_other_than_query(query, ", and come before the data")
    refuse_other_than_engine(engine)


@call_checked()
def explain(query: Query, *, pipeline: str = "plume") -> Explanation:
    """Say how a query would be answered: its steps and shuffles, its noise and thresholds, what it spends. No data is touched."""
    return Explanation(make_plan(query, pipeline))


def _write_public_keys(session: Session, calibrated: CalibratedQuery, schema: Schema) -> None:
    """Write public keys down as the selected keys, in the types of the table's key columns, so that equal keys are equal."""
    keys, given_types = calibrated.query.keys, session.schema(_PUBLIC)
    missing = [key for key in keys if key not in given_types]
    if missing:
        raise PublicKeysError(f"public_keys has no column {missing[0]!r}; it needs the key columns {', '.join(keys)}.")
    inexact = [key for key in keys if not given_types[key].exact]
    if inexact:
        raise PublicKeysError(
            f"public_keys holds floating-point numbers or the like in {inexact[0]!r}; cast them first."
        )
    given = session.fetch(_PUBLIC, keys).select(list(keys)).rename_columns(list(calibrated.keys))
    types = {name: schema[column] for name, column in zip(keys, calibrated.query.key_columns, strict=True)}
    written: pa.Table | None = None
    lossless = False
    with suppress(EngineError):
        written = _rewritten(session, SELECTED_KEYS, given, calibrated, types)
        # 1.5 becomes the integer 2 without complaint, but does not come back.
        lossless = _rewritten(session, f"{_PUBLIC}_again", written, calibrated, given_types).equals(given)
    if written is None or not lossless:
        raise PublicKeysError(
            "public_keys holds values that the key columns' types cannot hold; give them in the columns' own types."
        )
    check_public_keys(written)
    if calibrated.query.known_keys not in (None, written.num_rows):
        raise PlumeBug("there are more or fewer public keys than the plan was made for")


def _rewritten(session: Session, name: str, rows: pa.Table, calibrated: CalibratedQuery, types: Schema) -> pa.Table:
    """Write keys down in the given types, and read them again."""
    session.write(
        name, rows, types=dict(zip(calibrated.keys, (types[key] for key in calibrated.query.keys), strict=True))
    )
    return session.fetch(name, calibrated.keys)


def _say_nothing(step: str) -> None:
    del step
