"""One user more or less changes no more than the noise pays for: 2,000 neighbouring pairs, exactly, before noise.

Each pair has its own users and keys, so one run holds them all: the table with everybody and the table without one user per pair.
"""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import exact_step
from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import calibrate
from plume.engines.engine import Engine
from plume.mechanisms.quantile_tree import LEAVES, LEVELS
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
        plume.variance("value", -8, 8, max_per_key=2, name="spread"),
        plume.mean("value", 1, 2.5, name="mean_above_zero"),
        plume.count(2, where="value > 0", name="some"),
        plume.vector_sum(["value", "other"], 8),
        plume.histogram("value", [-8, -1, 0, 1, 8], max_per_key=2),
        plume.median("value", -8, 8, max_per_key=2),
    ],
    max_keys_per_user=LIMIT,
    budget=plume.Budget(epsilon=2.0, delta=0.1),
    selection="laplace_threshold",
    composition="basic",
)
WEIGHTED = replace(QUERY, selection="weighted_gaussian", composition="tight")
TWO_ROUNDS = replace(QUERY, selection="two_round_weighted_gaussian", composition="tight")
CLIPPED = replace(WEIGHTED, max_keys_per_user=1)
PIPELINES = ["naive", "runtime_optimized", "plume"]
# Where all measures are compared, which takes longest.
PLUME_FIRST = [
    "plume",
    pytest.param("naive", marks=pytest.mark.engines),
    pytest.param("runtime_optimized", marks=pytest.mark.engines),
]
pytestmark = pytest.mark.large


def rows_of_pair(pair: int, random: np.random.Generator) -> list[tuple[str, str, float | None, float | None]]:
    listed = []
    for number in range(4):
        for _ in range(random.integers(1, 14)):
            values = [
                HOSTILE[random.integers(len(HOSTILE))] if random.random() < 0.5 else float(random.normal(0, 5))
                for _ in range(2)
            ]
            listed.append((f"{pair}/{number}", f"{pair}/{random.integers(8)}", *values))
    return listed


