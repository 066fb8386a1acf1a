"""What a query chooses within its budget, each number by a noiser of its own, scaled to its share before any data is read."""

import math
from fractions import Fraction

from plume.mechanisms.open_bound import open_bounds
from plume.pipelines.keys_per_user import FULL, NoiseKeysPerUser
from plume.pipelines.needed import shares_of
from plume.pipelines.sizes import NoiseSizes
from plume.privacy.budget import Budget
from plume.privacy.calibration import LIMIT, gaussian_for
from plume.query import Query

Choice = NoiseKeysPerUser | NoiseSizes
# Of the share of choosing a limit: how full users are is a mean over all of them, which much noise hardly moves.
_PART_OF_FULLNESS = Fraction(1, 10)


def choices_of(query: Query, budget: Budget) -> tuple[Choice, ...]:
    """List the noisers by which numbers are chosen, in the order of the choices: the limit comes first, since bounds depend on it."""
    shares = dict(zip(query.choices, shares_of(query).choices, strict=True))
    limit = (_of_limit(budget, shares[LIMIT]),) if query.chooses_limit else ()
    bounds = open_bounds(query.measures).items()
    return (*limit, *(_of_bound(query, budget, what, shares[what]) for what, _ in bounds))


def _of_limit(budget: Budget, share: Fraction) -> NoiseKeysPerUser:
    users, fullness = (
        gaussian_for(most, max_keys_per_user=1, budget=budget, share=share * part)
        for most, part in ((1, 1 - _PART_OF_FULLNESS), (FULL, _PART_OF_FULLNESS))
    )
    return NoiseKeysPerUser(users, fullness)


def _of_bound(query: Query, budget: Budget, what: str, share: Fraction) -> NoiseSizes:
    number, bound = open_bounds(query.measures)[what]
    limit = query.selection_limit
    pairs = gaussian_for(math.sqrt(limit), max_keys_per_user=limit, budget=budget, share=share)
    return NoiseSizes(what, f"sizes_{number + 1}", number, pairs, bound, limit)
