"""How far one user's data can reach in a plan: the check that nothing leaves unbounded or without noise.

The reach of a column is the number of keys at which one user can change it, or, where noise is paid in squares and contributions were
clipped, the number of keys that would be as large a change. It is computed for two classes of users at once, those with
few keys and those with many, since the split by degree treats them apart and no user is in both.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from plume.plan.aggregates import Aggregate, Count, Max
from plume.plan.expressions import AnyOf, Column, Comparator, Compare, Expression, IsNull, Literal, NoTally, Shrink
from plume.plan.nodes import (
    USER,
    Append,
    Clip,
    Combine,
    CountKeys,
    DropSelected,
    KeepFew,
    KeepSelected,
    Map,
    Node,
    Noise,
    Scan,
    sources,
)
from plume.plan.trees import columns_of


@dataclass(frozen=True)
class Reach:
    """Keys one user can change, if the user has few keys and if many; `split` says where and at which number they were told apart."""

    few: float
    many: float
    split: str | None = None

    @property
    def most(self) -> float:
        """The reach of any user."""
        return max(self.few, self.many)


NOTHING = Reach(0, 0)
ANYTHING = Reach(math.inf, math.inf)
_ONE = Reach(1, 1)


@dataclass(frozen=True)
class Rows:
    """What is known of a step's rows: the reach of their presence and of each column, and whose they are."""

    presence: Reach
    columns: dict[str, Reach]
    owned: bool
    """Whether each row stems from one user alone."""
    one_per_key: bool
    """Whether a user has at most one row per key."""
    factors: Mapping[str, int] = field(default_factory=dict)
    """The columns that say by how much a user's rows shrink, and how many rows they are as large as then."""


def releases_only_noise(plan: Node) -> bool:
    """Tell whether every path from a table to the plan's rows passes a noiser."""
    match plan:
        case Noise():
            return True
        case Scan():
            return plan.public
        case _:
            return all(releases_only_noise(source) for source in sources(plan))


def unpaid_noisers(plan: Node) -> tuple[str, ...]:
    """Name the noisers whose noise does not cover what one user can change in the rows they read."""
    found = dict.fromkeys(_unpaid(plan))
    return tuple(found)


def _unpaid(node: Node) -> tuple[str, ...]:
    below = tuple(name for source in sources(node) for name in _unpaid(source))
    return below if not isinstance(node, Noise) or _is_paid(node) else (*below, node.name)


def _is_paid(node: Noise) -> bool:
    rows = reach(node.source)
    paid = node.noiser.max_keys_per_user
    hidden = all(rows.columns[column].most <= paid for column in node.noiser.reads)
    return hidden and rows.presence.most <= (paid if node.noiser.chooses_rows else 0)


def reach(node: Node) -> Rows:  # noqa: C901 - one case per kind of node
    """Compute how far one user reaches in the rows of a step."""
    match node:
        case Scan():
            found = NOTHING if node.public else ANYTHING
            return Rows(found, dict.fromkeys(node.columns, found), owned=not node.public, one_per_key=False)
        case Noise():
            return Rows(NOTHING, dict.fromkeys(node.columns, NOTHING), owned=False, one_per_key=False)
        case Map():
            return _reach_of_map(node)
        case Combine():
            return _reach_of_combine(node)
        case CountKeys():
            rows = reach(node.source)
            whole = Reach(rows.presence.most, rows.presence.most)
            return replace(rows, presence=whole, columns=dict.fromkeys(node.columns, whole))
        case KeepFew():
            rows = reach(node.source)
            return _limited(rows, few=node.limit, many=node.limit, split=rows.presence.split)
        case Clip():
            return _reach_of_clip(node)
        case KeepSelected():
            rows = reach(node.source)
            return replace(rows, presence=NOTHING) if _selected_from(node.selected, node.source) else rows
        case DropSelected():
            return reach(node.source)
        case Append():
            return _reach_of_append(node)


def _reach_of_clip(node: Clip) -> Rows:
    """Nothing is bounded yet, but what shrinks by these factors will be."""
    rows = reach(node.source)
    if not rows.one_per_key:
        return replace(rows, columns=rows.columns | dict.fromkeys(node.columns, rows.presence))
    factors = {name: node.limit for name, _ in node.factors}
    return replace(rows, columns=rows.columns | dict.fromkeys(factors, rows.presence), factors=factors)


def _reach_of_map(node: Map) -> Rows:
    rows = _filtered(node, reach(node.source))
    columns = {name: _reach_of_expression(expression, rows) for name, expression in node.expressions}
    return replace(rows, columns=columns, factors={})


