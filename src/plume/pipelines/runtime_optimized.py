"""Plume section 6: bound once, then select and aggregate in one go. Two shuffles; what is spent on dropped keys is lost."""

from plume.errors import UsageError
from plume.pipelines import chosen, steps
from plume.pipelines.calibrated import CalibratedQuery
from plume.plan.nodes import KeepSelected, Lookup, Map, Noise


def runtime_optimized(asked: CalibratedQuery) -> Noise:
    """Plan a query the fastest way."""
    if not asked.rounds:
        return chosen.aggregate_public_keys(asked) if asked.choices else steps.aggregate_public_keys(asked)
    if asked.choices:
        raise UsageError(
            f"runtime_optimized bounds once, before keys are selected, and {asked.choices[0].what} = 'auto' is chosen after that; "
            "use pipeline='plume', or give a number."
        )
    if len(asked.rounds) > 1:
        raise UsageError(
            "runtime_optimized bounds once, and a second round of selection bounds again; use pipeline='plume'."
        )
    by_user = steps.by_user(asked, steps.rows(asked))
    bounded = steps.bound(asked, by_user, name="bounded")
    said = (*steps.keys(asked), *steps.weight(asked), *steps.contributions(asked))
    keyed = steps.combine_by_key(asked, Map("contributions", bounded, said), name="keyed")
    selected = steps.select_keys(asked, keyed, by_user)
    return steps.noise_measures(asked, KeepSelected("safe", keyed, selected, asked.keys, Lookup.BROADCAST))
