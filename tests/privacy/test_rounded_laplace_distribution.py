"""Rounded Laplace draws against the exact law, with power.

Seeds are fixed, so a passing test keeps passing. A correct sampler and a fresh seed would fail one of the seven chi-square tests with
probability 7e-7.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from entropy import ScriptedEntropy, SeededEntropy
from plume.noise import exponential, rounded_laplace
from plume.noise.rounded_laplace import RoundedLaplace

FALSE_ALARM = 1e-7
SCALES = [Fraction(1, 4), Fraction(1), Fraction(7, 3), Fraction("116.51"), Fraction(10**4), Fraction(10**6)]


def draws_needed(scale: Fraction) -> int:
    """A million; four where nearly all draws are zero, so that 2 % of the scale can still be seen."""
    return 4_000_000 if scale < 1 else 1_000_000


def survival(at_least: NDArray[np.int64], scale: Fraction) -> NDArray[np.float64]:
    """Pr[X >= at_least], from the definition of the law."""
    upper = np.exp(-(np.maximum(at_least, 1 - at_least) - 0.5) / float(scale)) / 2
    return np.where(at_least > 0, upper, 1 - upper)


def cells(scale: Fraction, size: int) -> NDArray[np.int64]:
    """Where to cut the integers, so that 50 or more of `size` draws are expected in either last cell."""
    tails = np.concatenate([np.linspace(0.49, 0.01, 30), [1e-3, 1e-4]])
    tails = tails[tails * size >= 50]
    largest = np.floor(-float(scale) * np.log(2 * tails) + 0.5).astype(np.int64)
    positive = np.unique(largest[largest > 0])
    return np.concatenate([1 - positive[::-1], positive])


def p_value(noise: NDArray[np.int64], scale: Fraction) -> float:
    """How well the draws fit the law, by Pearson's chi-square test."""
    cuts = cells(scale, noise.size)
    expected = -np.diff(survival(cuts, scale), prepend=1, append=0) * noise.size
    assert expected.min() > 20
    counted = np.bincount(np.searchsorted(cuts, noise, side="right"), minlength=cuts.size + 1)
    return float(chisquare(counted, expected).pvalue)


@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_law(scale: Fraction) -> None:
    noise = RoundedLaplace(scale).sample(draws_needed(scale), SeededEntropy(2012))
    assert p_value(noise, scale) > FALSE_ALARM


@pytest.mark.parametrize("error", [Fraction("0.98"), Fraction("1.02")])
@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_wrong_by_two_percent_is_noticed(scale: Fraction, error: Fraction) -> None:
    noise = RoundedLaplace(scale * error).sample(draws_needed(scale), SeededEntropy(2012))
    assert p_value(noise, scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
def test_every_draw_is_the_same_when_resolved_exactly(scale: Fraction) -> None:
    words = SeededEntropy(2020).words(8_000).reshape(2, -1)
    fast = rounded_laplace._rounded(words, scale, ScriptedEntropy([]))
    sizes = (~(words[0] ^ words[1])).tolist()
    resolved = [exponential.resolve(word, scale, ScriptedEntropy([]), offset=Fraction(1, 2)) for word in sizes]
    assert np.abs(fast).tolist() == resolved


def test_draws_resolved_exactly_follow_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponential, "_RELATIVE_MARGIN", np.inf)
    noise = RoundedLaplace(Fraction(7, 3)).sample(50_000, SeededEntropy(2012))
    assert p_value(noise, Fraction(7, 3)) > FALSE_ALARM
    monkeypatch.undo()
    assert (noise == RoundedLaplace(Fraction(7, 3)).sample(50_000, SeededEntropy(2012))).all()


def test_signs_and_sizes_are_independent() -> None:
    """Of 10^6 draws, as many of either sign are beyond the median size; a correct sampler fails with probability 1e-7 or less."""
    noise = RoundedLaplace(Fraction(10**6)).sample(1_000_000, SeededEntropy(7))
    large = np.abs(noise) > np.median(np.abs(noise))
    table = np.array(
        [
            [np.sum(large & (noise > 0)), np.sum(large & (noise < 0))],
            [np.sum(~large & (noise > 0)), np.sum(~large & (noise < 0))],
        ]
    )
    assert chisquare(table.ravel(), np.full(4, table.sum() / 4)).pvalue > FALSE_ALARM
