"""How large an expression can get, by the numbers of the query alone: what is known to be small, engines compute in 64 bits."""

from plume.plan.aggregates import Sum
from plume.plan.expressions import Clamp, Expression, Fullness, Literal, Quantise, Square, Tally, Times, When

# No table has more rows.
_ROWS = 2**40


def magnitude(expression: Expression) -> int | None:
    """Give the largest absolute value that an integer, or a weight of a tally, can have, or None where the expression does not say."""
    match expression:
        case Literal(int(value)) if not isinstance(value, bool):
            return abs(value)
        case Clamp(_, low, high) | Quantise(low=low, high=high):
            return max(abs(low), abs(high))
        case Tally(limit=limit, unit=unit):
            return limit * unit
        case Square(of, centre, exponent):
            root = magnitude(of)
            return None if root is None else (max(root * root, centre) >> exponent) + 1
        case Fullness(full=full):
            return full
        case Times(of, factor):
            once = magnitude(of)
            return None if once is None else once * abs(factor)
        case When(_, of):
            return magnitude(of)
        case _:
            return None


def fits(expression: Expression, *, times: int = 1) -> bool:
    """Return whether a multiple of an integer fits into 64 bits."""
    largest = magnitude(expression)
    return largest is not None and largest * times < 2**63


def sum_fits(total: Sum) -> bool:
    """Return whether the total of any table's rows fits into 64 bits."""
    return fits(total.of, times=_ROWS)
