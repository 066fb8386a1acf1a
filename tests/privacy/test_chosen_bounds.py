"""Bounds that are chosen within the budget: one user more moves histograms of sizes by what their noise pays for, and any bound holds.

The pairs are those of test_neighbours.py: 2,000 of them, each with users and keys of its own.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import plume
from exact import exact_step, exact_steps, plan_with
from plume.engines.engine import Engine
from plume.planning import make_plan
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


SIZES = [f"sizes_{number}" for number in range(1, 5)]


def rows_of_users(content: pa.Table, engine: Engine, pipeline: str) -> list[set[tuple[object, ...]]]:
    """The rows that are placed in each histogram, of each user the largest."""
    steps, fixed = [f"{measure}_looked_at" for measure in SIZES], {"selected_keys": SELECTED}
    found = exact_steps(
        OPEN, content, steps, engine=engine, pipeline=pipeline, prescribed=fixed, order=("user_id", "key_1")
    )
    return [{tuple(row.values()) for row in found[name].drop_columns("keys_of_user").to_pylist()} for name in steps]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_one_user_more_is_no_more_rows_than_the_limit_and_changes_no_other(engine: Engine, pipeline: str) -> None:
    """Each row adds one to one bucket, so a histogram moves by no more than the limit in Euclidean norm, for all pairs."""
    both = (rows_of_users(content, engine, pipeline) for content in (WITHOUT, EVERYBODY))
    for before, after in zip(*both, strict=True):
        assert before <= after
        added = Counter(user for user, *_ in after - before)
        assert all(user.endswith("/0") for user in added)
        assert 0.9 * PAIRS < len(added) <= PAIRS
        assert max(added.values()) == LIMIT


def histograms(content: pa.Table, engine: Engine, pipeline: str = "plume") -> list[np.ndarray]:
    steps = [f"{measure}_exact" for measure in SIZES]
    found = exact_steps(
        OPEN,
        content,
        steps,
        engine=engine,
        pipeline=pipeline,
        prescribed={"selected_keys": SELECTED},
        order=("bucket",),
    )
    return [np.array(found[name]["pairs"]) for name in steps]


OTHERS = EVERYBODY.filter(
    pc.less(pc.cast(pc.list_element(pc.split_pattern(EVERYBODY["person"], "/"), 0), pa.int64()), 5)
)


def test_histograms_move_by_no_more_than_the_limit(engine: Engine) -> None:
    """In Euclidean norm, and all the way where all rows of a user are of one size."""
    furthest, before = 0.0, histograms(OTHERS, engine)
    for pair in range(4):
        one = EVERYBODY.filter(pc.equal(EVERYBODY["person"], f"{100 + pair}/0"))
        furthest = max(furthest, *moved(before, histograms(pa.concat_tables([OTHERS, one]), engine)))
    assert furthest == LIMIT


def moved(before: list[np.ndarray], after: list[np.ndarray]) -> list[float]:
    """How far each histogram moved in Euclidean norm; one user more takes nothing away."""
    for old, new in zip(before, after, strict=True):
        assert len(old) == len(new)
        assert np.all(new >= old)
    return [float(np.linalg.norm(new - old)) for old, new in zip(before, after, strict=True)]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_user_of_many_keys_of_one_size_moves_histograms_by_the_limit_and_no_further(
    engine: Engine, pipeline: str
) -> None:
    """Within the limit, at it, above it, far above it, and with all keys there are."""
    before, keys = histograms(OTHERS, engine, pipeline), SELECTED["key_1"].to_pylist()
    for number in (LIMIT - 1, LIMIT, LIMIT + 1, 4 * LIMIT, len(keys)):
        rows = [("worst", key, 5.0, 5.0) for key in keys[:number]]
        worst = pa.table(list(zip(*rows, strict=True)), names=EVERYBODY.column_names)
        after = histograms(pa.concat_tables([OTHERS, worst]), engine, pipeline)
        assert moved(before, after) == [min(number, LIMIT)] * len(SIZES)


def test_of_a_user_above_the_limit_the_largest_of_all_keys_are_looked_at(engine: Engine) -> None:
    before, keys = histograms(OTHERS, engine), SELECTED["key_1"].to_pylist()
    rows = [("heavy", key, 4.0**place, 0.0) for place, key in enumerate(keys[: 6 * LIMIT])]
    heavy = pa.table(list(zip(*rows, strict=True)), names=EVERYBODY.column_names)
    sums = histograms(pa.concat_tables([OTHERS, heavy]), engine)[0] - before[0]
    candidates = np.array(make_plan(OPEN).choice.bound.candidates)
    assert candidates[np.flatnonzero(sums)].tolist() == [4.0**place for place in range(5 * LIMIT, 6 * LIMIT)]


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
