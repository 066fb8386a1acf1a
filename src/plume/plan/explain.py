"""A plan as text: one line per step, in the order they run."""

from plume.plan.analysis import read_twice, shuffled_by, steps
from plume.plan.nodes import (
    Clip,
    Combine,
    CountKeys,
    DropUsers,
    KeepFew,
    KeepSelected,
    KeepUsers,
    Map,
    Node,
    Noise,
    Plan,
    Scan,
    sources,
)
from plume.plan.printing.plan_sql import print_plan
from plume.plan.printing.printer import Printer


def explain_steps(plan: Plan) -> str:
    """List the steps of a plan, what they read, where rows are shuffled, and what is read twice."""
    shared = read_twice(plan)
    lines = [(step.name, type(step).__name__, _reads(step), _remarks(step, shared)) for step in steps(plan)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        f"{name:{widths[0]}}  {kind:{widths[1]}}  {reads:{widths[2]}}  {remarks}".rstrip()
        for name, kind, reads, remarks in lines
    )


def print_steps(plan: Plan, printer: Printer) -> str:
    """Print all steps that are SQL, with their names."""
    statements = [statement for printed in print_plan(plan, printer).values() for statement in printed]
    return "\n\n".join(f"-- {one.name}{', kept' if one.kept else ''}\n{one.select};" for one in statements) + "\n"


def _reads(step: Node) -> str:
    return ", ".join(source.name for source in sources(step))


def _remarks(step: Node, shared: frozenset[str]) -> str:
    shuffled = shuffled_by(step)
    remarks = [
        doing(step),
        f"SHUFFLE by {', '.join(shuffled)}" if shuffled else "",
        "read twice" if step.name in shared else "",
    ]
    return "; ".join(remark for remark in remarks if remark)


def doing(step: Node) -> str:  # noqa: C901 - one case per kind of node
    """Say in a few words what a step does with its rows."""
    match step:
        case Combine():
            return f"by {', '.join(step.by)}"
        case CountKeys(account=account):
            return f"keys per {step.user}" + (", and what measures leave of each account" if account else "")
        case KeepFew():
            return f"at most {step.limit} keys per {step.user}"
        case Clip():
            return f"as much as {step.limit} keys per {step.user}"
        case KeepSelected():
            return f"lookup by {step.lookup.value}"
        case KeepUsers() | DropUsers():
            return f"{step.source.name} read again"
        case Noise():
            return "drawn once"
        case Scan():
            return "public" if step.public else "the table"
        case Map(where=where) if where is not None:
            return "some rows"
        case _:
            return ""