def neighbours() -> tuple[pa.Table, pa.Table, pa.Table]:
    """The table without user 0 of each pair, the table with everybody, and some keys to be selected, with and without data."""
    random = np.random.default_rng(20261115)
    everybody = [row for pair in range(PAIRS) for row in rows_of_pair(pair, random)]
    without = [row for row in everybody if not row[0].endswith("/0")]
    selected = [f"{pair}/{key}" for pair in range(PAIRS) for key in range(10) if random.random() < 0.6]
    tables = [
        pa.table(list(zip(*rows, strict=True)), names=["person", "key", "value", "other"])
        for rows in (without, everybody)
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
        exact_step(QUERY, t, "keyed_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
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
        exact_step(WEIGHTED, t, "keyed_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
    )
    found = changes(before, after, "weight")
    assert max(len(changed) for changed in found.values()) == LIMIT
    norms = [sum(change**2 for change in changed) for changed in found.values()]
    assert 0.999 * UNIT**2 < max(norms) <= UNIT**2


@pytest.mark.parametrize("min_users", [2, 3])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_weights_without_the_largest_change_by_no_more_than_what_a_user_gives(
    engine: Engine, pipeline: str, min_users: int
) -> None:
    trimmed = replace(WEIGHTED, min_users=min_users)
    before, after = (
        exact_step(trimmed, t, "keyed_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
    )
    found = changes(before, after, "weight")
    norms = [sum(change**2 for change in changed) for changed in found.values()]
    assert 0.999 * UNIT**2 < max(norms) <= UNIT**2
    assert min(change for changed in found.values() for change in changed) >= 0
    assert 0 in after["weight"].to_pylist()


@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_weights_of_a_second_round_change_by_no_more_than_one_unit_whatever_the_first_selected(
    engine: Engine, pipeline: str
) -> None:
    before, after = (
        exact_step(
            TWO_ROUNDS,
            t,
            "left_keyed_weights",
            engine=engine,
            pipeline=pipeline,
            prescribed={"selected_first": SELECTED},
        )
        for t in (WITHOUT, EVERYBODY)
    )
    assert not set(after["key_1"].to_pylist()) & set(SELECTED["key_1"].to_pylist())
    norms = [sum(change**2 for change in changed) for changed in changes(before, after, "weight").values()]
    assert 0.999 * UNIT**2 < max(norms) <= UNIT**2


def states(exact: pa.Table, part: CalibratedPart) -> dict[str, tuple]:
    """What a part holds in each key."""
    columns = zip(*(exact[column].to_pylist() for column in part.columns), strict=True)
    return dict(zip(exact["key_1"].to_pylist(), columns, strict=True))


def nodes(values: tuple | None, part: CalibratedPart) -> Counter:
    """What noise is added to in a key: the integers of a part, or the sums over the nodes of a tree, by their names."""
    if values is None:
        return Counter()
    if not part.part.leaves:
        return Counter(dict(enumerate(values)))
    found: Counter = Counter()
    for pair in values[0] or []:
        for width in [1] if part.part.leaves < LEAVES else [4**level for level in range(LEVELS)]:
            found[width, pair["leaf"] // width] += pair["weight"]
    return found


def changes_of(part: CalibratedPart, before: pa.Table, after: pa.Table) -> dict[str, list[list[int]]]:
    """For each pair, and each of its keys that changed, by how much each integer that noise is added to did."""
    old, new = states(before, part), states(after, part)
    changed: dict[str, list[list[int]]] = defaultdict(list)
    for key in old.keys() | new.keys():
        # Most keys are as they were, and to sum over a tree takes long.
        if old.get(key) == new.get(key):
            continue
        first, then = nodes(old.get(key), part), nodes(new.get(key), part)
        change = [then[name] - first[name] for name in first.keys() | then.keys() if then[name] != first[name]]
        if change:
            changed[key.split("/")[0]].append(change)
    return changed


@pytest.mark.parametrize("pipeline", PLUME_FIRST[:2])
def test_clipped_measures_change_by_no_more_than_the_norm_that_gaussian_noise_pays_for(
    engine: Engine, pipeline: str
) -> None:
    """Negative values among them; users above the limit count in all of their keys, which are up to more than four times as many."""
    before, after = (
        exact_step(CLIPPED, t, "exact", engine=engine, pipeline=pipeline, prescribed={"selected_keys": SELECTED})
        for t in (WITHOUT, EVERYBODY)
    )
    most = CLIPPED.max_keys_per_user
    for part in calibrate(CLIPPED).parts:
        changed = changes_of(part, before, after)
        norms = [sum(x**2 for change in keys for x in change) for keys in changed.values()]
        paid = most * part.part.squared << 2 * part.bits
        assert max(map(len, changed.values())) > 4 * most
        assert 0.99 * paid < max(norms) <= paid


@pytest.mark.parametrize("pipeline", PLUME_FIRST)
def test_measures_change_at_no_more_keys_than_the_limit_and_by_no_more_than_their_sensitivity(
    engine: Engine, pipeline: str
) -> None:
    before, after = (
        exact_step(QUERY, t, "exact", engine=engine, pipeline=pipeline, prescribed={"selected_keys": SELECTED})
        for t in (WITHOUT, EVERYBODY)
    )
    for part in calibrate(QUERY).parts:
        changed = changes_of(part, before, after)
        sizes = [change for keys in changed.values() for change in keys]
        assert max(map(len, changed.values())) == LIMIT
        assert 0.999 * part.part.absolute < max(sum(map(abs, change)) for change in sizes) <= part.part.absolute
        assert 0.999 * part.part.squared < max(sum(x**2 for x in change) for change in sizes) <= part.part.squared


@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_every_selected_key_has_a_row_and_no_other_key_has(engine: Engine, pipeline: str) -> None:
    found = exact_step(
        QUERY, WITHOUT, "exact", engine=engine, pipeline=pipeline, prescribed={"selected_keys": SELECTED}
    )
    assert sorted(found["key_1"].to_pylist()) == sorted(SELECTED["key_1"].to_pylist())


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_bound_that_is_not_enforced_would_be_seen(engine: Engine, pipeline: str) -> None:
    """The test of the tests above: with a limit of four, some pair changes in four keys."""
    wider = replace(QUERY, max_keys_per_user=LIMIT + 1)
    before, after = (
        exact_step(wider, t, "keyed_weights", engine=engine, pipeline=pipeline) for t in (WITHOUT, EVERYBODY)
    )
    assert max(len(changed) for changed in changes(before, after, "weight").values()) > LIMIT
