"""Plume section 7: bound to select, then bound again what was gathered by user once. Three shuffles, as accurate as naive.

Users within the limit are never cut, neither before selection nor after, so their rows are combined by key once and serve both; only
the rows of the others are ranked, twice.
"""

from plume.pipelines import chosen, steps
from plume.pipelines.calibrated import CalibratedQuery
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

    said = (*steps.keys(asked), *steps.weight(asked))
    of_uncut = Map("uncut_contributions", uncut, (*said, *steps.contributed_numbers(asked)))
    of_bounded = Map("bounded_weights", bounded, (*said, *steps.no_numbers(asked)))
    keyed = steps.combine_by_key(asked, Append("contributions", (of_uncut, of_bounded)), name="keyed")
    selected = steps.select_keys(asked, keyed, by_user)

    restricted = steps.restrict(asked, above_limit, selected, Lookup.BROADCAST)
    of_safe = steps.safe_contributions(asked, restricted)
    return steps.aggregate(asked, (keyed, of_safe, *_uncut_tallies(asked, by_user, selected)), selected)


def _choosing(asked: CalibratedQuery) -> Noise:
    """The same with numbers that are not known before keys are selected: what was gathered by user is restricted first, and then split."""
    if not asked.rounds:
        return chosen.aggregate_public_keys(asked)
    by_user = steps.by_user(asked.for_selection, steps.rows(asked))
    selected = steps.select_bounded(asked.for_selection, by_user)
    restricted = steps.restrict(asked, by_user.source, selected, Lookup.BROADCAST)
    return chosen.aggregate_chosen(asked, restricted, selected)


def _uncut_tallies(asked: CalibratedQuery, by_user: CountKeys, selected: Node) -> tuple[Map, ...]:
    """What uncut users say of selected keys in tallies: too much to be added up for all keys before it is known which are selected."""
    said = steps.contributed_tallies(asked)
    if not said:
        return ()
    uncut = steps.uncut(asked, by_user, name="uncut_again")
    restricted = KeepSelected("uncut_selected", uncut, selected, asked.keys, Lookup.BROADCAST)
    return (Map("uncut_tallies", restricted, (*steps.keys(asked), *said)),)
