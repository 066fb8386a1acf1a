"""The three pipelines by name, and the check of what they plan.

A plan is a list of stages: selection, perhaps a second round of it, each number that is chosen, the release. Each stage is a tree that ends
in one noiser, and later stages read what earlier ones released.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.errors import PlumeBug
from plume.pipelines import naive, plume
from plume.pipelines.runtime_optimized import runtime_optimized
from plume.pipelines.steps import SelectedRows
from plume.plan.accounts import uncharged_noisers
from plume.plan.analysis import costs, noisers
from plume.plan.known_keys import noisers_of_unknown_keys
from plume.plan.nodes import Noise
from plume.plan.reach import releases_only_noise, unpaid_noisers
from plume.plan.row_keys import unkeyed_steps
from plume.privacy.cost import refuse_overspending
from plume.query import Query

PIPELINES: dict[str, Callable[[CalibratedQuery], Noise]] = {
    "plume": plume.plume,
    "naive": naive.naive,
    "runtime_optimized": runtime_optimized,
}
SELECTING_FIRST: dict[str, Callable[[CalibratedQuery], SelectedRows]] = {
    "plume": plume.select_rows,
    "naive": naive.select_rows,
}
"""Those that can select keys before anything else, so that numbers can be chosen in between."""


@dataclass(frozen=True)
class PlannedQuery:
    """A query, and how it is answered."""

    query: Query
    """As it was asked."""
    pipeline: str
    calibrated: CalibratedQuery
    """With its noise, and with a number wherever the query leaves one open."""
    plan: tuple[Noise, ...]
    """The stages, in the order in which they run."""
    chosen: Mapping[str, float] = field(default_factory=dict)
    """What was chosen on the way; nothing, if the query leaves nothing open."""


def plan_query(query: Query, pipeline: str) -> PlannedQuery:
    """Plan a query that has all its numbers."""
    calibrated = calibrate(query)
    return checked(PlannedQuery(query, pipeline, calibrated, noisers(PIPELINES[pipeline](calibrated))))


Planned = TypeVar("Planned", bound=PlannedQuery)


def checked(planned: Planned) -> Planned:
    """Refuse a plan that would release anything exact, unbounded or over budget, in any of its stages or in all together.

    A session may rewrite the stages for its data; then this is called again, with the stages as they will run.

    Guarantee: what passes spends at most the budget, and noise covers what one user can change. Plume section 4.3, docs/privacy.md.
    """
    refuse_overspending(costs(planned.plan), planned.query.budget)
    plan = planned.plan
    failures = (unpaid_noisers(plan), uncharged_noisers(plan), unkeyed_steps(plan), noisers_of_unknown_keys(plan))
    if not releases_only_noise(plan) or any(failures):
        raise PlumeBug(f"the {planned.pipeline} plan of this query would release something noise does not cover")
    return planned
