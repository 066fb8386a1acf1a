"""Every user spreads one unit of weight over their keys; noise on the weights, then a threshold (Gopi et al. 2020).

From three keys per user on it keeps the most keys of all strategies that need neither accounts nor a further shuffle.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.noise.noise import tails
from plume.plan.expressions import Clamp, Expression, InverseRoot
from plume.plan.nodes import Account
from plume.privacy.cost import GaussianRoundCost, GaussianSelectionCost, PooledCost
from plume.privacy.gaussian import Floats, Novel
from plume.privacy.scales import drawable
from plume.selection.rule import one_gaussian_round
from plume.selection.threshold import on_grid, smallest_threshold, threshold_alone

# What one unit of weight is on the grid: 2**20 steps.
UNIT = 2**20


@dataclass(frozen=True)
class WeightedGaussian:
    """Keep a key if the weights its users give it, plus Gaussian noise, reach the threshold.

    A user with t keys gives floor(2**20 / sqrt t) to each, so that all their weights together have a Euclidean norm of at most 2**20.

    Guarantee: as a part of a Gaussian release, docs/guarantees/weighted-gaussian.md. With `min_users` above 1 the
    largest weights of a key are left out, one fewer than `min_users`, and keys that have no others are never kept.
    """

    max_keys_per_user: int
    noise: RoundedGaussian
    threshold: int
    min_users: int = 1
    name: str = "weighted Gaussian"
    counts_all_keys: bool = True

    @property
    def account(self) -> Account | None:
        """None: what users do not need for measures is not theirs."""
        return None

    @property
    def left_out(self) -> int:
        """What one user adds to the rest is at most their own weight, and nothing is left of keys with fewer users.

        docs/guarantees/weighted-gaussian.md has the proof.
        """
        return self.min_users - 1

    @property
    def cost(self) -> GaussianSelectionCost | GaussianRoundCost | PooledCost:
        """What it spends: the noise on shared keys, and what a user can do to keys of their own."""
        return GaussianSelectionCost("selection", mu=1 / self.novel.sigma, novel=self.novel)

    @property
    def novel(self) -> Novel:
        """What a user can do to keys that nobody else has."""
        # Rounded noise reaches the threshold exactly if the noise before rounding comes within half a step of it.
        return novel_keys(float(self.noise.scale) / UNIT, (self.threshold - 0.5) / UNIT, self.max_keys_per_user)

    @property
    def users_for_even_chance(self) -> float:
        """With how many users, each with as many keys as count, a key is kept half the time."""
        return self.threshold / UNIT * math.sqrt(self.max_keys_per_user) + self.left_out

    def weight(self, keys_of_user: Expression) -> Expression:
        """Spread one unit over the keys that count."""
        return InverseRoot(Clamp(keys_of_user, 1, self.max_keys_per_user), UNIT)

    def weight_of(self, keys: int) -> int:
        """The same for one user: floor(2**20 / sqrt t)."""
        return math.isqrt(UNIT**2 // min(max(keys, 1), self.max_keys_per_user))

    def chance(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance that noise makes up for what is missing."""
        kept: NDArray[np.float64] = tails(self.noise, self.threshold - weights) * (weights > 0)
        return kept

    def keep(self, weights: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Draw noise for every key, then compare."""
        noised = weights + self.noise.sample(len(weights), entropy)
        kept: NDArray[np.bool_] = (noised >= self.threshold) & (weights > 0)
        return kept

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
        return {
            "strategy": self.name,
            "counted": "its users' weights, 1/√t each of a user with t keys,",
            "threshold": self.threshold / UNIT,
            "noise": self.noise.kind,
            "standard_deviation": self.noise.standard_deviation / UNIT,
            "min_users": self.min_users,
        }


def weighted_gaussian(
    max_keys_per_user: int, *, sigma: float, others: float, epsilon: float, delta: float, min_users: int = 1
) -> WeightedGaussian:
    """Choose the threshold for noise of `sigma` units, beside Gaussian measures of total mu `others`."""
    noise = noise_of(sigma)
    novel = smallest_threshold(
        lambda threshold: novel_keys(float(noise.scale) / UNIT, threshold, max_keys_per_user),
        others=others,
        epsilon=epsilon,
        delta=delta,
    )
    return WeightedGaussian(
        max_keys_per_user, noise, threshold=on_grid(novel.threshold, unit=UNIT), min_users=min_users
    )


def weighted_gaussian_alone(
    max_keys_per_user: int, *, sigma: float, delta: float, min_users: int = 1
) -> WeightedGaussian:
    """Choose the threshold for noise of `sigma` units that a key of one user alone passes with a chance of at most delta.

    For releases in which other noise than Gaussian is drawn: what noise and threshold reveal is then added up.
    """
    noise = noise_of(sigma)
    novel = threshold_alone(
        lambda threshold: novel_keys(float(noise.scale) / UNIT, threshold, max_keys_per_user), delta=delta
    )
    return WeightedGaussian(
        max_keys_per_user, noise, threshold=on_grid(novel.threshold, unit=UNIT), min_users=min_users
    )


def noise_of(sigma: float) -> RoundedGaussian:
    """Noise of at least `sigma` units."""
    return RoundedGaussian(drawable(Fraction(math.ceil(sigma * UNIT))))


def novel_keys(sigma: float, threshold: float, limit: int) -> Novel:
    """What a user can do to keys that nobody else has, all in units."""
    return Novel(_weight, sigma, threshold, limit)


def _weight(keys: Floats) -> Floats:
    weights: Floats = 1 / np.sqrt(keys)
    return weights


RULE = one_gaussian_round(weighted_gaussian, weighted_gaussian_alone)
