"""What may be revealed: one epsilon and one delta, checked once so that nobody downstream has to."""

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from plume.arguments import making_checked
from plume.errors import BudgetError, shown

# Noise for a smaller epsilon could not be priced exactly; a smaller delta loses digits in floating point.
LEAST_EPSILON, LEAST_DELTA = 1e-9, 1e-300


@making_checked()
@dataclass(frozen=True)
class Budget:
    """User-level (epsilon, delta)-differential privacy: the most one release may spend.

    >>> Budget(epsilon=1.1, delta=1e-5)
    Budget(epsilon=1.1, delta=1e-05)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not _is_number(self.epsilon) or not 0 < self.epsilon <= sys.float_info.max:
            raise BudgetError(f"epsilon is {shown(self.epsilon)}; it must be a finite number above 0, such as 1.0.")
        if not _is_number(self.delta) or not 0 <= self.delta < 1:
            raise BudgetError(f"delta is {shown(self.delta)}; it must be at least 0 and below 1, such as 1e-6.")

    @property
    def exact_epsilon(self) -> Fraction:
        """The epsilon as the exact number the float stands for, so that splitting it rounds nothing."""
        return Fraction(self.epsilon)


def refuse_other_than_budget(budget: Any) -> None:
    """Refuse what is not a budget."""
    if not isinstance(budget, Budget):
        raise BudgetError(f"budget is {budget!r}; it must be a plume.Budget(epsilon=..., delta=...).")


def refuse_too_small(budget: Budget) -> None:
    """Refuse to plan a query for a budget that is one, but too small; costs and limits may be as small as they like."""
    if budget.epsilon < LEAST_EPSILON:
        raise BudgetError(
            f"epsilon is {budget.epsilon!r}; it must be at least {LEAST_EPSILON:g}, the smallest that is planned for."
        )
    if 0 < budget.delta < LEAST_DELTA:
        raise BudgetError(
            f"delta is {budget.delta!r}; it must be 0, or at least {LEAST_DELTA:g}, the smallest that is planned for."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
