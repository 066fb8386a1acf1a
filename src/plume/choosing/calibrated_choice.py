"""The noisers of the histograms by which numbers are chosen, scaled to their shares of the budget."""

import math
from fractions import Fraction

from plume.calibration.calibrated_query import CalibratedQuery, budget_of_gaussian_noise
from plume.choosing.keys_per_user import FULL, NoiseKeysPerUser
from plume.choosing.sizes import NoiseSizes
from plume.mechanisms.open_bound import open_bounds
from plume.privacy.scales import gaussian_for
from plume.query import LIMIT, Query

Choice = NoiseKeysPerUser | NoiseSizes
# Of the share of choosing a limit: how full users are is a mean over all of them, which much noise hardly moves.
_PART_OF_FULLNESS = Fraction(1, 10)


def calibrate_choice(query: Query, what: str, calibrated: CalibratedQuery, share: Fraction) -> Choice:
    """Scale the noise of one choice; that on sizes pays for as many keys of a user as the limit, which is known by then."""
    budget = budget_of_gaussian_noise(query)
    if what == LIMIT:
        users, fullness = (
            gaussian_for(most, max_keys_per_user=1, budget=budget, share=share * part)
            for most, part in ((1, 1 - _PART_OF_FULLNESS), (FULL, _PART_OF_FULLNESS))
        )
        return NoiseKeysPerUser(users, fullness)
    number, bound = open_bounds(query.measures)[what]
    limit = calibrated.max_keys_per_user
    pairs = gaussian_for(math.sqrt(limit), max_keys_per_user=limit, budget=budget, share=share)
    return NoiseSizes(what, f"sizes_{number + 1}", number, pairs, bound, limit)
