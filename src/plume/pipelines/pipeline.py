"""The three ways from a query to a plan, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from plume.errors import PlumeBug, UsageError
from plume.pipelines.calibrated import CalibratedQuery
from plume.pipelines.chosen import calibrate_chosen
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


def make_plan(
    query: Query, pipeline: Any = "plume", *, chosen: Mapping[str, float] = MappingProxyType({})
) -> tuple[CalibratedQuery, Noise]:
    """Plan a query, and refuse a plan that would release anything exact, unbounded or over budget.

    Where the query leaves numbers open, the plan is one for stand-ins; once they are `chosen`, for these.
    """
    if not isinstance(pipeline, str) or pipeline not in PIPELINES:
        raise UsageError(f"pipeline is {pipeline!r}; it must be one of {', '.join(PIPELINES)}.")
    asked = calibrate_chosen(query, chosen)
    plan = PIPELINES[pipeline](asked)
    refuse_overspending(costs(plan), query.budget)
    if not releases_only_noise(plan) or unpaid_noisers(plan):
        raise PlumeBug(f"the {pipeline} plan of this query would release something noise does not cover")
    return asked, plan
