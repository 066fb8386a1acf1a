"""How data gets into Spark: DataFrames and tables of the caller's, Parquet, and tables in memory by way of Arrow."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from plume.engines.engine import Table
from plume.engines.files import is_table_of_spark, refuse_special_file
from plume.engines.frames import is_spark_frame, to_arrow
from plume.engines.reading import refuse_ambiguous
from plume.engines.spark_rows import Sound, sound_for
from plume.engines.spark_silence import withheld
from plume.engines.spark_timestamps import columns_in_milliseconds
from plume.errors import EngineError, InputError
from plume.redaction import redacting


class SparkInput(Protocol):
    """The ways into a run."""

    caller: Any

    def read(self, name: str, rows: pa.Table, sound: Sound) -> None:
        """Hand the rows of an Arrow table over."""

    def read_parquet(self, name: str, paths: list[str], milliseconds: Collection[str], sound: Sound) -> None:
        """Let Parquet files be read; in the columns of milliseconds, what is not a timestamp in microseconds is NULL."""

    def share(self, name: str, frame: Any, sound: Sound) -> None:
        """Let a DataFrame of the caller's session be read."""


def let_in(run: SparkInput, name: str, table: Table) -> None:
    """Make a table readable under a name."""
    content = table.content
    if isinstance(content, list | tuple) and len(content) == 1:
        content = content[0]
    if is_spark_frame(content):
        _share_frame(run, name, content, table)
    elif isinstance(content, str) and is_table_of_spark(content):
        _share_frame(run, name, _named_table(run, content), table)
    elif isinstance(content, str | Path | list | tuple):
        _open_parquet(run, name, content, table)
    else:
        _open_memory(run, name, table)


def _named_table(run: SparkInput, name: str) -> Any:
    refusal = InputError(
        f"Spark knows no table {name!r}; name one in its catalogue, or give the path of Parquet files."
    )
    with redacting(EngineError, to=refusal):
        return withheld("input", lambda: (run.caller.table(name).schema, run.caller.table(name))[1])


def _share_frame(run: SparkInput, name: str, frame: Any, table: Table) -> None:
    columns = withheld(name, lambda: frame.columns)
    refuse_ambiguous([column for column in columns if columns.count(column) > 1], table.kinds)
    if withheld(name, lambda: frame.isStreaming):
        raise InputError("this DataFrame is a stream, which never ends; give a table that is there as a whole.")
    if withheld(name, lambda: _may_change(frame)):
        raise InputError(
            "this DataFrame would hold other rows if Spark computed it again (rand, uuid, a random UDF), and users could then count "
            "in more keys than they may; write it to a table first."
        )
    run.share(name, frame, sound_for(table))


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
    """Return whether the rows of a DataFrame are drawn, not computed; Spark Connect only shows its plan as text."""
    if hasattr(frame, "_jdf"):
        return not frame._jdf.queryExecution().analyzed().deterministic()  # noqa: SLF001 - PySpark does not say
    return any(call in frame._explain_string(extended=True) for call in _CHANGING)  # noqa: SLF001 - the same


def _open_parquet(run: SparkInput, name: str, content: Any, table: Table) -> None:
    paths = [str(path) for path in (content if isinstance(content, list | tuple) else [content])]
    if not paths:
        raise InputError("the list of files is empty; name at least one Parquet file or folder.")
    for path in paths:
        with suppress(OSError):  # what is not a name of a file here may be one elsewhere
            refuse_special_file(Path(path))
    milliseconds = columns_in_milliseconds(paths, table.kinds)
    named = repr(paths[0]) if len(paths) == 1 else f"one of {len(paths)} paths"
    refusal = InputError(f"Spark could not read {named} as Parquet, the one format of files Plume reads there.")
    with redacting(EngineError, to=refusal):
        run.read_parquet(name, paths, milliseconds, sound_for(table))


def _open_memory(run: SparkInput, name: str, table: Table) -> None:
    rows = to_arrow(table.content, table.kinds)
    refuse_ambiguous([column for column in rows.schema.names if rows.schema.names.count(column) > 1], table.kinds)
    refusal = InputError(
        f"this {type(table.content).__name__} could not be read; "
        "check that all of it can be read, and that Spark knows the types of its columns."
    )
    with redacting(EngineError, to=refusal):
        whole = withheld(name, lambda: rows if isinstance(rows, pa.Table) else rows.read_all())
        run.read(name, whole, sound_for(table))
