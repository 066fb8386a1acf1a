"""The check that noise which keys share sees public keys only, no more of them than it is made for, and changes in one direction.

Beside `reach`, which sees to it that no user changes more than the limit. docs/guarantees/correlated-noise.md.
"""

from plume.plan.aggregates import Max
from plume.plan.analysis import noisers, spelled_out
from plume.plan.expressions import Column, Comparator, Compare, Literal
from plume.plan.nodes import Append, Combine, KnownKeys, Map, Node, Noise, Plan, Scan
from plume.plan.signs import BOTH, signs_of_column


def noisers_of_unknown_keys(plan: Plan) -> tuple[str, ...]:
    """Name the noisers whose keys share noise that is not made for what they read."""
    listed = noisers(spelled_out(plan))
    return tuple(step.name for step in listed if step.noiser.known_keys and not _suits(step, step.noiser.known_keys))


def _suits(step: Noise, known: KnownKeys) -> bool:
    rows = _most_rows(step.source)
    one_sign = all(signs_of_column(step.source, column) != BOTH for column in known.columns)
    return rows is not None and rows <= known.keys and one_sign


def _most_rows(node: Node) -> int | None:
    """Give the most rows that a step can have, if that is known: public keys, or groups that each hold the row of a public key."""
    match node:
        case Scan(public=True):
            return node.rows
        case Map(source=Combine(source=Append()) as groups, where=Compare(Column(mark), Comparator.EQUAL, Literal(1))):
            return _most_marked(groups, mark)
        case Map():
            return _most_rows(node.source)
        case _:
            return None


def _most_marked(groups: Combine, mark: str) -> int | None:
    if dict(groups.aggregates).get(mark) != Max(Column(mark)) or not isinstance(groups.source, Append):
        return None
    marks = [(one, dict(one.expressions).get(mark)) for one in groups.source.sources if isinstance(one, Map)]
    if len(marks) != len(groups.source.sources) or any(value not in (Literal(0), Literal(1)) for _, value in marks):
        return None
    rows = [_most_rows(one.source) for one, value in marks if value == Literal(1)]
    return None if None in rows else sum(one for one in rows if one is not None)
