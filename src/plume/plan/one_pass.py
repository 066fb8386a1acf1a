"""A plan that gathers by user in one pass: other steps for the same release, checked before they run like any others.

From the rows up to what is known of each key, and to the rows of users above the limit, SQL takes five steps over all rows. Where they say
no more than a `Recipe` can, one loop over each user's rows does the same. What a recipe cannot say stays as it is. The recipe is found by
comparing steps with those that it stands for, so nothing in them is overlooked. docs/guarantees/bounding.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plume.plan.aggregates import Count, Sum
from plume.plan.analysis import readers_of, steps, steps_in
from plume.plan.carrying import carrying
from plume.plan.expressions import Column, Expression, Literal, SecretOrder, UsersAbove, UsersWithin, When
from plume.plan.nodes import (
    USER,
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
from plume.plan.recipe import (
    KEYS_OF_USER,
    LEFT,
    ORDER,
    RECORDS,
    Drawn,
    Recipe,
    Spread,
    charges_of,
    counted_of,
    is_added_up,
    weight_of,
)
from plume.privacy.pooled import ACCOUNT, STEPS

NAME = "by_user"


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
    carried = carrying(plan)
    made: dict[str, Node] = {}
    left_out = {step.name for step in steps(plan)} - {step.name for step in steps(carried)}
    passes = [replace(one, stands_for=_stands_for(one, plan, left_out)) for one in _passes(carried)]
    taken = {end.name: one for one in passes for end in one.makes}
    if not taken:
        return plan
    for step in steps(carried):
        made[step.name] = Made(taken[step.name], step) if step.name in taken else reading(step, made)
    return tuple(reading(stage, made) for stage in carried)


def _stands_for(one: OnePass, plan: Plan, left_out: set[str]) -> tuple[str, ...]:
    """Name the steps of a plan that a pass takes the place of, and those that it leaves without a reader."""
    inside = {step.name for step in steps_in(one)} | left_out
    return tuple(step.name for step in steps(plan) if step.name in inside)


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
    aggregates = found.combined.aggregates
    known = dict(aggregates)
    contributions = [counted_of(expression, known) for _, expression in contributed]
    given, charges = weight_of(weight, counted), charges_of(counted.account, known)
    if not _is_spelled(found) or given is None or charges is None or not _is_known(found, given):
        return None
    if None in contributions:
        return None
    order = found.bounded.order[0]
    added = ((column, RECORDS if isinstance(one, Count) else column) for column, one in aggregates)
    named = (*zip((USER, *keys), (USER, *keys), strict=True), *added)
    of_user = [(counted.column, KEYS_OF_USER), *([(counted.account.column, LEFT)] if counted.account else [])]
    return Recipe(
        found.combined.source,
        keys,
        aggregates,
        _limit(found),
        found.bounded.limit,
        found.bounded.limit if _orders_some(found) else _limit(found),
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
    aggregates = found.combined.aggregates
    if not weighed or not found.bounded.order or not all(is_added_up(one) for _, one in aggregates):
        return False
    combined = Combine(found.combined.name, found.combined.source, (USER, *keys), aggregates, gather=(USER,))
    counted = replace(found.counted, source=combined, user=USER)
    everything, keys_of_user = _as_they_are(counted.columns), Column(counted.column)
    secret: Expression = SecretOrder(tuple(Column(column) for column in (USER, *keys)))
    if _orders_some(found):
        secret = When(UsersAbove(keys_of_user, found.bounded.limit), secret)
    order = (found.bounded.order[0], secret)
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


def _orders_some(found: _Steps) -> bool:
    """Return whether only the keys of users who are cut are put in order."""
    return isinstance(found.above.expressions[-1][1], When)


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
