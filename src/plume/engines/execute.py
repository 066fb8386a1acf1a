"""The one loop that walks a plan on any engine."""

from collections.abc import Callable

import pyarrow as pa

from plume.engines.engine import Session
from plume.noise.entropy import Entropy, salt
from plume.plan.analysis import steps
from plume.plan.nodes import Noise
from plume.plan.sql import Statement, print_plan

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
        for statement in printed.get(step.name, ()):
            run_statement(statement, session)
    return session.fetch(plan.name, order)


def draw(step: Noise, session: Session, entropy: Entropy) -> None:
    """Pass the rows a noiser reads through it."""
    session.noise(step.name, step.source.name, lambda batch: step.noiser.noise(batch, entropy))


def run_statement(statement: Statement, session: Session) -> None:
    """Make the rows of a statement readable under its name."""
    make = session.keep if statement.kept else session.define
    make(statement.name, statement.select)
