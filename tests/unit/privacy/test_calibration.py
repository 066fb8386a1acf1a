import math
from fractions import Fraction

import pytest
from hypothesis import given, settings

import plume
from plume.errors import BudgetError, BudgetExceeded, RangeError
from plume.pipelines.pipeline import PIPELINES, make_plan
from plume.plan.analysis import costs
from plume.privacy.budget import Budget
from plume.privacy.calibration import laplace_for, share
from plume.privacy.cost import Cost, laplace_cost, refuse_overspending, total
from strategies import Asked, asked

BUDGET = Budget(epsilon=math.log(3), delta=1e-5)


def test_the_paper_gives_half_of_epsilon_and_all_of_delta_to_selection() -> None:
    shares = share(BUDGET, measures=1, selects_keys=True)
    assert shares.selection_epsilon == shares.measure_epsilon == BUDGET.exact_epsilon / 2
    assert shares.selection_delta == BUDGET.delta


def test_measures_share_their_half_equally() -> None:
    assert share(BUDGET, measures=3, selects_keys=True).measure_epsilon == BUDGET.exact_epsilon / 6


def test_public_keys_leave_everything_to_the_measures() -> None:
    shares = share(Budget(epsilon=1.0), measures=2, selects_keys=False)
    assert (shares.selection_epsilon, shares.measure_epsilon) == (0, Fraction(1, 2))


def test_selecting_keys_needs_delta() -> None:
    with pytest.raises(BudgetError, match=r"delta is 0; choosing keys .* needs a delta above 0"):
        share(Budget(epsilon=1.0), measures=1, selects_keys=True)


def test_the_papers_noise_for_64_keys_is_the_golden_one() -> None:
    noise = laplace_for(1, max_keys_per_user=64, epsilon=BUDGET.exact_epsilon / 2)
    assert float(noise.scale) == pytest.approx(116.5106, abs=1e-4)
    assert noise.standard_deviation == pytest.approx(164.77, abs=0.01)


def test_noise_too_wide_to_draw_is_refused_before_any_data() -> None:
    with pytest.raises(RangeError, match="raise epsilon or lower max_keys_per_user"):
        laplace_for(2**21, max_keys_per_user=10**6, epsilon=Fraction(1, 100))


@pytest.mark.parametrize("pipeline", PIPELINES)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(case=asked())
def test_every_plan_spends_its_epsilon_exactly_and_at_most_its_delta(pipeline: str, case: Asked) -> None:
    _, plan = make_plan(case.query, pipeline)
    spent = total(costs(plan))
    assert spent.epsilon == case.query.budget.exact_epsilon
    assert 0 < spent.delta <= case.query.budget.delta


@settings(max_examples=50, deadline=None, derandomize=True)
@given(case=asked())
def test_costs_follow_from_the_noise_that_is_drawn(case: Asked) -> None:
    asked_for, plan = make_plan(case.query)
    for measure, cost in zip(asked_for.measures, costs(plan)[1:], strict=True):
        user_changes = case.query.max_keys_per_user * measure.mechanism.sensitivity()
        assert cost.epsilon == user_changes / measure.noise.scale


def test_a_plan_over_budget_is_refused_with_its_parts() -> None:
    listed = [Cost("selection", Fraction(11, 20), 1e-5), Cost("searches", Fraction(13, 20))]
    with pytest.raises(BudgetExceeded, match=r"spends epsilon = 1.2 .* of 1.1 .*: selection 0.55, searches 0.65"):
        refuse_overspending(listed, Budget(epsilon=1.1, delta=1e-5))


def test_a_delta_over_budget_is_refused() -> None:
    with pytest.raises(BudgetExceeded, match="delta = 2e-05"):
        refuse_overspending([Cost("selection", Fraction(1), 2e-5)], Budget(epsilon=1.1, delta=1e-5))


def test_laplace_noise_costs_its_sensitivity_over_its_scale() -> None:
    cost = laplace_cost("count", scale=Fraction(30), sensitivity=3, max_keys_per_user=5)
    assert cost.epsilon == Fraction(1, 2)


def test_paper_and_default_agree_while_there_is_one_configuration() -> None:
    settings_given = {
        "user": "u",
        "keys": "k",
        "measures": [plume.users()],
        "max_keys_per_user": 2,
        "budget": Budget(epsilon=1.0, delta=1e-5),
    }
    assert plume.Query.paper(**settings_given) == plume.Query(**settings_given)
