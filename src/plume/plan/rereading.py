"""A plan that reads its table again in place of keeping rows: other steps for the same release, checked before they run like any others.

One row per user and key is hardly less than the table itself, and writing that much down takes longer than reading a large file once more.
So rows are counted first: a user with no more rows than the limit has no more keys either. Only the other users, few of them, are
combined, kept and have their keys counted; everybody else is combined on the way to what reads them. docs/guarantees/bounding.md.
"""

from collections.abc import Iterator
from dataclasses import replace

from plume.plan.aggregates import Count
from plume.plan.analysis import limit_of_uncounted, read_twice, readers_of, steps
from plume.plan.expressions import Column, NoValue, UsersAbove
from plume.plan.nodes import Append, Combine, CountKeys, DropUsers, KeepUsers, Map, Node, Noise, Plan, reading
from plume.plan.trees import columns_of

_ROWS = "rows_of_user"


def reread(plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
    """Rewrite the steps around each count of keys in all stages, where it is enough to know of a user to be within the limit."""
    counts = {counted.source.name: (counted, uncut) for counted, uncut in _divisible(plan)}
    made: dict[str, Node] = {}
    others: dict[str, Combine] = {}
    for step in steps(plan):
        again = reading(step, made)
        if isinstance(again, Combine) and again.name in counts:
            counted, uncut = counts[again.name]
            again, others[uncut.name] = _divided(again, counted)
        elif isinstance(again, Map) and again.name in others:
            again = _with_others(again, others[again.name])
        made[step.name] = again
    return tuple(reading(stage, made) for stage in plan)


def _divisible(plan: Plan) -> Iterator[tuple[CountKeys, Map]]:
    """Find counts of keys of which one step reads users within the limit, not how many keys they have, and all others those above it."""
    for counted in steps(plan):
        if isinstance(counted, CountKeys) and isinstance(counted.source, Combine) and counted.above > 0:
            within = [step for step in readers_of(counted, plan) if not _drops_uncounted(step, counted)]
            if len(within) == len(readers_of(counted.source, plan)) == 1 and within[0].name not in read_twice(plan):
                (uncut,) = within
                if isinstance(uncut, Map) and limit_of_uncounted(uncut, counted) is not None:
                    yield counted, uncut


def _drops_uncounted(step: Node, counted: CountKeys) -> bool:
    return isinstance(step, Map) and isinstance(step.where, UsersAbove) and step.where.counted.name == counted.column


def _divided(combined: Combine, counted: CountKeys) -> tuple[Combine, Combine]:
    """Combine the rows of users who may be above the limit, and apart from them those of all others."""
    name, rows, user = combined.name, combined.source, counted.user
    counted_rows = Combine(f"{name}_counted", rows, (user,), ((_ROWS, Count()),), gather=(user,))
    above = UsersAbove(Column(_ROWS), counted.above)
    many = Map(f"{name}_many", counted_rows, ((user, Column(user)),), where=above)
    of_many, of_few = KeepUsers(f"{name}_of_many", rows, many, user), DropUsers(f"{name}_of_few", rows, many, user)
    return replace(combined, source=of_many), replace(combined, name=f"{name}_few", source=of_few)


def _with_others(uncut: Map, others: Combine) -> Append:
    """Add the users who cannot be above the limit to those who turned out not to be; nobody's keys were counted."""
    expressions = tuple(
        (name, expression if columns_of(expression) <= set(others.columns) else NoValue())
        for name, expression in uncut.expressions
    )
    of_few = Map(f"{uncut.name}_of_few", others, expressions)
    return Append(uncut.name, (replace(uncut, name=f"{uncut.name}_of_many"), of_few))
