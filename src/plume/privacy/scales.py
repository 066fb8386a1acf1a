"""How wide noise must be for what it may spend.

Costs of Laplace noise add up in epsilons (Plume section 3.1), exactly, in fractions. Costs of Gaussian noise add up in squares. Thresholds
of selection are found afterwards, for the noise that is drawn: `selection/threshold.py`.
"""

import math
from fractions import Fraction

from plume.errors import RangeError
from plume.noise.exact import LARGEST_SCALE
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.privacy.budget import Budget
from plume.privacy.gaussian import noise_for


def laplace_for(sensitivity: int, *, max_keys_per_user: int, epsilon: Fraction) -> DiscreteLaplace:
    """Scale Laplace noise so that `max_keys_per_user` keys, each changed by `sensitivity`, cost epsilon.

    Guarantee: pure epsilon-differential privacy by the L1 sensitivity. Plume section 4.1, docs/guarantees/discrete-laplace.md.
    """
    return DiscreteLaplace(drawable(max_keys_per_user * sensitivity / epsilon))


def gaussian_for(sensitivity: float, *, max_keys_per_user: int, budget: Budget, share: Fraction) -> RoundedGaussian:
    """Scale Gaussian noise so that `max_keys_per_user` keys, each changed by `sensitivity`, cost a share of the budget.

    Guarantee: Gaussian differential privacy by the L2 sensitivity. docs/guarantees/rounded-gaussian.md.
    """
    sigma = deviation_for(budget, share) * sensitivity * math.sqrt(max_keys_per_user)
    return RoundedGaussian(drawable(Fraction(sigma)))


def deviation_for(budget: Budget, share: Fraction) -> float:
    """The standard deviation for an L2 sensitivity of 1 that costs a share of the budget."""
    return noise_for(budget.epsilon, budget.delta) / math.sqrt(share)


def drawable(scale: Fraction) -> Fraction:
    """Refuse noise that is too wide to be drawn exactly."""
    if scale >= LARGEST_SCALE:
        raise RangeError(
            f"the noise would need a scale of {float(scale):.3g} grid units, more than {float(LARGEST_SCALE):.3g} can be drawn exactly; "
            "raise epsilon or lower max_keys_per_user."
        )
    return scale
