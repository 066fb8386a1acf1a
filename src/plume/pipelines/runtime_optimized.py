"""Plume section 6: bound once, then select and aggregate in one go. Two shuffles; what is spent on dropped keys is lost."""

from plume.calibration.calibrated_query import CalibratedQuery
from plume.errors import UsageError
from plume.pipelines import steps
from plume.plan.nodes import KeepSelected, Lookup, Map, Noise


def runtime_optimized(calibrated: CalibratedQuery) -> Noise:
    """Plan a query the fastest way."""
    if not calibrated.rounds:
        return steps.aggregate_public_keys(calibrated)
    if len(calibrated.rounds) > 1:
        raise UsageError(
            "runtime_optimized bounds once, and a second round of selection bounds again; use pipeline='plume'."
        )
    if steps.nothing_is_left(calibrated):
        return steps.released_with_keys(calibrated)
    if calibrated.releasing:
        raise UsageError(
            "runtime_optimized adds up the measures of all keys before it selects any, and with selection='released_users' only "
            "selected keys have a number of users; use pipeline='plume'."
        )
    by_user = steps.by_user(calibrated, steps.rows(calibrated))
    # Both phases read the same rows, so weights are spread over no more keys than measures count.
    never_cut = calibrated.never_cut
    bounded = steps.bound(never_cut, by_user, name="bounded")
    contributed = (*steps.keys(calibrated), *steps.weight(never_cut), *steps.contributions(calibrated))
    keyed = steps.combine_by_key(calibrated, Map("contributions", bounded, contributed), name="keyed")
    selected = steps.select_keys(calibrated, keyed, by_user)
    return steps.noise_measures(
        calibrated, KeepSelected("keyed_selected", keyed, selected, calibrated.keys, Lookup.BROADCAST)
    )
