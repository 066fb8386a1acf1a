"""One budget over all parts of a query: how much of it each part may spend.

The paper's split (Plume section 9): half of epsilon and all of delta for selection, the rest of epsilon in equal parts for the measures.
Everything is an exact fraction, so that the parts add up to the whole.
"""

from dataclasses import dataclass
from fractions import Fraction

from plume.errors import BudgetError, RangeError
from plume.noise.laplace import LARGEST_SCALE, DiscreteLaplace
from plume.privacy.budget import Budget


@dataclass(frozen=True)
class Shares:
    """What each part of a query may spend."""

    selection_epsilon: Fraction
    selection_delta: float
    measure_epsilon: Fraction
    """For each measure."""


def share(budget: Budget, *, measures: int, selects_keys: bool) -> Shares:
    """Split a budget as the paper does; public keys need no selection and leave all of epsilon to the measures."""
    whole = budget.exact_epsilon
    if not selects_keys:
        return Shares(Fraction(), 0.0, whole / measures)
    if budget.delta == 0:
        raise BudgetError(
            "delta is 0; choosing keys from data needs a delta above 0, such as 1e-6. With public_keys= it may be 0."
        )
    return Shares(whole / 2, budget.delta, whole / 2 / measures)


def laplace_for(sensitivity: int, *, max_keys_per_user: int, epsilon: Fraction) -> DiscreteLaplace:
    """Scale Laplace noise so that `max_keys_per_user` keys, each changed by `sensitivity`, cost epsilon.

    Guarantee: pure epsilon-differential privacy by the L1 sensitivity. Plume section 4.1, docs/guarantees/discrete-laplace.md.
    """
    scale = max_keys_per_user * sensitivity / epsilon
    if scale >= LARGEST_SCALE:
        raise RangeError(
            f"the noise would need a scale of {float(scale):.3g} grid units, more than {float(LARGEST_SCALE):.3g} can be drawn exactly; "
            "raise epsilon or lower max_keys_per_user."
        )
    return DiscreteLaplace(scale)
