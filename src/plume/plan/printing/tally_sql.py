"""The one step that adds tallies, as far as it is common SQL: the numbers beside the tallies.

It takes two groupings, by key and leaf and then by key, since no engine adds lists of pairs by itself. How they are put together, each
engine says for itself: what costs is bringing rows together where there are many machines, and the work itself where there is one.
"""

from plume.plan.aggregates import AddTallies, Aggregate, Max, Sum, SumButLargest
from plume.plan.expressions import Column
from plume.plan.nodes import Combine
from plume.plan.printing.aggregate_sql import print_aggregate
from plume.plan.printing.printer import Printer


def tallies_of(step: Combine) -> list[str]:
    """Name the columns of a step that are tallies."""
    return [name for name, aggregate in step.aggregates if isinstance(aggregate, AddTallies)]


def print_numbers(step: Combine, printer: Printer) -> dict[str, str]:
    """Print the aggregates of a step that are not tallies, by their columns."""
    numbers = {name: aggregate for name, aggregate in step.aggregates if not isinstance(aggregate, AddTallies)}
    return {name: f"{print_aggregate(_again(name, a), printer)} AS {printer.name(name)}" for name, a in numbers.items()}


def _again(name: str, aggregate: Aggregate) -> Aggregate:
    return Max(Column(name)) if isinstance(aggregate, Max) else Sum(Column(name))


def print_number(step: Combine, name: str, printer: Printer) -> str:
    """Print a number of a row; where the largest of a key are left out, they count nothing."""
    named, aggregate = printer.name(name), dict(step.aggregates).get(name)
    if not isinstance(aggregate, SumButLargest):
        return named
    rank = f"row_number() OVER (PARTITION BY {printer.names(step.by)} ORDER BY {named} DESC)"
    return f"CASE WHEN {rank} > {aggregate.number} THEN {named} ELSE 0 END AS {named}"
