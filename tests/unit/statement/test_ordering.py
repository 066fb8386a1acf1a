"""ORDER BY of the private SELECT: where NULL comes is what the statement says, and else what the dialect does."""

import pyarrow as pa
import pytest

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.engines.spark import Spark
from plume.statement.answering import ask

HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 2, privacy_unit_column = u)"
ROWS = pa.table({"k": ["a", "b", "c", "d"], "n": pa.array([2, None, 1, 2])})


@pytest.mark.parametrize(
    ("engine", "order", "keys"),
    [
        (DuckDB(threads=1), "n, k DESC", "cdab"),
        (DuckDB(threads=1), "n NULLS FIRST, k DESC", "bcda"),
        (DuckDB(threads=1), "n DESC, k", "adcb"),
        (DuckDB(threads=1), "n DESC NULLS FIRST, k", "badc"),
        (Spark(), "n, k", "bcad"),
        (Spark(), "n NULLS LAST, k", "cadb"),
        (Spark(), "n DESC, k", "adcb"),
    ],
)
def test_where_null_comes(engine: Engine, order: str, keys: str) -> None:
    text = f"{HEAD} k, COUNT(DISTINCT u) AS n FROM rows GROUP BY k ORDER BY {order}"
    ordering = ask(text, engine=engine, tables={"rows": "rows.parquet"}).statement.ordering
    assert "".join(ROWS["k"].take(ordering.places(ROWS)).to_pylist()) == keys


@pytest.mark.parametrize(("cut", "keys"), [("LIMIT 9" + "9" * 30, "abcd"), ("LIMIT 1 OFFSET 9" + "9" * 30, "")])
def test_more_rows_than_can_be_counted_are_all_that_there_are(cut: str, keys: str) -> None:
    """By then the release is paid for."""
    text = f"{HEAD} k, COUNT(DISTINCT u) AS n FROM rows GROUP BY k {cut}"
    ordering = ask(text, engine=DuckDB(threads=1), tables={"rows": "rows.parquet"}).statement.ordering
    assert "".join(ROWS["k"].take(ordering.places(ROWS)).to_pylist()) == keys
