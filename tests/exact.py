"""Plans run without noise, for tests only: any step can be looked at, and the selected keys can be prescribed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from entropy import ConstantEntropy
from plume.choosing.open_numbers import example_numbers
from plume.choosing.open_query import decide_all, public_tables
from plume.engines.engine import Engine, Table
from plume.engines.execute import draw, run_step
from plume.noise.entropy import salt
from plume.pipelines.pipeline import PlannedQuery, checked
from plume.pipelines.steps import INPUT
from plume.plan.analysis import steps
from plume.plan.nodes import Noise
from plume.plan.printing.plan_sql import print_plan
from plume.planning import make_plan
from plume.query import Query
from plume.running import run_with
from plume.schema import kinds_expected

ENTROPY = ConstantEntropy()
SALT = salt(ENTROPY)


def say_nothing(step: str) -> None:
    del step


def plan_with(query: Query, chosen: Mapping[str, float], pipeline: str = "plume") -> PlannedQuery:
    """Plan a query as if these numbers had been chosen, and examples for all others that it leaves open."""
    return decide_all(make_plan(query, pipeline), example_numbers(query) | dict(chosen))


def exact_release(query: Query, content: Any, *, engine: Engine, pipeline: str = "plume") -> pa.Table:
    """Give the rows of a release whose noise was zero throughout."""
    release = run_with(ENTROPY, query, content, engine=engine, pipeline=pipeline, on_step=say_nothing)
    return release.to_arrow()


def exact_step(query: Query, content: Any, name: str, **settings: Any) -> pa.Table:
    """Give the rows of one step."""
    return exact_steps(query, content, [name], **settings)[name]


def exact_steps(
    query: Query,
    content: Any,
    names: Sequence[str],
    *,
    engine: Engine,
    pipeline: str = "plume",
    prescribed: Mapping[str, pa.Table] = MappingProxyType({}),
    chosen: Mapping[str, float] = MappingProxyType({}),
    order: tuple[str, ...] | None = None,
) -> dict[str, pa.Table]:
    """Give the rows of some steps of one run; steps that select keys can be prescribed, and are then not drawn.

    `chosen` is what was left open; what would have decided it is then not run.
    """
    planned = plan_with(query, chosen, pipeline) if chosen else make_plan(query, pipeline)
    keys = planned.calibrated.keys
    found: dict[str, pa.Table] = {}
    with engine.open({INPUT: Table(content, kinds_expected(query))}) as session:
        planned = checked(replace(planned, plan=session.rewrite(planned.plan)))
        # The plan is printed whole, as a run prints it: which steps are kept depends on all that read them.
        walked = planned.plan[-1:] if chosen else planned.plan
        for listed, rows in public_tables(planned).items():
            session.write(listed, rows, types={})
        printed = print_plan(planned.plan, session.printer(SALT))
        for step in steps(walked):
            if step.name in prescribed:
                types = session.schema("rows")
                session.write(step.name, prescribed[step.name], types={key: types[key] for key in keys})
            elif isinstance(step, Noise):
                draw(step, session, ENTROPY)
            else:
                run_step(step, session, printed, SALT)
            if step.name in names:
                found[step.name] = session.fetch(step.name, order or keys)
            if len(found) == len(names):
                return found
    raise AssertionError(f"no step {', '.join(set(names) - set(found))}")
