"""What is taken where a query leaves the way to select keys open: which one, and that whatever ran before still runs."""

import math
from dataclasses import replace
from datetime import date
from random import Random
from typing import Any

import pytest

import plume
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.calibration.default import default_selection, earlier_defaults
from plume.planning import make_plan

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)


def query(limit: int | str = 8, **changes: Any) -> plume.Query:
    settings = {"user": "u", "keys": "k", "measures": [plume.count(3), plume.users()], "budget": BUDGET}
    return plume.Query(**(settings | {"max_keys_per_user": limit} | changes))


def selected(asked: plume.Query) -> str:
    """Name the strategy that a plan really has."""
    return make_plan(asked).calibrated.rounds[0].name


@pytest.mark.parametrize("limit", [2, 3, 63, 64, 1000])
@pytest.mark.parametrize("noise", ["auto", "gaussian"])
def test_from_two_keys_on_weights_are_drawn_from_accounts(limit: int, noise: str) -> None:
    asked = query(limit, noise=noise)
    assert calibrate(asked) == replace(calibrate(replace(asked, selection="pooled_gaussian")), query=asked)
    assert selected(asked) == "pooled Gaussian"


@pytest.mark.parametrize(("limit", "share"), [(2, 0.5), (63, 0.5), (64, 0.75), (1000, 0.75)])
def test_measures_have_half_of_an_account_and_from_64_keys_on_three_quarters(limit: int, share: float) -> None:
    account = calibrate(query(limit)).rounds[0].account
    assert account is not None
    assert float(sum(charge.share for _, charge in account.charges)) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(("limit", "counted"), [(2, 64), (64, 64), (65, 65), (1000, 1000)])
def test_selection_counts_64_keys_of_each_user_or_as_many_as_the_limit(limit: int, counted: int) -> None:
    assert calibrate(query(limit)).rounds[0].max_keys_per_user == counted


PAPER: dict[str, Any] = {
    "user": "u",
    "keys": "k",
    "measures": [plume.users()],
    "max_keys_per_user": 8,
    "budget": BUDGET,
}
STAY: dict[str, tuple[plume.Query, str]] = {
    "one key": (query(1), "truncated geometric"),
    "one key, users alone": (query(1, measures=[plume.users()]), "truncated geometric"),
    "one key, Laplace": (query(1, measures=[plume.users()], noise="laplace"), "truncated geometric"),
    "one key, Gaussian": (query(1, measures=[plume.users()], noise="gaussian"), "weighted Gaussian"),
    "one key, added up": (query(1, measures=[plume.users()], composition="basic"), "truncated geometric"),
    "two keys, Laplace": (query(2, noise="laplace"), "truncated geometric"),
    "many keys, Laplace": (query(8, noise="laplace"), "weighted Gaussian"),
    "many keys, added up": (query(8, composition="basic"), "truncated geometric"),
    "the paper": (plume.Query.paper(**PAPER), "Laplace threshold"),
    "an open limit": (query("auto"), "weighted Gaussian"),
    "an open bound": (query(8, measures=[plume.sum("v", 0, "auto")]), "weighted Gaussian"),
    "a name": (query(8, selection="gaussian_threshold"), "Gaussian threshold"),
}


@pytest.mark.parametrize("name", STAY)
def test_what_accounts_cannot_serve_stays_as_it_was(name: str) -> None:
    asked, expected = STAY[name]
    assert default_selection(asked) is None
    assert list(earlier_defaults(asked)) == []
    assert selected(asked) == expected


@pytest.mark.parametrize("limit", [1, 2, 64])
@pytest.mark.parametrize("keys", ["public", "none"])
def test_keys_that_are_known_are_not_selected(limit: int, keys: str) -> None:
    asked = query(limit, public_keys=["a"]) if keys == "public" else query(limit, keys=[])
    assert default_selection(asked) is None
    assert calibrate(asked).rounds == ()


@pytest.mark.parametrize("share", [1e-6, 1e-3, 9e-4])
def test_shares_that_leave_accounts_too_little_are_served_by_weights_of_their_own(share: float) -> None:
    asked = query(8, shares={"selection": share})
    with pytest.raises(plume.errors.RangeError, match="a larger share"):
        calibrate(replace(asked, selection="pooled_gaussian"))
    assert selected(asked) == "weighted Gaussian"


MEASURES = [
    plume.users(),
    plume.users(where="v > 3", name="some"),
    plume.count(1, name="ones"),
    plume.count(8),
    plume.sum("v", 0, 60),
    plume.sum("w", -1e6, 1e6, name="signed"),
    plume.mean("v", 0, 60),
    plume.variance("v", -1, 1),
    plume.quantiles("v", [0.5, 0.9], 0, 60),
    plume.histogram("v", [0, 10, 60]),
    plume.vector_sum(["v", "w"], norm=3),
    plume.mean("day", date(2020, 1, 1), date(2026, 1, 1)),
]
EPSILONS = (1e-9, 1e-5, 1e-3, 0.1, 1, 10, 1000)
DELTAS = (1e-300, 1e-30, 1e-9, 1e-5, 1e-2, 0.9)


def random_query(random: Random) -> plume.Query:
    measures = random.sample(MEASURES, random.choice((1, 2, 5)))
    weights = {"selection": random.choice((1e-6, 1e-3, 1, 1e6)), measures[0].name: random.choice((1e-6, 1, 1e6))}
    return query(
        random.choice((1, 2, 3, 16, 64, 65, 500)),
        measures=measures,
        budget=plume.Budget(random.choice(EPSILONS), random.choice(DELTAS)),
        min_users=random.choice((1, 5, 1000)),
        shares={} if random.random() < 0.5 else dict([random.choice(list(weights.items()))]),
        noise=random.choice(("auto", "gaussian")),
    )


def planned_or_refused(asked: plume.Query, pipeline: str) -> CalibratedQuery | str:
    try:
        return make_plan(asked, pipeline).calibrated
    except (plume.errors.RangeError, plume.errors.BudgetExceeded) as refusal:
        return str(refusal)


@pytest.mark.parametrize("number", [30, pytest.param(150, marks=pytest.mark.engines)])
def test_whatever_could_be_asked_before_can_be_asked(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From budgets that leave hardly anything to any that hide nothing, and with the strangest shares."""
    random, ran = Random(23), 0  # noqa: S311 - the same ones each time
    for _ in range(number):
        asked, pipeline = random_query(random), random.choice(("plume", "naive", "runtime_optimized"))
        today = planned_or_refused(asked, pipeline)
        with monkeypatch.context() as then:
            then.setattr("plume.calibration.calibrated_query.default_selection", lambda _: None)
            before = planned_or_refused(asked, pipeline)
        assert isinstance(today, CalibratedQuery) or isinstance(before, str), (asked, before)
        ran += isinstance(today, CalibratedQuery)
    assert ran > number / 2
