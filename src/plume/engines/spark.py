"""Spark, the engine on a cluster, classic and Connect: only SQL and DataFrame calls.

Every call into Spark passes `_quietly`: its errors quote data, so they end here and a plain sentence goes on.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from pyspark import StorageLevel

from plume.engines.engine import Noising, Table
from plume.engines.frames import is_spark_frame, to_arrow
from plume.engines.quietly import quietly
from plume.engines.reading import refuse_ambiguous
from plume.engines.spark_session import active_session
from plume.engines.spark_silence import silence
from plume.engines.spark_store import asking, refuse_bare_workers
from plume.engines.spark_types import column_type, known_to_spark
from plume.errors import EngineError, InputError, PlumeError, ResourceError, SettingError, StoreError
from plume.lookup.lookup import choose_lookup
from plume.lookup.store import StoredKeys, encode, load, remove
from plume.plan.dialect import SPARK, Dialect, identifier
from plume.plan.nodes import Lookup
from plume.plan.sql import ASK_STORE
from plume.plan.types import Schema

# What a run needs, in a session of its own: the caller's stays as it is.
_SETTINGS = {
    # Overflow and casts must never pass in silence.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # Otherwise ${...} inside a name or a constant would be replaced.
    "spark.sql.variable.substitute": "false",
    # Moments without a time zone stay without one.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Moments with a time zone come back the same wherever this runs.
    "spark.sql.session.timeZone": "UTC",
    # Nothing about a file is guessed: names of folders are text.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Kept steps are written once and read twice: packing them takes longer than reading them, small pieces as well.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.inMemoryColumnarStorage.batchSize": "100000",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # A task that is run again must give the rows it gave before, or all that read it are run again too.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
}
AUTO = "auto"
_OUT_OF_ROOM = ("OutOfMemoryError", "No space left on device", "maxResultSize", "MemoryError")

_OF_THE_STORE = ("plume.errors.StoreError", "redis.exceptions")

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Spark:
    """Spark, classic or Connect."""

    session: Any = None
    """A SparkSession; if there is none, the active one, or a new one on this machine."""
    lookup: str = AUTO
    """How rows find out whether their key was selected: "broadcast", "store" or "join"; "auto" goes by the number of keys."""
    store: str | None = field(default=None, repr=False)
    """The address of a Redis server, or of a node of a Redis cluster, such as redis://host:6379."""

    def __post_init__(self) -> None:
        lookups = (AUTO, *(lookup.value for lookup in Lookup))
        if self.lookup not in lookups:
            raise SettingError(f"lookup is {self.lookup!r}; it must be one of {', '.join(lookups)}.")
        if self.lookup == Lookup.STORE.value and self.store is None:
            raise SettingError(
                "lookup is 'store' and there is no store; give its address, such as store='redis://host:6379'."
            )

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator["SparkRun"]:
        """Open a session of our own beside the caller's, and let the tables in."""
        given = next((table.content for table in tables.values() if is_spark_frame(table.content)), None)
        caller = self.session or (active_session() if given is None else given.sparkSession)
        with silence(caller):
            run = _quietly("input", lambda: SparkRun(caller, self))
            try:
                if self.store is not None:
                    run.check_workers(self.store)
                for name, table in tables.items():
                    _let_in(run, name, table)
                yield run
            finally:
                run.close()


