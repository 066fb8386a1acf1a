"""The two strategies with Gaussian noise: thresholds, weights, and how often keys pass."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy import stats

from entropy import ConstantEntropy, SeededEntropy
from plume.noise.gaussian import RoundedGaussian
from plume.plan.expressions import Column, InverseRoot
from plume.plan.printing.duckdb import DuckDBPrinter
from plume.plan.printing.expression_sql import print_expression
from plume.privacy.gaussian import Novel, noise_for
from plume.query import LARGEST_BOUND
from plume.selection.gaussian_threshold import GaussianThreshold, gaussian_threshold
from plume.selection.two_round_weighted_gaussian import weighted_gaussian_round
from plume.selection.weighted_gaussian import UNIT, WeightedGaussian, weighted_gaussian

ONE = noise_for(math.log(3), 1e-5)
SETTINGS = {"sigma": ONE * math.sqrt(2), "others": 1 / (ONE * math.sqrt(2)), "epsilon": math.log(3), "delta": 1e-5}
GOLDEN_COUNTS = {1: (6.74003, 30.7719), 4: (13.48007, 64.4659), 64: (53.92026, 283.8138), 512: (152.50953, 857.5091)}
GOLDEN_WEIGHTS = {1: 30.7719, 4: 32.2329, 16: 33.8378, 64: 35.4767, 256: 37.0992, 512: 37.8969}


@pytest.mark.parametrize(("limit", "golden"), GOLDEN_COUNTS.items())
def test_golden_thresholds_on_counts_show_keys_of_one_user_with_half_of_delta(limit: int, golden: tuple) -> None:
    assert Novel(np.ones_like, *golden, limit).delta() == pytest.approx(5e-6, rel=1e-4)


@pytest.mark.parametrize(("limit", "golden"), GOLDEN_WEIGHTS.items())
def test_golden_thresholds_on_weights_show_keys_of_one_user_with_half_of_delta(limit: int, golden: float) -> None:
    novel = Novel(lambda keys: 1 / np.sqrt(keys), 6.740033, golden, limit)
    assert novel.delta() == pytest.approx(5e-6, rel=1e-4)


@pytest.mark.parametrize(("limit", "golden"), GOLDEN_WEIGHTS.items())
def test_a_round_gets_the_golden_threshold_for_its_delta(limit: int, golden: float) -> None:
    strategy = weighted_gaussian_round(1, limit, sigma=6.7400326, delta=5e-6)
    assert strategy.threshold / UNIT == pytest.approx(golden, abs=2e-4)
    assert 0.999 * 5e-6 <= strategy.cost.shown_alone <= 5e-6


def test_the_default_threshold_for_64_keys_is_the_golden_one_on_the_grid() -> None:
    strategy = weighted_gaussian(64, **SETTINGS)
    assert strategy.threshold / UNIT == pytest.approx(24.9019, abs=2e-4)
    assert strategy.noise.scale == math.ceil(ONE * math.sqrt(2) * UNIT)


def test_weights_are_exact_integers_for_every_number_of_keys_there_can_be() -> None:
    """floor(2**20 / sqrt t) in floating point, in NumPy and in DuckDB, against integer square roots."""
    printed = print_expression(InverseRoot(Column("t"), UNIT), DuckDBPrinter())
    found = duckdb.sql(f"SELECT {printed} AS w FROM range(1, {LARGEST_BOUND} + 1) AS r(t) ORDER BY t").fetchnumpy()["w"]
    keys = np.arange(1, LARGEST_BOUND + 1)
    # w is right exactly if w**2 * t <= 2**40 < (w + 1)**2 * t.
    assert (found**2 * keys <= UNIT**2).all()
    assert ((found + 1) ** 2 * keys > UNIT**2).all()


def test_a_users_weights_have_a_norm_of_at_most_one_unit() -> None:
    keys = np.arange(1, 10_001)
    weights = np.floor(UNIT / np.sqrt(keys)).astype(np.int64)
    assert (keys * weights**2 <= UNIT**2).all()


@pytest.mark.parametrize("users", [8, 20, 33])
def test_keys_pass_as_often_as_the_distribution_says_and_not_as_with_noise_wrong_by_a_tenth(users: int) -> None:
    """Binomial tests at 1e-8 each on fixed seeds."""
    strategy = GaussianThreshold(4, RoundedGaussian(Fraction(10)), threshold=21)
    trials = 400_000
    kept = int(strategy.keep(np.full(trials, users), SeededEntropy(users)).sum())
    law = {scale: RoundedGaussian(Fraction(scale)).tail(21 - users) for scale in (9, 10, 11)}
    assert stats.binomtest(kept, trials, law[10]).pvalue > 1e-8
    if users != 20:
        assert all(stats.binomtest(kept, trials, law[wrong]).pvalue < 1e-8 for wrong in (9, 11))


def test_weights_are_compared_on_the_grid() -> None:
    strategy = WeightedGaussian(4, RoundedGaussian(Fraction(3 * UNIT)), threshold=5 * UNIT)
    kept = strategy.keep(np.array([5 * UNIT - 1, 5 * UNIT, 5 * UNIT + 1]), ConstantEntropy())
    assert kept.tolist() == [False, True, True]


def test_min_users_raises_the_threshold_on_counts_by_as_much_as_it_lowers_them() -> None:
    plain, shifted = (gaussian_threshold(4, min_users=least, **SETTINGS) for least in (1, 20))
    assert shifted.threshold == plain.threshold + 19
    assert shifted.cost.novel.threshold == plain.cost.novel.threshold
    assert not shifted.keep(np.repeat(np.arange(1, 20), 5000), SeededEntropy(2)).any()


def test_the_cost_is_that_of_the_noise_really_drawn() -> None:
    strategy = weighted_gaussian(64, **SETTINGS)
    assert strategy.cost.mu == pytest.approx(UNIT / float(strategy.noise.scale))
    assert strategy.cost.novel.threshold == (strategy.threshold - 0.5) / UNIT
