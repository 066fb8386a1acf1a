"""The one loop that walks a plan on any engine."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from plume.engines.engine import Noisy, Session
from plume.errors import PlumeBug
from plume.noise.entropy import Entropy, salt
from plume.plan.analysis import steps
from plume.plan.nodes import KeepSelected, Lookup, Made, Node, Noise, OnePass, Plan
from plume.plan.printing.plan_sql import print_plan
from plume.plan.printing.printer import Printed

OnStep = Callable[[str], None]


class Walk:
    """One run of a plan, stage by stage: a step that an earlier stage ran is there, and not run again.

    Guarantee: the secret order of bounding is fresh, and noise is drawn once per row of each noiser.
    """

    def __init__(self, session: Session, entropy: Entropy, on_step: OnStep) -> None:
        self._session, self._entropy, self._tell = session, entropy, on_step
        self._salt = salt(entropy)
        self._made: dict[str, Node] = {}

    def through(self, plan: Plan, *, to: Noise, order: tuple[str, ...]) -> pa.Table:
        """Run one stage of a plan, and those before it that it reads, and return its rows, sorted by `order`.

        The plan is printed whole: which rows are kept depends on all that read them, in later stages too.
        """
        printed = print_plan(plan, self._session.printer(self._salt))
        for step in steps(to):
            if step.name in self._made:
                self._refuse_another(step)
            else:
                self._make(step, printed)
        return self._session.fetch(to.name, order)

    def _make(self, step: Node, printed: Printed) -> None:
        for name in _told(step):
            self._tell(name)
        self._made[step.name] = step
        if isinstance(step, Noise):
            draw(step, self._session, self._entropy)
        else:
            run_step(step, self._session, printed, self._salt)

    def _refuse_another(self, step: Node) -> None:
        # Stages are rewritten for the data anew after each choice, and what ran must come out as it was.
        if self._made[step.name] != step:
            raise PlumeBug(f"step {step.name} was run already, and as another one")


def _told(step: Node) -> tuple[str, ...]:
    """Name the steps that begin with this one, as the plan of the query has them.

    Guarantee: the number of rows, which decides whether there is a pass, is not told.
    """
    match step:
        case OnePass():
            return step.stands_for
        case Made():
            return ()
        case _:
            return (step.name,)


def draw(step: Noise, session: Noisy, entropy: Entropy) -> None:
    """Pass the rows a noiser reads through it; what its batches share is drawn before the first of them."""
    noiser = step.noiser.begun(entropy)
    session.noise(step.name, step.source.name, lambda batch: noiser.noise(batch, entropy))


def run_step(step: Node, session: Session, printed: Printed, salt: str) -> None:
    """Make the rows of a step readable under its name; `salt` is the one that its SQL has.

    Guarantee: how keys are looked up is chosen by the number of selected keys alone, which may be known.
    """
    if isinstance(step, OnePass) and session.pass_over(step, salt):
        return
    for statement in printed.get(step.name, ()):
        make = session.keep if statement.kept else session.define
        make(statement.name, _looked_up(step, session) or statement.select)


def _looked_up(step: Node, session: Session) -> str | None:
    """Print a step that looks keys up anew, now that it is known how many there are."""
    if not isinstance(step, KeepSelected) or step.lookup is not Lookup.BROADCAST:
        return None
    return session.printer().keep_selected(replace(step, lookup=session.lookup(step.selected.name, step.keys)))
