"""Each kind of step as a SELECT.

Names pass `identifier`, constants pass `constant`, and nothing else of a caller gets in.
"""

from plume.errors import PlumeBug
from plume.plan.analysis import adds_tallies
from plume.plan.nodes import (
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
)
from plume.plan.printing.account_sql import print_squares
from plume.plan.printing.aggregate_sql import print_aggregate
from plume.plan.printing.expression_sql import WHOLE, print_expression
from plume.plan.printing.printer import NamedSelect, Printer
from plume.plan.printing.trimmed_sql import leaves_largest_out, print_leaving_out


def print_step(step: Node, printer: Printer, *, kept: bool) -> tuple[NamedSelect, ...]:
    """Print the statements that make the rows of a step."""
    if isinstance(step, CountKeys):
        return printer.count_keys(step, kept=kept)
    return (NamedSelect(step.name, _print_select(step, printer), kept),)


def _print_select(step: Node, printer: Printer) -> str:  # noqa: C901 - one case per kind of node
    match step:
        case Map():
            return _print_map(step, printer)
        case Combine():
            return _print_combine(step, printer)
        case KeepFew():
            return _print_keep_few(step, printer)
        case Clip():
            return _print_clip(step, printer)
        case KeepSelected():
            return printer.keep_selected(step)
        case DropSelected():
            return printer.look_up(step, step.selected, step.keys, "ANTI")
        case KeepUsers():
            return printer.look_up(step, step.users, (step.user,), "SEMI")
        case DropUsers():
            return printer.look_up(step, step.users, (step.user,), "ANTI")
        case Append():
            columns = printer.names(step.columns)
            selects = (f"SELECT {columns}\nFROM {printer.name(source.name)}" for source in step.sources)
            return "\nUNION ALL\n".join(selects)
        case _:
            raise PlumeBug(f"step {step.name} has no SQL")


def _print_map(step: Map, printer: Printer) -> str:
    if isinstance(step.source, CountKeys):
        quicker = printer.users_within(step, step.source)
        if quicker is not None:
            return quicker
    columns = ",\n       ".join(
        f"{print_expression(expression, printer)} AS {printer.name(name)}" for name, expression in step.expressions
    )
    where = f"\nWHERE {print_expression(step.where, printer)}" if step.where else ""
    return f"SELECT {columns}\nFROM {printer.name(step.source.name)}{where}"


def _print_combine(step: Combine, printer: Printer) -> str:
    if adds_tallies(step):
        return printer.add_tallies(step)
    if leaves_largest_out(step):
        return print_leaving_out(step, printer)
    aggregates = [f"{print_aggregate(a, printer)} AS {printer.name(name)}" for name, a in step.aggregates]
    columns = ",\n       ".join([printer.names(step.by), *aggregates])
    return f"SELECT {columns}\nFROM {printer.gathered(step)}\nGROUP BY {printer.names(step.by)}"


def _print_keep_few(step: KeepFew, printer: Printer) -> str:
    user, order = printer.name(step.user), printer.names(step.order)
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {user} ORDER BY {order}) AS key_rank\n"
        f"      FROM {printer.name(step.source.name)}"
    )
    return f"SELECT {printer.names(step.columns)}\nFROM {printer.nested(ranked)}\nWHERE key_rank <= {step.limit}"


def _print_clip(step: Clip, printer: Printer) -> str:
    user, source, columns = printer.name(step.user), printer.name(step.source.name), printer.names(step.source.columns)
    sizes = "".join(
        f",\n             {print_squares(size, printer)} OVER (PARTITION BY {user}) AS size_{number}"
        for number, (_, size) in enumerate(step.factors, start=1)
    )
    factors = "".join(
        f",\n       {_print_factor(f'size_{number}', step.limit * size.squared, printer)} AS {printer.name(name)}"
        for number, (name, size) in enumerate(step.factors, start=1)
    )
    sized = printer.nested(f"SELECT *{sizes}\n      FROM {source}")
    return f"SELECT {columns}{factors}\nFROM {sized}"


def _print_factor(size: str, most: int, printer: Printer) -> str:
    double = printer.dialect.double_type
    # One less than the quotient in floating point, which is off by far less than one: never too large.
    root = f"sqrt(CAST({most} AS {double}) / CAST({size} AS {double}))"
    return f"CASE WHEN {size} <= {most} THEN {WHOLE} ELSE CAST(floor({WHOLE}e0 * {root}) AS BIGINT) - 1 END"
