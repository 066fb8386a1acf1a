import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import plume
from entropy import SeededEntropy
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.errors import BoundError, BudgetError, MeasureError, UsageError
from plume.tuning.need import Need

TRIALS = 400_000
SUM = plume.sum("seconds", 0, 60)
# Settings of the query, and what is asked: measures of all kinds, all strategies, both noises, all ways to compose.
SETTINGS = {
    "weighted Gaussian, by its noise": ({"max_keys_per_user": 16}, {"users": 500, "error": 0.05}),
    "weighted Gaussian, by selection": ({"max_keys_per_user": 16}, {"users": 60, "error": 1.0}),
    "one key, truncated geometric": ({"max_keys_per_user": 1}, {"users": 100, "error": 0.05}),
    "few users, by selection": ({"max_keys_per_user": 1}, {"users": 20, "error": math.inf}),
    "two measures": (
        {"measures": [plume.users(), SUM], "max_keys_per_user": 3},
        {"users": 500, "error": 0.05, "totals": {"seconds_sum": 9_000}},
    ),
    "absolute errors": (
        {"measures": [plume.count(max_per_key=3), SUM]},
        {"users": 300, "absolute": {"count": 40, "seconds_sum": 700.0}, "chance": 0.9},
    ),
    "buckets": (
        {"measures": plume.histogram("seconds", [0, 1, 2, 3])},
        {"users": 300, "absolute": {"seconds_histogram": 12}},
    ),
    "public keys without delta": (
        {"public_keys": ["a"], "budget": plume.Budget(1.0)},
        {"users": 100, "error": 0.05, "chance": 0.9},
    ),
    "public keys, Gaussian": ({"public_keys": ["a"], "noise": "gaussian"}, {"users": 100, "error": 0.1}),
    "Laplace threshold": (
        {"selection": "laplace_threshold", "noise": "laplace", "composition": "basic"},
        {"users": 200, "error": 0.1, "chance": 0.8},
    ),
    "users in fewer keys, min_users": (
        {"max_keys_per_user": 16, "min_users": 30},
        {"users": 60, "error": 1.0, "keys_of_user": 4},
    ),
    "two rounds": ({"selection": "two_round_weighted_gaussian"}, {"users": 50, "error": 0.5}),
    "Gaussian threshold": ({"selection": "gaussian_threshold"}, {"users": 50, "error": 0.5}),
}
COMPOSED = ({"selection": "truncated_geometric", "noise": "gaussian"}, {"users": 50, "error": 0.5})


def query(**settings) -> plume.Query:
    asked = {
        "user": "person",
        "keys": "key",
        "measures": plume.users(),
        "max_keys_per_user": 4,
        "budget": plume.Budget(epsilon=1.0, delta=1e-5),
    }
    return plume.Query(**asked | settings)


def times_as_asked(needed: Need, factor: float) -> int:
    """How many of many keys are shown with all numbers as near as asked, with this many times the epsilon, by what is really drawn."""
    budget = plume.Budget(needed.epsilon * factor, needed.delta)
    calibrated, entropy = calibrate(replace(needed.query, budget=budget)), SeededEntropy(1)
    right = np.zeros(TRIALS, bool) if calibrated.rounds else np.ones(TRIALS, bool)
    for strategy in calibrated.rounds:
        weight = max(needed.users - strategy.left_out, 0) * strategy.weight_of(needed.keys_of_user)
        right |= strategy.keep(np.full(TRIALS, weight), entropy)
    for number in needed.numbers:
        for error in released_errors(calibrated, number.measure, entropy):
            right &= error <= number.error
    return int(right.sum())


def released_errors(calibrated: CalibratedQuery, name: str, entropy: SeededEntropy) -> list[np.ndarray]:
    """How far off numbers are released, column by column: noise in fine steps, rounded where whole numbers are released."""
    (measure,) = (one for one in calibrated.measures if one.mechanism.name == name)
    (part,) = calibrated.parts_of(measure)
    drawn = [part.noise.sample(TRIALS, entropy) * float(part.unit) for _ in measure.mechanism.columns]
    return [np.abs(np.floor(noise + 0.5) if part.rounded else noise) for noise in drawn]


def agrees_with_simulation(settings: dict, asked: dict) -> bool:
    """Return whether 2 % more is clearly enough and 2 % less is clearly not.

    Each is a binomial test at 1e-4, 3.7 standard deviations, and the truth is 7 or more away: another seed would raise a false alarm with
    a probability below 6e-4.
    """
    needed = plume.need(query(**settings), **asked)
    tests = ((1.02, "greater"), (1 / 1.02, "less"))
    return all(
        stats.binomtest(times_as_asked(needed, factor), TRIALS, needed.asked_chance, alternative=side).pvalue < 1e-4
        for factor, side in tests
    )


@pytest.mark.parametrize("setting", ["weighted Gaussian, by its noise", "few users, by selection", "two measures"])
def test_it_agrees_with_simulation_within_two_percent_of_epsilon(setting: str) -> None:
    assert agrees_with_simulation(*SETTINGS[setting])


@pytest.mark.engines
@pytest.mark.parametrize("setting", SETTINGS)
def test_it_agrees_with_simulation_in_more_settings(setting: str) -> None:
    assert agrees_with_simulation(*SETTINGS[setting])


@pytest.mark.engines
def test_it_agrees_with_simulation_where_losses_are_composed() -> None:
    assert agrees_with_simulation(*COMPOSED)


