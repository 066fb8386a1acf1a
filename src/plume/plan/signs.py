"""In which directions one user can change the sums of a column, by the numbers of the query alone."""

from collections.abc import Iterable

from plume.plan.aggregates import Sum
from plume.plan.expressions import Clamp, Column, Expression, Integer, Literal, Shrink, Times
from plume.plan.nodes import Append, Combine, Map, Node, Noise, Scan

Signs = frozenset[int]
"""1 if something may be added, -1 if something may be taken away; nothing, if neither."""
BOTH: Signs = frozenset({1, -1})


def signs_of(expression: Expression, below: Node | None = None) -> Signs:
    """Say which signs an integer may have; what is not understood may have both."""
    match expression:
        case Literal(bool()):
            return BOTH
        case Literal(int(value)):
            return _between(value, value)
        case Clamp(_, low, high):
            return _between(min(low, 0), max(high, 0))  # no value at all is 0
        case Times(of, factor):
            return signs_of(of, below) if factor >= 0 else frozenset(-sign for sign in signs_of(of, below))
        case Shrink(of, _) | Integer(of):
            return signs_of(of, below)
        case Column(name) if below is not None:
            return signs_of_column(below, name)
        case _:
            return BOTH


def _between(low: int, high: int) -> Signs:
    return frozenset(sign for sign, there in ((1, high > 0), (-1, low < 0)) if there)


def signs_of_column(node: Node, column: str) -> Signs:
    """Follow a column down a plan to where its integers are bounded."""
    match node:
        case Map():
            expression = dict(node.expressions).get(column)
            return BOTH if expression is None else signs_of(expression, node.source)
        case Combine():
            aggregate = dict(node.aggregates).get(column)
            return signs_of(aggregate.of, node.source) if isinstance(aggregate, Sum) else BOTH
        case Append():
            return _any_of(signs_of_column(source, column) for source in node.sources)
        case Scan() | Noise():
            return BOTH
        case _:
            return signs_of_column(node.source, column) if column in node.source.columns else BOTH


def _any_of(several: Iterable[Signs]) -> Signs:
    return frozenset[int]().union(*several)
