"""Rows handed to Spark from this process: plain data, in a frame that holds nothing to be computed again."""

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from plume.engines.spark_session import active_session
from plume.engines.spark_types import known_to_spark
from plume.errors import OutputError


def make_frame(rows: pa.Table, session: Any = None) -> Any:
    """Make a DataFrame of rows."""
    # Of rows behind an empty chunk classic Spark sees none.
    known = known_to_spark(rows).combine_chunks()
    # Left to itself, Spark Connect does not see the types where there are no rows, and takes moments out of their time zone;
    # PySpark 4.1 would put moments without one into a time zone.
    schema = from_arrow_schema(known.schema, prefer_timestamp_ntz=True)
    return (session or active_session()).createDataFrame(known, schema)


def write_folder(rows: pa.Table, path: str) -> None:
    """Write rows as one Parquet file in a new folder, wherever Spark can write; readers look for its mark of success."""
    written = False
    try:
        make_frame(rows).coalesce(1).write.mode("error").parquet(path)
        written = True
    except Exception:  # noqa: BLE001, S110 - Spark's words are long, and the reasons are these three
        pass
    if not written:
        raise OutputError(
            f"Spark could not write {path!r}; is it new, does Spark know its scheme, and may it write there?"
        )
