import math
from dataclasses import replace
from fractions import Fraction

import pytest

import plume
from plume.errors import BudgetError
from plume.ledger.composition import total
from plume.ledger.price import DELTAS, EPSILONS, DatasetBudget, dataset_budget, price_of
from plume.ledger.publishing import price_for
from plume.privacy.cost import EpsilonCost, Spent


def charged(epsilon: float) -> int:
    return price_of([EpsilonCost("x", Fraction(epsilon))], Spent(epsilon, 0), plume.Budget(epsilon)).epsilon


@pytest.mark.parametrize(
    ("epsilon", "units"), [(0.1, 10**8), (1.1, 11 * 10**8), (1e-9, 1), (1e-12, 1), (1 / 3, 333333334)]
)
def test_a_cost_is_rounded_up(epsilon: float, units: int) -> None:
    assert charged(epsilon) == units


@pytest.mark.parametrize(
    ("budget", "limit"), [((1 / 3, 1e-5), (333333333, 10**10)), ((1.1, 1e-15 / 3), (11 * 10**8, 0))]
)
def test_a_limit_is_rounded_down(budget: tuple[float, float], limit: tuple[int, int]) -> None:
    assert dataset_budget(plume.Budget(*budget)) == DatasetBudget(*limit)


@pytest.mark.parametrize(("epsilon", "match"), [(1e-10, "must be at least 1e-9"), (1e7, "may be 1,000,000 at most")])
def test_a_limit_that_cannot_be_counted_is_refused(epsilon: float, match: str) -> None:
    with pytest.raises(BudgetError, match=match):
        dataset_budget(plume.Budget(epsilon))


def test_ten_tenths_are_one() -> None:
    assert 10 * charged(0.1) == dataset_budget(plume.Budget(1)).epsilon


def test_a_million_of_the_smallest_spends_stop_exactly_at_the_limit() -> None:
    limit, unit = (
        dataset_budget(plume.Budget(1e-3)),
        price_of([EpsilonCost("x", Fraction(1e-9))], Spent(1e-9, 0), plume.Budget(1e-9)),
    )
    assert total([unit] * 10**6, limit).within(limit)
    assert not total([unit] * (10**6 + 1), limit).within(limit)


@pytest.mark.parametrize(
    "settings", [{}, {"selection": "laplace_threshold"}, {"max_keys_per_user": 1}, {"min_users": 5}]
)
def test_a_query_is_charged_no_more_than_its_budget(settings: dict[str, object]) -> None:
    asked = {"user": "u", "keys": "k", "measures": [plume.count(2), plume.users()], "max_keys_per_user": 8}
    query = plume.Query(**asked | settings, budget=plume.Budget(1.1, 1e-5))
    charge = price_for(plume.explain(query))
    assert charge.epsilon <= 11 * 10**8
    assert 0 < charge.delta <= 10**10
    assert charge.pure <= charge.epsilon
    assert charge.passing <= charge.delta


FEW = plume.Query(user="u", keys="k", measures=plume.users(), max_keys_per_user=4, budget=plume.Budget(1, 1e-6))


def test_accounts_are_charged_whole_and_measures_not_once_more() -> None:
    explanation = plume.explain(FEW)
    whole, *_ = explanation.record()["spent"]
    assert price_for(explanation).mu == math.ceil(whole["mu"] * EPSILONS)


def test_parts_of_a_gaussian_query_are_those_it_draws() -> None:
    explanation = plume.explain(replace(FEW, selection="weighted_gaussian"))
    mu = math.sqrt(sum(part["mu"] ** 2 for part in explanation.record()["spent"]))
    charge = price_for(explanation)
    assert charge.pure == 0
    assert charge.mu == math.ceil(mu * EPSILONS)
    assert charge.passing == math.ceil(explanation.record()["spent"][0]["delta"] * DELTAS)
