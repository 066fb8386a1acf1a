"""What a release costs, in integers: billionths of epsilon and of mu, 10^-15 of delta. Costs are rounded up, budgets down."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from plume.errors import BudgetError
from plume.privacy.budget import Budget
from plume.privacy.cost import Cost, Spent, total_epsilon, total_mu, total_shown_alone

EPSILONS = 10**9
DELTAS = 10**15
# SQLite counts to 2**63; a thousand budgets of this size still add up below.
_LARGEST_EPSILON = 10**6


def in_words(epsilon: int, delta: int) -> str:
    """Write units as people do."""
    return spent_in_words(Spent(epsilon / EPSILONS, delta / DELTAS))


def spent_in_words(spent: Spent) -> str:
    """Write what was or may be spent, as all sentences of a ledger do."""
    return f"epsilon {spent.epsilon:.9g} and delta {spent.delta:.3g}"


@dataclass(frozen=True)
class DatasetBudget:
    """The most that all releases of a dataset may spend together, in units."""

    epsilon: int
    delta: int


@dataclass(frozen=True)
class Price:
    """What one release costs, said twice: as one (epsilon, delta), and by its parts, which may compose to less with others.

    Both are true statements of the same release: `epsilon` and `delta` of all of it, and `pure`, `mu` and `passing` of its parts: an
    epsilon without delta, Gaussian noise, and the chance that something is shown which noise does not cover.
    """

    epsilon: int
    delta: int
    pure: int
    mu: int
    passing: int

    def within(self, other: "Price") -> bool:
        """Return whether no part of it costs more than the same part of another."""
        return all(mine <= theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))


def dataset_budget(budget: Budget) -> DatasetBudget:
    """Round a budget down to units."""
    if budget.epsilon > _LARGEST_EPSILON:
        raise BudgetError(f"epsilon is {budget.epsilon!r}; a dataset's may be {_LARGEST_EPSILON:,} at most.")
    in_units = DatasetBudget(_units(budget.epsilon, EPSILONS, ROUND_FLOOR), _units(budget.delta, DELTAS, ROUND_FLOOR))
    if in_units.epsilon == 0:
        raise BudgetError(f"epsilon is {budget.epsilon!r}; a ledger counts billionths, so it must be at least 1e-9.")
    return in_units


def price_of(costs: Iterable[Cost], spent: Spent, budget: Budget) -> Price:
    """Price a release for the ledger; of its whole never more than the budget it was planned for."""
    listed = tuple(costs)
    return Price(
        epsilon=_up(min(spent.epsilon, budget.epsilon), EPSILONS),
        delta=_up(min(spent.delta, budget.delta), DELTAS),
        pure=_up(float(total_epsilon(listed)), EPSILONS),
        mu=_up(total_mu(listed), EPSILONS),
        passing=_up(total_shown_alone(listed), DELTAS),
    )


def _up(value: float, per_one: int) -> int:
    return _units(value, per_one, ROUND_CEILING)


def _units(value: float, per_one: int, rounding: str) -> int:
    """Count units in the number as the caller would write it: ten times 0.1 is 1, which it is not in binary."""
    return int((Decimal(repr(float(value))) * per_one).to_integral_value(rounding))
