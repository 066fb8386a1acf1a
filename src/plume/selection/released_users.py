"""The released number of users is itself compared with the threshold: for users with one key each.

A key is one that its user shares or one of the user alone, never both, so that the whole epsilon is for noise and the whole delta for the
threshold. Nothing is drawn twice: what is shown is what was compared.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from plume.errors import PlumeBug
from plume.noise.entropy import Entropy
from plume.noise.laplace import DiscreteLaplace
from plume.noise.noise import half_width
from plume.privacy.cost import EpsilonCost
from plume.privacy.losses import Shape
from plume.privacy.scales import laplace_for
from plume.selection.laplace_threshold import LaplaceThreshold
from plume.selection.rule import EpsilonBudget, Rounds, Rule
from plume.selection.threshold import lowest_laplace_threshold

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

ONE_KEY = 1
"""In how many keys each user counts."""
# Tails are computed within a relative 1e-12; what is that close to a level is taken to be beyond it, which widens intervals.
_SLACK = 1 - 1e-9


@dataclass(frozen=True)
class ReleasedUsers(LaplaceThreshold):
    """Show a key, and with it the number of its users plus discrete Laplace noise, if that number reaches the threshold.

    Guarantee: if each user is in one key at most, the shown keys and their numbers together are (cost.epsilon, cost.delta)-differentially
    private. With `min_users` above 1, keys with fewer users are never shown. docs/guarantees/released-users.md.
    """

    noise: DiscreteLaplace
    name: str = "released users"

    @property
    def cost(self) -> EpsilonCost:
        """What it spends on selecting keys and on their numbers of users together."""
        return replace(super().cost, what="selection and number of users")

    def release(self, users: Integers, entropy: Entropy) -> tuple[Integers, NDArray[np.bool_]]:
        """Draw noise for every key, once: the noised numbers, and which of them may be shown."""
        noised: Integers = users + self.noise.sample(len(users), entropy)
        shown: NDArray[np.bool_] = (noised >= self.threshold) & (users >= self.min_users)
        return noised, shown

    def keep(self, weights: Integers, entropy: Entropy) -> NDArray[np.bool_]:
        """Draw noise for every key, then compare."""
        return self.release(weights, entropy)[1]

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
        return super().facts() | {"released": "the number that is compared is the one that is released"}

    def sides(self, shown: Integers, level: float) -> tuple[Integers, Integers]:
        """Bound the users of keys with these numbers: however many a key has, of all its numbers that are shown `level` lie within.

        For each number of users these are the numbers between a lower and an upper quantile of those that are shown; both grow with the
        users, so that those a number may stem from have no gaps. docs/guarantees/released-users.md holds the proof.
        """
        outside = (1 - level) * _SLACK
        wide = half_width(self.noise, level)

        def not_too_large(users: Integers) -> NDArray[np.bool_]:
            # Where nothing is left out below, all that may be left out is above.
            everything_below = self._below(self.threshold + 1, users) > outside / 2
            return np.asarray(1 - self._below(shown, users) > np.where(everything_below, outside, outside / 2))

        def too_small(users: Integers) -> NDArray[np.bool_]:
            return np.asarray(self._below(shown + 1, users) <= outside / 2)

        low = _first(not_too_large, np.full_like(shown, self.min_users), shown)
        high = _first(too_small, shown + 1, shown + wide + 1) - 1
        return low, high

    def _below(self, number: Integers | int, users: Integers) -> Floats:
        """The chance that a shown key with these users has less than a number."""
        below: Floats = 1 - _tails(self.noise, number - users) / _tails(self.noise, self.threshold - users)
        return below


def _tails(noise: DiscreteLaplace, at_least: Integers) -> Floats:
    """Give `noise.tail` of many numbers that need not be few different ones."""
    rate = float(1 / noise.scale)
    beyond = np.exp(-rate * np.where(at_least < 1, 1 - at_least, at_least)) / (1 + np.exp(-rate))
    tails: Floats = np.where(at_least < 1, 1 - beyond, beyond)
    return tails


def _first(holds: Callable[[Integers], NDArray[np.bool_]], low: Integers, high: Integers) -> Integers:
    """Find the smallest whole numbers from `low` on for which something holds that holds from there on, or else `high`."""
    while np.any(low < high):
        middle = (low + high) // 2
        holds_there = holds(middle)
        low, high = np.where(holds_there, low, np.minimum(middle + 1, high)), np.where(holds_there, middle, high)
    return low


def released_users(*, epsilon: Fraction, delta: float, min_users: int = 1) -> ReleasedUsers:
    """Choose noise and threshold for users with one key each: all of epsilon for the noise, all of delta for the threshold.

    Keys with fewer than `min_users` users are left out as by the Laplace threshold (docs/guarantees/laplace-threshold.md).
    """
    noise = laplace_for(1, max_keys_per_user=ONE_KEY, epsilon=epsilon)
    threshold = lowest_laplace_threshold(noise, ONE_KEY, delta) + min_users - 1
    return ReleasedUsers(ONE_KEY, noise, threshold=threshold, min_users=min_users)


def _by_epsilon(given: EpsilonBudget) -> Rounds:
    if given.max_keys_per_user != ONE_KEY:
        raise PlumeBug("a number of users is compared and released at once only where users have one key each")
    return (released_users(epsilon=given.epsilon, delta=given.delta, min_users=given.min_users),)


RULE = Rule(by_epsilon=_by_epsilon, shape=Shape.ANY, releases_users=True)
