import math
from fractions import Fraction

import pytest

import plume
from plume.calibration.calibrated_query import calibrate
from plume.calibration.shares import share
from plume.errors import BudgetError, BudgetExceeded, PlumeBug, RangeError, UsageError
from plume.noise.gaussian import RoundedGaussian
from plume.noise.rounded_laplace import RoundedLaplace
from plume.pipelines.pipeline import PIPELINES
from plume.plan.analysis import costs
from plume.planning import make_plan
from plume.privacy.budget import Budget
from plume.privacy.cost import EpsilonCost, laplace_cost, refuse_overspending, shares_spent, spend
from plume.privacy.losses import Shape
from plume.privacy.scales import laplace_for
from strategies import Asked, random_questions

BUDGET = Budget(epsilon=math.log(3), delta=1e-5)


def test_half_of_the_budget_chooses_keys_and_the_measures_share_the_rest() -> None:
    shares = share({}, ("a", "b", "c"), selects_keys=True)
    assert (shares.selection, shares.measures) == (Fraction(1, 2), (Fraction(1, 6),) * 3)


def test_public_keys_leave_everything_to_the_measures() -> None:
    shares = share({}, ("a", "b"), selects_keys=False)
    assert (shares.selection, shares.measures) == (0, (Fraction(1, 2), Fraction(1, 2)))


def test_callers_set_the_shares_they_care_about() -> None:
    shares = share({"a": Fraction(2)}, ("a", "b"), selects_keys=True)
    assert (shares.selection, shares.measures) == (Fraction(1, 2), (Fraction(1, 3), Fraction(1, 6)))
    shares = share({"selection": Fraction(1)}, ("a", "b", "c"), selects_keys=True)
    assert (shares.selection, shares.measures) == (Fraction(1, 4), (Fraction(1, 4),) * 3)


