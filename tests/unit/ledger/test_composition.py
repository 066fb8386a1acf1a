"""What releases cost together, against dp-accounting used in another way, and against what can be worked out by hand."""

from collections import Counter

import dp_accounting
import mpmath
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from plume.ledger.composition import Total, _by_parts, _epsilon, least_total, total
from plume.ledger.price import DELTAS, EPSILONS, DatasetBudget, Price

mpmath.mp.dps = 50
BUDGET = DatasetBudget(3 * EPSILONS, 10**10)


def gaussian(mu: float, passing: float = 0, *, epsilon: float = 1, delta: float = 1e-6) -> Price:
    return Price(round(epsilon * EPSILONS), round(delta * DELTAS), 0, round(mu * EPSILONS), round(passing * DELTAS))


def laplace(epsilon: float, delta: float = 0) -> Price:
    units = round(epsilon * EPSILONS)
    return Price(units, round(delta * DELTAS), units, 0, round(delta * DELTAS))


def composed(events: dict[dp_accounting.DpEvent, int], delta: float) -> float:
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for event, times in events.items():
        accountant.compose(event, times)
    return accountant.get_epsilon(delta)


def test_nothing_costs_nothing() -> None:
    assert least_total([], BUDGET) == Total(0, 0)


def test_one_release_costs_what_it_says() -> None:
    assert least_total([gaussian(0.3)], BUDGET) == Total(EPSILONS, 10**9)


def test_what_fits_as_a_sum_is_not_composed_any_further() -> None:
    assert total([gaussian(0.1)] * 3, BUDGET) == Total(3 * EPSILONS, 3 * 10**9)


@pytest.mark.parametrize(("mu", "times"), [(0.3, 2), (0.1, 40), (0.25, 12)])
def test_gaussian_releases_compose_as_tightly_as_the_accountant_says(mu: float, times: int) -> None:
    expected = composed({dp_accounting.GaussianDpEvent(1 / mu): times}, 1e-5)
    found = least_total([gaussian(mu, epsilon=5, delta=1e-7)] * times, DatasetBudget(10**12, 10**10)).epsilon / EPSILONS
    assert expected * (1 - 2e-3) <= found <= expected * (1 + 1e-6)


def test_the_chance_of_showing_a_key_is_taken_from_the_delta_first() -> None:
    expected = composed({dp_accounting.GaussianDpEvent(1 / 0.3): 4}, 1e-5 - 4e-6)
    found = least_total([gaussian(0.3, 1e-6)] * 4, BUDGET).epsilon / EPSILONS
    assert found == pytest.approx(expected, rel=2e-3)
    assert found > least_total([gaussian(0.3)] * 4, BUDGET).epsilon / EPSILONS


def test_releases_of_both_kinds_compose_to_less_than_their_sum() -> None:
    charges = [*[laplace(0.1)] * 20, *[gaussian(0.3)] * 2]
    found = least_total(charges, BUDGET).epsilon / EPSILONS
    # The accountant knows the whole law of Laplace noise, of which the ledger keeps the epsilon alone.
    events = {dp_accounting.LaplaceDpEvent(10): 20, dp_accounting.GaussianDpEvent(1 / 0.3): 2}
    assert composed(events, 1e-5) < found < 4


def test_deltas_above_the_limit_are_beyond_all_composition() -> None:
    assert not total([laplace(0.001, 6e-6)] * 2, BUDGET).within(BUDGET)


