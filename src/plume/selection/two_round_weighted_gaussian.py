"""Weighted Gaussian selection twice: what popular keys do not need any more goes to the others (Swanberg et al. 2023, DP-SIPS).

The first round spends little and finds the keys that nobody can miss; in the second, users spread their weight over the keys that are
left to them. It keeps more keys than one round, for one more shuffle by key.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from plume.privacy.cost import GaussianCost
from plume.selection.rule import DELTA_OF_THRESHOLDS, ComposedBudget, JointBudget, Rounds, Rule
from plume.selection.weighted_gaussian import WeightedGaussian, weighted_gaussian_alone

# What the rounds get of selection's share: docs/guarantees/two-round-weighted-gaussian.md.
PARTS_OF_ROUNDS = (Fraction(1, 10), Fraction(9, 10))


@dataclass(frozen=True)
class Round(WeightedGaussian):
    """One round, on the keys that no round before it has selected.

    Guarantee: that of Gaussian noise, and beside it the chance that a key of one user alone passes. Over rounds the first adds up in
    squares, the second plainly. docs/guarantees/two-round-weighted-gaussian.md.
    """

    number: int = 1
    name: str = "weighted Gaussian in two rounds"

    @property
    def cost(self) -> GaussianCost:
        """What it spends; how many novel keys a user has left depends on the rounds before, so the two parts are priced apart."""
        return GaussianCost(f"selection, round {self.number}", mu=1 / self.novel.sigma, delta=self.novel.delta())


def weighted_gaussian_round(
    number: int, max_keys_per_user: int, *, sigma: float, delta: float, min_users: int = 1
) -> Round:
    """Choose the threshold for noise of `sigma` units that a key of one user alone passes with a chance of at most delta."""
    alone = weighted_gaussian_alone(max_keys_per_user, sigma=sigma, delta=delta)
    return Round(max_keys_per_user, alone.noise, alone.threshold, min_users=min_users, number=number)


def _composed(given: ComposedBudget | JointBudget) -> Rounds:
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
    """Take the delta of thresholds off first: what a user can do in the second round depends on the first."""
    return _composed(replace(given, delta=DELTA_OF_THRESHOLDS * given.delta))


RULE = Rule(_composed, jointly=_jointly, delta_of_thresholds=DELTA_OF_THRESHOLDS)
