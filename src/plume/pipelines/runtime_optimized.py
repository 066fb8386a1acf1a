"""Plume section 6: bound once, then select and aggregate in one go. Two shuffles; what is spent on dropped keys is lost."""

from plume.pipelines import steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.nodes import KeepSelected, Lookup, Map, Noise


def runtime_optimized(asked: CalibratedQuery) -> Noise:
    """Plan a query the fastest way."""
    if asked.selection is None:
        return steps.aggregate_public_keys(asked)
    bounded = steps.bound(asked, steps.by_user(asked, steps.rows(asked)), name="bounded")
    said = (*steps.keys(asked), *steps.weight(asked.selection), *steps.contributions(asked))
    keyed = steps.combine_by_key(asked, Map("contributions", bounded, said), name="keyed")
    selected = steps.select_keys(asked, asked.selection, keyed)
    return steps.noise_measures(asked, KeepSelected("safe", keyed, selected, asked.keys, Lookup.BROADCAST))
