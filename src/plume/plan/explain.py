"""A plan as text: one line per step, in the order they run."""

from collections.abc import Mapping
from types import MappingProxyType

from plume.limit_meaning import keys_in_words
from plume.plan.analysis import read_twice, shuffled_by, steps
from plume.plan.nodes import (
    Clip,
    Combine,
    CountKeys,
    DropUsers,
    KeepFew,
    KeepSelected,
    KeepUsers,
    Made,
    Map,
    Node,
    Noise,
    OnePass,
    Plan,
    Scan,
    sources,
)
from plume.plan.printing.plan_sql import print_plan
from plume.plan.printing.printer import Printer

AS_PLANNED: Mapping[str, str] = MappingProxyType({})
"""Columns are called what the plan calls them."""


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


def doing(step: Node, called: Mapping[str, str] = AS_PLANNED) -> str:  # noqa: C901 - one case per kind of node
    """Say in a few words what a step does with its rows; `called` are the caller's names of the plan's columns."""
    match step:
        case Combine():
            return f"by {', '.join(called.get(name, name) for name in step.by)}"
        case CountKeys(account=account):
            left = ", and what measures leave of each account" if account else ""
            return f"keys per {called.get(step.user, step.user)}{left}"
        case KeepFew():
            return f"at most {keys_in_words(step.limit)} per {called.get(step.user, step.user)}"
        case Clip():
            return f"clipped to the norm of {keys_in_words(step.limit)}"
        case KeepSelected():
            return f"lookup by {step.lookup.value}"
        case KeepUsers() | DropUsers():
            return f"{step.source.name} read again"
        case OnePass():
            return f"{' and '.join(made.name for made in step.makes)} in one pass"
        case Made(step=made):
            return doing(made, called)
        case Noise():
            return "drawn once"
        case Scan():
            return "public" if step.public else "the table"
        case Map(where=where) if where is not None:
            return "filter"
        case _:
            return ""
