"""Rounded Gaussian draws against the exact law, with power, and the law against the price it is sold at.

Seeds are fixed, so a passing test keeps passing. A correct sampler and a fresh seed would fail one of
the eleven chi-square tests against the law, or of the three correlations, with probability 1.2e-7. The
forked processes draw afresh on every run; they fail a correct sampler with probability 2e-8.
"""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare, norm

from entropy import ScriptedEntropy, SeededEntropy
from plume.noise import gaussian
from plume.noise.gaussian import RoundedGaussian

FALSE_ALARM = 1e-8
DRAWS = 1_000_000
SCALES = [Fraction(1, 4), Fraction(1), Fraction(7, 3), Fraction("53.92"), Fraction(10**4), Fraction(2**25)]


def survival(at_least: NDArray[np.int64], scale: Fraction) -> NDArray[np.float64]:
    """Pr[X >= at_least], from the definition of the law."""
    return norm.sf(at_least - 0.5, scale=float(scale))


def cells(scale: Fraction, tails: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where to cut the integers, so that nearly these fractions of all draws are expected beyond a cut."""
    largest = np.floor(norm.isf(tails, scale=float(scale)) + 0.5).astype(np.int64)
    positive = np.unique(largest[largest > 0])
    return np.concatenate([1 - positive[::-1], positive])


def probabilities(cuts: NDArray[np.int64], scale: Fraction) -> NDArray[np.float64]:
    return -np.diff(survival(cuts, scale), prepend=1, append=0)


def p_value(noise: NDArray[np.int64], scale: Fraction) -> float:
    """How well the draws fit the law, by Pearson's chi-square test."""
    tails = np.concatenate([np.linspace(0.49, 0.01, 30), [1e-3, 1e-4]])
    cuts = cells(scale, tails[tails * noise.size >= 50])
    expected = probabilities(cuts, scale) * noise.size
    assert expected.min() > 20
    found = np.bincount(np.searchsorted(cuts, noise, side="right"), minlength=cuts.size + 1)
    return float(chisquare(found, expected).pvalue)


def p_value_of_pairs(pairs: NDArray[np.int64], scale: Fraction) -> float:
    """How well both draws of each pair fit the law and are independent, by a chi-square test of their joint law."""
    cuts = cells(scale, np.array([0.45, 0.3, 0.2, 0.1, 0.05, 0.01]))
    expected = np.multiply.outer(probabilities(cuts, scale), probabilities(cuts, scale)) * pairs.shape[1]
    assert expected.min() > 20
    row, column = (np.searchsorted(cuts, half, side="right") for half in pairs)
    found = np.bincount(row * (cuts.size + 1) + column, minlength=expected.size)
    return float(chisquare(found, expected.ravel()).pvalue)


def pairs_of(words: NDArray[np.uint64], scale: Fraction) -> NDArray[np.int64]:
    return gaussian._rounded_pairs(words.reshape(2, -1), scale, SeededEntropy(1))


@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_law(scale: Fraction) -> None:
    noise = RoundedGaussian(scale).sample(DRAWS, SeededEntropy(2018))
    assert p_value(noise, scale) > FALSE_ALARM


@pytest.mark.parametrize("error", [Fraction("0.98"), Fraction("1.02")])
@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_wrong_by_two_percent_is_noticed(scale: Fraction, error: Fraction) -> None:
    noise = RoundedGaussian(scale * error).sample(DRAWS, SeededEntropy(2018))
    assert p_value(noise, scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1), Fraction("53.92"), Fraction(2**25)])
def test_both_draws_of_a_pair_are_independent(scale: Fraction) -> None:
    pairs = pairs_of(SeededEntropy(1958).words(2 * DRAWS), scale)
    assert p_value_of_pairs(pairs, scale) > FALSE_ALARM
    assert abs(np.corrcoef(pairs)[0, 1]) < 6 / math.sqrt(DRAWS)  # false alarm 2e-9


