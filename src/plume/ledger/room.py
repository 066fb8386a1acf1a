"""What still fits into the budget of a dataset, as the ledger itself would compose it.

Nothing is charged but by `charge_or_name_largest`, which charges and, where the ledger refuses, says what would have fitted.

Releases compose to less than their sum, and how much less depends on their noise. So no single number is left for every query, and what
fits is found for the query at hand: the same price and the same composition as those of a charge, at one epsilon after another.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from plume.errors import BudgetError, BudgetExceeded, RangeError
from plume.explanation import Explanation
from plume.ledger.composition import least_total, total
from plume.ledger.price import DELTAS, EPSILONS, DatasetBudget, Price, spent_in_words
from plume.ledger.publishing import price_for
from plume.planning import make_plan
from plume.privacy.budget import Budget
from plume.privacy.cost import Spent
from plume.query import Query
from plume.root import crossing

_DIGITS = 5
_CLOSE = 1e-5
_LEAST_SHARE = 1e-3
# How far above the budget what cannot be granted at all is said to be.
_REFUSED = 1.0
_CANNOT_BE_PLANNED = (RangeError, BudgetError, BudgetExceeded)

PriceAt = Callable[[float], Price]


@dataclass(frozen=True)
class DatasetAccount:
    """What a dataset may spend, and what was charged to it."""

    budget: DatasetBudget
    charges: Sequence[Price]


@dataclass(frozen=True)
class BudgetPlan:
    """What a release would do to a dataset's budget."""

    dataset: str
    needed: Spent
    fits: bool
    spent_after: Spent | None
    """What all releases would have spent together; None if it does not fit."""
    largest_epsilon: float | None
    """The largest epsilon with which the query fits; None if not even a thousandth of the budget's epsilon does."""
    budget: Budget
    """The most all releases of the dataset may spend together."""
    spent: Spent
    """What they have spent so far."""

    def record(self) -> dict[str, Any]:
        """Give the same as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        verdict = "It fits" if self.fits else "It does not fit"
        lines = [f"{verdict}: this query needs {spent_in_words(self.needed)} of dataset {self.dataset!r}."]
        if self.spent_after is not None:
            lines.append(f"All releases together would have spent {spent_in_words(self.spent_after)}.")
        return "\n".join([*lines, _largest(self.largest_epsilon), "Nothing was read or charged."])

    def _repr_html_(self) -> str:
        """Show itself in a notebook, with a bar of the budget."""
        from plume.ledger.notebook import show_plan  # noqa: PLC0415 - for notebooks only

        return show_plan(self)


def plan_charge(dataset: str, account: DatasetAccount, query: Query, pipeline: str) -> BudgetPlan:
    """Say whether a query fits, what would be spent then, and the largest epsilon with which it fits."""
    price = price_for(Explanation(make_plan(query, pipeline)))
    after, before = total([*account.charges, price], account.budget), least_total(account.charges, account.budget)
    fits = after.within(account.budget)
    return BudgetPlan(
        dataset=dataset,
        needed=Spent(price.epsilon / EPSILONS, price.delta / DELTAS),
        fits=fits,
        spent_after=Spent(after.epsilon / EPSILONS, after.delta / DELTAS) if fits else None,
        largest_epsilon=largest_epsilon_of(query, account, pipeline),
        budget=Budget(account.budget.epsilon / EPSILONS, account.budget.delta / DELTAS),
        spent=Spent(before.epsilon / EPSILONS, before.delta / DELTAS),
    )


def charge_or_name_largest(
    charge: Callable[[], None], explanation: Explanation, account: Callable[[], DatasetAccount]
) -> None:
    """Charge a dataset; where that is refused, say the largest epsilon with which the same query still fits."""
    try:
        charge()
    except BudgetExceeded as refusal:
        largest = largest_epsilon_of(explanation.query, account(), explanation.pipeline)
        raise BudgetExceeded(f"{refusal} {_largest(largest)}") from None


def _largest(epsilon: float | None) -> str:
    if epsilon is None:
        return "This query fits with no epsilon that is large enough to be useful."
    return f"The largest epsilon with which this query fits is {epsilon:.{_DIGITS}g}."


def largest_epsilon_of(query: Query, account: DatasetAccount, pipeline: str) -> float | None:
    """Find the largest epsilon with which a query fits, all else as it is; its choice of noise may change with epsilon."""

    def price_at(epsilon: float) -> Price:
        changed = replace(query, budget=Budget(epsilon, query.budget.delta))
        return price_for(Explanation(make_plan(changed, pipeline)))

    return largest_epsilon(price_at, account)


def largest_epsilon(price_at: PriceAt, account: DatasetAccount) -> float | None:
    """Find an epsilon, to five digits, that is granted while hardly more is refused; None below a thousandth of the budget's.

    Each look composes all charges anew, which may take seconds. So the search follows how far off each one is.
    """
    epsilon_allowed = account.budget.epsilon / EPSILONS

    @cache
    def excess(epsilon: float) -> float:
        try:
            after = total([*account.charges, price_at(epsilon)], account.budget)
        except _CANNOT_BE_PLANNED:
            return _REFUSED
        return after.epsilon / account.budget.epsilon - 1 if after.delta <= account.budget.delta else _REFUSED

    if excess(_short(epsilon_allowed * _LEAST_SHARE)) > 0:
        return None
    # Of inverses, since what is searched is the smallest number from which on something holds.
    return _short(
        math.exp(
            -crossing(
                lambda inverse: excess(_short(math.exp(-inverse))), -math.log(epsilon_allowed), _CLOSE, first_step=0.5
            )
        )
    )


def _short(epsilon: float) -> float:
    return float(f"{epsilon:.{_DIGITS}g}")