def test_without_a_delta_epsilons_add_up() -> None:
    assert total([laplace(0.1)] * 31, DatasetBudget(3 * EPSILONS, 0)) == Total(31 * EPSILONS // 10, 0)


charges = st.one_of(
    st.builds(laplace, st.floats(1e-3, 2), st.sampled_from([0, 1e-7, 1e-6])),
    st.builds(gaussian, st.floats(1e-3, 0.6), st.sampled_from([0, 1e-7]), epsilon=st.floats(0.5, 3)),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(charges, min_size=2, max_size=6))
def test_a_total_is_never_above_the_sum_and_grows_with_every_release(listed: list[Price]) -> None:
    sums = [sum(charge.epsilon for charge in listed[:number]) for number in range(2, len(listed) + 1)]
    found = [least_total(listed[:number], BUDGET) for number in range(2, len(listed) + 1)]
    within = [(spent.epsilon, most) for spent, most in zip(found, sums, strict=True) if spent.within(BUDGET)]
    assert all(spent <= most for spent, most in within)
    assert [spent for spent, _ in within] == sorted(spent for spent, _ in within)


def true_delta(charges: list[Price], epsilon: int) -> mpmath.mpf:
    """Compose by their parts exactly: of each epsilon the truth is told with odds of e^epsilon to 1, and of Gaussian noise the formula."""
    mu = mpmath.sqrt(mpmath.fsum(mpmath.mpf(charge.mu) ** 2 for charge in charges)) / EPSILONS
    chances = {0: mpmath.mpf(1)}
    for pure, times in Counter(charge.pure for charge in charges if charge.pure).items():
        true = 1 / (1 + mpmath.exp(-mpmath.mpf(pure) / EPSILONS))
        told = [mpmath.binomial(times, k) * true**k * (1 - true) ** (times - k) for k in range(times + 1)]
        together: dict[int, mpmath.mpf] = {}
        for loss, chance in chances.items():
            for k, of_it in enumerate(told):
                together[loss + (2 * k - times) * pure] = (
                    together.get(loss + (2 * k - times) * pure, 0) + chance * of_it
                )
        chances = together
    passing = mpmath.mpf(sum(charge.passing for charge in charges)) / DELTAS
    return passing + mpmath.fsum(
        chance * true_gaussian_delta(mu, mpmath.mpf(epsilon - loss) / EPSILONS) for loss, chance in chances.items()
    )


def true_gaussian_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    if not mu:
        return max(1 - mpmath.exp(epsilon), mpmath.mpf(0))
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def states_the_truth(charges: list[Price], delta: int) -> bool:
    """Whether at the epsilon that charges compose to by their parts, if they do, their delta is no more than the stated one."""
    epsilon = _epsilon(_by_parts(charges), DatasetBudget(10**18, delta))
    return epsilon is None or true_delta(charges, epsilon) * DELTAS <= delta


@pytest.mark.parametrize(
    ("epsilon", "times", "delta"),
    [(0.01, 1000, 1), (0.01, 1000, 10), (0.01, 1000, 1000), (0.05, 500, 3), (0.003, 2000, 2), (0.2, 60, 10**14)],
)
def test_many_alike_releases_state_no_less_than_the_truth(epsilon: float, times: int, delta: int) -> None:
    assert states_the_truth([laplace(epsilon)] * times, delta)


deltas = st.integers(0, 14).flatmap(lambda digits: st.integers(10**digits, 9 * 10**digits))
few = st.lists(st.tuples(st.integers(1, 2 * EPSILONS), st.integers(1, 12)), min_size=1, max_size=3)
mus = st.lists(st.integers(0, 10**9).map(lambda units: units // 10 ** (units % 9)), max_size=3)


def repeated(pure: list[tuple[int, int]], mus: list[int]) -> list[Price]:
    return [Price(e, 0, e, 0, 0) for e, times in pure for _ in range(times)] + [Price(1, 0, 0, mu, 0) for mu in mus]


@settings(max_examples=60, deadline=None)
@given(few, mus, deltas)
def test_few_different_releases_state_no_less_than_the_truth(
    pure: list[tuple[int, int]], gaussian: list[int], delta: int
) -> None:
    assert states_the_truth(repeated(pure, gaussian), delta)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, EPSILONS).map(lambda u: u // 10 ** (u % 9)), min_size=2, max_size=5), deltas)
def test_gaussian_releases_state_no_less_than_the_truth(mus: list[int], delta: int) -> None:
    assert states_the_truth(repeated([], mus), delta)


# Of epsilons that are multiples of 0.01 many sums are equal, so that even the exact composition of many different ones is quick.
many = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 9)), min_size=15, max_size=20, unique_by=lambda one: one[0]
)


def many_state_the_truth(pure: list[tuple[int, int]], gaussian: list[int], delta: int) -> None:
    hundredths = [(each * EPSILONS // 100, times) for each, times in pure]
    assert states_the_truth(repeated(hundredths, gaussian), delta)


@pytest.mark.parametrize("examples", [3, pytest.param(8, marks=pytest.mark.engines)])
def test_many_different_releases_state_no_less_than_the_truth(examples: int) -> None:
    tried = given(many, st.sampled_from([[], [2 * 10**8], [10**7, 10**6]]), deltas)(many_state_the_truth)
    settings(max_examples=examples, deadline=None)(tried)()
