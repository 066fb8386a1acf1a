"""The three ways from a query to a plan, by name."""

from collections.abc import Callable
from typing import Any

from plume.errors import PlumeBug, UsageError
from plume.pipelines.calibrated import CalibratedQuery, calibrate
from plume.pipelines.chosen import with_limit
from plume.pipelines.naive import naive
from plume.pipelines.plume import plume
from plume.pipelines.runtime_optimized import runtime_optimized
from plume.plan.analysis import costs
from plume.plan.nodes import Noise
from plume.plan.reach import releases_only_noise, unpaid_noisers
from plume.privacy.cost import refuse_overspending
from plume.query import Query

PIPELINES: dict[str, Callable[[CalibratedQuery], Noise]] = {
    "plume": plume,
    "naive": naive,
    "runtime_optimized": runtime_optimized,
}


def make_plan(query: Query, pipeline: Any = "plume", *, limit: int | None = None) -> tuple[CalibratedQuery, Noise]:
    """Plan a query, and refuse a plan that would release anything exact, unbounded or over budget.

    Where the query leaves its limit open, the plan is one for the limit that selection has; once another one was chosen, for `limit`.
    """
    if not isinstance(pipeline, str) or pipeline not in PIPELINES:
        raise UsageError(f"pipeline is {pipeline!r}; it must be one of {', '.join(PIPELINES)}.")
    asked = calibrate(query) if limit is None else with_limit(calibrate(query), limit)
    plan = PIPELINES[pipeline](asked)
    refuse_overspending(costs(plan), query.budget)
    if not releases_only_noise(plan) or unpaid_noisers(plan):
        raise PlumeBug(f"the {pipeline} plan of this query would release something noise does not cover")
    return asked, plan
