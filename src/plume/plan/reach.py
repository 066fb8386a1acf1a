"""How far one user's data can reach in a plan: the check that nothing leaves unbounded or without noise.

The reach of a column is the number of keys at which one user can change it, or, where noise is paid in squares and contributions were
clipped, the number of keys that would be as large a change. Where a step tells users apart, those with few keys and those with many, it
is computed for both classes at once: other steps treat them apart, and no user is in both.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeGuard

from plume.plan.aggregates import Aggregate, Count, Max, Sum, SumButLargest
from plume.plan.analysis import spelled_out
from plume.plan.expressions import (
    Clamp,
    Column,
    Comparator,
    Compare,
    Expression,
    Integer,
    Literal,
    NoTally,
    NoValue,
    PooledWeight,
    Shrink,
    UsersAbove,
    UsersWithin,
)
from plume.plan.nodes import (
    USER,
    Append,
    Clip,
    Combine,
    CountKeys,
    DropSelected,
    DropUsers,
    KeepFew,
    KeepSelected,
    KeepUsers,
    Map,
    Node,
    Noise,
    Plan,
    Scan,
    roots,
    sources,
)
from plume.plan.trees import columns_of
from plume.plan.unchanged_numbers import was_compared


@dataclass(frozen=True)
class Split:
    """Keys one user can change, if the user has few and if many; `by` says where and at which number they were told apart."""

    by: str
    few: "Reach"
    many: "Reach"


Reach = float | Split
"""Keys one user can change: any user, or those of two classes, which may be told apart further."""
NOTHING = 0.0
ANYTHING = math.inf
_ONE = 1.0


def _most(reach: Reach) -> float:
    """Give the reach of any user."""
    return max(_most(reach.few), _most(reach.many)) if isinstance(reach, Split) else reach


def _at_most(reach: Reach, limit: float) -> Reach:
    if isinstance(reach, Split):
        return replace(reach, few=_at_most(reach.few, limit), many=_at_most(reach.many, limit))
    return min(reach, limit)


def _together(*reaches: Reach) -> Reach:
    """Put reaches together; classes of users count apart only if the same step told them apart.

    Who reaches both may have two rows for a key, and moves it by more, in squares, than two keys are moved: that is unbounded.
    """
    nothing: Reach = NOTHING
    return reduce(_add, reaches, nothing)


def _add(one: Reach, other: Reach) -> Reach:
    if isinstance(one, Split):
        if isinstance(other, Split) and other.by == one.by:
            return Split(one.by, _add(one.few, other.few), _add(one.many, other.many))
        return Split(one.by, _add(one.few, other), _add(one.many, other))
    if isinstance(other, Split):
        return _add(other, one)
    return max(one, other) if NOTHING in (one, other) else ANYTHING


@dataclass(frozen=True)
class AccountWeights:
    """Weights that are drawn from accounts, of which each user gives to at most `limit` keys."""

    counted: CountKeys
    """The step that says what is left of them."""
    keys: CountKeys
    """The step that says over how many keys they are spread: the same, or one that counts the keys that are left later."""
    limit: int


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
    accounts: Mapping[str, CountKeys] = field(default_factory=dict)
    """The columns that say how many keys a user has and what is left of the user's account, as a step said it."""
    drawn: Mapping[str, AccountWeights] = field(default_factory=dict)
    """The columns that are weights drawn from accounts, or sums of them."""


def releases_only_noise(plan: Plan) -> bool:
    """Return whether every path from a table to the rows of each stage passes a noiser."""
    return all(map(_is_noised, roots(spelled_out(plan))))


def _is_noised(node: Node) -> bool:
    match node:
        case Noise():
            return True
        case Scan():
            return node.public
        case _:
            return all(map(_is_noised, sources(node)))


def unpaid_noisers(plan: Plan) -> tuple[str, ...]:
    """Name the noisers, of all stages, whose noise does not cover what one user can change in the rows they read."""
    return tuple(dict.fromkeys(name for root in roots(spelled_out(plan)) for name in _unpaid(root)))


def _unpaid(node: Node) -> tuple[str, ...]:
    below = tuple(name for source in sources(node) for name in _unpaid(source))
    return below if not isinstance(node, Noise) or _is_paid(node) else (*below, node.name)


def _is_paid(node: Noise) -> bool:
    rows = reach(node.source)
    paid = node.noiser.max_keys_per_user
    hidden = all(_most(rows.columns[column]) <= paid for column in node.noiser.reads)
    if node.noiser.account is not None and drawn_from(node) is None:
        return False
    released = all(rows.columns[column] == NOTHING and was_compared(node, column) for column in node.noiser.passes)
    return hidden and released and _most(rows.presence) <= (paid if node.noiser.chooses_rows else 0)


