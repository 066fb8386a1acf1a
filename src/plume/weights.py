"""What parts of a query weigh when its budget is shared out: brought into one form, and refused where it does not fit.

Apart from queries, which have one form of it only; `calibration/shares.py` makes shares of weights.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from plume.errors import BudgetError, shown
from plume.redaction import Redaction

# Beyond these the smallest share of a budget is nothing to a floating-point number.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


def read_weights(given: Any, parts: Sequence[str]) -> tuple[tuple[str, Fraction], ...]:
    """Read the weights of parts that spend, each called by a name of its own; refuse those of anything else."""
    with Redaction((TypeError, ValueError), lambda _: _no_mapping(given)):
        weights: dict[str, Any] = dict(given)
    for name, weight in weights.items():
        if parts.count(name) != 1:
            raise BudgetError(f"shares names {name!r}; the parts that spend are {', '.join(parts)}.")
        if not _is_weight(weight):
            raise BudgetError(
                f"the share of {name} is {shown(weight)}; it must be a number above 0, such as 2, and neither tiny nor huge."
            )
    return tuple((name, Fraction(weight)) for name, weight in weights.items())


def _no_mapping(given: Any) -> BudgetError:
    return BudgetError(f"shares is {given!r}; it must be a mapping, such as {{'selection': 1, 'count': 2}}.")


def _is_weight(weight: Any) -> bool:
    number = isinstance(weight, int | float | Fraction) and not isinstance(weight, bool)
    return number and _LEAST_WEIGHT <= weight <= _MOST_WEIGHT
