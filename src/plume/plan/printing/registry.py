"""The engines that plans are printed for, by their names: a new one is a file beside this one, and a line here."""

from plume.errors import UsageError
from plume.plan.printing.duckdb import DuckDBPrinter
from plume.plan.printing.printer import Printer
from plume.plan.printing.spark import SparkPrinter

PRINTERS: dict[str, type[Printer]] = {
    "duckdb": DuckDBPrinter,
    "spark": SparkPrinter,
}


def printer_of(dialect: str) -> Printer:
    """Find the printer of an engine, for reading what it prints: it knows no secret."""
    if dialect not in PRINTERS:
        raise UsageError(f"dialect is {dialect!r}; it must be one of {', '.join(PRINTERS)}.")
    return PRINTERS[dialect]()
