"""The one step that leaves the largest numbers of each group out, as SQL.

Equal numbers are counted first, so that a key with all users is a few rows when it is sorted. All of it is by key, so rows are brought
together once.
"""

from typing import TypeGuard

from plume.errors import PlumeBug
from plume.plan.aggregates import Aggregate, Sum, SumButLargest
from plume.plan.expressions import Column
from plume.plan.nodes import Combine, Node
from plume.plan.printing.aggregate_sql import print_aggregate
from plume.plan.printing.expression_sql import print_expression
from plume.plan.printing.printer import Printer


def leaves_largest_out(step: Node) -> TypeGuard[Combine]:
    """Return whether a step has a total without the largest numbers."""
    return isinstance(step, Combine) and any(isinstance(aggregate, SumButLargest) for _, aggregate in step.aggregates)


def print_leaving_out(step: Combine, printer: Printer) -> str:
    """Print a step of which one aggregate leaves the largest numbers out, and the others are sums."""
    keys = printer.names(step.by)
    columns = ",\n       ".join([keys, *(_print_outer(name, a, printer) for name, a in step.aggregates)])
    counted = f"sum(alike) OVER (PARTITION BY {keys} ORDER BY number DESC ROWS UNBOUNDED PRECEDING) AS counted"
    rows = printer.nested(f"SELECT *, {counted}\n      FROM {printer.nested(_print_alike(step, keys, printer))}")
    return f"SELECT {columns}\nFROM {rows}\nGROUP BY {keys}"


def _print_alike(step: Combine, keys: str, printer: Printer) -> str:
    """Combine the rows of a key with equal numbers."""
    (trimmed,) = (aggregate for _, aggregate in step.aggregates if isinstance(aggregate, SumButLargest))
    sums = [
        f", {print_aggregate(aggregate, printer)} AS {printer.name(name)}"
        for name, aggregate in step.aggregates
        if not isinstance(aggregate, SumButLargest)
    ]
    number = print_expression(trimmed.of, printer)
    columns = f"{keys}, {number} AS number, count(*) AS alike{''.join(sums)}"
    gathered = printer.gathered_by(step, keys)
    return f"SELECT {columns}\n            FROM {gathered}\n            GROUP BY {keys}, {number}"


def _print_outer(name: str, aggregate: Aggregate, printer: Printer) -> str:
    named = printer.name(name)
    match aggregate:
        case SumButLargest(_, left_out):
            # Of the numbers that are alike, those that do not come among the first ones of their key.
            others = f"alike - greatest(least({left_out} - (counted - alike), alike), 0)"
            return f"sum(number * ({others})) AS {named}"
        case Sum():
            return f"{print_aggregate(Sum(Column(name)), printer)} AS {named}"
        case _:
            raise PlumeBug(f"{type(aggregate).__name__} beside a total without the largest numbers")
