"""The steps of a plan as an engine's SQL."""

from plume.plan.analysis import spelled_out, steps
from plume.plan.nodes import Made, Noise, OnePass, Plan, Scan
from plume.plan.printing.printer import NamedSelect, Printed, Printer
from plume.plan.printing.step_sql import print_step


def print_plan(plan: Plan, printer: Printer) -> Printed:
    """Print every step that is SQL, by its name; of steps that are made in one pass, the pass has the statements that do the same."""
    spelled = spelled_out(plan)
    kept = printer.kept(spelled)
    selects = [step for step in steps(spelled) if not isinstance(step, Scan | Noise)]
    printed = {step.name: print_step(step, printer, kept=step.name in kept) for step in selects}
    return printed if spelled == plan else _with_passes(plan, printed)


def _with_passes(plan: Plan, printed: Printed) -> Printed:
    found: dict[str, tuple[NamedSelect, ...]] = {}
    for step in steps(plan):
        if isinstance(step, OnePass):
            found[step.name] = _statements_of(step, printed)
        elif not isinstance(step, Made | Scan | Noise):
            found[step.name] = printed[step.name]
    return found


def _statements_of(one: OnePass, printed: Printed) -> tuple[NamedSelect, ...]:
    before = {step.name for step in steps(one.source)}
    inside = {step.name for made in one.makes for step in steps(made)} - before
    # In the order in which the plan has them, which is that of what they read.
    return tuple(statement for name, statements in printed.items() if name in inside for statement in statements)
