"""What every kind of noise offers; its own file, so that whoever adds noise need not know which kind it is."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.root import smallest_whole


class Distribution(Protocol):
    """A distribution over the integers, centred at zero, that can be drawn from exactly."""

    @property
    def kind(self) -> str:
        """The distribution's name, as people know it."""

    @property
    def standard_deviation(self) -> float:
        """The standard deviation, in grid units."""

    def tail(self, at_least: int) -> float:
        """The probability of a value of `at_least` or more."""

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw `size` independent values."""


def tails(noise: Distribution, at_least: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give `tail` of many numbers; equal ones are computed once."""
    different, places = np.unique(at_least, return_inverse=True)
    chances: NDArray[np.float64] = np.array([noise.tail(number) for number in different.tolist()], np.float64)[places]
    return chances


def half_width(noise: Distribution, level: float) -> int:
    """Find the smallest width that noise does not exceed, on either side, with a probability of at least `level`."""
    return smallest_whole(lambda width: 2 * noise.tail(width + 1) <= 1 - level, -1, 1)
