"""Noise on the number of users of a key, then a threshold: the paper's own rule, after Korolova et al. 2009."""

from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.noise.laplace import DiscreteLaplace
from plume.noise.noise import tails
from plume.noise.rounded_laplace import RoundedLaplace
from plume.plan.expressions import Expression, Literal
from plume.privacy.calibration import laplace_for
from plume.privacy.cost import Cost, laplace_cost, rounded_laplace_cost

# Thresholds are computed with so many digits that rounding up is the only rounding that matters.
_exact = mpmath.MPContext()
_exact.dps = 60


@dataclass(frozen=True)
class LaplaceThreshold:
    """Keep a key if its users, plus Laplace noise, reach the threshold.

    Guarantee: if each user is in at most `max_keys_per_user` keys, the kept keys are (cost.epsilon, cost.delta)-differentially private.
    With `min_users` above 1, keys with fewer users are never kept. docs/guarantees/laplace-threshold.md.
    """

    max_keys_per_user: int
    noise: DiscreteLaplace | RoundedLaplace
    threshold: int
    min_users: int = 1
    name: str = "Laplace threshold"
    counts_all_keys: bool = False
    left_out: int = 0

    @property
    def cost(self) -> Cost:
        """What it spends: the noise on the keys a user shares, and the chance that a key of the user alone passes."""
        price = rounded_laplace_cost if isinstance(self.noise, RoundedLaplace) else laplace_cost
        priced = price("selection", scale=self.noise.scale, sensitivity=1, max_keys_per_user=self.max_keys_per_user)
        alone = _tail(self.noise, self.threshold - self.min_users)
        passing = -_exact.expm1(self.max_keys_per_user * _exact.log1p(-alone))
        return replace(priced, delta=float(passing))

    @property
    def users_for_even_chance(self) -> float:
        """With how many users a key is kept half the time."""
        return self.threshold

    def weight(self, keys_of_user: Expression) -> Expression:  # noqa: ARG002 - other strategies weigh by it
        """One user counts one."""
        return Literal(1)

    def weight_of(self, keys: int) -> int:  # noqa: ARG002 - other strategies weigh by it
        """One."""
        return 1

    def chance(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance that noise makes up for what is missing."""
        kept: NDArray[np.float64] = tails(self.noise, self.threshold - weights) * (weights >= self.min_users)
        return kept

    def keep(self, weights: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Draw noise for every key, then compare."""
        noised = weights + self.noise.sample(len(weights), entropy)
        return (noised >= self.threshold) & (weights >= self.min_users)

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
        return {
            "strategy": self.name,
            "counted": "its users",
            "threshold": self.threshold,
            "noise": self.noise.kind,
            "standard_deviation": self.noise.standard_deviation,
            "min_users": self.min_users,
        }


def laplace_threshold(
    max_keys_per_user: int, *, epsilon: Fraction, delta: float, min_users: int = 1
) -> LaplaceThreshold:
    """Choose noise and threshold for a budget.

    Keys with fewer than `min_users` users are left out by lowering every count by `min_users - 1`, which keeps its sensitivity,
    and raising the threshold with it: a plain extra test on the exact count would show when it is passed (algorithms 1.8).
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
