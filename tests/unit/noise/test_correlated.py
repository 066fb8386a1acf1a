"""Draws that keys share: one for a run, none before it has begun, and none at all from a constant source."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from entropy import ConstantEntropy, SeededEntropy
from plume.errors import PlumeBug
from plume.noise.correlated import CorrelatedGaussian
from plume.noise.gaussian import RoundedGaussian

NOISE = CorrelatedGaussian(Fraction(300), Fraction(200), keys=12)


def test_noise_cannot_be_drawn_before_what_keys_share_is() -> None:
    with pytest.raises(PlumeBug, match="before what they share was drawn"):
        NOISE.sample(3, SeededEntropy(1))


def test_all_draws_of_a_run_share_one() -> None:
    entropy = SeededEntropy(1)
    begun = NOISE.begun(entropy)
    again = SeededEntropy(1)
    assert begun.drawn == RoundedGaussian(Fraction(200)).sample(1, again)[0]
    own = RoundedGaussian(Fraction(300))
    for size in (5, 0, 7):
        assert np.array_equal(begun.sample(size, entropy), own.sample(size, again) + begun.drawn)


def test_a_run_that_has_begun_can_begin_no_second_time_with_the_same_draw() -> None:
    entropy = SeededEntropy(1)
    begun = NOISE.begun(entropy)
    assert begun.begun(entropy).drawn != begun.drawn


def test_a_constant_source_gives_no_noise() -> None:
    assert not NOISE.begun(ConstantEntropy()).sample(12, ConstantEntropy()).any()


def test_finer_steps_leave_the_noise_as_wide() -> None:
    fine = NOISE.times(1024)
    assert fine.standard_deviation / 1024 == pytest.approx(NOISE.standard_deviation, rel=1e-5)
    assert (fine.own / fine.common, fine.keys) == (NOISE.own / NOISE.common, NOISE.keys)


def test_deviations_are_those_of_one_key_and_of_the_total() -> None:
    assert NOISE.standard_deviation == pytest.approx(math.sqrt(300**2 + 200**2 + 1 / 6))
    assert NOISE.deviation_of_total() == pytest.approx(math.sqrt(12 * (300**2 + 1 / 12) + 144 * (200**2 + 1 / 12)))


@pytest.mark.parametrize("scales", [(300, 200), (2**20, 2**18), (100, 100)])
def test_the_tail_is_that_of_both_draws_together(scales: tuple[int, int]) -> None:
    """Against the sum over all that the common draw can be."""
    own, common = (RoundedGaussian(Fraction(scale)) for scale in scales)
    noise = CorrelatedGaussian(own.scale, common.scale, keys=2)
    step = max(1, scales[1] // 400)
    drawn = np.arange(-9 * scales[1], 9 * scales[1] + 1, step)
    chances = norm.cdf(drawn + step / 2, scale=scales[1]) - norm.cdf(drawn - step / 2, scale=scales[1])
    for deviations in (0, 0.5, 1, 2, 3, 5):
        at_least = round(deviations * noise.standard_deviation)
        both = float(np.sum(chances * norm.sf(at_least - drawn - 0.5, scale=scales[0])))
        assert noise.tail(at_least) == pytest.approx(both, rel=1e-6)


@pytest.mark.parametrize("scales", [(0, 1), (1, 0), (2**40, 1), (1, 2**40)])
def test_scales_that_cannot_be_drawn_are_refused(scales: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="scale is"):
        CorrelatedGaussian(Fraction(scales[0]), Fraction(scales[1]), keys=2)
