"""How large all rows of a user are, and what measures leave of the user's account for it, as SQL.

Apart from the steps because engines count keys each in their own way, and add up sizes wherever they count.
"""

from plume.plan.expressions import Expression, Literal
from plume.plan.magnitude import fits, magnitude
from plume.plan.nodes import Account, Size
from plume.plan.printing.expression_sql import print_expression
from plume.plan.printing.printer import Printer
from plume.privacy.pooled import ACCOUNT, Charge


def print_left(account: Account, printer: Printer, *, over: str = "") -> str:
    """Print what is left of an account, over the rows of a group or of a window."""
    taken = (_print_taken(f"{_print_total(size, printer)}{over}", charge, printer) for size, charge in account.charges)
    return " - ".join((str(ACCOUNT), *taken))


def _print_total(size: Size, printer: Printer) -> str:
    # Engines count rows faster than they add ones up.
    return "count(*)" if size.of == (Literal(1),) else print_squares(size, printer)


def _print_taken(squares: str, charge: Charge, printer: Printer) -> str:
    # One unit more than what floating point can be off by, and never out of the range of integers.
    most = f"{charge.most}e0"
    exact = f"least(CAST({squares} AS {printer.dialect.double_type}) * {charge.rate:.17e}, {most})"
    return f"CAST(least(floor({exact}) + 2e0, {most}) AS BIGINT)"


def print_squares(size: Size, printer: Printer) -> str:
    """Print the sum of the squares of all integers of a size, in a type that no sum leaves."""
    return f"sum({' + '.join(_print_square(of, printer) for of in size.of)})"


def _print_square(of: Expression, printer: Printer) -> str:
    printed = print_expression(of, printer)
    if fits(of, times=magnitude(of) or 1):
        return f"CAST({printed} * {printed} AS {printer.dialect.summable_type})"
    return f"CAST({printed} AS {printer.dialect.wide_type}) * {printed}"
