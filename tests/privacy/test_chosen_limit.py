"""A limit that is chosen within the budget: one user more moves the histogram by what its noise pays for, and any limit holds users to it.

The pairs are those of test_neighbours.py: 2,000 of them, each with users and keys of its own.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from exact import exact_step, plan_with
from plume.engines.engine import Engine
from privacy.test_neighbours import EVERYBODY, PAIRS, QUERY, SELECTED, WITHOUT, changes_of

AUTO = replace(QUERY, max_keys_per_user="auto", selection="weighted_gaussian", composition="tight")
FULL, LIMIT = 1024, "max_keys_per_user"
PIPELINES = ["plume", pytest.param("naive", marks=pytest.mark.engines)]
pytestmark = pytest.mark.large


def rows_of_users(content: pa.Table, engine: Engine, pipeline: str) -> dict[str, tuple[int, int]]:
    """The one row of each user from which they are placed in the histogram."""
    found = exact_step(
        AUTO,
        content,
        "users",
        engine=engine,
        pipeline=pipeline,
        prescribed={"selected_keys": SELECTED},
        order=("user_id",),
    )
    listed = found.to_pylist()
    assert len({row["user_id"] for row in listed}) == len(listed)
    return {row["user_id"]: (row["keys"], int(row["fullness"])) for row in listed}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_one_user_more_is_one_row_more_and_changes_no_other(engine: Engine, pipeline: str) -> None:
    before, after = (rows_of_users(content, engine, pipeline) for content in (WITHOUT, EVERYBODY))
    assert before.items() <= after.items()
    added = after.keys() - before.keys()
    assert all(user.endswith("/0") for user in added)
    assert 0.9 * PAIRS < len(added) <= PAIRS
    assert max(after[user][0] for user in added) > 4
    assert all(0 <= fullness <= FULL * keys for keys, fullness in after.values())


def histogram(content: pa.Table, engine: Engine) -> np.ndarray:
    found = exact_step(
        AUTO,
        content,
        "keys_per_user_exact",
        engine=engine,
        prescribed={"selected_keys": SELECTED},
        order=("bucket",),
    )
    return np.array([found["users"].to_pylist(), found["fullness"].to_pylist()])


def test_the_histogram_moves_by_one_in_one_row(engine: Engine) -> None:
    everybody = EVERYBODY.to_pandas()
    pair_of = everybody["person"].str.split("/").str[0].astype(int)
    others = pa.Table.from_pandas(everybody[pair_of < 5], preserve_index=False)
    before = histogram(others, engine)
    for pair in range(20):
        one = pa.Table.from_pandas(everybody[everybody["person"] == f"{100 + pair}/0"], preserve_index=False)
        after = histogram(pa.concat_tables([others, one]), engine)
        users, fullness = after - before
        assert before.shape == after.shape == (2, 52)
        assert sorted(users.tolist()) in ([0] * 52, [*[0] * 51, 1])
        assert np.all((fullness != 0) <= (users == 1))
        assert 0 <= fullness.sum() <= FULL


# The larger the limit, the fewer users are above it, and the fewer come near what is paid for.
@pytest.mark.parametrize(("limit", "near"), [(1, 0.9), (2, 0.6), (3, 0.3)])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_measures_change_by_no_more_than_their_noise_pays_for_at_the_chosen_limit(
    engine: Engine, pipeline: str, limit: int, near: float
) -> None:
    before, after = (
        exact_step(
            AUTO,
            t,
            "exact",
            engine=engine,
            pipeline=pipeline,
            prescribed={"selected_keys": SELECTED},
            chosen={LIMIT: limit},
        )
        for t in (WITHOUT, EVERYBODY)
    )
    for part in plan_with(AUTO, {LIMIT: limit}).calibrated.parts:
        norms = [sum(x**2 for change in keys for x in change) for keys in changes_of(part, before, after).values()]
        paid = limit * part.part.squared << 2 * part.bits
        assert near * paid < max(norms) <= paid


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_limit_that_is_not_enforced_would_be_seen(engine: Engine, pipeline: str) -> None:
    """The test of the test above."""
    before, after = (
        exact_step(
            AUTO,
            t,
            "exact",
            engine=engine,
            pipeline=pipeline,
            prescribed={"selected_keys": SELECTED},
            chosen={LIMIT: 3},
        )
        for t in (WITHOUT, EVERYBODY)
    )
    part = plan_with(AUTO, {LIMIT: 2}).calibrated.parts[0]
    norms = [sum(x**2 for change in keys for x in change) for keys in changes_of(part, before, after).values()]
    assert max(norms) > 2 * part.part.squared << 2 * part.bits
