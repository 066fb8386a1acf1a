"""The steps of a plan as an engine's SQL."""

from plume.plan.analysis import steps
from plume.plan.nodes import Noise, Plan, Scan
from plume.plan.printing.printer import Printed, Printer
from plume.plan.printing.step_sql import print_step


def print_plan(plan: Plan, printer: Printer) -> Printed:
    """Print every step that is SQL, by its name."""
    kept = printer.kept(plan)
    selects = [step for step in steps(plan) if not isinstance(step, Scan | Noise)]
    return {step.name: print_step(step, printer, kept=step.name in kept) for step in selects}
