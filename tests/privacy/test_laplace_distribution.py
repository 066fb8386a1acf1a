"""Discrete Laplace draws against the exact law, with power.

Seeds are fixed, so a passing test keeps passing. A correct sampler and a fresh seed would fail one of
the seven chi-square tests against the law with probability 7e-7. The comparison with OpenDP draws
afresh on every run, as do the forked processes; they fail a correct sampler with probability 3e-8.
"""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, chisquare

from entropy import ScriptedEntropy, SeededEntropy
from plume.noise import exponential, laplace
from plume.noise.laplace import DiscreteLaplace

FALSE_ALARM = 1e-7
SCALES = [Fraction(1, 8), Fraction(1), Fraction(7, 3), Fraction("116.51"), Fraction(10**4), Fraction(10**6)]


def draws_needed(scale: Fraction) -> int:
    """A million; four where nearly all draws are zero, so that 2 % of the scale can still be seen."""
    return 4_000_000 if scale < 1 else 1_000_000


def survival(at_least: NDArray[np.int64], scale: Fraction) -> NDArray[np.float64]:
    """Pr[X >= at_least], from the definition of the law."""
    upper = np.exp(-np.maximum(at_least, 1 - at_least) / float(scale)) / (1 + np.exp(-1 / float(scale)))
    return np.where(at_least > 0, upper, 1 - upper)


def cells(scale: Fraction, size: int) -> NDArray[np.int64]:
    """Where to cut the integers, so that 50 or more of `size` draws are expected in either last cell."""
    tails = np.concatenate([np.linspace(0.49, 0.01, 30), [1e-3, 1e-4]])
    tails = tails[tails * size >= 50]
    largest = np.floor(-float(scale) * np.log(tails * (1 + np.exp(-1 / float(scale))))).astype(np.int64)
    positive = np.unique(largest[largest > 0])
    return np.concatenate([1 - positive[::-1], positive])


def count(noise: NDArray[np.int64], cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(cuts, noise, side="right"), minlength=cuts.size + 1)


def p_value(noise: NDArray[np.int64], scale: Fraction) -> float:
    """How well the draws fit the law, by Pearson's chi-square test."""
    cuts = cells(scale, noise.size)
    expected = -np.diff(survival(cuts, scale), prepend=1, append=0) * noise.size
    assert expected.min() > 20
    return float(chisquare(count(noise, cuts), expected).pvalue)


@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_law(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale).sample(draws_needed(scale), SeededEntropy(2012))
    assert p_value(noise, scale) > FALSE_ALARM


@pytest.mark.parametrize("error", [Fraction("0.98"), Fraction("1.02")])
@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_wrong_by_two_percent_is_noticed(scale: Fraction, error: Fraction) -> None:
    noise = DiscreteLaplace(scale * error).sample(draws_needed(scale), SeededEntropy(2012))
    assert p_value(noise, scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
def test_every_draw_is_the_same_when_resolved_exactly(scale: Fraction) -> None:
    words = SeededEntropy(2020).words(4_000)
    fast = laplace._geometric(words, scale, ScriptedEntropy([]))
    resolved = [exponential.resolve(word, scale, ScriptedEntropy([]), offset=Fraction(0)) for word in words.tolist()]
    assert fast.tolist() == resolved


def test_draws_resolved_exactly_follow_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponential, "_RELATIVE_MARGIN", np.inf)
    noise = DiscreteLaplace(Fraction(7, 3)).sample(50_000, SeededEntropy(2012))
    assert p_value(noise, Fraction(7, 3)) > FALSE_ALARM
    monkeypatch.undo()
    assert (noise == DiscreteLaplace(Fraction(7, 3)).sample(50_000, SeededEntropy(2012))).all()


def opendp_draws(scale: Fraction, size: int) -> NDArray[np.int64]:
    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(domain, metric, scale=float(scale))([0] * size), dtype=np.int64)


def p_value_of_one_law(first: NDArray[np.int64], second: NDArray[np.int64], scale: Fraction) -> float:
    cuts = cells(scale, first.size)
    return float(chi2_contingency([count(first, cuts), count(second, cuts)]).pvalue)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(233, 2), Fraction(10**6)])
def test_draws_and_those_of_opendp_follow_one_law(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale).sample(20_000, SeededEntropy(2012))
    assert p_value_of_one_law(noise, opendp_draws(scale, 20_000), scale) > 1e-9


def test_a_scale_wrong_by_a_fifth_is_told_apart_from_opendp() -> None:
    noise = DiscreteLaplace(Fraction(120)).sample(20_000, SeededEntropy(2012))
    assert p_value_of_one_law(noise, opendp_draws(Fraction(100), 20_000), Fraction(100)) < 1e-9


FORKS = """
import os
from fractions import Fraction
from plume.noise.entropy import SystemEntropy
from plume.noise.laplace import DiscreteLaplace

entropy, law = SystemEntropy(), DiscreteLaplace(Fraction(2**39))
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
