"""How good bounds are that were chosen within the budget, against bounds tried one by one, on made-up totals with a long tail."""

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import duckdb
import pytest

import plume
from plume.synthetic import write_paper_data

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
HIGHS, RUNS = [4, 6, 8, 12, 16, 24, 32, 48, 64], 20
# What a user spends in a key: lognormal, median 5, so that one in a hundred is above 50 (two hashes make one normal number).
SPENT = """
    5 * exp(sqrt(-2 * ln((hash("user", "key", 1) % 1000000 + 1) / 1000001.0)) * cos(2 * pi() * (hash("user", "key", 2) % 1000000) / 1e6))
"""


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Purchases, one per user and key, in a file and as the exact total of each key."""
    folder = tmp_path_factory.mktemp("spent")
    plain, path = folder / "plain.parquet", folder / "spent.parquet"
    write_paper_data(plain, 200_000, seed=1)
    with duckdb.connect() as connection:
        purchases = f'SELECT "user", "key", {SPENT} AS spent FROM (SELECT DISTINCT "user", "key" FROM \'{plain}\')'
        connection.execute(f"COPY ({purchases}) TO '{path}' (FORMAT parquet)")
        connection.execute(f"CREATE TABLE truth AS SELECT key, sum(spent) AS exact FROM '{path}' GROUP BY key")
        yield connection, path


@pytest.mark.slow
@pytest.mark.xfail(
    reason="32 is chosen where 16 is best, which is up to 38 % worse: docs/choosing.md says so", strict=True
)
def test_a_chosen_bound_is_off_by_at_most_ten_percent_more_than_the_best_one(
    spent: tuple[duckdb.DuckDBPyConnection, Path],
) -> None:
    """The best of nine bounds by the mean of two runs each; errors of single runs vary by two percent."""
    connection, path = spent

    def error(high: float | str) -> float:
        measure = plume.sum("spent", low_total=0, high_total=high)
        query = plume.Query(user="user", keys="key", measures=measure, max_keys_per_user=32, budget=BUDGET)
        connection.register("release", plume.run(query, path).to_arrow())
        select = "SELECT avg(abs(spent_sum - exact)) FROM release JOIN truth USING (key)"
        return float(connection.execute(select).fetchall()[0][0])

    best = min(fmean(error(high) for _ in range(2)) for high in HIGHS)
    assert max(error("auto") for _ in range(RUNS)) <= 1.1 * best
