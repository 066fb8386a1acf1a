"""What a plan spends, read off the noise it really draws and not off the budget it was given.

Separate from calibration on purpose: a mistake there must not be repeated here.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from plume.errors import BudgetExceeded, PlumeBug
from plume.privacy.budget import Budget
from plume.privacy.gaussian import Novel, delta_of, joint_delta

# Noise and thresholds are rounded so that their delta is at most the one asked for; the float that states it may err by an ulp or two.
_FLOAT_SLACK = 1e-12


@dataclass(frozen=True)
class Cost:
    """What one noiser reveals about one user, and for what; of Laplace noise an epsilon, of Gaussian noise a mu."""

    what: str
    epsilon: Fraction = Fraction()
    mu: float = 0.0
    delta: float = 0.0
    novel: Novel | None = None
    """For Gaussian selection in place of a delta: what a user can do to keys that nobody else has."""


@dataclass(frozen=True)
class Spent:
    """What all parts of a release together spend."""

    epsilon: float
    delta: float


def laplace_cost(what: str, *, scale: Fraction, sensitivity: int, max_keys_per_user: int) -> Cost:
    """Price Laplace noise on keys of which one user changes so many, each by so much: its L1 sensitivity over its scale."""
    return Cost(what, epsilon=max_keys_per_user * sensitivity / scale)


def gaussian_cost(what: str, *, scale: Fraction, sensitivity: float, max_keys_per_user: int) -> Cost:
    """Price Gaussian noise by its L2 sensitivity over its standard deviation."""
    return Cost(what, mu=math.sqrt(max_keys_per_user) * sensitivity / float(scale))


def spend(costs: Iterable[Cost], budget: Budget) -> Spent:
    """Compose costs: epsilons add up (Plume section 3.1), Gaussian parts add up in squares, at the budget's epsilon.

    A release is all of one kind or all of the other; what is mixed is priced as if all its parts were added up.
    """
    listed = tuple(costs)
    pure = sum((cost.epsilon for cost in listed), Fraction())
    if not any(cost.mu for cost in listed):
        return Spent(float(pure), math.fsum(cost.delta for cost in listed))
    left = float(budget.exact_epsilon - pure)
    return Spent(budget.epsilon, math.fsum(cost.delta for cost in listed) + _gaussian_delta(listed, left))


def _gaussian_delta(costs: tuple[Cost, ...], epsilon: float) -> float:
    selections = [cost.novel for cost in costs if cost.novel is not None]
    others = math.sqrt(math.fsum(cost.mu**2 for cost in costs if cost.novel is None))
    match selections:
        case []:
            return float(delta_of(others, epsilon))
        case [novel]:
            return joint_delta(novel, others=others, epsilon=epsilon)
        case _:
            raise PlumeBug("a plan selects keys more than once, which has no price yet")


def shares_spent(costs: Iterable[Cost]) -> dict[str, float]:
    """Say which share of the whole each part spends: of epsilon, or of the squares that Gaussian parts add up in."""
    sizes = {cost.what: cost.mu**2 or float(cost.epsilon) for cost in costs}
    return {what: size / math.fsum(sizes.values()) for what, size in sizes.items()}


def refuse_overspending(costs: Iterable[Cost], budget: Budget) -> None:
    """Raise BudgetExceeded if the costs come to more than the budget."""
    listed = tuple(costs)
    spent = spend(listed, budget)
    if spent.epsilon <= budget.epsilon and spent.delta <= budget.delta * (1 + _FLOAT_SLACK):
        return
    parts = ", ".join(f"{cost.what} {_priced(cost)}" for cost in listed)
    raise BudgetExceeded(
        f"this plan spends epsilon = {spent.epsilon:.6g} and delta = {spent.delta:.3g} "
        f"of {budget.epsilon:.6g} and {budget.delta:.3g}: {parts}."
    )


def _priced(cost: Cost) -> str:
    return f"mu = {cost.mu:.4g}" if cost.mu else f"{float(cost.epsilon):.4g}"
