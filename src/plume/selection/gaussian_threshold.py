"""Gaussian noise on the number of users of a key, then a threshold."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from plume.noise.gaussian import RoundedGaussian
from plume.privacy.cost import GaussianSelectionCost
from plume.privacy.gaussian import Novel
from plume.privacy.scales import drawable
from plume.selection.rule import one_gaussian_round
from plume.selection.threshold import on_grid, smallest_threshold, threshold_alone
from plume.selection.user_threshold import UserThreshold


@dataclass(frozen=True)
class GaussianThreshold(UserThreshold):
    """Keep a key if its users, plus rounded Gaussian noise, reach the threshold.

    Guarantee: as a part of a Gaussian release, docs/guarantees/gaussian-threshold.md. With `min_users` above 1, keys
    with fewer users are never kept.
    """

    noise: RoundedGaussian
    name: str = "Gaussian threshold"

    @property
    def cost(self) -> GaussianSelectionCost:
        """What it spends: the noise on shared keys, and what a user can do to keys of their own."""
        sigma = float(self.noise.scale)
        # Rounded noise reaches the threshold exactly if the noise before rounding comes within half a step of it.
        novel = _novel(sigma, self.threshold - 0.5 - (self.min_users - 1), self.max_keys_per_user)
        return GaussianSelectionCost("selection", mu=math.sqrt(self.max_keys_per_user) / sigma, novel=novel)


def gaussian_threshold(
    max_keys_per_user: int, *, sigma: float, others: float, epsilon: float, delta: float, min_users: int = 1
) -> GaussianThreshold:
    """Choose the threshold for noise of `sigma` users, beside Gaussian measures of total mu `others`.

    `sigma` is for a user with one key. `min_users` lowers every count by `min_users - 1`, which keeps its sensitivity, and raises the
    threshold with it (docs/guarantees/gaussian-threshold.md).
    """
    noise = _noise(sigma, max_keys_per_user)
    novel = smallest_threshold(
        lambda threshold: _novel(float(noise.scale), threshold, max_keys_per_user),
        others=others,
        epsilon=epsilon,
        delta=delta,
    )
    return _with_threshold(noise, novel, min_users)


def gaussian_threshold_alone(
    max_keys_per_user: int, *, sigma: float, delta: float, min_users: int = 1
) -> GaussianThreshold:
    """Choose the threshold for noise of `sigma` users that a key of one user alone passes with a chance of at most delta.

    For releases in which other noise than Gaussian is drawn: what noise and threshold reveal is then added up.
    """
    noise = _noise(sigma, max_keys_per_user)
    novel = threshold_alone(lambda threshold: _novel(float(noise.scale), threshold, max_keys_per_user), delta=delta)
    return _with_threshold(noise, novel, min_users)


def _noise(sigma: float, max_keys_per_user: int) -> RoundedGaussian:
    return RoundedGaussian(drawable(Fraction(sigma * math.sqrt(max_keys_per_user))))


def _with_threshold(noise: RoundedGaussian, novel: Novel, min_users: int) -> GaussianThreshold:
    threshold = on_grid(novel.threshold, unit=1) + min_users - 1
    return GaussianThreshold(novel.max_keys_per_user, noise, threshold=threshold, min_users=min_users)


def _novel(sigma: float, threshold: float, limit: int) -> Novel:
    return Novel(np.ones_like, sigma, threshold, limit)


RULE = one_gaussian_round(gaussian_threshold, gaussian_threshold_alone)
