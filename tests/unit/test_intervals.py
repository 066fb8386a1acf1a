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


def computed_release(**settings: object) -> plume.Release:
    """Numbers that are computed from several noised parts: keys of 400 users whose values are 10 times the key's number."""
    people = range(400)
    table = pa.table(
        {
            "person": [f"{key} {person}" for key in range(6) for person in people],
            "key": [f"k{key}" for key in range(6) for _ in people],
            "seconds": [10.0 * key for key in range(6) for _ in people],
        }
    )
    return plume.run(COMPUTED, table, engine=DuckDB(threads=1), **settings)


COMPUTED = plume.Query(
    user="person",
    keys="key",
    measures=[plume.mean("seconds", 0, 60), plume.stddev("seconds", 0, 60), plume.median("seconds", 0, 60)],
    max_keys_per_user=1,
    budget=plume.Budget(epsilon=50.0, delta=1e-6),
)
NAMES = ["seconds_mean", "seconds_stddev", "seconds_median"]
RELIABLE = [f"{name}_reliable" for name in NAMES]


def test_computed_columns_have_intervals_of_their_own_in_each_key() -> None:
    """At this budget an interval misses by chance in 1 of 20 cases, but no interval is further off than five units."""
    rows = computed_release().intervals().to_arrow()
    for name in NAMES:
        low, high = (rows[f"{name}_{side}"].to_numpy() for side in ("low", "high"))
        released = rows[name].to_numpy()
        assert (low <= released).all()
        assert (released <= high).all()
        assert len(set(low)) > 1 or name == "seconds_stddev"
    means = rows["seconds_mean_low"].to_numpy()
    assert np.abs(means - 10 * np.arange(6)).max() < 5


def test_intervals_stay_with_their_rows_when_these_are_sorted() -> None:
    release = computed_release()
    of_key = {row["key"]: row for row in release.intervals().to_arrow().to_pylist()}
    top = release.top(3, by="seconds_mean").intervals().to_arrow().to_pylist()
    assert [row["key"] for row in top] == ["k5", "k4", "k3"]
    assert all(row == of_key[row["key"]] for row in top)


def test_a_ledger_keeps_intervals_and_gives_them_again(tmp_path) -> None:
    ledger = plume.Ledger.create(tmp_path / "led", datasets={"d": plume.Budget(100, 1e-5)})
    first, again = (computed_release(ledger=ledger.dataset("d"), release_id="one") for _ in range(2))
    assert again.to_arrow().column_names == ["key", *NAMES, *RELIABLE]
    assert first.intervals().to_arrow().equals(again.intervals().to_arrow())
    assert "seconds_mean_low" in again.intervals().to_arrow().column_names


def test_a_statement_has_intervals_of_the_columns_that_it_shows() -> None:
    table = pa.table({"u": [str(n) for n in range(900)], "k": ["a", "b", "c"] * 300, "v": [1.0, 2.0, 3.0] * 300})
    text = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50, delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = u)
        k, AVG(v, contribution_bounds_per_row => (0, 4)) AS m FROM rows GROUP BY k ORDER BY m DESC LIMIT 2"""
    rows = plume.sql(text, tables={"rows": table}, engine=DuckDB(threads=1)).intervals().to_arrow()
    assert rows.column_names == ["k", "m", "m_reliable", "m_low", "m_high"]
    assert rows["k"].to_pylist() == ["c", "b"]
    assert all(row["m_low"] <= row["m"] <= row["m_high"] for row in rows.to_pylist())


def test_computed_columns_have_no_intervals_of_another_level() -> None:
    with pytest.raises(UsageError, match="seconds_mean has intervals of the level 0\\.95 only"):
        computed_release().intervals(0.5)
