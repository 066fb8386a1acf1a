"""Noise on the number of users of a key, then a threshold: the paper's own rule, after Korolova et al. 2009."""

from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath

from plume.noise.laplace import DiscreteLaplace
from plume.noise.rounded_laplace import RoundedLaplace
from plume.privacy.cost import EpsilonCost, laplace_cost, rounded_laplace_cost
from plume.privacy.losses import Shape
from plume.privacy.scales import drawable, laplace_for
from plume.selection.rule import ComposedBudget, EpsilonBudget, Rounds, Rule
from plume.selection.threshold import UserThreshold

# Thresholds are computed with so many digits that rounding up is the only rounding that matters.
_exact = mpmath.MPContext()
_exact.dps = 60


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
        alone = _tail(self.noise, self.threshold - self.min_users)
        passing = -_exact.expm1(self.max_keys_per_user * _exact.log1p(-alone))
        return replace(priced, delta=float(passing))


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
    threshold = _threshold(noise, max_keys_per_user, delta) + min_users - 1
    return LaplaceThreshold(max_keys_per_user, noise, threshold=threshold, min_users=min_users)


def _threshold(noise: DiscreteLaplace | RoundedLaplace, max_keys_per_user: int, delta: float) -> int:
    """Find the smallest threshold that a key with one user passes with probability at most 1 - (1 - delta)^(1/L)."""
    per_key = -_exact.expm1(_exact.log1p(-_exact.mpf(delta)) / max_keys_per_user)
    exact_scale = _exact.mpf(noise.scale.numerator) / noise.scale.denominator
    if isinstance(noise, RoundedLaplace):
        steps = exact_scale * -_exact.log(2 * per_key) + _exact.mpf(1) / 2
        # Where even no noise at all would do, noise of 1 is still the least that can be asked for.
        return 1 + max(1, int(_exact.ceil(steps)))
    ratio = _exact.exp(-1 / exact_scale)
    return 1 + max(0, int(_exact.ceil(exact_scale * -_exact.log((1 + ratio) * per_key))))


def _tail(noise: DiscreteLaplace | RoundedLaplace, at_least: int) -> mpmath.mpf:
    """Pr[noise >= at_least], for discrete noise where at_least >= 0, for rounded noise where at_least >= 1."""
    rate = _exact.mpf(noise.scale.denominator) / noise.scale.numerator
    if isinstance(noise, RoundedLaplace):
        return _exact.exp(-rate * (at_least - _exact.mpf(1) / 2)) / 2
    return _exact.exp(-rate * at_least) / (1 + _exact.exp(-rate))


def _by_epsilon(given: EpsilonBudget) -> Rounds:
    return (
        laplace_threshold(given.max_keys_per_user, epsilon=given.epsilon, delta=given.delta, min_users=given.min_users),
    )


def _composed(given: ComposedBudget) -> Rounds:
    noise = RoundedLaplace(drawable(1 / given.epsilon_of_key))
    return (laplace_threshold_with(noise, given.max_keys_per_user, delta=given.delta, min_users=given.min_users),)


RULE = Rule(_composed, by_epsilon=_by_epsilon, shape=Shape.LAPLACE)
