"""Rows handed to Spark from this process: plain data, in a frame that holds nothing to be computed again."""

from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa
from pyspark.sql.functions import expr
from pyspark.sql.pandas.types import from_arrow_schema

from plume.engines.engine import Table
from plume.engines.spark_session import active_session
from plume.engines.spark_types import in_sql, known_to_spark
from plume.errors import OutputError
from plume.plan.dialect import identifier
from plume.plan.printing.spark import SPARK
from plume.redaction import redacting

# On either side of 1970; some 290,000 years, a little less than microseconds in 64 bits hold.
_MOST_DAYS = 106_000_000


def make_frame(rows: pa.Table, session: Any = None) -> Any:
    """Make a DataFrame of rows."""
    # Of rows behind an empty chunk classic Spark sees none.
    known = known_to_spark(rows).combine_chunks()
    # Left to itself, Spark Connect does not see the types where there are no rows, and takes timestamps out of their time zone;
    # PySpark 4.1 would put timestamps without one into a time zone.
    schema = from_arrow_schema(known.schema, prefer_timestamp_ntz=True)
    return (session or active_session()).createDataFrame(known, schema)


Sound = Callable[[Any], Any]
"""Makes a frame one that no row of it makes Spark fail, or read others differently."""


def sound_for(table: Table) -> Sound:
    """Choose how the rows of a table are let in: expressions of a statement may cast dates, which those of a query do not."""
    return _in_a_statement if table.stated else _row_by_row


def _row_by_row(frame: Any) -> Any:
    """Let no condition on floating-point numbers reach what reads the files of a frame, which may be a session of the caller's.

    It would leave out whole groups of rows by their statistics and dictionaries. These know no NaN, which to Spark is above all numbers,
    and not that -0.0 is 0.0: whether such a row counts would depend on the others. No reader takes a condition on a sum.
    """
    return _changed(frame, ("float", "double"), lambda column, kind: f"{column} + CAST(0 AS {kind})")


def _in_a_statement(frame: Any) -> Any:
    """Make dates and timestamps NULL that are so far off that a cast or a truncation of them overflows, on which Spark fails."""
    times = ("date", "timestamp", "timestamp_ntz")
    return _changed(
        _row_by_row(frame),
        times,
        lambda column, _: (
            f"CASE WHEN unix_date(CAST({column} AS DATE)) BETWEEN {-_MOST_DAYS} AND {_MOST_DAYS} THEN {column} END"
        ),
    )


def _changed(frame: Any, kinds: Collection[str], change: Callable[[str, str], str]) -> Any:
    """Change the columns of some kinds; of two columns with one name neither can be read, so neither matters."""
    altered = {
        field.name: in_sql(field.dataType)
        for field in frame.schema.fields
        if field.dataType.typeName() in kinds and frame.columns.count(field.name) == 1
    }
    changes = {name: expr(change(identifier(name, SPARK), kind)) for name, kind in altered.items()}
    return frame.withColumns(changes) if changes else frame  # Spark Connect takes no empty list


def write_folder(rows: pa.Table, path: str) -> None:
    """Write rows as one Parquet file in a new folder, wherever Spark can write; readers look for its mark of success."""
    refusal = OutputError(
        f"Spark could not write {path!r}; check that the path does not exist yet, that Spark knows its scheme, "
        "and that Spark may write there."
    )
    with redacting(Exception, to=refusal):  # Spark's words are long, and the reasons are these three
        make_frame(rows).coalesce(1).write.mode("error").parquet(path)
