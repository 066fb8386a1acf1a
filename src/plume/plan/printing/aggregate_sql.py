"""An aggregate as SQL."""

from plume.errors import PlumeBug
from plume.plan import aggregates as a
from plume.plan.magnitude import sum_fits
from plume.plan.printing.expression_sql import print_expression
from plume.plan.printing.printer import Printer


def print_aggregate(aggregate: a.Aggregate, printer: Printer) -> str:
    """Print an aggregate over the rows of a group."""
    match aggregate:
        case a.Count():
            return "count(*)"
        case a.CountValues(of):
            return f"count({print_expression(of, printer)})"
        case a.Sum(of):
            total = f"sum({print_expression(of, printer)})"
            return f"CAST({total} AS BIGINT)" if sum_fits(aggregate) else total
        case a.Max(of):
            return f"max({print_expression(of, printer)})"
        case a.Collect(of):
            return printer.collect(print_expression(of, printer))
        case a.AddTallies() | a.SumButLargest():
            raise PlumeBug(f"{type(aggregate).__name__} takes a whole step, not an aggregate")
