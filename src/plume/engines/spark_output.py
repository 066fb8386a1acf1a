"""Released rows handed to Spark: plain data, already noised, in a frame that holds nothing to be computed again."""

from typing import Any

import pyarrow as pa

from plume.engines.spark_session import active_session
from plume.engines.spark_types import known_to_spark
from plume.errors import OutputError


def make_frame(rows: pa.Table, session: Any = None) -> Any:
    """Make a DataFrame of rows."""
    return (session or active_session()).createDataFrame(known_to_spark(rows))


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
