"""How good bounds are that were chosen within the budget, against bounds tried one by one, on made-up totals of four kinds."""

import math
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.special import erf

import plume
from exact import exact_step
from plume.engines.duckdb import DuckDB
from plume.planning import make_plan
from plume.synthetic import write_paper_data

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
RUNS, USERS = 20, 200_000
# Evenly spread between 0 and 1, other numbers for each user, key and place.
EVEN = '(hash("user", "key", {}) % 1000000 + 1) / 1000001.0'
NORMAL = f"sqrt(-2 * ln({EVEN.format(1)})) * cos(2 * pi() * {EVEN.format(2)})"
PAIRS = 'SELECT DISTINCT "user", "key" FROM \'{}\''
# Users with up to a thousand words each, of whom one in two has eight and one in a hundred four hundred; few words are used by many.
WORDS = """
    SELECT DISTINCT "user", CAST(floor(30000 * power((hash("user", place, 3) % 1000000 + 1) / 1000001.0, 2)) AS BIGINT) AS "key"
    FROM (SELECT range AS "user",
                 unnest(range(least(1000, CAST(floor(4 / ((hash(range, 4) % 1000000 + 1) / 1000001.0)) AS BIGINT)))) AS place
          FROM range({users}))
"""


@dataclass(frozen=True)
class Totals:
    """What each user spends in each of their keys, and the bounds among which the best one is."""

    spent: str
    limit: int
    highs: tuple[int, ...]
    words: bool = False


TOTALS = {
    # One in a hundred is above 50.
    "lognormal": Totals(f"5 * exp({NORMAL})", 32, (8, 12, 16, 24, 32, 48)),
    "uniform": Totals(f"20 * {EVEN.format(1)}", 32, (8, 12, 16, 24, 32)),
    "constant": Totals("5e0", 32, (3, 4, 6, 8, 12)),
    # One in a thousand is above 300.
    "words": Totals(f"floor(power({EVEN.format(1)}, -1 / 1.2))", 64, (3, 4, 6, 8, 12, 16, 24, 32), words=True),
}


@pytest.fixture(scope="module", params=TOTALS)
def spent(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Totals, Path, dict[int, float]]:
    """Purchases, one per user and key, in a file and as the exact total of each key."""
    folder, totals = tmp_path_factory.mktemp("spent"), TOTALS[request.param]
    plain, path = folder / "plain.parquet", folder / "spent.parquet"
    pairs = WORDS.format(users=USERS) if totals.words else PAIRS.format(plain)
    if not totals.words:
        write_paper_data(plain, USERS, seed=1)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT *, {totals.spent} AS spent FROM ({pairs})) TO '{path}' (FORMAT parquet)")
        exact = connection.execute(f"SELECT \"key\", sum(spent) FROM '{path}' GROUP BY 1").fetchall()
    return totals, path, dict(exact)


def asking(totals: Totals, high: float | str) -> plume.Query:
    measure = plume.sum("spent", low_total=0, high_total=high)
    return plume.Query(user="user", keys="key", measures=measure, max_keys_per_user=totals.limit, budget=BUDGET)


def expected_error(query: plume.Query, path: Path, exact: dict[int, float], keys: pa.Table) -> float:
    """The mean over keys of how far they are off, of all noise that may be drawn: what is lost is added up before noise."""
    rows = exact_step(query, path, "exact", engine=DuckDB(), prescribed={"selected_keys": keys})
    (part,) = make_plan(query).calibrated.parts
    kept = np.array(rows[part.columns[0]].to_pylist(), np.float64) * float(part.unit)
    lost = np.array([exact[key] for key in rows["key_1"].to_pylist()]) - kept
    scaled = lost / part.standard_deviation
    off = math.sqrt(2 / math.pi) * np.exp(-(scaled**2) / 2) + scaled * erf(scaled / math.sqrt(2))
    return float(np.mean(off)) * part.standard_deviation


@pytest.mark.slow
def test_a_chosen_bound_is_off_by_at_most_ten_percent_more_than_the_best_one(
    spent: tuple[Totals, Path, dict[int, float]],
) -> None:
    """What is chosen in twenty runs, by the error to be expected with it: noise on the sums makes no difference to that.

    Simulated a thousand times each, with other noise on the histogram, no bound came out with more than 8.7 % on lognormal totals
    (24 where 16 is best, in 9 % of runs), and only the best one on uniform and constant totals; of 300 on words, none with more than 3.1 %.
    """
    totals, path, exact = spent
    keys = plume.run(asking(totals, totals.highs[0]), path).to_arrow().select(["key"]).rename_columns(["key_1"])
    errors = {high: expected_error(asking(totals, high), path, exact, keys) for high in totals.highs}
    what = "spent_sum: high_total"
    chosen = {plume.run(asking(totals, "auto"), path).chosen[what] for _ in range(RUNS)}
    assert max(errors[high] for high in chosen) <= 1.1 * min(errors.values()), (chosen, errors)
