"""Plume section 7: bound to select, then bound again what was gathered by user once. Three shuffles, as accurate as naive.

Users within the limit are never cut, neither before selection nor after, so their rows are combined by key once and serve both; only
the rows of the others are ranked, twice.
"""

from plume.pipelines import steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.nodes import Append, Lookup, Map, Noise


def plume(asked: CalibratedQuery) -> Noise:
    """Plan a query the paper's way."""
    if not asked.rounds:
        return steps.aggregate_public_keys(asked)
    by_user = steps.by_user(asked, steps.rows(asked))
    uncut, above_limit = steps.uncut(asked, by_user), steps.above_limit(asked, by_user)
    bounded = steps.keep_few(asked, above_limit, name="bounded")

    said = (*steps.keys(asked), *steps.weight(asked))
    of_uncut = Map("uncut_contributions", uncut, (*said, *steps.contributions(asked)))
    of_bounded = Map("bounded_weights", bounded, (*said, *steps.no_contributions(asked)))
    keyed = steps.combine_by_key(asked, Append("contributions", (of_uncut, of_bounded)), name="keyed")
    selected = steps.select_keys(asked, keyed, by_user)

    restricted = steps.restrict(asked, above_limit, selected, Lookup.BROADCAST)
    return steps.aggregate(asked, (keyed, steps.safe_contributions(asked, restricted)), selected)
