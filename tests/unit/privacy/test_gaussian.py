import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from plume.privacy.gaussian import Novel, delta_of, joint_delta, noise_for
from plume.selection.threshold import smallest_threshold

EPSILON = math.log(3)
GOLDEN_NOISE = {(EPSILON, 6e-6): 3.5274367, (EPSILON, 5e-6): 3.5636010, (EPSILON / 2, 5e-6): 6.7400326}


def weighted(sigma: float, threshold: float, limit: int) -> Novel:
    return Novel(lambda keys: 1 / np.sqrt(keys), sigma, threshold, limit)


@pytest.mark.parametrize(("budget", "sigma"), GOLDEN_NOISE.items())
def test_noise_for_a_budget_is_the_golden_one(budget: tuple[float, float], sigma: float) -> None:
    assert noise_for(*budget) == pytest.approx(sigma, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.1, 5.0, 30.0])
@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.5, 2.0, 8.0])
def test_delta_is_that_of_balle_and_wang_to_many_digits(mu: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        exact = mpmath.ncdf(mu / 2 - epsilon / mpmath.mpf(mu)) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mpmath.mpf(mu)
        )
        assert float(delta_of(mu, epsilon)) == pytest.approx(float(exact), rel=1e-6, abs=1e-15)


def test_without_noise_to_hide_in_delta_is_what_epsilon_does_not_cover() -> None:
    assert delta_of(0.0, 0.5) == 0
    assert delta_of(0.0, -0.5) == pytest.approx(1 - math.exp(-0.5))


def test_noise_for_is_never_too_small_and_hardly_too_large() -> None:
    for epsilon, delta in [(0.1, 1e-9), (1.0, 1e-5), (8.0, 1e-3)]:
        sigma = noise_for(epsilon, delta)
        assert delta_of(1 / sigma, epsilon) <= delta < delta_of(1 / (sigma * (1 - 1e-8)), epsilon)


def test_the_joint_threshold_of_64_keys_is_the_golden_one() -> None:
    sigma = noise_for(EPSILON, 1e-5)
    assert sigma == pytest.approx(3.4246624, abs=1e-7)
    found = threshold_for(64)
    assert found.threshold == pytest.approx(24.9019, abs=1e-4)


def threshold_for(limit: int) -> Novel:
    """The default: half of the budget for selection."""
    one = noise_for(EPSILON, 1e-5)
    return smallest_threshold(
        lambda threshold: weighted(one * math.sqrt(2), threshold, limit),
        others=math.sqrt(0.5) / one,
        epsilon=EPSILON,
        delta=1e-5,
    )


@pytest.mark.parametrize("limit", [1, 3, 64, 300])
def test_no_pair_of_keys_and_novel_keys_spends_more_as_dp_accounting_counts(limit: int) -> None:
    """Each user with t keys, j of them novel, composed from a Gaussian and a disclosure, without looking at how it was calibrated."""
    found = threshold_for(limit)
    others = math.sqrt(0.5) / noise_for(EPSILON, 1e-5)
    for keys, novel in [(1, 1), (limit, 0), (limit, 1), (limit, limit), (max(1, limit // 2), max(1, limit // 3))]:
        passing = 1 - (1 - 0.5 * math.erfc((found.threshold - keys**-0.5) / found.sigma / math.sqrt(2))) ** novel
        mu = math.sqrt((1 - novel / keys) / found.sigma**2 + others**2)
        shared = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
        shown = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.0, passing), 1e-4)
        assert shared.compose(shown).get_delta_for_epsilon(EPSILON) <= 1e-5 * (1 + 1e-4)


def test_ranges_of_keys_are_priced_no_lower_than_every_pair_in_them() -> None:
    limit = 400
    novel = weighted(5.0, 24.0, limit)
    exact = 0.0
    for keys in range(1, limit + 1):
        count = np.arange(0, keys + 1, dtype=np.float64)
        hidden = novel.log_hidden(np.full_like(count, keys), count)
        mu = np.sqrt((1 - count / keys) / novel.sigma**2 + 0.2**2)
        adding = -np.expm1(hidden) + np.exp(hidden) * delta_of(mu, EPSILON - hidden)
        exact = max(exact, float(np.maximum(adding, delta_of(mu, EPSILON + hidden)).max()))
    ranged = joint_delta(novel, others=0.2, epsilon=EPSILON)
    assert exact <= ranged <= 1.2 * exact


def test_a_higher_threshold_never_spends_more() -> None:
    spent = [joint_delta(weighted(5.0, threshold, 64), others=0.2, epsilon=EPSILON) for threshold in range(1, 60)]
    assert all(after <= before for before, after in itertools.pairwise(spent))
