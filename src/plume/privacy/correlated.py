"""How noise is shared out between a draw that all keys share and one of each key's own, and what both together reveal.

Its own file because it is mathematics alone: numbers in, numbers out. docs/guarantees/correlated-noise.md holds the proofs.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from plume.noise.correlated import CorrelatedGaussian
from plume.privacy.cost import GaussianCost


@dataclass(frozen=True)
class Correlation:
    """The standard deviations of both draws, for a sensitivity of 1 in each key and a mu of 1."""

    own: float
    common: float

    @property
    def standard_deviation(self) -> float:
        """Of the noise of one key."""
        return math.hypot(self.own, self.common)


def best_correlation(keys: int, max_keys_per_user: int) -> Correlation:
    """Share noise out so that that of one key is the smallest, for 2 or more keys that are all that there are.

    More keys of a user than (d + √d)/2 of all d cost nothing more, since what they have in common grows as well.
    """
    most = min(max_keys_per_user, (keys + math.sqrt(keys)) / 2)
    left = math.sqrt((1 - most / keys) / (most * (1 - 1 / keys)))
    taken = (1 - left) / keys
    own = most * (1 - taken * most)
    return Correlation(math.sqrt(own), math.sqrt(max(taken, 0.0) * own / left))


def share_of_independent_noise(keys: int, max_keys_per_user: int) -> float:
    """Say how wide the noise of one key is, relative to that of keys that share nothing."""
    wide = best_correlation(keys, max_keys_per_user).standard_deviation
    return wide / math.sqrt(min(keys, max_keys_per_user))


def correlated_cost(what: str, noise: CorrelatedGaussian, *, squared: int, max_keys_per_user: int) -> GaussianCost:
    """Price noise that keys share, from what is drawn: contributions of one sign, `squared` at most, and as many keys in squares.

    Guarantee: Gaussian differential privacy by the distance that the covariance measures. docs/guarantees/correlated-noise.md.
    """
    return GaussianCost(what, math.sqrt(squared_mu(noise, squared=squared, max_keys_per_user=max_keys_per_user)))


def squared_mu(noise: CorrelatedGaussian, *, squared: int, max_keys_per_user: int) -> Fraction:
    """Give the square of mu exactly, with what is lost because draws are whole numbers."""
    own, common = noise.own**2, noise.common**2
    taken = common / (own + noise.keys * common)
    most = min(Fraction(max_keys_per_user), 1 / (2 * taken))
    return squared * (most - taken * most**2) / own + (noise.keys / own + 1 / common) / 4