def _filtered(node: Map, rows: Rows) -> Rows:
    """Apply the two filters that mean something here; any other filter depends on a user's own row alone."""
    match node.where:
        case AnyOf((IsNull(Column(column)), Compare(Column(same), Comparator.AT_MOST, Literal(int(limit))))) if (
            column == same and _counts(node.source, column)
        ):
            return _limited(rows, few=max(limit, node.source.above), many=0, split=f"{node.source.name} at {limit}")
        case Compare(Column(column), Comparator.GREATER, Literal(int(limit))) if _counts(node.source, column):
            return _limited(rows, few=0, many=math.inf, split=f"{node.source.name} at {limit}")
        case Compare(Column(mark), Comparator.EQUAL, Literal(1)) if _marks_public_rows(node.source, mark):
            return replace(rows, presence=NOTHING)
        case _ if rows.owned or node.where is None:
            return rows
        case _:
            return replace(rows, presence=ANYTHING)


def _counts(node: Node, column: str) -> TypeGuard[CountKeys]:
    return isinstance(node, CountKeys) and node.column == column


def _limited(rows: Rows, *, few: float, many: float, split: str | None) -> Rows:
    """Limit how many rows a user has, which limits the keys they reach if each row is another key."""
    if not rows.one_per_key:
        return rows
    limited = Reach(min(rows.presence.few, few), min(rows.presence.many, many), split)
    return replace(rows, presence=limited, columns=dict.fromkeys(rows.columns, limited))


def _marks_public_rows(node: Node, mark: str) -> bool:
    """Tell whether a group carries the mark exactly if a public row is in it: Plume section 5, dummy values."""
    if not (isinstance(node, Combine) and dict(node.aggregates).get(mark) == Max(Column(mark))):
        return False
    branches = node.source.sources if isinstance(node.source, Append) else ()
    return bool(branches) and all(_mark_is_honest(branch, mark) for branch in branches)


def _mark_is_honest(branch: Node, mark: str) -> bool:
    if not isinstance(branch, Map):
        return False
    value = dict(branch.expressions).get(mark)
    return value == Literal(0) or (value == Literal(1) and reach(branch.source).presence == NOTHING)


def _reach_of_combine(node: Combine) -> Rows:
    rows = reach(node.source)
    by = dict.fromkeys(node.by, rows.presence)
    aggregates = {name: _reach_of_aggregate(aggregate, rows) for name, aggregate in node.aggregates}
    owned = rows.owned and USER in node.by
    if owned and node.by == (USER,):
        # One row for each user: whatever it says, they change that row alone.
        return Rows(_ONE, dict.fromkeys(node.columns, _ONE), owned=True, one_per_key=True)
    return Rows(rows.presence, by | aggregates, owned=owned, one_per_key=owned)


def _reach_of_aggregate(aggregate: Aggregate, rows: Rows) -> Reach:
    return rows.presence if isinstance(aggregate, Count) else _reach_of_expression(aggregate.of, rows)


def _reach_of_expression(expression: Expression, rows: Rows) -> Reach:
    match expression:
        case Column(name):
            return rows.columns[name]
        case Literal(value):
            return NOTHING if value == 0 else rows.presence
        case NoTally():
            return NOTHING
        case Shrink(_, Column(factor)) if rows.owned and factor in rows.factors:
            limit, presence = rows.factors[factor], rows.presence
            return Reach(min(presence.few, limit), min(presence.many, limit), presence.split)
        case _ if rows.owned:
            return rows.presence
        case _:
            return _together(*(rows.columns[name] for name in columns_of(expression)))


def _selected_from(selected: Node, source: Node) -> bool:
    """Tell whether the keys were selected among the very rows they now restrict, so that each has its row."""
    if not (isinstance(selected, Noise) and selected.noiser.chooses_rows):
        return False
    read = selected.source
    return source in (read, read.source if isinstance(read, Map) and read.where is None else read)


def _reach_of_append(node: Append) -> Rows:
    found = [reach(source) for source in node.sources]
    columns = {name: _together(*(rows.columns[name] for rows in found)) for name in node.columns}
    presence = _together(*(rows.presence for rows in found))
    return Rows(presence, columns, owned=all(rows.owned for rows in found), one_per_key=False)


def _together(*reaches: Reach) -> Reach:
    """Add reaches up; classes of users count apart only if the same step told them apart."""
    splits = {found.split for found in reaches if found != NOTHING and found.most > 0}
    if len(splits) == 1:
        return Reach(sum(r.few for r in reaches), sum(r.many for r in reaches), splits.pop())
    worst = sum(found.most for found in reaches)
    return Reach(worst, worst)
