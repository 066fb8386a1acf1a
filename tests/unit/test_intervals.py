import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import SeededEntropy
from exact import say_nothing
from plume.engines.duckdb import DuckDB
from plume.errors import UsageError
from plume.running import run_with

KEYS = [f"k{number}" for number in range(4000)]


def release(noise: str) -> plume.Release:
    """One user in each of 4,000 public keys: one record each, five seconds each."""
    table = pa.table({"person": KEYS, "key": KEYS, "seconds": [5.0] * len(KEYS)})
    query = plume.Query(
        user="person",
        keys="key",
        measures=[plume.users(), plume.sum("seconds", 0, 10)],
        max_keys_per_user=8,
        budget=plume.Budget(epsilon=1.0, delta=1e-6),
        public_keys=KEYS,
        noise=noise,
    )
    return run_with(SeededEntropy(1), query, table, engine=DuckDB(threads=1), pipeline="plume", on_step=say_nothing)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("measure", "truth"), [("users", 1), ("seconds_sum", 5.0)])
def test_intervals_hold_the_value_before_noise_as_often_as_they_say(noise: str, measure: str, truth: float) -> None:
    """4,000 intervals at 0.95 on a fixed seed: the bounds are about seven standard deviations away."""
    rows = release(noise).intervals(0.95).to_arrow()
    low, high = (rows[f"{measure}_{side}"].to_numpy() for side in ("low", "high"))
    assert 0.925 < np.mean((low <= truth) & (truth <= high)) < 0.975


def test_a_wider_level_gives_wider_intervals_and_counts_stay_integers() -> None:
    made = release("gaussian")
    narrow, wide = (made.intervals(level).to_arrow() for level in (0.5, 0.99))
    assert (wide["users_high"].to_numpy() > narrow["users_high"].to_numpy()).all()
    assert wide.schema.field("users_low").type == pa.int64()


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, True, "0.95", float("nan")])
def test_a_level_that_is_no_probability_is_refused(level) -> None:
    with pytest.raises(UsageError, match=r"level is .*; it must be above 0 and below 1"):
        release("laplace").intervals(level)


def test_columns_that_are_there_already_are_not_doubled() -> None:
    with pytest.raises(UsageError, match="there is a column users_low or users_high already"):
        release("laplace").intervals(0.95).intervals(0.5)