def test_a_smaller_epsilon_is_found_below_one_that_is_not_enough() -> None:
    """Gaussian noise is near enough at 0.51; from 0.553 on Laplace noise is the default, whose tails are heavier up to 0.85."""
    asked = query(max_keys_per_user=8, public_keys=["a"])
    needed = plume.need(asked, users=640, error=0.1, chance=0.999)
    assert 0.5 < needed.epsilon < 0.54
    assert needed.chance >= 0.999
    between = calibrate(replace(asked, budget=plume.Budget(0.6, 1e-5)))
    assert between.parts[0].chance_within(Fraction(64)) < 0.999


def test_the_query_has_the_budget_and_can_be_run() -> None:
    needed = plume.need(query(), users=500, error=0.05)
    assert needed.query == replace(query(), budget=plume.Budget(needed.epsilon, 1e-5))
    ((users, chance),) = plume.expect(needed.query, users=[500]).prospects[0].chances
    assert (users, chance) == (500, needed.chance_shown)


def test_the_epsilon_of_the_query_does_not_matter() -> None:
    others = [plume.need(query(budget=plume.Budget(epsilon, 1e-5)), users=500, error=0.05) for epsilon in (0.1, 9.0)]
    assert others[0].epsilon == others[1].epsilon


def test_an_open_limit_becomes_the_keys_of_a_user() -> None:
    needed = plume.need(query(max_keys_per_user="auto"), users=500, error=0.05, keys_of_user=9)
    assert needed.max_keys_per_user == 9
    assert needed.epsilon == plume.need(query(max_keys_per_user=9), users=500, error=0.05).epsilon


def test_an_error_is_a_decimal_as_it_is_written() -> None:
    assert plume.need(query(), users=100, error=0.29).numbers[0].error == 29


def test_measures_of_one_part_are_off_together() -> None:
    twice = query(measures=[plume.users(name="a"), plume.users(name="b")], public_keys=["k"])
    needed = plume.need(twice, users=500, error=0.05)
    assert needed.chance == needed.numbers[0].chance == needed.numbers[1].chance


def test_a_measure_may_be_left_aside() -> None:
    both = query(measures=[plume.users(), plume.mean("seconds", 0, 60)])
    needed = plume.need(both, users=500, error=0.05, absolute={"seconds_mean": math.inf})
    assert [number.measure for number in needed.numbers] == ["users"]
    assert needed.epsilon > plume.need(query(), users=500, error=0.05).epsilon


def test_it_is_shown_as_text_rows_json_and_in_notebooks() -> None:
    needed = plume.need(query(measures=plume.users(name="<b>")), users=500, error=0.05)
    assert f"epsilon            {needed.epsilon:g}" in str(needed) == repr(needed)
    assert json.loads(needed.to_json()) == needed.record()
    assert needed.to_arrow().to_pylist()[0]["epsilon"] == needed.record()["epsilon"] == needed.epsilon
    assert "&lt;b&gt;" in needed._repr_html_()
    assert "<b>" not in needed._repr_html_().partition("</p>")[2]


@pytest.mark.parametrize(
    ("settings", "asked", "error", "sentence"),
    [
        ({}, {"users": 0, "error": 0.1}, BoundError, "users holds 0; it must be a whole number from 1"),
        ({}, {"users": 5.5, "error": 0.1}, BoundError, "users holds 5.5"),
        ({}, {"users": 50, "error": 0.1, "keys_of_user": 0}, BoundError, "keys_of_user holds 0"),
        ({}, {"users": 50, "error": 0}, BoundError, "error is 0; it must be a number above 0"),
        ({}, {"users": 50, "error": math.nan}, BoundError, "error is nan"),
        ({}, {"users": 50, "error": "5 %"}, BoundError, "error is '5 %'"),
        ({}, {"users": 50, "error": 0.1, "chance": 1}, BudgetError, "chance is 1; it must be above 0 and at most"),
        ({}, {"users": 50}, MeasureError, "no error is given for users; give error=, or absolute="),
        ({}, {"users": 50, "absolute": {"x": 1}}, MeasureError, "absolute names 'x'; the measures are users."),
        ({}, {"users": 50, "absolute": 3}, MeasureError, "absolute is 3; it must be a mapping"),
        ({}, {"users": 50, "error": 0.1, "totals": {"users": math.inf}}, BoundError, "totals of users is inf"),
        ({}, {"users": 50, "absolute": {"users": 1}, "totals": {"users": 9}}, MeasureError, "both name 'users'"),
        ({"measures": SUM}, {"users": 50, "error": 0.1}, MeasureError, "in its own unit, or totals="),
        ({"measures": plume.median("x", 0, 9)}, {"users": 50, "error": 0.1}, MeasureError, "depends on values"),
        ({"public_keys": ["a"]}, {"users": 50, "error": math.inf}, MeasureError, "every epsilon is enough"),
        ({"min_users": 60}, {"users": 50, "error": 0.1}, BoundError, "ask for at least 60 users, or lower min_users"),
        ({"max_keys_per_user": 1}, {"users": 1, "error": 1}, BudgetError, "no epsilon up to 100 is enough"),
        ({"max_keys_per_user": "auto"}, {"users": 50, "error": 0.1}, BoundError, "give keys_of_user"),
        ({"measures": plume.count("auto")}, {"users": 50, "error": 0.1}, BoundError, "max_per_key is 'auto'"),
    ],
)
def test_what_cannot_be_asked_is_refused(settings: dict, asked: dict, error: type, sentence: str) -> None:
    with pytest.raises(error, match=r".") as refusal:
        plume.need(query(**settings), **asked)
    assert sentence in str(refusal.value)


def test_what_is_not_a_query_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the query is a str; it must be a plume\.Query\."):
        plume.need("query", users=50, error=0.1)
