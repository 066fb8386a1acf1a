"""Plume section 5: bound, select, join, bound again, aggregate. Five shuffles; accurate and slow."""

from plume.pipelines import steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.nodes import Lookup, Map, Node, Noise


def naive(asked: CalibratedQuery) -> Noise:
    """Plan a query the straightforward way."""
    rows = steps.rows(asked)
    selected = _select(asked, rows)
    restricted = steps.restrict(asked, rows, selected, Lookup.JOIN)
    by_user = steps.by_user(asked, restricted, name="by_user_again")
    return steps.aggregate(asked, steps.bounded_contributions(asked, by_user), selected)


def _select(asked: CalibratedQuery, rows: Map) -> Node:
    if not asked.rounds:
        return steps.public_keys(asked)
    by_user = steps.by_user(asked, rows, measured=False)
    bounded = steps.bound(asked, by_user, name="bounded")
    weights = Map("weights", bounded, (*steps.keys(asked), *steps.weight(asked)))
    keyed = steps.combine_by_key(asked, weights, name="keyed")
    return steps.select_keys(asked, keyed, by_user)
