"""Plume section 5: bound, select, join, bound again, aggregate. Five shuffles; accurate and slow."""

from plume.pipelines import steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.nodes import Lookup, Map, Node, Noise


def naive(asked: CalibratedQuery) -> Noise:
    """Plan a query the straightforward way."""
    rows = steps.rows(asked)
    selected = _select(asked, rows)
    restricted = steps.restrict(asked, rows, selected, Lookup.JOIN)
    safe = steps.bound(asked, steps.by_user(asked, restricted, name="by_user_again"), name="safe")
    contributions = Map("contributions", safe, (*steps.keys(asked), *steps.contributions(asked)))
    return steps.aggregate(asked, (contributions,), selected)


def _select(asked: CalibratedQuery, rows: Map) -> Node:
    if asked.selection is None:
        return steps.public_keys(asked)
    bounded = steps.bound(asked, steps.by_user(asked, rows, measured=False), name="bounded")
    weights = Map("weights", bounded, (*steps.keys(asked), *steps.weight(asked.selection)))
    keyed = steps.combine_by_key(asked, weights, name="keyed")
    return steps.select_keys(asked, asked.selection, keyed)
