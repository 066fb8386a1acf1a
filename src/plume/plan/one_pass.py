"""A plan that gathers by user in one pass: other steps for the same release, checked before they run like any others.

From the rows up to what is known of each key, and to the rows of users above the limit, SQL takes five steps over all rows. Where they say
no more than a `Recipe` can, one loop over each user's rows does the same. What a recipe cannot say stays as it is. The recipe is found by
comparing steps with those that it stands for, so nothing in them is overlooked. docs/guarantees/bounding.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from plume.plan.aggregates import Count, Sum
from plume.plan.analysis import readers_of, steps
from plume.plan.expressions import (
    Clamp,
    Column,
    Expression,
    InverseRoot,
    Literal,
    PooledWeight,
    SecretOrder,
    Times,
    UsersAbove,
    UsersWithin,
)
from plume.plan.nodes import (
    USER,
    Account,
    Append,
    Combine,
    CountKeys,
    KeepFew,
    Made,
    Map,
    Node,
    Noise,
    OnePass,
    Plan,
    Scan,
    reading,
)
from plume.privacy.pooled import ACCOUNT, STEPS, Charge

NAME = "by_user"


@dataclass(frozen=True)
class Counted:
    """How many records of a user and key count, at most `high`, times a factor; where one is all that counts, `high` is 1."""

    high: int
    factor: int = 1


@dataclass(frozen=True)
class Spread:
    """A weight by the number of a user's keys, of which at most `most` count: one unit spread over them, or the same for all keys."""

    most: int
    unit: int
    alike: bool = False

    def weight_of(self, keys: int) -> int:
        """Give the weight of a user with that number of keys to each of them, as SQL does: floating point finds the exact integer."""
        return self.unit if self.alike else math.floor(self.unit / math.sqrt(min(max(keys, 1), self.most)))


@dataclass(frozen=True)
class Drawn:
    """A weight that is drawn from the account of the user, and spread over at most `most` keys."""

    most: int


@dataclass(frozen=True)
class Recipe:
    """What a pass does with the rows of a user: from distinct keys and their records to weights, contributions and a secret order."""

    rows: Node
    keys: tuple[str, ...]
    limit: int
    """Users with more keys are above the limit."""
    kept: int
    """How many keys of these users count, the first ones in their secret order."""
    weight: Spread | Drawn
    contributions: tuple[Counted, ...]
    """What users within the limit contribute, in columns after the weight."""
    charges: tuple[tuple[Counted, Charge], ...]
    """What measures take from accounts, if there are any."""
    keyed: tuple[str, ...]
    """The columns of what is known of each key: its own, the weight, and the contributions in their order."""
    above: tuple[tuple[str, str], ...]
    """The columns of rows of users above the limit, and which of a pass's columns each is."""


RECORDS, KEYS_OF_USER, LEFT, ORDER = "records", "keys", "left", "order"
"""The columns that a pass makes of users above the limit, beside those that say whose and what they are."""


@dataclass(frozen=True)
class _Steps:
    """The steps that a pass takes the place of."""

    combined: Combine
    counted: CountKeys
    uncut: Map
    of_uncut: Map
    above: Map
    bounded: KeepFew
    of_bounded: Map
    weights: Append
    keyed: Combine


