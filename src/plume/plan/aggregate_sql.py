"""An aggregate as SQL."""

from plume.errors import PlumeBug
from plume.plan import aggregates as a
from plume.plan.dialect import DUCKDB, Target
from plume.plan.expression_sql import print_expression
from plume.plan.magnitude import sum_fits


def print_aggregate(aggregate: a.Aggregate, target: Target) -> str:
    """Print an aggregate over the rows of a group."""
    match aggregate:
        case a.Count():
            return "count(*)"
        case a.CountValues(of):
            return f"count({print_expression(of, target)})"
        case a.Sum(of):
            total = f"sum({print_expression(of, target)})"
            return f"CAST({total} AS BIGINT)" if sum_fits(aggregate) else total
        case a.Max(of):
            return f"max({print_expression(of, target)})"
        case a.Collect(of):
            value = print_expression(of, target)
            return (
                f"list({value}) FILTER (WHERE {value} IS NOT NULL)"
                if target.dialect == DUCKDB
                else f"collect_list({value})"
            )
        case a.AddTallies() | a.SumButLargest():
            raise PlumeBug(f"{type(aggregate).__name__} takes a whole step, not an aggregate")
