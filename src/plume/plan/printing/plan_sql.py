"""The steps of a plan as an engine's SQL."""

from plume.plan.analysis import spelled_out, steps, steps_in
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
            found[step.name] = tuple(one for inside in steps_in(step) for one in printed[inside.name])
        elif not isinstance(step, Made | Scan | Noise):
            found[step.name] = printed[step.name]
    return found
