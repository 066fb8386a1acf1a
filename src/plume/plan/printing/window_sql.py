"""The step that counts keys of users, in a window: how engines do it that do not join faster than that."""

from plume.plan.nodes import CountKeys
from plume.plan.printing.account_sql import print_left
from plume.plan.printing.printer import NamedSelect, Printer


def print_counting(step: CountKeys, printer: Printer, *, kept: bool) -> tuple[NamedSelect, ...]:
    """Count in a window, which needs no further exchange where rows lie by user."""
    over = f" OVER (PARTITION BY {printer.name(step.user)})"
    left = printer.name(step.account.column) if step.account else ""
    account = f", {print_left(step.account, printer, over=over)} AS {left}" if step.account else ""
    counted = f"SELECT *, count(*){over} AS keys_counted{account} FROM {printer.name(step.source.name)}"
    above = f"CASE WHEN keys_counted > {step.above} THEN keys_counted END AS {printer.name(step.column)}"
    columns = f"{printer.names(step.source.columns)}, {above}" + (f", {left}" if left else "")
    return (NamedSelect(step.name, f"SELECT {columns}\nFROM {printer.nested(counted)}", kept),)