def test_a_radius_that_knows_the_angle_is_noticed() -> None:
    words = SeededEntropy(1958).words(2 * DRAWS).reshape(2, -1)
    words[0, ::10] = words[1, ::10] * np.uint64(5)
    assert p_value_of_pairs(pairs_of(words, Fraction("53.92")), Fraction("53.92")) < FALSE_ALARM


def test_a_slight_correlation_within_pairs_is_noticed() -> None:
    pairs = pairs_of(SeededEntropy(1958).words(2 * DRAWS), Fraction(2**25))
    pairs[1] += pairs[0] // 50
    assert p_value_of_pairs(pairs, Fraction(2**25)) < FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
def test_every_draw_is_the_same_when_resolved_exactly(scale: Fraction) -> None:
    words = SeededEntropy(2020).words(8_000).reshape(2, -1)
    fast = gaussian._rounded_pairs(words, scale, ScriptedEntropy([]))
    columns = zip((~(words[0] ^ words[1])).tolist(), words[1].tolist(), strict=True)
    exact = [gaussian._resolve(radius_word, turn, scale, ScriptedEntropy([])) for radius_word, turn in columns]
    assert fast.T.tolist() == [list(draws) for draws in exact]


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(2**25)])
def test_draws_resolved_exactly_follow_the_law(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "_RELATIVE_MARGIN", np.inf)
    noise = RoundedGaussian(scale).sample(20_000, SeededEntropy(2018))
    assert p_value(noise, scale) > FALSE_ALARM
    monkeypatch.undo()
    assert (noise == RoundedGaussian(scale).sample(20_000, SeededEntropy(2018))).all()


def delta_of_the_law(scale: Fraction, shift: int, epsilon: float) -> float:
    """The δ that noise of this law leaves at ε when an integer moves by `shift`: the best of all thresholds."""
    law = RoundedGaussian(scale)
    best = epsilon * float(scale) ** 2 / shift + shift / 2
    near = range(math.floor(best) - 2, math.ceil(best) + 4)
    return max(law.tail(least - shift) - math.exp(epsilon) * law.tail(least) for least in near)


def delta_of_the_price(mu: float, epsilon: float) -> float:
    """The δ of μ-Gaussian differential privacy at ε (Balle and Wang 2018, theorem 8)."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


MOVES = [(Fraction(1, 4), 1), (Fraction(1), 1), (Fraction(1), 3), (Fraction("53.92"), 8), (Fraction(10**4), 2000)]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, math.log(3), 2.0])
@pytest.mark.parametrize(("scale", "shift"), MOVES)
def test_the_law_is_never_less_private_than_its_price(scale: Fraction, shift: int, epsilon: float) -> None:
    price = delta_of_the_price(float(shift / scale), epsilon)
    assert delta_of_the_law(scale, shift, epsilon) <= price * (1 + 1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(Fraction("53.92"), 8), (Fraction(10**4), 2000)])
def test_a_price_too_low_by_two_percent_is_noticed(scale: Fraction, shift: int) -> None:
    assert delta_of_the_law(scale, shift, 0.5) > delta_of_the_price(0.98 * float(shift / scale), 0.5)


FORKS = """
import os
from fractions import Fraction
from plume.noise.entropy import SystemEntropy
from plume.noise.gaussian import RoundedGaussian

entropy, law = SystemEntropy(), RoundedGaussian(Fraction(2**39))
draw = lambda: print(*law.sample(4, entropy), *entropy.words(4), flush=True)
draw()
for _ in range(64):
    if os.fork() == 0:
        draw()
        os._exit(0)
    os.wait()
"""


def test_forked_processes_share_no_draws() -> None:
    # 260 draws of such a scale repeat by chance with probability 2e-8, 260 words with 2e-15.
    command = [sys.executable, "-c", FORKS]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout  # noqa: S603
    lines = [line.split() for line in output.splitlines()]
    values = [value for line in lines for value in line]
    assert [len(line) for line in lines] == [8] * 65
    assert len(set(values)) == len(values)
