"""Noise on the number of users of a key, then a threshold: the paper's own rule, after Korolova et al. 2009."""

from dataclasses import dataclass, replace
from fractions import Fraction

from plume.noise.laplace import DiscreteLaplace
from plume.noise.rounded_laplace import RoundedLaplace
from plume.privacy.cost import EpsilonCost, laplace_cost, rounded_laplace_cost
from plume.privacy.losses import Shape
from plume.privacy.scales import drawable, laplace_for
from plume.selection.rule import ComposedBudget, EpsilonBudget, Rounds, Rule
from plume.selection.threshold import chance_alone, lowest_laplace_threshold
from plume.selection.user_threshold import UserThreshold


@dataclass(frozen=True)
class LaplaceThreshold(UserThreshold):
    """Keep a key if its users, plus Laplace noise, reach the threshold.

    Guarantee: if each user is in at most `max_keys_per_user` keys, the kept keys are (cost.epsilon, cost.delta)-differentially private.
    With `min_users` above 1, keys with fewer users are never kept. docs/guarantees/laplace-threshold.md.
    """

    noise: DiscreteLaplace | RoundedLaplace
    name: str = "Laplace threshold"

    @property
    def cost(self) -> EpsilonCost:
        """What it spends: the noise on the keys a user shares, and the chance that a key of the user alone passes."""
        price = rounded_laplace_cost if isinstance(self.noise, RoundedLaplace) else laplace_cost
        priced = price("selection", scale=self.noise.scale, sensitivity=1, max_keys_per_user=self.max_keys_per_user)
        steps = self.threshold - self.min_users
        return replace(priced, delta=chance_alone(self.noise, self.max_keys_per_user, steps))


def laplace_threshold(
    max_keys_per_user: int, *, epsilon: Fraction, delta: float, min_users: int = 1
) -> LaplaceThreshold:
    """Choose noise and threshold for a budget.

    Keys with fewer than `min_users` users are left out by lowering every count by `min_users - 1`, which keeps its sensitivity,
    and raising the threshold with it: a plain extra test on the exact count would show when it is passed
    (docs/guarantees/laplace-threshold.md).
    """
    noise = laplace_for(1, max_keys_per_user=max_keys_per_user, epsilon=epsilon)
    return laplace_threshold_with(noise, max_keys_per_user, delta=delta, min_users=min_users)


def laplace_threshold_with(
    noise: DiscreteLaplace | RoundedLaplace, max_keys_per_user: int, *, delta: float, min_users: int = 1
) -> LaplaceThreshold:
    """Choose the threshold for the noise that is drawn, so that a key of one user alone passes with a chance of at most delta."""
    threshold = lowest_laplace_threshold(noise, max_keys_per_user, delta) + min_users - 1
    return LaplaceThreshold(max_keys_per_user, noise, threshold=threshold, min_users=min_users)


def _by_epsilon(given: EpsilonBudget) -> Rounds:
    return (
        laplace_threshold(given.max_keys_per_user, epsilon=given.epsilon, delta=given.delta, min_users=given.min_users),
    )


def _composed(given: ComposedBudget) -> Rounds:
    noise = RoundedLaplace(drawable(1 / given.epsilon_of_key))
    return (laplace_threshold_with(noise, given.max_keys_per_user, delta=given.delta, min_users=given.min_users),)


RULE = Rule(_composed, by_epsilon=_by_epsilon, shape=Shape.LAPLACE)