def in_one_pass(plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
    """Rewrite the steps that gather by user, in all stages, wherever a recipe says all that they do."""
    made: dict[str, Node] = {}
    taken = {end.name: one for one in _passes(plan) for end in one.makes}
    for step in steps(plan):
        made[step.name] = Made(taken[step.name], step) if step.name in taken else reading(step, made)
    return tuple(reading(stage, made) for stage in plan)


def recipe_of(one: OnePass) -> Recipe | None:
    """Say what a pass does; None, if no recipe says all of it."""
    keyed, above = one.makes
    found = _steps_of(keyed) if isinstance(keyed, Combine) else None
    return (
        _recipe(found) if found is not None and found.above == above and one.source == found.combined.source else None
    )


def _passes(plan: Plan) -> Iterator[OnePass]:
    for step in steps(plan):
        found = _steps_of(step) if isinstance(step, Combine) else None
        if found is not None and _recipe(found) is not None and _are_read_by_nobody_else(found, plan):
            yield OnePass(NAME, found.combined.source, USER, (found.keyed, found.above))


def _are_read_by_nobody_else(found: _Steps, plan: Plan) -> bool:
    inside = (
        found.combined,
        found.counted,
        found.uncut,
        found.of_uncut,
        found.bounded,
        found.of_bounded,
        found.weights,
    )
    names = {step.name for step in (*inside, found.above, found.keyed)}
    return all(reader.name in names for step in inside for reader in readers_of(step, plan))


def _steps_of(keyed: Combine) -> _Steps | None:
    """Find steps in the places in which a pass expects them; what they say is not looked at."""
    match keyed.source:
        case (
            Append(
                sources=(
                    Map(
                        source=Map(
                            source=CountKeys(source=Combine(source=Map(source=Scan())) as combined) as counted
                        ) as uncut
                    ) as of_uncut,
                    Map(source=KeepFew(source=Map() as above) as bounded) as of_bounded,
                )
            ) as weights
        ):
            return _Steps(combined, counted, uncut, of_uncut, above, bounded, of_bounded, weights, keyed)
        case _:
            return None


def _recipe(found: _Steps) -> Recipe | None:
    """Read the numbers of a recipe from steps, which must be the very ones that it stands for."""
    keys, counted = found.keyed.by, found.counted
    (name, weight), *contributed = found.of_uncut.expressions[len(keys) :] or (("", Literal(0)),)
    records = tuple(column for column, _ in found.combined.aggregates)
    contributions = tuple(_counted(expression, records) for _, expression in contributed)
    given = _weight(weight, counted)
    charges = _charges(counted.account, records)
    if not _is_spelled(found) or given is None or charges is None or not _is_known(found, given):
        return None
    if not all(isinstance(one, Counted) for one in contributions):
        return None
    order = found.bounded.order[0]
    named = (*zip((USER, *keys), (USER, *keys), strict=True), *((column, RECORDS) for column in records))
    of_user = [(counted.column, KEYS_OF_USER), *([(counted.account.column, LEFT)] if counted.account else [])]
    return Recipe(
        found.combined.source,
        keys,
        _limit(found),
        found.bounded.limit,
        given,
        tuple(one for one in contributions if one is not None),
        charges,
        keyed=(*keys, name, *(column for column, _ in contributed)),
        above=(*named, *of_user, (order, ORDER)),
    )


def _is_spelled(found: _Steps) -> bool:
    """Return whether steps are what a pass does, but for the numbers, the weight and the contributions of users within the limit."""
    keys, of_keys = found.keyed.by, _as_they_are(found.keyed.by)
    weighed = found.of_uncut.expressions[len(keys) :]
    if not weighed or not found.bounded.order:
        return False
    records = tuple((name, Count()) for name, _ in found.combined.aggregates)
    combined = Combine(found.combined.name, found.combined.source, (USER, *keys), records, gather=(USER,))
    counted = replace(found.counted, source=combined, user=USER)
    everything, keys_of_user = _as_they_are(counted.columns), Column(counted.column)
    order = (found.bounded.order[0], SecretOrder(tuple(Column(column) for column in (USER, *keys))))
    within, more = UsersWithin(keys_of_user, _limit(found)), UsersAbove(keys_of_user, _limit(found))
    uncut = Map(found.uncut.name, counted, everything, where=within)
    above = Map(found.above.name, counted, (*everything, order), where=more)
    bounded = KeepFew(found.bounded.name, above, USER, (order[0], *keys), found.bounded.limit)
    nothing = tuple((name, Literal(0)) for name, _ in weighed[1:])
    of_uncut = Map(found.of_uncut.name, uncut, (*of_keys, *weighed))
    of_bounded = Map(found.of_bounded.name, bounded, (*of_keys, weighed[0], *nothing))
    weights = Append(found.weights.name, (of_uncut, of_bounded))
    sums = tuple((name, Sum(Column(name))) for name, _ in found.keyed.aggregates)
    keyed = Combine(found.keyed.name, weights, keys, sums, gather=keys)
    all_added = {name for name, _ in sums} == {name for name, _ in weighed}
    return all_added and found == _Steps(combined, counted, uncut, of_uncut, above, bounded, of_bounded, weights, keyed)


def _limit(found: _Steps) -> int:
    return found.uncut.where.limit if isinstance(found.uncut.where, UsersWithin) else 0


def _as_they_are(columns: tuple[str, ...]) -> tuple[tuple[str, Expression], ...]:
    return tuple((column, Column(column)) for column in columns)


def _is_known(found: _Steps, weight: Spread | Drawn) -> bool:
    """Return whether whoever is looked at was counted, and nobody's weight is nothing, by which keys are told from others."""
    counted = found.counted
    everybody = counted.above == 0
    alike = isinstance(weight, Spread) and weight.alike and counted.account is None
    if _limit(found) < 1 or not (everybody or (alike and counted.above <= _limit(found))):
        return False
    if isinstance(weight, Spread):
        return weight.weight_of(weight.most) >= 1
    taken = sum(charge.most for _, charge in counted.account.charges) if counted.account else ACCOUNT
    return (ACCOUNT - taken) * STEPS // weight.most >= 1


def _counted(expression: Expression, records: tuple[str, ...]) -> Counted | None:
    """Read a number of records that counts."""
    match expression:
        case Literal(int(value)) if value == 1:
            return Counted(1)
        case Clamp(Column(column), 0, high) if column in records and high >= 1:
            return Counted(high)
        case Times(of, factor) if factor >= 1:
            once = _counted(of, records)
            return None if once is None else replace(once, factor=once.factor * factor)
        case _:
            return None


def _charges(account: Account | None, records: tuple[str, ...]) -> tuple[tuple[Counted, Charge], ...] | None:
    """Read what measures take of an account; None, if sizes are not numbers of records."""
    found: list[tuple[Counted, Charge]] = []
    for size, charge in account.charges if account else ():
        counted = _counted(size.of[0], records) if len(size.of) == 1 else None
        if counted is None or counted.factor != 1:
            return None
        found.append((counted, charge))
    return tuple(found)


def _weight(expression: Expression, counted: CountKeys) -> Spread | Drawn | None:
    """Read how a weight is made of the number of keys and of what is left of an account."""
    match expression:
        case Literal(int(value)) if value >= 1:
            return Spread(1, value, alike=True)
        case InverseRoot(of, unit):
            most = _most(of, counted)
            return None if most is None else Spread(most, unit)
        case PooledWeight(Column(left), keys) if counted.account and left == counted.account.column:
            most = _most(keys, counted)
            return None if most is None else Drawn(most)
        case _:
            return None


def _most(expression: Expression, counted: CountKeys) -> int | None:
    """Read how many keys of a user count at most."""
    match expression:
        case Clamp(Column(column), 1, high) if column == counted.column:
            return high
        case Clamp(of, 1, high):
            fewer = _most(of, counted)
            return None if fewer is None else min(fewer, high)
        case _:
            return None
