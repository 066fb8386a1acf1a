"""The one loop that walks a plan on any engine."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from plume.engines.engine import Session
from plume.noise.entropy import Entropy, salt
from plume.plan.analysis import steps
from plume.plan.nodes import KeepSelected, Lookup, Node, Noise
from plume.plan.sql import Printed, print_keep_selected, print_plan

OnStep = Callable[[str], None]


def execute(plan: Noise, session: Session, entropy: Entropy, *, order: tuple[str, ...], on_step: OnStep) -> pa.Table:
    """Run a plan step by step and return the rows that may leave, sorted by `order`.

    Guarantee: the secret order of bounding is fresh, and noise is drawn once per row of each noiser.
    """
    printed = print_plan(plan, session.dialect, salt=salt(entropy))
    for step in steps(plan):
        on_step(step.name)
        if isinstance(step, Noise):
            draw(step, session, entropy)
        else:
            run_step(step, session, printed)
    return session.fetch(plan.name, order)


def draw(step: Noise, session: Session, entropy: Entropy) -> None:
    """Pass the rows a noiser reads through it."""
    session.noise(step.name, step.source.name, lambda batch: step.noiser.noise(batch, entropy))


def run_step(step: Node, session: Session, printed: Printed) -> None:
    """Make the rows of a step readable under its name.

    Guarantee: how keys are looked up is chosen by the number of selected keys alone, which may be known.
    """
    for statement in printed.get(step.name, ()):
        make = session.keep if statement.kept else session.define
        make(statement.name, _looked_up(step, session) or statement.select)


def _looked_up(step: Node, session: Session) -> str | None:
    """Print a step that looks keys up anew, now that it is known how many there are."""
    if not isinstance(step, KeepSelected) or step.lookup is not Lookup.BROADCAST:
        return None
    return print_keep_selected(replace(step, lookup=session.lookup(step.selected.name)), session.dialect)
