"""Plume section 5: bound, select, join, bound again, aggregate. Five shuffles; accurate and slow."""

from plume.calibration.calibrated_query import CalibratedQuery
from plume.pipelines import steps
from plume.plan.nodes import CountKeys, Lookup, Map, Node, Noise


def naive(calibrated: CalibratedQuery) -> Noise:
    """Plan a query the straightforward way."""
    if steps.nothing_is_left(calibrated):
        return steps.released_with_keys(calibrated)
    by_user, selected = _selected_by_user(calibrated)
    return steps.aggregate(calibrated, steps.bounded_contributions(calibrated, by_user), selected)


def select_rows(calibrated: CalibratedQuery) -> steps.SelectedRows:
    """The same as far as the join, for numbers that are chosen before users are bounded again."""
    by_user, selected = _selected_by_user(calibrated)
    return steps.SelectedRows(by_user.source, selected)


def _selected_by_user(calibrated: CalibratedQuery) -> tuple[CountKeys, Node]:
    rows = steps.rows(calibrated)
    selected = _select(calibrated, rows)
    restricted = steps.restrict(calibrated, rows, selected, Lookup.JOIN)
    return steps.by_user_again(calibrated, restricted), selected


def _select(calibrated: CalibratedQuery, rows: Map) -> Node:
    if not calibrated.rounds:
        return steps.public_keys(calibrated)
    by_user = steps.by_user(calibrated, rows, measured=False)
    return steps.select_bounded(calibrated.selecting, by_user)
