"""The one loop that walks a plan on any engine."""

from collections.abc import Callable

import pyarrow as pa

from plume.engines.engine import Session
from plume.noise.entropy import Entropy, salt
from plume.plan.analysis import read_twice, steps
from plume.plan.nodes import Node, Noise, Scan
from plume.plan.sql import print_step

OnStep = Callable[[str], None]


def execute(plan: Noise, session: Session, entropy: Entropy, *, order: tuple[str, ...], on_step: OnStep) -> pa.Table:
    """Run a plan step by step and return the rows that may leave, sorted by `order`.

    Guarantee: the secret order of bounding is fresh, and noise is drawn once per row of each noiser.
    """
    secret = salt(entropy)
    kept = read_twice(plan)
    for step in steps(plan):
        if not isinstance(step, Scan):
            on_step(step.name)
            _run_step(step, session, entropy, secret, kept=step.name in kept)
    return session.fetch(plan.name, order)


def _run_step(step: Node, session: Session, entropy: Entropy, secret: str, *, kept: bool) -> None:
    match step:
        case Noise(name=name, source=source, noiser=noiser):
            session.noise(name, source.name, lambda batch: noiser.noise(batch, entropy))
        case _ if kept:
            session.keep(step.name, print_step(step, session.dialect, salt=secret))
        case _:
            session.define(step.name, print_step(step, session.dialect, salt=secret))
