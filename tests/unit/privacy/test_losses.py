import math
import subprocess
import sys
from fractions import Fraction

import pytest
from dp_accounting.pld import accountant, common
from dp_accounting.pld import privacy_loss_distribution as pld

from plume.errors import RangeError
from plume.privacy.budget import Budget
from plume.privacy.cost import GaussianCost, gaussian_cost, losses, refuse_overspending, rounded_laplace_cost, spend
from plume.privacy.gaussian import delta_of
from plume.privacy.losses import (
    Coordinates,
    Losses,
    Shape,
    composed_delta,
    composed_epsilon,
    estimated_delta,
    losses_of,
    noise_within,
)

EPSILON = math.log(3)


def laplace(each: float, times: int, mu: float = 0.0) -> Losses:
    return Losses(mu, (Coordinates(each, times, Shape.LAPLACE),))


def coins(each: float, times: int, mu: float = 0.0) -> Losses:
    return Losses(mu, (Coordinates(each, times, Shape.ANY),))


@pytest.mark.parametrize("mu", [0.1, 0.29, 1.0])
def test_gaussian_losses_are_composed_to_what_the_formula_says(mu: float) -> None:
    formula = float(delta_of(mu, EPSILON))
    assert formula <= composed_delta(Losses(mu, ()), EPSILON) <= formula * (1 + 1e-5) + 2e-13


@pytest.mark.parametrize("times", [1, 3, 64])
def test_laplace_losses_are_composed_to_what_dp_accounting_calibrates_to(times: int) -> None:
    parameters = common.DifferentialPrivacyParameters(EPSILON / 2, 5e-6)
    scale = accountant.get_smallest_laplace_noise(parameters, num_queries=times, sensitivity=1.0)
    assert composed_epsilon(laplace(1 / scale, times), 5e-6, EPSILON / 2) == pytest.approx(EPSILON / 2, rel=1e-3)


def test_the_golden_scale_of_64_laplace_coordinates() -> None:
    found = noise_within(lambda size: laplace(1 / size, 64), epsilon=EPSILON / 2, delta=5e-6)
    assert found == pytest.approx(52.926, rel=3e-4)


@pytest.mark.parametrize("times", [1, 2, 8, 64])
def test_coins_in_one_piece_are_no_worse_than_one_by_one(times: int) -> None:
    each = 2**-7  # a multiple of a grid of 2**-14 steps, on which dp-accounting rounds nothing
    one = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(each, 0.0), 2**-14)
    exact = one.self_compose(times).get_delta_for_epsilon(each)
    assert exact - 1e-13 <= composed_delta(coins(each, times), each) <= exact * 1.02 + 3e-13


@pytest.mark.parametrize("shape", Shape)
def test_what_adds_up_to_epsilon_needs_no_delta(shape: Shape) -> None:
    together = Losses(0.0, (Coordinates(0.25, 4, shape),))
    assert composed_delta(together, 1.0) < 1e-12
    assert composed_delta(together, 0.9) > 1e-4


def test_unknown_shapes_reveal_more_than_laplace_noise() -> None:
    assert composed_delta(coins(0.1, 20), 1.0) > composed_delta(laplace(0.1, 20), 1.0)


@pytest.mark.parametrize("mu", [0.0, 0.2])
@pytest.mark.parametrize("times", [1, 4, 64, 1000])
@pytest.mark.parametrize("make", [laplace, coins])
def test_an_estimate_is_hardly_below_what_is_composed(make: object, times: int, mu: float) -> None:
    together = make(0.6 / math.sqrt(times), times, mu)
    composed = composed_delta(together, 0.5)
    assert 0.85 * composed <= estimated_delta(together, 0.5) <= composed * (1 + 1e-3)


def test_alike_coordinates_are_gathered() -> None:
    one = Coordinates(0.1, 3, Shape.LAPLACE)
    other = Coordinates(0.1, 3, Shape.ANY)
    assert losses_of(0.5, [one, other, one]) == Losses(0.5, (Coordinates(0.1, 6, Shape.LAPLACE), other))


def test_the_smallest_noise_is_enough_and_hardly_more() -> None:
    def make(size: float) -> Losses:
        return laplace(math.sqrt(1 / 64) / size, 64, mu=math.sqrt(0.5) / size)

    size = noise_within(make, epsilon=1.0, delta=6e-6)
    assert composed_delta(make(size), 1.0) <= 6e-6 < composed_delta(make(size * (1 - 4e-4)), 1.0)


@pytest.mark.parametrize("epsilon", [0.01, 8.0, 50.0])
def test_small_and_large_epsilons_are_met_too(epsilon: float) -> None:
    def make(size: float) -> Losses:
        return laplace(math.sqrt(1 / 8) / size, 8, mu=math.sqrt(0.5) / size)

    size = noise_within(make, epsilon=epsilon, delta=1e-6)
    assert 0.97 * epsilon <= composed_epsilon(make(size), 1e-6, epsilon) <= epsilon * (1 + 1e-9)


def test_a_delta_that_cannot_be_composed_is_refused() -> None:
    with pytest.raises(RangeError, match="delta leaves 1e-14 to noise of two kinds"):
        noise_within(lambda size: laplace(1 / size, 8), epsilon=1.0, delta=1e-14)


def test_costs_of_both_kinds_are_composed_and_their_deltas_added() -> None:
    count = rounded_laplace_cost("count", scale=Fraction(200), sensitivity=1, max_keys_per_user=64)
    selection = GaussianCost("selection", mu=8 / 60, delta=4e-6)
    total = gaussian_cost("sum", scale=Fraction(720), sensitivity=8, max_keys_per_user=64)
    budget = Budget(0.61, 1e-5)
    # dp-accounting, called directly, composed the same parts to epsilon 0.6096149686 at 1e-5
    assert spend([selection, count, total], budget).delta == pytest.approx(1e-5, rel=0.02)
    assert composed_epsilon(losses([selection, count, total]), 6e-6, 0.61) == pytest.approx(0.6096149686, rel=1e-5)
    refuse_overspending([selection, count, total], budget)


def test_many_small_epsilons_that_add_up_to_too_much_are_composed() -> None:
    cost = rounded_laplace_cost("count", scale=Fraction(50), sensitivity=1, max_keys_per_user=64)
    assert cost.epsilon > 1
    spent = spend([cost], Budget(1.0, 1e-5))
    assert spent.epsilon == 1.0
    assert 0 < spent.delta < 1e-5


IMPORTS = """
import sys
import plume
for limit in (1, 2, 3, 64):
    query = plume.Query(user="u", keys="k", measures=[plume.users()], max_keys_per_user=limit, budget=plume.Budget(1.1, 1e-5))
    explained = plume.explain(query)
    explained.facts(), explained.spent
    print(limit, "dp_accounting" in sys.modules)
explained.recomputed
print("recomputed", "dp_accounting" in sys.modules)
"""


def test_default_queries_are_planned_without_dp_accounting() -> None:
    output = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, check=True, text=True).stdout  # noqa: S603
    assert output.splitlines() == ["1 False", "2 False", "3 False", "64 False", "recomputed True"]


@pytest.mark.parametrize("epsilon", [1.0, 40.0, 800.0, 1e6])
def test_coins_of_any_odds_can_be_composed(epsilon: float) -> None:
    """Of three answers that are true with odds of e^epsilon to 1, all may be: no loss is above three times epsilon, and some are near."""
    three = coins(epsilon, 3)
    assert estimated_delta(three, 3 * epsilon) <= 1e-12
    assert estimated_delta(three, 2.9 * epsilon) > 0
