"""Noise on the number of users of a key, then a threshold: the paper's own rule, after Korolova et al. 2009."""

from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.noise.laplace import DiscreteLaplace
from plume.plan.expressions import Expression, Literal
from plume.privacy.calibration import laplace_for
from plume.privacy.cost import Cost, laplace_cost

# Thresholds are computed with so many digits that rounding up is the only rounding that matters.
_exact = mpmath.MPContext()
_exact.dps = 60


@dataclass(frozen=True)
class LaplaceThreshold:
    """Keep a key if its users, plus discrete Laplace noise, reach the threshold.

    Guarantee: if each user is in at most `max_keys_per_user` keys, the kept keys are (cost.epsilon, cost.delta)-differentially private.
    With `min_users` above 1, keys with fewer users are never kept. docs/guarantees/laplace-threshold.md.
    """

    max_keys_per_user: int
    noise: DiscreteLaplace
    threshold: int
    min_users: int = 1
    name: str = "Laplace threshold"
    counts_all_keys: bool = False

    @property
    def cost(self) -> Cost:
        """What it spends: the noise on the keys a user shares, and the chance that a key of the user alone passes."""
        epsilon = laplace_cost(
            "selection", scale=self.noise.scale, sensitivity=1, max_keys_per_user=self.max_keys_per_user
        ).epsilon
        alone = _tail(self.noise.scale, self.threshold - self.min_users)
        passing = -_exact.expm1(self.max_keys_per_user * _exact.log1p(-alone))
        return Cost("selection", epsilon=epsilon, delta=float(passing))

    def weight(self, keys_of_user: Expression) -> Expression:  # noqa: ARG002 - other strategies weigh by it
        """One user counts one."""
        return Literal(1)

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
    return LaplaceThreshold(
        max_keys_per_user,
        noise,
        threshold=_threshold(max_keys_per_user, noise.scale, delta) + min_users - 1,
        min_users=min_users,
    )


def _threshold(max_keys_per_user: int, scale: Fraction, delta: float) -> int:
    """Find the smallest threshold that a key with one user passes with probability at most 1 - (1 - delta)^(1/L)."""
    per_key = -_exact.expm1(_exact.log1p(-_exact.mpf(delta)) / max_keys_per_user)
    exact_scale = _exact.mpf(scale.numerator) / scale.denominator
    ratio = _exact.exp(-1 / exact_scale)
    return 1 + max(0, int(_exact.ceil(exact_scale * -_exact.log((1 + ratio) * per_key))))


def _tail(scale: Fraction, at_least: int) -> mpmath.mpf:
    """Pr[noise >= at_least] for at_least >= 0."""
    ratio = _exact.exp(-_exact.mpf(scale.denominator) / scale.numerator)
    return ratio**at_least / (1 + ratio)
