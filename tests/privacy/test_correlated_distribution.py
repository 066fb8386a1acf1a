"""Noise that keys share against its stated covariance, with power: drawn as runs draw it, in batches of several sizes.

Seeds are fixed, so a passing test keeps passing. For a correct sampler and a fresh seed each mean of products is too far off with a
chance of at most 2 exp(-x) (Laurent and Massart 2000), where x is chosen such that all of a test together fail with probability 1e-8.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest

from entropy import SeededEntropy
from plume.noise.correlated import CorrelatedGaussian

FALSE_ALARM = 1e-8
Floats = NDArray[np.float64]
DRAWS = 8_000
NOISES = {
    "many keys": CorrelatedGaussian(Fraction(2**20 * 3), Fraction(2**20 * 2), keys=24),
    "few keys": CorrelatedGaussian(Fraction(700), Fraction(500), keys=3),
    "hardly anything shared": CorrelatedGaussian(Fraction(700), Fraction(200), keys=5),
}
BATCHES = {3: (0, 1, 2), 5: (0, 5), 24: (7, 17)}


@cache
def drawn(name: str, seed: int) -> Floats:
    """One row for each run: a shared draw, and those of the keys, batch by batch."""
    noise, entropy = NOISES[name], SeededEntropy(seed)
    runs = []
    for _ in range(DRAWS):
        begun = noise.begun(entropy)
        runs.append(np.concatenate([begun.sample(size, entropy) for size in BATCHES[noise.keys]]))
    return np.array(runs, np.float64)


def covariance(noise: CorrelatedGaussian) -> Floats:
    """Of rounded draws: s² I + c² 11ᵀ, and 1/12 for each rounding."""
    shared = np.full((noise.keys, noise.keys), float(noise.common) ** 2 + 1 / 12)
    return shared + np.eye(noise.keys) * (float(noise.own) ** 2 + 1 / 12)


def farthest(noise: CorrelatedGaussian, sample: Floats) -> float:
    """How far the means of products are off, in parts of what they may be off by."""
    expected = covariance(noise)
    variances = np.outer(np.diag(expected), np.diag(expected))
    tests = noise.keys * (noise.keys + 1) / 2
    chance = math.log(2 * tests / FALSE_ALARM) / len(sample)
    reach = 2 * math.sqrt(chance) * np.sqrt((variances + expected**2) / 2) + chance * (np.sqrt(variances) + expected)
    return float(np.max(np.abs(sample.T @ sample / len(sample) - expected) / reach))


@pytest.mark.parametrize("name", NOISES)
def test_draws_have_the_stated_covariance(name: str) -> None:
    assert farthest(NOISES[name], drawn(name, seed=1)) < 1


@pytest.mark.parametrize("name", NOISES)
def test_the_total_over_keys_is_normal_and_as_wide_as_stated(name: str) -> None:
    """By Kolmogorov and Smirnov's test, which a correct sampler fails with a fresh seed with probability 1e-8."""
    noise = NOISES[name]
    total = drawn(name, seed=1).sum(axis=1) / noise.deviation_of_total()
    assert kstest(total, "norm").pvalue > FALSE_ALARM


def test_draws_of_different_runs_share_nothing() -> None:
    """The correlation of a run's total with the next one's is beyond 6 / √n with probability 2e-9."""
    total = drawn("many keys", seed=1).sum(axis=1)
    assert abs(np.corrcoef(total[:-1], total[1:])[0, 1]) < 6 / math.sqrt(DRAWS)


def without_what_is_shared(right: Floats, shared: Floats, other: Floats) -> Floats:
    del other
    return np.hstack([right[:, :1] - shared, right[:, 1:]])


def a_draw_for_each_batch(right: Floats, shared: Floats, other: Floats) -> Floats:
    del shared
    return np.hstack([right[:, :7], other[:, 7:]])


def own_draws_too_narrow(right: Floats, shared: Floats, other: Floats) -> Floats:
    """By a tenth."""
    del other
    return shared + (right - shared) * 0.9


def a_shared_draw_too_wide(right: Floats, shared: Floats, other: Floats) -> Floats:
    """By a fifth."""
    del other
    return right + 0.2 * shared


def draws_that_share_nothing(right: Floats, shared: Floats, other: Floats) -> Floats:
    """Of neighbours, of which each has a run of its own."""
    del shared
    return np.stack([right[:, 0], other[:, 0]] * 12, axis=1)


@pytest.mark.parametrize(
    "wrong",
    [
        without_what_is_shared,
        a_draw_for_each_batch,
        own_draws_too_narrow,
        a_shared_draw_too_wide,
        draws_that_share_nothing,
    ],
)
def test_a_wrong_covariance_is_noticed(wrong: Callable[[Floats, Floats, Floats], Floats]) -> None:
    right, other = (drawn("many keys", seed=seed) for seed in (1, 2))
    assert farthest(NOISES["many keys"], wrong(right, right.mean(axis=1, keepdims=True), other)) > 1
