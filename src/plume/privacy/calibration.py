"""One budget over all parts of a query: how much noise each part needs, so that all of them together spend no more.

Two ways to compose. Laplace noise adds epsilons up (Plume section 3.1), exactly, in fractions. Gaussian noise adds squares up and is
calibrated in one go with the threshold of selection, which is worth far more than it costs from three keys per user on.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from plume.errors import BudgetError, RangeError
from plume.noise.exact import LARGEST_SCALE
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.privacy.budget import Budget
from plume.privacy.gaussian import noise_for

SELECTION = "selection"
"""What choosing keys is called among the shares, beside the names of the measures."""
LIMIT = "max_keys_per_user"
"""What choosing the limit is called there, where it is chosen."""
# Of the whole budget, for each number that is chosen, unless the shares say otherwise.
SHARE_OF_CHOICE = Fraction(1, 100)


@dataclass(frozen=True)
class Shares:
    """Which part of the budget each part of a query may spend; they add up to one."""

    selection: Fraction
    measures: tuple[Fraction, ...]
    choices: tuple[Fraction, ...] = ()
    """Of each number that is chosen."""


def share(
    weights: Mapping[str, Fraction], measures: tuple[str, ...], *, selects_keys: bool, choices: tuple[str, ...] = ()
) -> Shares:
    """Share a budget out by weight: 1 for a measure that has none, for selection as much as all measures together.

    Public keys need no selection and leave everything to the measures. Each number that is chosen takes a small share of the whole.
    """
    of_measures = [weights.get(name, Fraction(1)) for name in measures]
    of_selection = weights.get(SELECTION, sum(of_measures, Fraction())) if selects_keys else Fraction()
    others = sum(of_measures, of_selection)
    of_choices = [weights[name] if name in weights else _small(others, choices) for name in choices]
    whole = sum(of_choices, others)
    of_each = (tuple(weight / whole for weight in weights) for weights in (of_measures, of_choices))
    return Shares(of_selection / whole, *of_each)


def _small(others: Fraction, choices: tuple[str, ...]) -> Fraction:
    """The weight of a choice that has none, beside that of everything else."""
    left = 1 - SHARE_OF_CHOICE * len(choices)
    if left <= 0:
        raise BudgetError(
            f"{len(choices)} numbers are left to be chosen within the budget, each for a share of {float(SHARE_OF_CHOICE):g}, which leaves "
            f"nothing to the measures; leave fewer than {1 / SHARE_OF_CHOICE} open, or give each a share with shares=."
        )
    return others * SHARE_OF_CHOICE / left


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
