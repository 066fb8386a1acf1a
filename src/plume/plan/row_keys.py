"""The check that rows are brought together, and leave, by their keys: what was counted must not stand in the place of a key.

Beside `reach`, which counts the keys that one user can change. Noise covers the numbers of a key, and nothing covers the key itself.
"""

from plume.plan.analysis import spelled_out, steps
from plume.plan.expressions import Column
from plume.plan.nodes import USER, Append, Combine, KeepSelected, Map, Node, Noise, Plan, Scan, sources

Columns = frozenset[str]


def unkeyed_steps(plan: Plan) -> tuple[str, ...]:
    """Name the steps that combine, keep or release rows of several users by columns that are not the keys of these rows."""
    return tuple(step.name for step in steps(spelled_out(plan)) if not _goes_by_keys(step))


def _goes_by_keys(step: Node) -> bool:
    match step:
        case Combine():
            return _keys(step.source).issuperset(step.by)
        case KeepSelected() if not _of_one(step.source):
            return _keys(step.source) == set(step.keys)
        case Noise() if step.noiser.chooses_rows:
            return not _of_one(step.source) and _keys(step.source) == set(step.noiser.keys)
        case Noise():
            return _keys(step.source).issuperset(step.noiser.keys)
        case _:
            return True


def _of_one(node: Node) -> bool:
    """Return whether each row stems from one user alone, or from none."""
    match node:
        case Scan() | Noise():
            return True
        case Combine():
            return USER in node.by and _of_one(node.source)
        case Append():
            return all(map(_of_one, node.sources))
        case _:
            return _of_one(sources(node)[0])


def _keys(node: Node) -> Columns:
    """Name the columns that may be keys: all of a row that stems from one user, and else those that rows were combined by."""
    if _of_one(node):
        return frozenset(node.columns)
    match node:
        case Combine():
            return frozenset(node.by)
        case Map():
            known = _keys(node.source)
            return frozenset(name for name, of in node.expressions if isinstance(of, Column) and of.name in known)
        case Append():
            return frozenset.intersection(*map(_keys, node.sources))
        case _:
            return _keys(sources(node)[0])