def reach(node: Node) -> Rows:  # noqa: C901 - one case per kind of node
    """Compute how far one user reaches in the rows of a step."""
    match node:
        case Scan():
            found = NOTHING if node.public else ANYTHING
            return Rows(found, dict.fromkeys(node.columns, found), owned=not node.public, one_per_key=False)
        case Noise():
            return Rows(NOTHING, dict.fromkeys(node.columns, NOTHING), owned=False, one_per_key=False)
        case Map():
            return _reach_of_map(node) if _keeps_users(node) else _unknown(node)
        case Combine():
            return _reach_of_combine(node)
        case CountKeys() | KeepFew() | Clip() if node.user != USER:
            return _unknown(node)
        case CountKeys():
            return _reach_of_count(node)
        case KeepFew():
            rows = reach(node.source)
            return _limited(rows, _at_most(rows.presence, node.limit)) if rows.one_per_key else rows
        case Clip():
            return _reach_of_clip(node)
        case KeepSelected() | DropSelected():
            return _reach_of_selected(node)
        case KeepUsers() | DropUsers():
            return _reach_of_users(node)
        case Append():
            return _reach_of_append(node)
        case _:
            return _unknown(node)


def _limited(rows: Rows, presence: Reach) -> Rows:
    """Limit how far a user's rows reach, and so all that is in them."""
    return replace(rows, presence=presence, columns=dict.fromkeys(rows.columns, presence))


def _unknown(node: Node) -> Rows:
    """Take rows to be anybody's, and to depend on everybody."""
    return Rows(ANYTHING, dict.fromkeys(node.columns, ANYTHING), owned=False, one_per_key=False)


def drawn_from(node: Noise) -> CountKeys | None:
    """Find the step that says what is left of the accounts that a noiser's weights are drawn from; None, if they are drawn otherwise."""
    rows, noiser = reach(node.source), node.noiser
    weights = {rows.drawn.get(column) for column in noiser.reads}
    (drawn,) = weights if len(weights) == 1 else (None,)
    if drawn is None or drawn.counted.account != noiser.account:
        return None
    # A user who gives to more keys than the weight was spread over gives more than there is.
    spread = max(_most(rows.columns[column]) for column in noiser.reads) <= drawn.limit <= noiser.max_keys_per_user
    return drawn.counted if spread else None


def _reach_of_count(node: CountKeys) -> Rows:
    """All rows of a user say the same of the user, if each key of theirs is one row."""
    rows = reach(node.source)
    kept = rows.owned and rows.one_per_key and node.above == 0
    # Keys that are counted again, of rows that are left, are still keys of the user whose account it is.
    accounts = {**rows.accounts, **dict.fromkeys(node.counted, node)} if kept else {}
    return replace(rows, columns=dict.fromkeys(node.columns, rows.presence), accounts=accounts, drawn={})


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
    drawn = {name: _drawn(expression, rows) for name, expression in node.expressions}
    as_they_were = [name for name, expression in node.expressions if expression == Column(name)]
    return replace(
        rows,
        columns=columns,
        factors={},
        accounts={name: rows.accounts[name] for name in as_they_were if name in rows.accounts},
        drawn={name: found for name, found in drawn.items() if found is not None},
    )


def _keeps_users(node: Map) -> bool:
    """Return whether rows stay with their users: only the step above a table says by which of its columns they are told apart."""
    user = dict(node.expressions).get(USER, Column(USER))
    return isinstance(user, Column) if isinstance(node.source, Scan) else user == Column(USER)


def _drawn(expression: Expression, rows: Rows) -> AccountWeights | None:
    """Find out whether a column is a weight drawn from an account, of the very users whose keys it says the number of."""
    match expression:
        case Column(name) | Integer(Column(name)):
            return rows.drawn.get(name)
        case PooledWeight(Column(left), Clamp(Clamp(Column(keys), 1, fewer), 1, limit)) if rows.owned:
            return _drawn_by(rows, keys, left, min(fewer, limit))
        case PooledWeight(Column(left), Clamp(Column(keys), 1, limit)) if rows.owned:
            return _drawn_by(rows, keys, left, limit)
        case _:
            return None


def _drawn_by(rows: Rows, keys: str, left: str, limit: int) -> AccountWeights | None:
    counted, charged = rows.accounts.get(keys), rows.accounts.get(left)
    is_both = counted and charged and charged.account and (counted.column, charged.account.column) == (keys, left)
    return AccountWeights(charged, counted, limit) if counted and charged and is_both else None


