"""Tumult Analytics on local Spark: keys with half of epsilon and all of delta, then counts with the other half."""

import math
import os
import sys
import tempfile
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable

import timing
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    QueryBuilder,
    Session,
)


def start_spark() -> SparkSession:
    """Spark on both cores, with as many pieces as suit them."""
    settings = {
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.ui.enabled": "false",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def count(source: str, target: str, limit: int) -> None:
    """Count users per key."""
    rows = SparkSession.getActiveSession().read.parquet(str(Path(source).resolve())).select("user", "key")
    half = math.log(3) / 2
    session = Session.from_dataframe(
        ApproxDPBudget(2 * half, 1e-5), "visits", rows, protected_change=AddRowsWithID("user")
    )
    bounded = QueryBuilder("visits").enforce(MaxGroupsPerID("key", limit)).enforce(MaxRowsPerGroupPerID("key", 1))
    keys = session.evaluate(bounded.get_groups(["key"]), ApproxDPBudget(half, 1e-5))
    counts = session.evaluate(bounded.groupby(KeySet.from_dataframe(keys)).count(), session.remaining_privacy_budget)
    counts.toPandas().to_parquet(target)


if __name__ == "__main__":
    spark = start_spark()
    timing.main(count)
    spark.stop()