class SparkRun:
    """One run on Spark: steps become temporary views of a session of their own, those read twice are kept on disk."""

    dialect: ClassVar[Dialect] = SPARK

    def __init__(self, caller: Any, engine: Spark) -> None:
        self.caller = caller
        self._engine = engine
        self._session = _own_session(caller)
        self._tag = f"plume-{uuid.uuid4().hex}"
        self._session.addTag(self._tag)
        self._kept: list[Any] = []
        self._shared: list[str] = []
        self._written: dict[str, int] = {}
        self._stored: list[StoredKeys] = []

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""
        fields = _quietly(name, lambda: self._session.table(name).schema.fields)
        return {field.name: column_type(field.dataType) for field in fields}

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""
        _quietly(name, lambda: self._session.sql(select).createOrReplaceTempView(name))

    def keep(self, name: str, select: str) -> None:
        """Keep what a step computes on the executors' disks, for the several steps that read it."""
        frame = _quietly(name, lambda: self._session.sql(select))
        self._kept.append(frame)
        _quietly(name, lambda: frame.persist(StorageLevel.DISK_ONLY).createOrReplaceTempView(name))

    def lookup(self, selected: str) -> Lookup:
        """Choose how rows find out whether their key is among the rows of a step; if it is the store, load it."""
        wanted, store = self._engine.lookup, self._engine.store
        chosen = (
            choose_lookup(self._written[selected], with_store=store is not None) if wanted == AUTO else Lookup(wanted)
        )
        if chosen is Lookup.STORE and store is not None:
            keys = _quietly(selected, lambda: self._session.table(selected).toArrow().to_struct_array())
            self._stored.append(load(store, [key for chunk in keys.chunks for key in encode(chunk)]))
            _quietly(selected, lambda: self._session.udf.register(ASK_STORE, asking(self._stored[-1])))
        return chosen

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Bring the rows of `source` to the driver, once, noise them batch by batch, and write down what comes back."""
        rows = _quietly(name, lambda: self._session.table(source).toArrow())
        # Never no batch at all, so that the columns of an empty step come through.
        batches = [pa.RecordBatch.from_pylist([], schema=rows.schema), *rows.to_batches()]
        noised = _quietly(name, lambda: pa.Table.from_batches([noising(batch) for batch in batches]))
        self.write(name, noised, types=self.schema(source))

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types, which Arrow may not know."""
        arrow = f"{name}_arrow"
        self._written[name] = rows.num_rows
        self.read(arrow, rows)
        columns = ", ".join(_typed(column, types) for column in rows.column_names)
        self.define(name, f"SELECT {columns} FROM {identifier(arrow, SPARK)}")

    def fetch(self, name: str, order: tuple[str, ...]) -> pa.Table:
        """Return the rows of a step that may leave, sorted."""
        by = ", ".join(identifier(column, SPARK) for column in order)
        select = f"SELECT * FROM {identifier(name, SPARK)} ORDER BY {by}"
        return _quietly(name, lambda: self._session.sql(select).toArrow())

    def read(self, name: str, rows: pa.Table) -> None:
        """Hand the rows of an Arrow table over to Spark, to be read under a name."""
        _quietly(name, lambda: self._session.createDataFrame(known_to_spark(rows)).createOrReplaceTempView(name))

    def read_parquet(self, name: str, paths: list[str]) -> None:
        """Let Parquet files be read under a name, all with the columns that any of them has."""
        reader = self._session.read.option("mergeSchema", "true")
        _quietly(name, lambda: reader.parquet(*paths).createOrReplaceTempView(name))

    def share(self, name: str, frame: Any) -> None:
        """Let a DataFrame of the caller's session be read under a name."""
        shared = f"plume_{uuid.uuid4().hex}"
        _quietly(name, lambda: frame.createGlobalTempView(shared))
        self._shared.append(shared)
        database = self.caller.conf.get("spark.sql.globalTempDatabase")
        _quietly(name, lambda: self._session.table(f"{database}.{shared}").createOrReplaceTempView(name))

    def check_workers(self, store: str) -> None:
        """Find out now whether executors can ask the store, before any work is done."""
        _quietly("input", lambda: refuse_bare_workers(self._session, store))

    def close(self) -> None:
        """Stop what is still running and leave nothing behind; whoever has to clean up must not fail."""
        tasks: list[Callable[[], Any]] = [lambda: self._session.interruptTag(self._tag)]
        tasks += [frame.unpersist for frame in self._kept]
        tasks += [lambda name=name: self.caller.catalog.dropGlobalTempView(name) for name in self._shared]  # type: ignore[misc]
        tasks += [lambda stored=stored: remove(stored) for stored in self._stored]  # type: ignore[misc]
        tasks += [lambda: _end_session(self._session)]
        for task in tasks:
            with suppress(Exception):
                task()


def _own_session(caller: Any) -> Any:
    """Open a session with the caller's settings and ours, in which no view of the caller's can be overwritten."""
    session = caller.newSession()
    settings = {name: value for name, value in caller.conf.getAll.items() if name.startswith("spark.sql.")}
    for name, value in (settings | _SETTINGS).items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def _end_session(session: Any) -> None:
    for table in session.catalog.listTables():
        session.catalog.dropTempView(table.name)


