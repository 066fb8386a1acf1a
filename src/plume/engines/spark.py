"""Spark, the engine on a cluster, classic and Connect: only SQL and DataFrame calls.

Every call into Spark passes `withheld`: its errors quote data, so they end here and a plain sentence goes on. `plan/printing/spark.py`
lists where Spark differs from DuckDB.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from plume.arguments import making_checked
from plume.engines.engine import Noising, Table
from plume.engines.frames import is_spark_frame
from plume.engines.spark_keeping import choose_keeping
from plume.engines.spark_reading import let_in
from plume.engines.spark_rows import Sound, make_frame
from plume.engines.spark_server import refuse_other_than_spark
from plume.engines.spark_session import active_session
from plume.engines.spark_silence import silence, withheld
from plume.engines.spark_store import asking, refuse_bare_workers
from plume.engines.spark_timestamps import read_timestamps
from plume.engines.spark_types import column_type, is_flat
from plume.errors import SettingError
from plume.lookup.lookup import choose_lookup
from plume.lookup.store import StoredKeys, encode, load, remove
from plume.noise.entropy import SystemEntropy, salt
from plume.plan.dialect import Dialect, identifier, typed
from plume.plan.nodes import Lookup, Noise, OnePass
from plume.plan.printing.printer import SALT_UNKNOWN
from plume.plan.printing.spark import ASK_STORE, SPARK, SparkPrinter
from plume.plan.types import Schema

_ANSI = "spark.sql.ansi.enabled"
_DYNAMIC = "spark.dynamicAllocation.enabled"
# How constants and names are read: as Plume writes them, with two backslashes for one.
_OF_THE_PARSER = "spark.sql.parser."
# A task that is run again must give the rows it gave before, or all that read it are run again too.
_CHECKS = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
# What a run needs, in a session of its own: the caller's stays as it is.
_SETTINGS = {
    # Overflow and casts must never pass in silence.
    _ANSI: "true",
    "spark.sql.caseSensitive": "true",
    # Otherwise ${...} inside a name or a constant would be replaced.
    "spark.sql.variable.substitute": "false",
    # Timestamps without a time zone stay without one.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Timestamps with a time zone come back the same wherever this runs.
    "spark.sql.session.timeZone": "UTC",
    # Dates before 1582 are what they are, and no reason to fail.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # Nothing about a file is guessed: names of folders are text.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # What a cache says of many rows at once knows no NaN, which to a condition is above all numbers.
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    # Kept steps are written once and read twice: packing them takes longer than reading them, small pieces as well.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.inMemoryColumnarStorage.batchSize": "100000",
    # Kept steps are as many pieces as their size asks for. Else they are 200 however small, each of which writes 200 files when shuffled.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # What is too large to be broadcast is computed in tasks. Else the driver computes it as it plans, holds each step whole, and runs out.
    "spark.sql.execution.arrow.localRelationThreshold": "10MB",
    **dict.fromkeys(_CHECKS, "true"),
}
AUTO = "auto"


@making_checked()
@dataclass(frozen=True)
class Spark:
    """Spark, classic or Connect."""

    session: Any = None
    """A SparkSession; if there is none, the active one, or a new one on this machine."""
    lookup: str = AUTO
    """How rows find out whether their key was selected: "broadcast", "store" or "join"; "auto" goes by the number of keys."""
    store: str | None = field(default=None, repr=False)
    """The address of a Redis server, or of a node of a Redis cluster, such as redis://host:6379."""
    keep_in: str | None = None
    """A folder that all executors can write to, for the steps that are read twice, such as s3a://bucket/folder; else their own disks."""

    def __post_init__(self) -> None:
        lookups = (AUTO, *(lookup.value for lookup in Lookup))
        if self.lookup not in lookups:
            raise SettingError(f"lookup is {self.lookup!r}; it must be one of {', '.join(lookups)}.")
        if self.lookup == Lookup.STORE.value and self.store is None:
            raise SettingError(
                "lookup is 'store' and there is no store; give its address, such as store='redis://host:6379'."
            )
        if self.keep_in is not None and not (isinstance(self.keep_in, str) and self.keep_in.strip()):
            raise SettingError(
                f"keep_in is {self.keep_in!r}; it must be the path of a folder as a text, such as 's3a://bucket/folder'."
            )

    @property
    def dialect(self) -> Dialect:
        """The SQL it speaks."""
        return SPARK

    @property
    def reads_here(self) -> bool:
        """No: executors read."""
        return False

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator["SparkRun"]:
        """Open a session of our own beside the caller's, and let the tables in."""
        given = next((table.content for table in tables.values() if is_spark_frame(table.content)), None)
        caller = self.session or (active_session() if given is None else given.sparkSession)
        with silence(caller):
            run = withheld("input", lambda: SparkRun(caller, self))
            try:
                if self.store is not None:
                    run.check_workers(self.store)
                for name, table in tables.items():
                    let_in(run, name, table)
                yield run
            finally:
                run.close()


