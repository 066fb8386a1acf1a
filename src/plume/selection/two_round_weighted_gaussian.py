"""Weighted Gaussian selection twice: what popular keys do not need any more goes to the others (Swanberg et al. 2023, DP-SIPS).

The first round spends little and finds the keys that nobody can miss; in the second, users spread their weight over the keys that are
left to them. Two rounds keep more keys than one, for one more shuffle by key.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

from plume.privacy.cost import GaussianRoundCost
from plume.privacy.two_rounds import TwoRounds
from plume.selection.rule import ComposedBudget, JointBudget, Rounds, Rule
from plume.selection.threshold import on_grid, smallest_threshold
from plume.selection.weighted_gaussian import (
    UNIT,
    WeightedGaussian,
    noise_of,
    novel_keys,
    weighted_gaussian_alone,
)

# What the rounds get of selection's share: docs/guarantees/two-round-weighted-gaussian.md.
PARTS_OF_ROUNDS = (Fraction(1, 10), Fraction(9, 10))
# What noise leaves of delta. With all of it no threshold would be high enough, and with a tenth the thresholds hardly gain.
KEPT_BACK = 0.05


@dataclass(frozen=True)
class Round(WeightedGaussian):
    """One round, on the keys that no round before it has selected.

    Guarantee: both rounds and Gaussian measures together, docs/guarantees/two-round-weighted-gaussian.md. Where other noise is drawn as
    well, that of Gaussian noise, and beside it the chance that a key of one user alone passes.
    """

    number: int = 1
    name: str = "weighted Gaussian in two rounds"

    @property
    def cost(self) -> GaussianRoundCost:
        """What it spends."""
        return GaussianRoundCost(f"selection, round {self.number}", mu=1 / self.novel.sigma, novel=self.novel)


def weighted_gaussian_round(
    number: int, max_keys_per_user: int, *, sigma: float, delta: float, min_users: int = 1
) -> Round:
    """Choose the threshold for noise of `sigma` units that a key of one user alone passes with a chance of at most delta."""
    alone = weighted_gaussian_alone(max_keys_per_user, sigma=sigma, delta=delta)
    return Round(max_keys_per_user, alone.noise, alone.threshold, min_users=min_users, number=number)


def _composed(given: ComposedBudget) -> Rounds:
    """Share noise and the delta of thresholds out among the rounds."""
    return tuple(
        weighted_gaussian_round(
            number,
            given.max_keys_per_user,
            sigma=given.sigma_of(part),
            delta=given.delta * float(part),
            min_users=given.min_users,
        )
        for number, part in enumerate(PARTS_OF_ROUNDS, start=1)
    )


def _jointly(given: JointBudget) -> Rounds:
    """Find the thresholds of both rounds together: what each of them may spend depends on the other."""
    noises = tuple(noise_of(given.sigma_of(part)) for part in PARTS_OF_ROUNDS)
    sigmas = tuple(float(noise.scale) / UNIT for noise in noises)
    limit = given.max_keys_per_user
    thresholds = _smallest_thresholds(sigmas, limit, others=given.others, epsilon=given.epsilon, delta=given.delta)
    return tuple(
        Round(limit, noise, on_grid(threshold, unit=UNIT), min_users=given.min_users, number=number)
        for number, (noise, threshold) in enumerate(zip(noises, thresholds, strict=True), start=1)
    )


@lru_cache(maxsize=64)
def _smallest_thresholds(
    sigmas: tuple[float, ...], limit: int, *, others: float, epsilon: float, delta: float
) -> tuple[float, float]:
    """Find the lowest threshold of the second round that any first round leaves delta for, and the lowest one of the first beside it.

    The second decides on nearly all keys. Once for all plans of a budget.
    """
    first, second = (novel_keys(sigma, math.inf, limit) for sigma in sigmas)
    find = partial(smallest_threshold, others=others, epsilon=epsilon, delta=delta)
    rounds = find(lambda threshold: TwoRounds(first, replace(second, threshold=threshold)))
    rounds = find(lambda threshold: TwoRounds(replace(first, threshold=threshold), rounds.second))
    return rounds.first.threshold, rounds.second.threshold


RULE = Rule(_composed, jointly=_jointly, delta_kept_back=KEPT_BACK)