def _filtered(node: Map, rows: Rows) -> Rows:
    """Apply the two filters that mean something here; any other filter depends on a user's own row alone."""
    match node.where:
        case UsersWithin(Column(column), limit) if _counts(node.source, column) and rows.one_per_key:
            few = _at_most(rows.presence, max(limit, node.source.above))
            return _limited(rows, Split(f"{node.source.name} at {limit}", few=few, many=NOTHING))
        case UsersAbove(Column(column), limit) if _counts(node.source, column) and rows.one_per_key:
            return _limited(rows, Split(f"{node.source.name} at {limit}", few=NOTHING, many=rows.presence))
        case Compare(Column(mark), Comparator.EQUAL, Literal(1)) if _marks_public_rows(node.source, mark):
            return replace(rows, presence=NOTHING)
        case _ if rows.owned or node.where is None:
            return rows
        case _:
            return replace(rows, presence=ANYTHING)


def _counts(node: Node, column: str) -> TypeGuard[CountKeys]:
    return isinstance(node, CountKeys) and node.column == column


def _marks_public_rows(node: Node, mark: str) -> bool:
    """Return whether a group carries the mark exactly if a public row is in it: Plume section 5, dummy values."""
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
    drawn = {
        name: rows.drawn[aggregate.of.name]
        for name, aggregate in node.aggregates
        if isinstance(aggregate, Sum | SumButLargest)
        and isinstance(aggregate.of, Column)
        and aggregate.of.name in rows.drawn
    }
    return Rows(rows.presence, by | aggregates, owned=owned, one_per_key=owned, drawn=drawn)


def _reach_of_aggregate(aggregate: Aggregate, rows: Rows) -> Reach:
    return rows.presence if isinstance(aggregate, Count) else _reach_of_expression(aggregate.of, rows)


def _reach_of_expression(expression: Expression, rows: Rows) -> Reach:
    match expression:
        case Column(name):
            return rows.columns[name]
        case Literal(value):
            return NOTHING if value == 0 else rows.presence
        case NoValue():
            return rows.presence
        case NoTally():
            return NOTHING
        case Shrink(_, Column(factor)) if rows.owned and factor in rows.factors:
            return _at_most(rows.presence, rows.factors[factor])
        case _ if rows.owned:
            return rows.presence
        case _:
            return _together(*(rows.columns[name] for name in columns_of(expression)))


def _reach_of_selected(node: KeepSelected | DropSelected) -> Rows:
    """Keep rows by a set of keys that nobody reaches, because it is public or was noised."""
    rows = reach(node.source)
    if reach(node.selected).presence != NOTHING:
        return _unknown(node)
    chosen_here = isinstance(node, KeepSelected) and _selected_from(node.selected, node.source)
    return replace(rows, presence=NOTHING) if chosen_here else rows


def _selected_from(selected: Node, source: Node) -> bool:
    """Return whether the keys were selected among the very rows they now restrict, so that each has its row."""
    if not (isinstance(selected, Noise) and selected.noiser.chooses_rows):
        return False
    read = selected.source
    return source in (read, read.source if isinstance(read, Map) and read.where is None else read)


def _reach_of_users(node: KeepUsers | DropUsers) -> Rows:
    """Split users by how many rows they have: whoever is not listed has no more keys than rows."""
    rows, limit = reach(node.source), _listed_above(node)
    if limit is None or not rows.owned:
        return _unknown(node)
    few, many = (NOTHING, rows.presence) if isinstance(node, KeepUsers) else (_at_most(rows.presence, limit), NOTHING)
    return _limited(rows, Split(node.users.name, few=few, many=many))


def _listed_above(node: KeepUsers | DropUsers) -> int | None:
    """Give the number of rows above which users are listed; None unless the very rows were counted that are kept or dropped here."""
    users = node.users
    if not (isinstance(users, Map) and isinstance(users.where, UsersAbove) and users.columns == (USER,)):
        return None
    counted = Combine(users.source.name, node.source, (USER,), ((users.where.counted.name, Count()),), gather=(USER,))
    listed = users.source == counted and users.expressions == ((USER, Column(USER)),) and node.user == USER
    return users.where.limit if listed else None


def _reach_of_append(node: Append) -> Rows:
    branches = [reach(source) for source in node.sources]
    return Rows(
        _together(*(rows.presence for rows in branches)),
        {name: _together(*(rows.columns[name] for rows in branches)) for name in node.columns},
        owned=all(rows.owned for rows in branches),
        one_per_key=False,
        accounts=_in_all([rows.accounts for rows in branches]),
        drawn=_in_all([rows.drawn for rows in branches]),
    )


def _in_all(mappings: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Give what is the same in all branches."""
    first, *others = mappings
    return {name: one for name, one in first.items() if all(name in other and other[name] == one for other in others)}
