"""Bounds that are chosen within the budget: one user more moves histograms of sizes by what their noise pays for, and any bound holds.

The pairs are those of test_neighbours.py: 2,000 of them, each with users and keys of its own.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import exact_step, exact_steps, plan_with
from plume.engines.engine import Engine
from privacy.test_neighbours import EVERYBODY, PAIRS, QUERY, SELECTED, WITHOUT, changes_of

LIMIT = 2
OPEN = replace(
    QUERY,
    measures=[
        plume.sum("value", 0, "auto", name="above"),
        plume.sum("value", "auto", "auto", name="around"),
        plume.count("auto"),
        plume.mean("value", 0, "auto", name="mean"),
    ],
    max_keys_per_user=LIMIT,
    selection="weighted_gaussian",
    composition="tight",
)
WHATS = ["above: high_total", "around: high_total", "count: max_per_key", "mean: high"]
PIPELINES = ["plume", pytest.param("naive", marks=pytest.mark.engines)]
pytestmark = pytest.mark.large


def step(content: pa.Table, name: str, engine: Engine, pipeline: str, **more: object) -> pa.Table:
    return exact_step(
        OPEN, content, name, engine=engine, pipeline=pipeline, prescribed={"selected_keys": SELECTED}, **more
    )


def rows_of_users(content: pa.Table, engine: Engine, pipeline: str) -> set[tuple[object, ...]]:
    """The rows that are placed in the histograms, each user in at most so many."""
    found = step(content, "few_keys", engine, pipeline, order=("user_id", "key_1")).drop_columns("keys_of_user")
    return {tuple(row.values()) for row in found.to_pylist()}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_one_user_more_is_no_more_rows_than_the_limit_and_changes_no_other(engine: Engine, pipeline: str) -> None:
    before, after = (rows_of_users(content, engine, pipeline) for content in (WITHOUT, EVERYBODY))
    assert before <= after
    added = Counter(user for user, *_ in after - before)
    assert all(user.endswith("/0") for user in added)
    assert 0.9 * PAIRS < len(added) <= PAIRS
    assert max(added.values()) == LIMIT


def histograms(content: pa.Table, engine: Engine) -> list[np.ndarray]:
    steps = [f"sizes_{number}_exact" for number in range(1, 5)]
    found = exact_steps(OPEN, content, steps, engine=engine, prescribed={"selected_keys": SELECTED}, order=("bucket",))
    return [np.array(found[name]["pairs"]) for name in steps]


def test_histograms_move_by_no_more_than_the_limit(engine: Engine) -> None:
    """In Euclidean norm, and all the way where all rows of a user are of one size."""
    everybody = EVERYBODY.to_pandas()
    pair_of = everybody["person"].str.split("/").str[0].astype(int)
    furthest, others = 0.0, pa.Table.from_pandas(everybody[pair_of < 5], preserve_index=False)
    before = histograms(others, engine)
    for pair in range(4):
        one = pa.Table.from_pandas(everybody[everybody["person"] == f"{100 + pair}/0"], preserve_index=False)
        after = histograms(pa.concat_tables([others, one]), engine)
        for old, new in zip(before, after, strict=True):
            assert len(old) == len(new)
            assert np.all(new >= old)
            furthest = max(furthest, float(np.linalg.norm(new - old)))
    assert furthest == LIMIT


@pytest.mark.parametrize("numbers", [(1.5, 2.0**-10, 1, 3.0), (24.0, 2.0**40, 2, 96.0), (2.0**20, 6.0, 3, 2.0**-9)])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_measures_change_by_no_more_than_their_noise_pays_for_at_the_chosen_bounds(
    engine: Engine, pipeline: str, numbers: tuple[float, ...]
) -> None:
    chosen = dict(zip(WHATS, numbers, strict=True))
    before, after = (step(t, "exact", engine, pipeline, chosen=chosen) for t in (WITHOUT, EVERYBODY))
    for part in plan_with(OPEN, chosen).calibrated.parts:
        norms = [sum(x**2 for change in keys for x in change) for keys in changes_of(part, before, after).values()]
        paid = LIMIT * part.part.squared << 2 * part.bits
        assert 0 < max(norms) <= paid


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_bound_that_is_not_enforced_would_be_seen(engine: Engine, pipeline: str) -> None:
    """The test of the test above."""
    chosen = {WHATS[2]: 2}
    before, after = (step(t, "exact", engine, pipeline, chosen=chosen) for t in (WITHOUT, EVERYBODY))
    (part,) = (part for part in plan_with(OPEN, chosen).calibrated.parts if part.measures == ("count",))
    norms = [sum(x**2 for change in keys for x in change) for keys in changes_of(part, before, after).values()]
    paid_for_one_record = LIMIT << 2 * part.bits
    assert max(norms) > paid_for_one_record
