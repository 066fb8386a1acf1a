"""One user more or less changes no more than the noise pays for: 2,000 neighbouring pairs, exactly, before noise.

Each pair has its own users and keys, so one run holds them all: the table with everybody and the table without one user per pair.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import exact_step
from plume.engines.engine import Engine
from plume.pipelines.calibrated import calibrate
from plume.selection.weighted_gaussian import UNIT
from strategies import HOSTILE

PAIRS = 2000
LIMIT = 3
QUERY = plume.Query(
    user="person",
    keys="key",
    measures=[
        plume.users(),
        plume.count(2),
        plume.sum("value", -8, 8, name="around_zero"),
        plume.sum("value", 1, 2.5, name="above_zero"),
    ],
    max_keys_per_user=LIMIT,
    budget=plume.Budget(epsilon=2.0, delta=0.1),
    selection="laplace_threshold",
)
WEIGHTED = replace(QUERY, selection="weighted_gaussian")
LARGE = pytest.mark.large
PIPELINES = [pytest.param("naive", marks=LARGE), pytest.param("runtime_optimized", marks=LARGE), "plume"]


def rows_of_pair(pair: int, random: np.random.Generator) -> list[tuple[str, str, float | None]]:
    listed = []
    for number in range(4):
        for _ in range(random.integers(1, 14)):
            value = HOSTILE[random.integers(len(HOSTILE))] if random.random() < 0.5 else float(random.normal(0, 5))
            listed.append((f"{pair}/{number}", f"{pair}/{random.integers(8)}", value))
    return listed


def neighbours() -> tuple[pa.Table, pa.Table, pa.Table]:
    """The table without user 0 of each pair, the table with everybody, and some keys to be selected, with and without data."""
    random = np.random.default_rng(20261115)
    everybody = [row for pair in range(PAIRS) for row in rows_of_pair(pair, random)]
    without = [row for row in everybody if not row[0].endswith("/0")]
    selected = [f"{pair}/{key}" for pair in range(PAIRS) for key in range(10) if random.random() < 0.6]
    tables = [
        pa.table(list(zip(*rows, strict=True)), names=["person", "key", "value"]) for rows in (without, everybody)
    ]
    return tables[0], tables[1], pa.table({"key_1": selected})


WITHOUT, EVERYBODY, SELECTED = neighbours()


def changes(before: pa.Table, after: pa.Table, column: str) -> dict[str, list[int]]:
    """For each pair, by how much each of its keys changed, if at all."""
    old, new = (dict(zip(t["key_1"].to_pylist(), t[column].to_pylist(), strict=True)) for t in (before, after))
    found: dict[str, list[int]] = defaultdict(list)
    for key in old.keys() | new.keys():
        change = new.get(key, 0) - old.get(key, 0)
        if change:
            found[key.split("/")[0]].append(abs(change))
    return found


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_weights_of_keys_change_at_no_more_keys_than_the_limit_and_by_one(engine: Engine, pipeline: str) -> None:
    before, after = (
        exact_step(QUERY, t, "key_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
    )
    found = changes(before, after, "weight")
    assert len(found) == PAIRS
    assert max(len(changed) for changed in found.values()) == LIMIT
    assert {change for changed in found.values() for change in changed} == {1}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_weights_by_degree_change_by_no_more_than_one_unit_in_the_norm_that_gaussian_noise_pays_in(
    engine: Engine, pipeline: str
) -> None:
    before, after = (
        exact_step(WEIGHTED, t, "key_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
    )
    found = changes(before, after, "weight")
    assert max(len(changed) for changed in found.values()) == LIMIT
    norms = [sum(change**2 for change in changed) for changed in found.values()]
    assert 0.999 * UNIT**2 < max(norms) <= UNIT**2


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_measures_change_at_no_more_keys_than_the_limit_and_by_no_more_than_their_sensitivity(
    engine: Engine, pipeline: str
) -> None:
    before, after = (
        exact_step(QUERY, t, "exact", engine=engine, pipeline=pipeline, selected=SELECTED) for t in (WITHOUT, EVERYBODY)
    )
    for measure in calibrate(QUERY).measures:
        for column in measure.state.values():
            found = changes(before, after, column)
            assert max(len(changed) for changed in found.values()) == LIMIT
            assert max(change for changed in found.values() for change in changed) == measure.mechanism.sensitivity()


@pytest.mark.parametrize("pipeline", [pytest.param("naive", marks=LARGE), "plume"])
def test_every_selected_key_has_a_row_and_no_other_key_has(engine: Engine, pipeline: str) -> None:
    found = exact_step(QUERY, WITHOUT, "exact", engine=engine, pipeline=pipeline, selected=SELECTED)
    assert sorted(found["key_1"].to_pylist()) == sorted(SELECTED["key_1"].to_pylist())


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_bound_that_is_not_enforced_would_be_seen(engine: Engine, pipeline: str) -> None:
    """The test of the tests above: with a limit of four, some pair changes in four keys."""
    wider = replace(QUERY, max_keys_per_user=LIMIT + 1)
    before, after = (
        exact_step(wider, t, "key_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
    )
    assert max(len(changed) for changed in changes(before, after, "weight").values()) > LIMIT