@pytest.mark.parametrize("limit", [1, 64])
def test_shares_that_were_set_are_what_parts_spend(limit: int) -> None:
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.users(), plume.count(max_per_key=2)],
        max_keys_per_user=limit,
        budget=BUDGET,
        shares={"selection": 1, "users": 2, "count": 5},
    )
    spent = shares_spent(costs(make_plan(query).plan))
    assert spent == pytest.approx({"selection": 1 / 8, "users": 1 / 4, "count": 5 / 8}, rel=1e-5)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"likes": 1}, "shares names 'likes'; the parts that spend are selection, users"),
        ({"users": 0}, "the share of users is 0; it must be a number above 0"),
        ({"users": math.inf}, "the share of users is inf"),
        ({"users": 5e-324}, "the share of users is 5e-324"),
        ({"users": 10**400}, "the share of users is 1000"),
        ({"users": Fraction(1, 10**400)}, "the share of users is Fraction"),
        ({"selection": True}, "the share of selection is True"),
        (["users"], "shares is .*; it must be a mapping"),
    ],
)
def test_shares_of_nothing_are_refused(shares: object, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        plume.Query(user="u", keys="k", measures=[plume.users()], max_keys_per_user=1, budget=BUDGET, shares=shares)


def test_selecting_keys_needs_delta() -> None:
    with pytest.raises(BudgetError, match=r"delta is 0; selecting keys .* needs a delta above 0"):
        plume.Query(user="u", keys="k", measures=[plume.users()], max_keys_per_user=1, budget=plume.Budget(epsilon=1.0))


def test_the_papers_noise_for_64_keys_is_the_golden_one() -> None:
    noise = laplace_for(1, max_keys_per_user=64, epsilon=BUDGET.exact_epsilon / 2)
    assert float(noise.scale) == pytest.approx(116.5106, abs=1e-4)
    assert noise.standard_deviation == pytest.approx(164.77, abs=0.01)


def test_noise_too_wide_to_draw_is_refused_before_any_data() -> None:
    with pytest.raises(RangeError, match="raise epsilon or lower max_keys_per_user"):
        laplace_for(2**21, max_keys_per_user=10**6, epsilon=Fraction(1, 100))


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("case", random_questions(50))
def test_every_plan_spends_at_most_its_budget_and_nearly_all_of_it(pipeline: str, case: Asked) -> None:
    plan = make_plan(case.query, pipeline).plan
    spent = spend(costs(plan), case.query.budget)
    assert spent.epsilon == case.query.budget.epsilon
    assert 0 < spent.delta <= case.query.budget.delta


@pytest.mark.parametrize("case", random_questions(50))
def test_costs_follow_from_the_noise_that_is_drawn(case: Asked) -> None:
    planned = make_plan(case.query)
    limit = case.query.max_keys_per_user
    for part, cost in zip(planned.calibrated.parts, costs(planned.plan)[1:], strict=True):
        scale = part.noise.scale / (1 << part.bits)
        if not isinstance(part.noise, RoundedGaussian):
            assert cost.epsilon == limit * part.part.absolute / scale
            assert cost.coordinates == limit
            # Of several numbers in one key only their epsilon together is known.
            alone = isinstance(part.noise, RoundedLaplace) and not part.part.spread
            assert (cost.shape is Shape.LAPLACE) == alone
        else:
            norm = math.sqrt(limit * part.part.squared)
            assert cost.mu == pytest.approx(norm / float(scale), rel=1e-12)


SETTINGS = {"user": "user_id", "keys": "recipe", "budget": BUDGET}


def query(limit: int, *, measures: int = 1, **changes) -> plume.Query:
    listed = [plume.count(2 + number, name=f"m{number}") for number in range(measures)]
    return plume.Query(**(SETTINGS | {"measures": listed, "max_keys_per_user": limit} | changes))


@pytest.mark.parametrize("selection", ["laplace_threshold", "truncated_geometric"])
@pytest.mark.parametrize("limit", [1, 2, 3, 64])
def test_basic_plans_add_up_to_the_budget_exactly(selection: str, limit: int) -> None:
    plan = make_plan(query(limit, measures=3, selection=selection, composition="basic")).plan
    assert sum(cost.epsilon for cost in costs(plan)) == BUDGET.exact_epsilon


def test_with_public_keys_the_smaller_error_decides() -> None:
    kinds = {limit: calibrate(query(limit, public_keys=["a"])).parts[0].noise.kind for limit in (1, 64)}
    assert kinds == {1: "discrete Laplace", 64: "rounded Gaussian"}
    without_delta = query(64, public_keys=["a"], budget=Budget(epsilon=1.0))
    assert calibrate(without_delta).parts[0].noise.kind == "discrete Laplace"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection": "best"}, "selection is 'best'; it must be one of auto, laplace_threshold"),
        ({"noise": "uniform"}, "noise is 'uniform'; it must be one of auto, laplace, gaussian"),
        ({"composition": "loose"}, "composition is 'loose'; it must be one of tight, basic"),
        ({"composition": "basic", "noise": "gaussian"}, "composition is 'basic', which adds epsilons up, and Gaussian"),
        (
            {"composition": "basic", "selection": "weighted_gaussian"},
            "take Laplace noise with selection = 'laplace_thre",
        ),
        ({"noise": "gaussian", "public_keys": ["a"], "budget": Budget(epsilon=1.0)}, "Gaussian noise needs a delta"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        query(8, **changes)


@pytest.mark.parametrize("selection", ["laplace_threshold", "truncated_geometric"])
def test_few_keys_per_user_stay_with_added_epsilons_and_many_do_not(selection: str) -> None:
    kinds = [calibrate(query(limit, selection=selection, noise="laplace")).parts[0].noise.kind for limit in (1, 2, 8)]
    assert kinds == ["discrete Laplace", "discrete Laplace", "rounded Laplace"]


def test_tight_composition_halves_the_papers_noise_at_64_keys_and_more() -> None:
    tight = calibrate(query(64, selection="laplace_threshold", noise="laplace"))
    basic = calibrate(query(64, selection="laplace_threshold", noise="laplace", composition="basic"))
    assert tight.parts[0].standard_deviation < 0.35 * basic.parts[0].standard_deviation
    assert tight.rounds[0].threshold < 0.4 * basic.rounds[0].threshold


@pytest.mark.parametrize(
    "selection",
    [
        "laplace_threshold",
        "truncated_geometric",
        "gaussian_threshold",
        "weighted_gaussian",
        "two_round_weighted_gaussian",
    ],
)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_min_users_is_kept_in_every_combination(selection: str, noise: str) -> None:
    plain = calibrate(query(8, selection=selection, noise=noise)).rounds[0]
    shifted = calibrate(query(8, selection=selection, noise=noise, min_users=20)).rounds[0]
    assert shifted.users_for_even_chance == plain.users_for_even_chance + 19
    assert shifted.cost.shown_alone == pytest.approx(plain.cost.shown_alone, rel=1e-9)


def test_shares_that_were_set_are_what_parts_of_different_kinds_spend() -> None:
    asked_for = query(64, measures=2, noise="laplace", shares={"selection": 1, "m0": 2, "m1": 5})
    spent = shares_spent(costs(make_plan(asked_for).plan))
    assert spent == pytest.approx({"selection": 1 / 8, "m0": 1 / 4, "m1": 5 / 8}, rel=1e-5)


def test_the_paper_keeps_its_configuration() -> None:
    paper = calibrate(plume.Query.paper(**(SETTINGS | {"measures": [plume.count(1)], "max_keys_per_user": 64})))
    assert (type(paper.rounds[0]).__name__, paper.rounds[0].threshold) == ("LaplaceThreshold", 1747)
    assert float(paper.parts[0].noise.scale) == pytest.approx(116.5106, abs=1e-4)


def test_a_plan_over_budget_is_refused_with_its_parts() -> None:
    listed = [EpsilonCost("selection", Fraction(11, 20), delta=1e-5), EpsilonCost("searches", Fraction(13, 20))]
    with pytest.raises(BudgetExceeded, match=r"spends epsilon = 1.2 .* of 1.1 .*: selection 0.55, searches 0.65"):
        refuse_overspending(listed, Budget(epsilon=1.1, delta=1e-5))


def test_a_delta_over_budget_is_refused() -> None:
    with pytest.raises(BudgetExceeded, match="delta = 2e-05"):
        refuse_overspending([EpsilonCost("selection", Fraction(1), delta=2e-5)], Budget(epsilon=1.1, delta=1e-5))


def test_laplace_noise_costs_its_sensitivity_over_its_scale() -> None:
    cost = laplace_cost("count", scale=Fraction(30), sensitivity=3, max_keys_per_user=5)
    assert cost.epsilon == Fraction(1, 2)


def test_a_plan_that_selects_twice_has_no_price() -> None:
    cost = calibrate(query(8, selection="weighted_gaussian")).rounds[0].cost
    with pytest.raises(PlumeBug, match="selects keys more than once"):
        spend([cost, cost], BUDGET)


@pytest.mark.parametrize("limit", [3, 64, 512, 10**5])
def test_large_budgets_and_limits_are_calibrated_without_a_warning(limit: int) -> None:
    for epsilon in (0.01, 1.0, 1e4):
        budget = Budget(epsilon=epsilon, delta=1e-6)
        plan = make_plan(query(limit, budget=budget)).plan
        assert spend(costs(plan), budget).delta <= budget.delta
