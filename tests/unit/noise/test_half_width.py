from fractions import Fraction

import numpy as np
import pytest

from entropy import SeededEntropy
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.noise.noise import half_width

NOISES = [DiscreteLaplace(Fraction(116)), RoundedGaussian(Fraction(54)), DiscreteLaplace(Fraction(1, 8))]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_it_is_the_smallest_width_that_covers(noise, level: float) -> None:
    width = half_width(noise, level)
    assert 1 - 2 * noise.tail(width + 1) >= level
    assert width == 0 or 1 - 2 * noise.tail(width) < level


@pytest.mark.parametrize("noise", NOISES[:2], ids=str)
def test_draws_are_covered_as_often_as_promised(noise) -> None:
    """Ten standard deviations of a binomial share around 0.95, on a fixed seed."""
    inside = np.abs(noise.sample(400_000, SeededEntropy(3))) <= half_width(noise, 0.95)
    assert 0.9465 < inside.mean() < 0.96
