"""What Spark really does: its physical plans have the paper's number of exchanges, each step's counted once."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from exact import ENTROPY, SALT
from plume.engines.engine import Table
from plume.engines.execute import draw, run_step
from plume.engines.spark import Spark
from plume.pipelines.steps import INPUT
from plume.plan.analysis import steps
from plume.plan.explain import print_steps
from plume.plan.nodes import Noise
from plume.plan.printing.plan_sql import print_plan
from plume.plan.types import Kind
from plume.planning import make_plan
from plume.schema import kinds_expected
from redis_servers import single

QUERY = plume.Query(
    user="person",
    keys=["place", "day"],
    measures=[plume.count(max_per_key=2), plume.users(), plume.sum("value", 0, 10)],
    max_keys_per_user=2,
    budget=plume.Budget(epsilon=20, delta=0.1),
)
ROWS = pa.table(
    {
        "person": [person for person in range(40) for _ in range(5)],
        "place": ["here", "there", "nowhere", "elsewhere", "here"] * 40,
        "day": [1, 1, 2, 2, 1] * 40,
        "value": [1.5] * 200,
    }
)
PLUME = Counter({"by user": 1, "by key": 2, "broadcast": 1})


def nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a physical plan as it ran, without what lies behind a kept step."""
    match plan.nodeName():
        case "AdaptiveSparkPlan":
            yield from nodes(plan.executedPlan())
            return
        case name if name.endswith("QueryStage"):
            yield from nodes(plan.plan())
            return
    yield plan
    for number in range(plan.children().size()):
        yield from nodes(plan.children().apply(number))


def exchange(node: Any) -> str | None:
    """Say what a node moves between executors, if it does."""
    if node.nodeName() == "BroadcastExchange":
        return "broadcast"
    if node.nodeName() != "Exchange":
        return None
    found = re.match(r"hashpartitioning\((user|key)", node.outputPartitioning().toString())
    return f"by {found.group(1)}" if found else "something else"


def exchanges(session: Any, pipeline: str, engine: Spark) -> Counter[str]:
    """Run a pipeline, and count the exchanges of everything that was computed: what was kept, and what was noised."""
    plan = make_plan(QUERY, pipeline).plan
    manager = session._jsparkSession.sharedState().cacheManager()
    with engine.open({INPUT: Table(ROWS, kinds_expected(QUERY))}) as run:
        printed = print_plan(plan, run.printer(SALT))
        noised = []
        for step in steps(plan):
            if isinstance(step, Noise):
                frame = run._session.table(step.source.name)
                frame.toArrow()
                noised.append(frame._jdf.queryExecution().executedPlan())
                draw(step, run, ENTROPY)
            else:
                run_step(step, run, printed, SALT)
        kept = [manager.lookupCachedData(frame._jdf).get().cachedRepresentation() for frame in run._keeping.frames]
        plans = [*noised, *(one.cacheBuilder().cachedPlan() for one in kept)]
        found = [exchange(node) for one in plans for node in nodes(one)]
    return Counter(one for one in found if one)


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def adaptive(request: pytest.FixtureRequest, classic: Any) -> Iterator[Any]:
    before = classic.conf.get("spark.sql.adaptive.enabled")
    classic.conf.set("spark.sql.adaptive.enabled", request.param)
    yield classic
    classic.conf.set("spark.sql.adaptive.enabled", before)


@pytest.mark.quick_on("spark")
def test_plume_has_one_exchange_by_user_two_by_key_and_one_broadcast(adaptive: Any) -> None:
    assert exchanges(adaptive, "plume", Spark(adaptive)) == PLUME


def test_naive_has_five_exchanges(adaptive: Any) -> None:
    assert exchanges(adaptive, "naive", Spark(adaptive)) == Counter({"by user": 2, "by key": 3})


def test_runtime_optimized_has_two_exchanges_and_a_broadcast(adaptive: Any) -> None:
    assert exchanges(adaptive, "runtime_optimized", Spark(adaptive)) == Counter(
        {"by user": 1, "by key": 1, "broadcast": 1}
    )


def test_a_store_instead_of_a_broadcast_has_one_exchange_more(adaptive: Any, tmp_path: Path) -> None:
    """By user: what comes back from Python no longer counts as lying together."""
    with single(tmp_path) as server:
        found = exchanges(adaptive, "plume", Spark(adaptive, lookup="store", store=server.url))
    assert found == Counter({"by user": 2, "by key": 2})


def test_a_join_instead_of_a_broadcast_has_two_exchanges_more(adaptive: Any) -> None:
    """One by key, to meet the selected keys, and one by user, to go back."""
    found = exchanges(adaptive, "plume", Spark(adaptive, lookup="join"))
    assert found == Counter({"by user": 2, "by key": 3})


@pytest.mark.quick_on("spark")
def test_rows_are_combined_by_key_in_two_tasks_for_each_processor(classic: Any) -> None:
    with Spark(classic).open({}) as run:
        tasks = 2 * classic.sparkContext.defaultParallelism
        assert run.printer().tasks == tasks
        # Before the selection, and before the release.
        assert print_steps(make_plan(QUERY).plan, run.printer()).count(f"COALESCE({tasks})") == 2


def test_executors_that_come_and_go_are_not_counted(classic: Any) -> None:
    changing = classic.newSession()
    changing.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    changing.conf.set("spark.dynamicAllocation.enabled", "true")
    with Spark(changing).open({}) as run:
        assert run.printer().tasks is None


@pytest.mark.parametrize(("rows", "where"), [(1_000, "LocalRelation"), (1_000_000, "LogicalRDD")])
def test_rows_that_are_too_many_to_be_broadcast_are_not_computed_by_the_driver(
    classic: Any, rows: int, where: str
) -> None:
    content = pa.table({"u": pa.array(range(rows), pa.int64()), "v": pa.array(range(rows), pa.int64())})
    with Spark(classic).open({INPUT: Table(content, {"u": Kind.TEXT, "v": Kind.FLOAT})}) as run:
        plan = run._session.table(INPUT)._jdf.queryExecution().optimizedPlan()
    assert where in plan.toString()
