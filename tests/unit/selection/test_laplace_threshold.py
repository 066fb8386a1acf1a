import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from entropy import ConstantEntropy, SeededEntropy
from plume.noise.laplace import DiscreteLaplace
from plume.noise.rounded_laplace import RoundedLaplace
from plume.selection.laplace_threshold import LaplaceThreshold, laplace_threshold, laplace_threshold_with

EPSILON = Fraction(math.log(3)) / 2
GOLDEN = {1: 22, 2: 44, 4: 91, 8: 190, 16: 398, 64: 1747, 128: 3654, 512: 15902}


@pytest.mark.parametrize(("limit", "threshold"), GOLDEN.items())
def test_thresholds_are_the_golden_ones(limit: int, threshold: int) -> None:
    assert laplace_threshold(limit, epsilon=EPSILON, delta=1e-5).threshold == threshold


GOLDEN_CONTINUOUS = {1: (1.8205, 20.6972), 4: (7.2819, 89.8835), 64: (116.5106, 1746.1726), 512: (932.0850, 15900.5967)}


@pytest.mark.parametrize(("limit", "golden"), GOLDEN_CONTINUOUS.items())
def test_scales_are_the_golden_ones_and_rounded_noise_gets_the_continuous_threshold(limit: int, golden: tuple) -> None:
    scale, threshold = golden
    noise = laplace_threshold(limit, epsilon=EPSILON, delta=1e-5).noise
    assert float(noise.scale) == pytest.approx(scale, abs=1e-4)
    rounded = laplace_threshold_with(RoundedLaplace(noise.scale), limit, delta=1e-5)
    assert rounded.threshold == math.ceil(threshold + 0.5)


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(2), Fraction("116.51")])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.3, 0.9])
def test_the_threshold_for_rounded_noise_is_the_smallest_that_keeps_delta(scale: Fraction, delta: float) -> None:
    noise = RoundedLaplace(scale)
    strategy = laplace_threshold_with(noise, 4, delta=delta)

    def passing(threshold: int) -> float:
        return -math.expm1(4 * math.log1p(-noise.tail(threshold - 1)))

    assert passing(strategy.threshold) <= delta * (1 + 1e-12)
    assert strategy.threshold == 2 or passing(strategy.threshold - 1) > delta
    assert strategy.cost.delta == pytest.approx(passing(strategy.threshold), rel=1e-9)
    assert strategy.cost.epsilon == 4 / scale


@pytest.mark.parametrize("points", [2_000, pytest.param(10_000, marks=pytest.mark.engines)])
def test_at_thousands_of_points_the_threshold_is_the_smallest_that_keeps_delta(points: int) -> None:
    random = np.random.default_rng(1)
    with mpmath.workdps(50):
        for _ in range(points):
            limit, delta = int(random.integers(1, 600)), float(10 ** random.uniform(-12, -0.5))
            epsilon = Fraction(float(10 ** random.uniform(-2, 1)))
            strategy = laplace_threshold(limit, epsilon=epsilon, delta=delta)
            assert passing(limit, epsilon, strategy.threshold) <= delta
            assert strategy.threshold == 1 or passing(limit, epsilon, strategy.threshold - 1) > delta


def passing(limit: int, epsilon: Fraction, threshold: int) -> mpmath.mpf:
    """Pr[some of `limit` keys with one user each passes], from the probability mass of the two-sided geometric."""
    q = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator / limit)
    alone = q ** (threshold - 1) / (1 + q)
    return 1 - (1 - alone) ** limit


@pytest.mark.parametrize("limit", [1, 4, 64])
def test_cost_is_epsilon_exactly_and_at_most_delta(limit: int) -> None:
    cost = laplace_threshold(limit, epsilon=EPSILON, delta=1e-5).cost
    assert cost.epsilon == EPSILON
    assert 0.5e-5 < cost.delta <= 1e-5


def test_without_noise_a_key_passes_from_the_threshold_on() -> None:
    strategy = LaplaceThreshold(1, DiscreteLaplace(Fraction(2)), threshold=5)
    kept = strategy.keep(np.array([3, 4, 5, 6]), ConstantEntropy())
    assert kept.tolist() == [False, False, True, True]


def test_min_users_raises_the_threshold_by_as_much_as_it_lowers_counts() -> None:
    plain = laplace_threshold(4, epsilon=EPSILON, delta=1e-5)
    shifted = laplace_threshold(4, epsilon=EPSILON, delta=1e-5, min_users=20)
    assert shifted.threshold == plain.threshold + 19
    assert shifted.cost == plain.cost


def test_no_key_below_min_users_passes_whatever_the_noise() -> None:
    strategy = laplace_threshold(1, epsilon=Fraction(1, 100), delta=0.4, min_users=20)
    users = np.repeat(np.arange(1, 20), 20_000)
    assert not strategy.keep(users, SeededEntropy(1)).any()
    assert strategy.keep(np.full(1000, 20), SeededEntropy(1)).any()


@pytest.mark.parametrize("users", [1, 10, 25])
def test_keys_pass_as_often_as_the_distribution_says_and_not_as_one_off(users: int) -> None:
    """Two-sided binomial tests at 1e-8 each on a fixed seed; a threshold off by one is rejected with the same test."""
    strategy = laplace_threshold(2, epsilon=Fraction(1, 2), delta=0.05)
    trials = 400_000
    kept = int(strategy.keep(np.full(trials, users), SeededEntropy(users)).sum())
    assert stats.binomtest(kept, trials, strategy.noise.tail(strategy.threshold - users)).pvalue > 1e-8
    for wrong in (strategy.threshold - 1, strategy.threshold + 1):
        assert stats.binomtest(kept, trials, strategy.noise.tail(wrong - users)).pvalue < 1e-8
