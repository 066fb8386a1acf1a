"""The steps of a plan as SQL in an engine's dialect."""

from plume.plan.analysis import read_twice, steps
from plume.plan.dialect import DUCKDB, Dialect, Target
from plume.plan.divided_sql import divided
from plume.plan.nodes import CountKeys, Node, Noise, Scan
from plume.plan.step_sql import Printed, print_step
from plume.plan.tally_sql import adds_tallies

SALT_UNKNOWN = "{salt}"


def print_plan(plan: Node, dialect: Dialect, *, salt: str = SALT_UNKNOWN) -> Printed:
    """Print every step that is SQL, by its name."""
    kept, target = _kept(plan, dialect), Target(dialect, salt)
    selects = [step for step in steps(plan) if not isinstance(step, Scan | Noise)]
    printed = {step.name: print_step(step, target, kept=step.name in kept) for step in selects}
    return divided(printed, plan, target) if dialect.rereads else printed


def _kept(plan: Node, dialect: Dialect) -> frozenset[str]:
    """Name the steps that are read twice as they are printed."""
    kept = read_twice(plan) | {step.source.name for step in steps(plan) if adds_tallies(step)}
    if dialect != DUCKDB:
        return kept
    # There, users are counted from the rows below, and looked up whenever the step itself is read.
    counting = [step for step in steps(plan) if isinstance(step, CountKeys)]
    return (kept - {step.name for step in counting}) | {step.source.name for step in counting}
