"""The stages of a run, and what a choice changes of them: what ran stays, and no candidate spends more than was priced."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import plume
from exact import plan_with
from plume.calibration.calibrated_query import with_other_numbers
from plume.calibration.shares import shares_of
from plume.choosing.calibrated_choice import calibrate_choice
from plume.choosing.keys_per_user import CANDIDATES
from plume.choosing.open_numbers import example_numbers, with_numbers
from plume.choosing.open_query import OpenQuery, _lessened, decide
from plume.errors import PlumeBug
from plume.mechanisms.open_bound import open_bounds
from plume.pipelines.pipeline import PlannedQuery
from plume.plan.analysis import costs, noisers
from plume.plan.nodes import Noise
from plume.planning import make_plan

QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=3)],
    max_keys_per_user=8,
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
)
OPEN = replace(
    QUERY,
    measures=[plume.count("auto"), plume.sum("seconds", "auto", "auto"), plume.mean("seconds", 0, "auto")],
    max_keys_per_user="auto",
)
BOUNDS = {what: bound.candidates for what, (_, bound) in open_bounds(OPEN.measures).items()}


def names(stages: tuple[Noise, ...]) -> list[str]:
    return [stage.name for stage in stages]


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_selection_and_release_are_stages(pipeline: str) -> None:
    assert names(make_plan(QUERY, pipeline).plan) == ["selected_keys", "release"]
    assert names(make_plan(replace(QUERY, public_keys=["a"]), pipeline).plan) == ["release"]


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_a_second_round_and_each_choice_are_stages(pipeline: str) -> None:
    twice = replace(OPEN, selection="two_round_weighted_gaussian")
    choices = ["keys_per_user", "sizes_1", "sizes_2", "sizes_3"]
    assert names(make_plan(twice, pipeline).plan) == ["selected_first", "selected_again", *choices, "release"]
    assert names(make_plan(OPEN, pipeline).plan) == ["selected_keys", *choices, "release"]


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_what_ran_is_not_planned_again(pipeline: str) -> None:
    planned: PlannedQuery = make_plan(OPEN, pipeline)
    numbers = iter((5, 2, 24.0, 1.5))
    while isinstance(planned, OpenQuery):
        ran = planned.plan[: planned.plan.index(planned.deciding) + 1]
        after = decide(planned, next(numbers))
        assert all(before is still for before, still in zip(ran, after.plan, strict=False))
        assert names(after.plan) == names(planned.plan)
        planned = after
    assert dict(planned.chosen) == dict(zip(OPEN.choices, (5, 2, 24.0, 1.5), strict=True))
    assert planned.query == OPEN
    assert planned.calibrated.query.choices == ()


def test_every_stage_is_a_noiser_of_the_plan() -> None:
    planned = plan_with(OPEN, {"max_keys_per_user": 5})
    assert noisers(planned.plan) == planned.plan


def test_a_stage_that_ran_as_another_one_is_a_bug() -> None:
    """The same name for two trees, which only planning again what ran could give."""
    *_, release = plan_with(OPEN, {"max_keys_per_user": 5}).plan
    others = make_plan(OPEN).plan[:-1]
    with pytest.raises(PlumeBug, match="two steps of a plan are called"):
        noisers((*others, release))


def test_no_candidate_spends_more_than_was_priced_or_needs_noise_that_cannot_be_drawn() -> None:
    """All of them, a few numbers at a time; test_chosen_limit.py and test_chosen_bounds.py look at whole plans."""
    planned, shares = make_plan(OPEN), _lessened(shares_of(OPEN))
    priced = {cost.what: cost.mu for cost in costs(planned.plan)}
    widest = [float(part.noise.scale) / 64**0.5 for part in planned.calibrated.parts]
    for numbers in candidates():
        calibrated = with_other_numbers(planned.calibrated, with_numbers(OPEN, numbers), shares)
        choices = [
            calibrate_choice(OPEN, what, calibrated, share)
            for what, share in zip(OPEN.choices, shares.choices, strict=True)
        ]
        spent = [*(part.cost for part in calibrated.parts), *(cost for choice in choices for cost in choice.costs)]
        assert {cost.what for cost in spent} == priced.keys() - {"selection"}
        assert all(priced[cost.what] * (1 - 3e-9) < cost.mu <= priced[cost.what] for cost in spent)
        # In proportion to the root of the limit, which is chosen with that in mind, no bound is wider than the example.
        scales = [float(part.noise.scale) / numbers["max_keys_per_user"] ** 0.5 for part in calibrated.parts]
        assert all(scale <= most * (1 + 1e-8) for scale, most in zip(scales, widest, strict=True))


def candidates() -> Iterator[dict[str, float]]:
    """Each candidate of each number at least once."""
    columns = {"max_keys_per_user": CANDIDATES, **BOUNDS}
    for place in range(max(map(len, columns.values()))):
        yield {what: listed[place % len(listed)] for what, listed in columns.items()}


def test_examples_are_candidates() -> None:
    examples = example_numbers(OPEN)
    assert examples.pop("max_keys_per_user") in CANDIDATES
    assert all(number in BOUNDS[what] for what, number in examples.items())


@pytest.mark.parametrize("use", ["preprocess", "parts", "size"])
@pytest.mark.parametrize("measure", OPEN.measures, ids=lambda measure: measure.name)
def test_a_measure_without_its_number_cannot_be_used(measure: object, use: str) -> None:
    with pytest.raises((PlumeBug, plume.errors.RangeError)):
        getattr(measure, use)()
