"""Plume section 5: bound, select, join, bound again, aggregate. Five shuffles; accurate and slow."""

from plume.pipelines import chosen, steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.nodes import Lookup, Map, Node, Noise


def naive(asked: CalibratedQuery) -> Noise:
    """Plan a query the straightforward way."""
    rows = steps.rows(asked)
    selected = _select(asked.for_selection, rows)
    restricted = steps.restrict(asked, rows, selected, Lookup.JOIN)
    by_user = steps.by_user(asked, restricted, name="by_user_again")
    if asked.choices:
        return chosen.aggregate_chosen(asked, by_user.source, selected)
    return steps.aggregate(asked, steps.bounded_contributions(asked, by_user), selected)


def _select(asked: CalibratedQuery, rows: Map) -> Node:
    if not asked.rounds:
        return steps.public_keys(asked)
    by_user = steps.by_user(asked, rows, measured=False)
    return steps.select_bounded(asked, by_user)
