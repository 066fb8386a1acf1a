"""Users above a limit, found in a table that is sooner read again than kept, as SQL.

One row per user and key is hardly less than the table itself, and writing so much down takes longer than reading a large file once more.
So rows are counted first: a user with no more rows than the limit has no more keys either. Only the other users, few of them, are
combined, kept and have their keys counted; everybody else is combined on the way to what reads them.
"""

from collections.abc import Iterator
from dataclasses import replace

from plume.plan.aggregates import Count
from plume.plan.analysis import steps
from plume.plan.dialect import Target, identifier
from plume.plan.expressions import Column, Comparator, Compare, Literal
from plume.plan.nodes import Combine, CountKeys, DropSelected, KeepSelected, Lookup, Map, Node, sources
from plume.plan.step_sql import Printed, Statement, limit_of_uncounted, print_step, print_uncounted_columns

_ROWS = "rows_of_user"


def divided(printed: Printed, plan: Node, target: Target) -> Printed:
    """Print the steps around each count of keys anew, where it is enough to know of a user to be within the limit."""
    changes = dict(printed)
    for counted in steps(plan):
        if isinstance(counted, CountKeys) and isinstance(counted.source, Combine):
            uncut = _only_uncut(counted, steps(plan))
            if uncut and not any(statement.kept for statement in printed[uncut.name]):
                changes[counted.source.name] = tuple(_print_combined(counted, counted.source, target))
                changes[uncut.name] = _print_with_few(printed[uncut.name], uncut, counted, target)
    return changes


def _only_uncut(counted: CountKeys, listed: tuple[Node, ...]) -> Map | None:
    """Find the one step that reads users within the limit, if all others read those above it."""
    readers = [step for step in _readers(counted, listed) if not _drops_uncounted(step, counted)]
    if counted.above == 0 or len(readers) != 1 or len(_readers(counted.source, listed)) != 1:
        return None
    (uncut,) = readers
    return uncut if isinstance(uncut, Map) and limit_of_uncounted(uncut, counted) is not None else None


def _readers(node: Node, listed: tuple[Node, ...]) -> list[Node]:
    return [step for step in listed if node.name in {source.name for source in sources(step)}]


def _drops_uncounted(step: Node, counted: CountKeys) -> bool:
    match step:
        case Map(where=Compare(Column(name), Comparator.GREATER, Literal())):
            return name == counted.column
        case _:
            return False


def _print_combined(counted: CountKeys, combined: Combine, target: Target) -> Iterator[Statement]:
    """Combine the rows of users who may be above the limit, and say how those of all others would be."""
    name, rows, user = combined.name, combined.source, counted.user
    counted_rows = Combine(f"{name}_counted", rows, (user,), ((_ROWS, Count()),), gather=(user,))
    above = Compare(Column(_ROWS), Comparator.GREATER, Literal(counted.above))
    many = Map(f"{name}_many", counted_rows, ((user, Column(user)),), where=above)
    of_many = KeepSelected(f"{name}_of_many", rows, many, (user,), Lookup.BROADCAST)
    of_few = DropSelected(f"{name}_of_few", rows, many, (user,))
    few = replace(combined, name=_few(combined), source=of_few)
    kept = {many.name, name}
    for step in (counted_rows, many, of_many, replace(combined, source=of_many), of_few, few):
        yield from print_step(step, target, kept=step.name in kept)


def _few(combined: Node) -> str:
    return f"{combined.name}_few"


def _print_with_few(
    printed: tuple[Statement, ...], step: Map, counted: CountKeys, target: Target
) -> tuple[Statement, ...]:
    """Add the users who cannot be above the limit to those who turned out not to be."""
    (of_many,) = printed
    columns, few = print_uncounted_columns(step, counted, target), identifier(_few(counted.source), target.dialect)
    return (replace(of_many, select=f"{of_many.select}\nUNION ALL\nSELECT {columns}\nFROM {few}"),)
