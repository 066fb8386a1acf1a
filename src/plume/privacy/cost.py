"""What a plan spends, read off the noise it really draws and not off the budget it was given.

Separate from calibration on purpose: a mistake there must not be repeated here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from plume.errors import BudgetExceeded
from plume.privacy.budget import Budget

# Thresholds are rounded so that their delta is at most the one asked for; the float that states it may err by an ulp or two.
_FLOAT_SLACK = Fraction(1, 10**12)


@dataclass(frozen=True)
class Cost:
    """What one noiser reveals about one user: an epsilon and a delta, and for what."""

    what: str
    epsilon: Fraction
    delta: float = 0.0


def total(costs: Iterable[Cost]) -> Cost:
    """Add costs up: basic composition, Plume section 3.1."""
    listed = tuple(costs)
    return Cost("total", sum((cost.epsilon for cost in listed), Fraction()), sum(cost.delta for cost in listed))


def refuse_overspending(costs: Iterable[Cost], budget: Budget) -> None:
    """Raise BudgetExceeded if the costs add up to more than the budget."""
    listed = tuple(costs)
    spent = total(listed)
    if spent.epsilon <= budget.exact_epsilon and spent.delta <= budget.delta * (1 + _FLOAT_SLACK):
        return
    parts = ", ".join(f"{cost.what} {float(cost.epsilon):.4g}" for cost in listed)
    raise BudgetExceeded(
        f"this plan spends epsilon = {float(spent.epsilon):.6g} and delta = {spent.delta:.3g} "
        f"of {budget.epsilon:.6g} and {budget.delta:.3g}: {parts}."
    )


def laplace_cost(what: str, *, scale: Fraction, sensitivity: int, max_keys_per_user: int) -> Cost:
    """Price Laplace noise on keys of which one user changes so many, each by so much: its L1 sensitivity over its scale."""
    return Cost(what, max_keys_per_user * sensitivity / scale)
