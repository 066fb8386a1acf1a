"""Which columns of a step hold numbers as a noiser released them, followed from noiser to noiser.

Beside `reach`, which asks how far a user reaches: here it is asked whether a number is the very one that its key was selected by.
"""

from collections.abc import Mapping
from functools import reduce

from plume.plan.aggregates import Sum
from plume.plan.analysis import noisers
from plume.plan.expressions import Column, Expression, Integer, Literal
from plume.plan.nodes import Append, Combine, KeepSelected, Map, Node, Noise

Steps = frozenset[str]
"""The steps that released what is in a column; none, if nothing but zeros is in it."""


def was_compared(node: Noise, column: str) -> bool:
    """Return whether a column that a noiser reads holds the numbers that its keys were selected by, released then, and nothing else.

    Keys must be selected by one step alone: a second one that released numbers would have drawn them a second time.
    """
    selecting = frozenset(step.name for step in noisers(node.source) if step.noiser.chooses_rows)
    return len(selecting) == 1 and _released(node.source).get(column) == selecting


def _released(node: Node) -> Mapping[str, Steps]:
    match node:
        case Noise():
            return dict.fromkeys(node.columns, frozenset({node.name}))
        case Map():
            return _kept_as_they_are(dict(node.expressions), _released(node.source))
        case Combine():
            summed = {name: aggregate.of for name, aggregate in node.aggregates if isinstance(aggregate, Sum)}
            return _kept_as_they_are(summed, _released(node.source))
        case KeepSelected():
            return _released(node.source)
        case Append():
            return reduce(_together, map(_released, node.sources))
        case _:
            return {}


def _kept_as_they_are(expressions: Mapping[str, Expression], known: Mapping[str, Steps]) -> dict[str, Steps]:
    """Say of which columns something is known: of those that are the same as another, and of zeros."""
    kept: dict[str, Steps] = {}
    for name, expression in expressions.items():
        match expression:
            case Column(of) | Integer(Column(of)) if of in known:
                kept[name] = known[of]
            case Literal(0):
                kept[name] = frozenset()
    return kept


def _together(one: Mapping[str, Steps], other: Mapping[str, Steps]) -> dict[str, Steps]:
    return {name: one[name] | other[name] for name in one if name in other}
