"""Plans run without noise, for tests only: any step can be looked at, and the selected keys can be prescribed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from entropy import ConstantEntropy
from plume.engines.engine import Engine, Table
from plume.engines.execute import draw, run_step
from plume.noise.entropy import salt
from plume.pipelines.chosen import public_tables
from plume.pipelines.pipeline import make_plan
from plume.pipelines.steps import INPUT
from plume.plan.analysis import steps
from plume.plan.nodes import Noise
from plume.plan.sql import print_plan
from plume.query import Query
from plume.running import run_with
from plume.schema import kinds_expected

ENTROPY = ConstantEntropy()
SALT = salt(ENTROPY)


def say_nothing(step: str) -> None:
    del step


def exact_release(query: Query, content: Any, *, engine: Engine, pipeline: str = "plume") -> pa.Table:
    """Give the rows of a release whose noise was zero throughout."""
    release = run_with(ENTROPY, query, content, engine=engine, pipeline=pipeline, on_step=say_nothing)
    return release.to_arrow()


def exact_step(
    query: Query,
    content: Any,
    name: str,
    *,
    engine: Engine,
    pipeline: str = "plume",
    prescribed: Mapping[str, pa.Table] = MappingProxyType({}),
    chosen: Mapping[str, float] = MappingProxyType({}),
    order: tuple[str, ...] | None = None,
) -> pa.Table:
    """Give the rows of one step; steps that select keys can be prescribed, and are then not drawn. `chosen` is what was left open."""
    asked, plan = make_plan(query, pipeline, chosen=chosen)
    with engine.open({INPUT: Table(content, kinds_expected(query))}) as session:
        for listed, rows in public_tables(asked).items():
            session.write(listed, rows, types={})
        printed = print_plan(plan, session.dialect, salt=SALT)
        for step in steps(plan):
            if step.name in prescribed:
                types = session.schema("rows")
                session.write(step.name, prescribed[step.name], types={key: types[key] for key in asked.keys})
            elif isinstance(step, Noise):
                draw(step, session, ENTROPY)
            else:
                run_step(step, session, printed)
            if step.name == name:
                return session.fetch(name, order or asked.keys)
    raise AssertionError(f"no step {name}")
