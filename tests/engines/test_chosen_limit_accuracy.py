"""How good a limit is that was chosen within the budget, against limits tried one by one, on the paper's synthetic data."""

import math
from pathlib import Path
from statistics import fmean

import duckdb
import pytest

import plume
from plume.synthetic import write_paper_data

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
LIMITS, RUNS = [32, 39, 46, 54, 64], 20


@pytest.mark.slow
def test_a_chosen_limit_is_off_by_at_most_five_percent_more_than_the_best_one(tmp_path: Path) -> None:
    """The best of five limits near the best of all, by the mean of two runs each, which is off by half a percent."""
    path = tmp_path / "synthetic.parquet"
    write_paper_data(path, 1_000_000, seed=1)
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE truth AS SELECT key, count(DISTINCT user) AS exact FROM '{path}' GROUP BY key"
        )

        def error(limit: int | str) -> float:
            query = plume.Query(user="user", keys="key", measures=plume.users(), max_keys_per_user=limit, budget=BUDGET)
            connection.register("release", plume.run(query, path).to_arrow())
            select = "SELECT avg(abs(users - exact)) FROM release JOIN truth USING (key)"
            return float(connection.execute(select).fetchall()[0][0])

        best = min(fmean(error(limit) for _ in range(2)) for limit in LIMITS)
        assert max(error("auto") for _ in range(RUNS)) <= 1.05 * best
