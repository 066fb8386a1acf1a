"""Plume section 7: bound to select, then bound again what was gathered by user once. Three shuffles, as accurate as naive.

Users within the limit are never cut, neither before selection nor after. If they say little, their rows are combined by key once and serve
both; only the rows of the others are ranked, twice.
"""

from dataclasses import replace

from plume.pipelines import chosen, steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.expressions import Literal
from plume.plan.nodes import Append, CountKeys, KeepSelected, Lookup, Map, Node, Noise


def plume(asked: CalibratedQuery) -> Noise:
    """Plan a query the paper's way."""
    if asked.choices:
        return _choosing(asked)
    if not asked.rounds:
        return steps.aggregate_public_keys(asked)
    by_user = steps.by_user(asked, steps.rows(asked))
    uncut, above_limit = steps.uncut(asked, by_user), steps.above_limit(asked, by_user)
    bounded = steps.keep_few(asked, above_limit, name="bounded")

    said, carried = (*steps.keys(asked), *steps.weight(asked)), steps.carried(asked)
    of_uncut = Map("uncut_weights", uncut, (*said, *carried))
    of_bounded = Map("bounded_weights", bounded, (*said, *((name, Literal(0)) for name, _ in carried)))
    keyed = steps.combine_by_key(asked, Append("weights", (of_uncut, of_bounded)), name="keyed")
    selected = steps.select_keys(asked, keyed, by_user)

    restricted = steps.restrict(asked, above_limit, selected, Lookup.BROADCAST)
    of_safe = steps.safe_contributions(asked, restricted)
    of_uncut_selected = keyed if carried else _uncut_contributions(asked, by_user, selected)
    return steps.aggregate(asked, (of_uncut_selected, of_safe), selected)


def _choosing(asked: CalibratedQuery) -> Noise:
    """The same with numbers that are not known before keys are selected: what was gathered by user is restricted first, and then split."""
    if not asked.rounds:
        return chosen.aggregate_public_keys(asked)
    by_user = steps.by_user(asked.for_selection, steps.rows(asked))
    selected = steps.select_bounded(asked.for_selection, by_user)
    restricted = steps.restrict(asked, by_user.source, selected, Lookup.BROADCAST)
    return chosen.aggregate_chosen(asked, restricted, selected)


def _uncut_contributions(asked: CalibratedQuery, by_user: CountKeys, selected: Node) -> Map:
    """What uncut users say of selected keys, when it was too much to be added up for all keys."""
    # Nobody's number of keys is needed any more, and without it engines know sooner whom to keep.
    uncut = replace(steps.uncut(asked, by_user, name="uncut_again"), expressions=steps.as_they_are(by_user.source))
    restricted = KeepSelected("uncut_selected", uncut, selected, asked.keys, Lookup.BROADCAST)
    return Map("uncut_contributions", restricted, (*steps.keys(asked), *steps.contributions(asked)))