def _typed(column: str, types: Schema) -> str:
    quoted = identifier(column, SPARK)
    return f"CAST({quoted} AS {types[column].engine_name}) AS {quoted}" if column in types else quoted


def _let_in(run: SparkRun, name: str, table: Table) -> None:
    """Make a table readable under a name."""
    content = table.content
    if isinstance(content, list | tuple) and len(content) == 1:
        content = content[0]
    if is_spark_frame(content):
        _share_frame(run, name, content, table)
    elif isinstance(content, str) and _is_table_name(content):
        _share_frame(run, name, _named_table(run, content), table)
    elif isinstance(content, str | Path | list | tuple):
        _open_parquet(run, name, content)
    else:
        _open_memory(run, name, table)


def _is_table_name(text: str) -> bool:
    """Tell the name of a table from a path, which has a slash or an ending."""
    return "/" not in text and not text.endswith((".parquet", ".pq"))


def _named_table(run: SparkRun, name: str) -> Any:
    found = None
    with suppress(EngineError):
        found = _quietly("input", lambda: (run.caller.table(name).schema, run.caller.table(name))[1])
    if found is None:
        raise InputError(
            f"Spark knows no table {name!r}; name one of its catalogue, or give the path of Parquet files."
        )
    return found


def _share_frame(run: SparkRun, name: str, frame: Any, table: Table) -> None:
    columns = _quietly(name, lambda: frame.columns)
    refuse_ambiguous([column for column in columns if columns.count(column) > 1], table.kinds)
    if _quietly(name, lambda: frame.isStreaming):
        raise InputError("this DataFrame is a stream, which never ends; give a table that is there as a whole.")
    if _quietly(name, lambda: _may_change(frame)):
        raise InputError(
            "this DataFrame would hold other rows if Spark computed it again (rand, uuid, a random UDF), and users could then count "
            "in more keys than they may; write it to a table first."
        )
    run.share(name, frame)


_CHANGING = (
    "rand(",
    "randn(",
    "uuid(",
    "shuffle(",
    "monotonically_increasing_id(",
    "spark_partition_id(",
    "randstr(",
    "uniform(",
)


def _may_change(frame: Any) -> bool:
    """Tell a DataFrame whose rows are drawn, not computed; Spark Connect only shows its plan as text."""
    if hasattr(frame, "_jdf"):
        return not frame._jdf.queryExecution().analyzed().deterministic()  # noqa: SLF001 - PySpark does not say
    return any(call in frame._explain_string(extended=True) for call in _CHANGING)  # noqa: SLF001 - the same


def _open_parquet(run: SparkRun, name: str, content: Any) -> None:
    paths = [str(path) for path in (content if isinstance(content, list | tuple) else [content])]
    if not paths:
        raise InputError("the list of files is empty; name at least one Parquet file or folder.")
    read = False
    with suppress(EngineError):
        run.read_parquet(name, paths)
        read = True
    if not read:
        named = repr(paths[0]) if len(paths) == 1 else f"one of {len(paths)} paths"
        raise InputError(f"Spark could not read {named} as Parquet, the one format of files Plume reads there.")


def _open_memory(run: SparkRun, name: str, table: Table) -> None:
    rows = to_arrow(table.content, table.kinds)
    refuse_ambiguous([column for column in rows.schema.names if rows.schema.names.count(column) > 1], table.kinds)
    read = False
    with suppress(EngineError):
        run.read(name, _quietly(name, lambda: rows if isinstance(rows, pa.Table) else rows.read_all()))
        read = True
    if not read:
        raise InputError(
            f"this {type(table.content).__name__} could not be read; can all of it be read, and does Spark know the types of its columns?"
        )


def _quietly(step: str, call: Callable[[], _Result]) -> _Result:
    return quietly(call, lambda error: _failure(step, error))


def _failure(step: str, error: Exception) -> PlumeError:
    """Say what went wrong in words of our own."""
    if any(sign in str(error) for sign in _OUT_OF_ROOM) or isinstance(error, MemoryError):
        return ResourceError(
            f"memory or disk ran out at step {step}; give executors more, or make pieces smaller with spark.sql.shuffle.partitions."
        )
    if any(sign in str(error) for sign in _OF_THE_STORE):
        return StoreError(
            f"the store of selected keys failed at step {step}; nothing was released. Is every node of it up?"
        )
    return EngineError(f"Spark failed at step {step}; its message is withheld, since it may quote data.")
