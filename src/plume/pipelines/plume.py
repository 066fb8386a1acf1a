"""Plume section 7: bound to select, then bound again what was gathered by user once. Three shuffles, as accurate as naive.

Users within the limit are never cut, neither before selection nor after. If their contributions are few numbers, their rows are combined
by key once and serve both; only the rows of the others are ranked, twice.
"""

from dataclasses import replace

from plume.calibration.calibrated_query import CalibratedQuery
from plume.pipelines import steps
from plume.plan.expressions import Literal
from plume.plan.nodes import Append, CountKeys, KeepSelected, Lookup, Map, Node, Noise


def plume(calibrated: CalibratedQuery) -> Noise:
    """Plan a query the paper's way."""
    if not calibrated.rounds:
        return steps.aggregate_public_keys(calibrated)
    if steps.nothing_is_left(calibrated):
        return steps.released_with_keys(calibrated)
    by_user = steps.by_user(calibrated, steps.rows(calibrated))
    never_cut = calibrated.never_cut
    # Where measures clip, nothing but selection cuts.
    cut_above = calibrated.selecting.max_keys_per_user if calibrated.clips else never_cut.max_keys_per_user
    uncut, above_limit = steps.uncut(never_cut, by_user), steps.above_limit(never_cut, by_user, cut_above=cut_above)
    bounded = steps.keep_few(calibrated.selecting, above_limit, name="bounded")

    weights, carried = (*steps.keys(calibrated), *steps.weight(calibrated.selecting)), steps.carried(calibrated)
    of_uncut = Map("uncut_weights", uncut, (*weights, *carried))
    of_bounded = Map("bounded_weights", bounded, (*weights, *((name, Literal(0)) for name, _ in carried)))
    keyed = steps.combine_by_key(calibrated, Append("weights", (of_uncut, of_bounded)), name="keyed")
    selected = steps.select_keys(calibrated, keyed, by_user)

    # The second bounding: what the first one took from keys that were dropped is not lost.
    restricted = steps.restrict(calibrated, above_limit, selected, Lookup.BROADCAST)
    of_safe = steps.safe_contributions(calibrated, restricted)
    of_uncut_selected = keyed if carried else _uncut_contributions(never_cut, by_user, selected)
    return steps.aggregate(calibrated, (of_uncut_selected, of_safe), selected)


def _uncut_contributions(calibrated: CalibratedQuery, by_user: CountKeys, selected: Node) -> Map:
    """The contributions of uncut users to selected keys, when they were too many numbers to be added up for all keys."""
    # Nobody's number of keys is needed any more, and without it engines know sooner whom to keep.
    uncut = steps.uncut(calibrated, by_user, name="uncut_again")
    uncut = replace(uncut, expressions=steps.as_they_are(by_user.source))
    restricted = KeepSelected("uncut_selected", uncut, selected, calibrated.keys, Lookup.BROADCAST)
    return Map("uncut_contributions", restricted, (*steps.keys(calibrated), *steps.contributions(calibrated)))


def select_rows(calibrated: CalibratedQuery) -> steps.SelectedRows:
    """Select keys by everybody's weights alone, for numbers that are chosen next: users are split at the limit once that is known."""
    if not calibrated.rounds:
        return steps.select_public_rows(calibrated)
    by_user = steps.by_user(calibrated, steps.rows(calibrated))
    selected = steps.select_bounded(calibrated, by_user)
    return steps.SelectedRows(steps.restrict(calibrated, by_user.source, selected, Lookup.BROADCAST), selected)