class SparkRun:
    """One run on Spark: steps become temporary views of a session of their own, those read twice are computed once."""

    def __init__(self, caller: Any, engine: Spark) -> None:
        self.caller = caller
        self._tasks = _tasks(caller)
        self._engine = engine
        self._session = _own_session(caller)
        self._tag = f"plume-{salt(SystemEntropy())}"
        self._session.addTag(self._tag)
        self._keeping = choose_keeping(caller, self._session, engine.keep_in, self._tag)
        self._views: list[str] = []
        self._shared: list[str] = []
        self._written: dict[str, int] = {}
        self._stored: list[StoredKeys] = []

    def rewrite(self, plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
        """Give a plan as it is."""
        return plan

    def printer(self, salt: str = SALT_UNKNOWN) -> SparkPrinter:
        """Give what prints steps for Spark, in as many tasks as this session has."""
        return SparkPrinter(salt, self._tasks)

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""
        return _described(withheld(name, lambda: self._session.table(name).schema.fields))

    def columns(self, select: str) -> Schema:
        """Say what columns a checked SELECT has; no row is read."""
        with self._without_ansi():
            return _described(withheld("input", lambda: self._session.sql(select).schema.fields))

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""
        self._show(name, lambda: self._session.sql(select))

    def define_relation(self, name: str, select: str) -> None:
        """Make the rows of a checked SELECT readable. It is analysed with ANSI mode off, so that what fails on a row is NULL."""
        with self._without_ansi():
            self.define(name, select)

    @contextmanager
    def _without_ansi(self) -> Iterator[None]:
        withheld("input", lambda: self._session.conf.set(_ANSI, "false"))
        try:
            yield
        finally:
            withheld("input", lambda: self._session.conf.set(_ANSI, "true"))

    def keep(self, name: str, select: str) -> None:
        """Compute a step now, for the several steps that read it: what they read is never computed again."""
        kept = self._keeping.keep(name, withheld(name, lambda: self._session.sql(select)))
        self._show(name, lambda: kept)

    def pass_over(self, step: OnePass, salt: str) -> bool:
        """Leave a pass to SQL: rows are on the executors."""
        del step, salt
        return False

    def lookup(self, selected: str, keys: tuple[str, ...]) -> Lookup:
        """Choose how rows find out whether their key is among the rows of a step; if it is the store, load it."""
        wanted, store = self._engine.lookup, self._engine.store
        flat = all(is_flat(column) for name, column in self.schema(selected).items() if name in keys)
        if wanted == Lookup.STORE.value and not flat:
            raise SettingError(
                "the store holds keys of flat types only; leave lookup = 'store' out, and the keys are joined."
            )
        with_store = store is not None and flat
        chosen = choose_lookup(self._number(selected), with_store=with_store) if wanted == AUTO else Lookup(wanted)
        if chosen is Lookup.STORE and store is not None:
            self._load(selected, keys, store)
        return chosen

    def _number(self, selected: str) -> int:
        """Say how many keys are selected; those of several rounds are counted."""
        written = self._written.get(selected)
        return withheld(selected, lambda: self._session.table(selected).count()) if written is None else written

    def _load(self, selected: str, keys: tuple[str, ...], store: str) -> None:
        """Write selected keys to the store, without what else is known of them, and give Spark the function that asks for them."""
        rows = withheld(selected, lambda: self._session.table(selected).select(*keys).toArrow().to_struct_array())
        stored = load(store, [key for chunk in rows.chunks for key in encode(chunk)])
        self._stored.append(stored)
        withheld(selected, lambda: self._session.udf.register(ASK_STORE, asking(stored)))

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Bring the rows of `source` to the driver, once, noise them batch by batch, and write down what comes back."""
        rows = withheld(name, lambda: self._session.table(source).toArrow())
        # Never no batch at all, so that the columns of an empty step come through.
        batches = [pa.RecordBatch.from_pylist([], schema=rows.schema), *rows.to_batches()]
        noised = withheld(name, lambda: pa.Table.from_batches([noising(batch) for batch in batches]))
        self.write(name, noised, types=self.schema(source))

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types, which Arrow may not know."""
        arrow = f"{name}_arrow"
        self._written[name] = rows.num_rows
        self._show(arrow, lambda: make_frame(rows, self._session))
        columns = ", ".join(typed(column, types, SPARK) for column in rows.column_names)
        self.define(name, f"SELECT {columns} FROM {identifier(arrow, SPARK)}")

    def fetch(self, name: str, order: tuple[str, ...]) -> pa.Table:
        """Return the rows of a step that may leave, sorted."""
        by = ", ".join(identifier(column, SPARK) for column in order)
        select = f"SELECT * FROM {identifier(name, SPARK)} ORDER BY {by}"
        return withheld(name, lambda: self._session.sql(select).toArrow())

    def read(self, name: str, rows: pa.Table, sound: Sound) -> None:
        """Hand the rows of an Arrow table over to Spark, to be read under a name."""
        self._show(name, lambda: sound(make_frame(rows, self._session)))

    def read_parquet(self, name: str, paths: list[str], milliseconds: Collection[str], sound: Sound) -> None:
        """Let Parquet files be read under a name, all with the columns that any of them has."""
        reader = self._session.read.option("mergeSchema", "true")
        self._show(name, lambda: sound(read_timestamps(reader, paths, milliseconds)))

    def share(self, name: str, frame: Any, sound: Sound) -> None:
        """Let a DataFrame of the caller's session be read under a name."""
        shared = f"plume_{salt(SystemEntropy())}"
        withheld(name, lambda: frame.createGlobalTempView(shared))
        self._shared.append(shared)
        database = self.caller.conf.get("spark.sql.globalTempDatabase")
        self._show(name, lambda: sound(self._session.table(f"{database}.{shared}")))

    def _show(self, name: str, make: Callable[[], Any]) -> None:
        """Make a DataFrame readable under a name."""
        withheld(name, lambda: make().createOrReplaceTempView(name))
        self._views.append(name)

    def check_workers(self, store: str) -> None:
        """Find out now whether executors can ask the store, before any work is done."""
        withheld("input", lambda: refuse_bare_workers(self._session, store))

    def close(self) -> None:
        """Stop what is still running and leave nothing behind; whoever has to clean up must not fail."""
        tasks: list[Callable[[], Any]] = [partial(self._session.interruptTag, self._tag)]
        tasks.append(self._keeping.forget)
        tasks += [partial(self.caller.catalog.dropGlobalTempView, name) for name in self._shared]
        tasks += [partial(self._session.catalog.dropTempView, name) for name in self._views]
        tasks += [partial(remove, stored) for stored in self._stored]
        tasks.append(partial(_leave, self._session))
        for task in tasks:
            with suppress(Exception):
                task()


def _described(fields: Iterable[Any]) -> Schema:
    return {field.name: column_type(field.dataType) for field in fields}


def _own_session(caller: Any) -> Any:
    """Open a session with the caller's settings and ours, in which no view of the caller's can be overwritten."""
    _refuse_unknown(caller, _CHECKS)
    session = _empty_session(caller)
    for name, value in caller.conf.getAll.items():
        if name.startswith("spark.sql.") and not name.startswith(_OF_THE_PARSER) and name not in _SETTINGS:
            with suppress(Exception):  # some can be set at the start of Spark only
                session.conf.set(name, value)
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    refuse_other_than_spark(caller, session)
    return session


def _refuse_unknown(session: Any, names: Iterable[str]) -> None:
    """Refuse a Spark that lacks settings a run relies on: it would take them without a word and not act on them."""
    for name in names:
        if not session.conf.isModifiable(name):
            raise SettingError(
                f"Spark does not know the setting {name}, which Plume relies on; use Spark 4.1 or newer, on a remote server too."
            )


def _empty_session(caller: Any) -> Any:
    """Open a session that holds no view, function or setting of the caller's.

    PySpark before 4.3 has no `newSession` on Spark Connect; there it is opened over a copy of the connection. Not by `cloneSession`:
    it brings the caller's functions along, and on Spark 4.1 one called sha2 takes the place of Spark's own and cannot be dropped.
    """
    if hasattr(caller, "newSession"):
        return caller.newSession()
    client = caller.client
    connection = deepcopy(client._builder)  # noqa: SLF001 - a session does not show its connection otherwise
    # A connection may name its session; the copy must not lead back into the caller's.
    connection.set("session_id", _session_id(salt(SystemEntropy())))
    return type(caller)(connection, client._user_id)  # noqa: SLF001 - the same


def _session_id(digits: str) -> str:
    """Write 32 hexadecimal digits as Spark wants a session's id."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _tasks(caller: Any) -> int | None:
    """Say into how many tasks a stage is worth dividing: two for each processor, if these are there from the start and known."""
    if not hasattr(caller, "_jvm") or caller.conf.get(_DYNAMIC, "false") == "true":
        return None
    return 2 * int(caller.sparkContext.defaultParallelism)


def _leave(session: Any) -> None:
    """Give up a session on Spark Connect: one left open asks its server once more when Python ends, and waits if that has gone."""
    if not hasattr(session, "_jvm"):  # classic sessions have nothing to give up
        session.client.release_session()
        session.client.close()
        # Python closes it once more when it collects the session. In PySpark 4.1 this waits for threads that all sessions share,
        # and for ever if Python happens to collect it in one of them.
        session.client.close = lambda: None
