"""Timestamps of Parquet files in milliseconds: Spark's reader turns them into microseconds, and fails on those that these cannot hold.

So they are read as the numbers they are, and turned into timestamps by a step that gives NULL instead. Spark does not say which columns
these are, so the files themselves are asked: those on this machine, which is where Plume can open them.
"""

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from plume.engines.files import find_files, on_this_machine
from plume.engines.spark_types import in_sql
from plume.errors import ColumnTypeError, InputError
from plume.plan.dialect import identifier
from plume.plan.printing.spark import SPARK

# The most milliseconds, on either side of 1970, that are microseconds in 64 bits.
_MOST = (2**63 - 1) // 1000


def columns_in_milliseconds(paths: Iterable[str], wanted: Collection[str]) -> frozenset[str]:
    """Name the wanted columns that hold timestamps in milliseconds; all files must agree, and values inside of others are refused."""
    units = [_units(path) for given in paths for path in _files(given)]
    for column in sorted({column for of_file in units for column in of_file}):
        top, *inside = column.split(".", 1)
        if top in wanted and (inside or len({of_file.get(column) for of_file in units}) > 1):
            raise ColumnTypeError(
                f"column {top!r} holds timestamps in milliseconds in some of its files or inside of other values, on which Spark's reader "
                "may fail; write all of them in microseconds."
            )
    return frozenset(column for of_file in units for column in of_file if column in wanted)


def _files(given: str) -> tuple[Path, ...]:
    with suppress(InputError, OSError):
        return find_files(on_this_machine(given)).paths
    return ()


def _units(path: Path) -> dict[str, str]:
    """Find the columns of a file in milliseconds, by their paths."""
    with suppress(OSError, pa.ArrowException):  # Spark refuses what is not Parquet in its turn
        schema = pq.read_metadata(path).schema
        columns = (schema.column(number) for number in range(len(schema)))
        return {column.path: "milliseconds" for column in columns if _is_in_milliseconds(column)}
    return {}


def _is_in_milliseconds(column: Any) -> bool:
    logical = json.loads(column.logical_type.to_json())
    return (logical.get("Type"), logical.get("timeUnit")) == ("Timestamp", "milliseconds")


def read_timestamps(reader: Any, paths: list[str], milliseconds: Collection[str]) -> Any:
    """Read Parquet files; milliseconds beyond all timestamps are NULL."""
    frame = reader.parquet(*paths)
    stated = {field.name: in_sql(field.dataType) for field in frame.schema.fields if field.name in milliseconds}
    if not stated:
        return frame
    described = frame.schema.jsonValue()
    for field in described["fields"]:
        if field["name"] in stated:
            field["type"] = "long"
    numbers = reader.schema(StructType.fromJson(described)).parquet(*paths)
    return numbers.withColumns({name: expr(_in_timestamps(name, kind)) for name, kind in stated.items()})


def _in_timestamps(column: str, kind: str) -> str:
    number = identifier(column, SPARK)
    return f"CAST(CASE WHEN {number} BETWEEN {-_MOST} AND {_MOST} THEN timestamp_millis({number}) END AS {kind})"
