"""How likely each key would be shown, worked out from exact contributions. NOT PRIVATE.

Which users count in a key is left to the secret order of keys, so that the weight a key is given varies; it is taken to be normal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plume.calibration.calibrated_query import CalibratedQuery
from plume.plan.nodes import Size
from plume.privacy.pooled import ACCOUNT, STEPS
from plume.selection.strategy import SelectionStrategy
from plume.tuning.pairs import Floats, Pairs

# Means over a normal distribution are taken at this many points.
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Chances are tabulated at this many weights, up to where a key is as good as certain.
_TABLED = 1024
_CERTAIN = 1 - 1e-9
_UNLIKELY = 1e-6
# This share of all keys that are shown may be left out of an estimate.
_NEGLIGIBLE = 3e-4


def chances_of_keys(calibrated: CalibratedQuery, pairs: Pairs) -> Floats:
    """Say for each key how likely it is shown; in a second round users spread what they have over the keys left to them."""
    first, *further = calibrated.rounds
    if first.left_out:
        shown = _kept(first, _of_places(pairs), pairs)
    else:
        shown = _kept(first, _Givers(pairs.keys_of_user, pairs.squares, pairs.given_by_user), pairs)
    for strategy in further:
        missed = 1 - shown[pairs.key]
        keys_left = pairs.by_user(missed) - missed + 1
        shown = shown + (1 - shown) * _kept(strategy, replace(_of_places(pairs), keys=keys_left), pairs)
    return shown


@dataclass(frozen=True)
class _Givers:
    """Those who give weight: users, or each user in each key."""

    keys: NDArray[Any]
    """How many keys the user has."""
    squares: Mapping[Size, Floats]
    """How large all rows of the user are together."""
    by_key: Callable[[Floats], Floats]
    """How to add up by key what they give."""


def _of_places(pairs: Pairs) -> _Givers:
    squares = {size: of_users[pairs.user] for size, of_users in pairs.squares.items()}
    return _Givers(pairs.keys_of_user[pairs.user], squares, pairs.by_key)


def keys_that_matter(shown: Floats) -> NDArray[np.bool_]:
    """Leave out the least likely keys, of which there may be many, as long as hardly one of them is ever shown."""
    chances = np.sort(shown)
    left_out = np.searchsorted(np.cumsum(chances), _NEGLIGIBLE * chances.sum(), side="right")
    return np.asarray(shown >= chances[left_out] if left_out < len(chances) else shown > 0)


def _kept(strategy: SelectionStrategy, givers: _Givers, pairs: Pairs) -> Floats:
    """Say for each key how likely it is selected."""
    weights = _weights(strategy, givers)
    counted = np.minimum(1, strategy.max_keys_per_user / givers.keys)
    deviation = np.sqrt(givers.by_key(counted * (1 - counted) * weights**2))
    if strategy.left_out:
        counted = _but_largest(pairs, weights, counted, strategy.left_out)
    return _mean_chance(strategy, givers.by_key(counted * weights), deviation)


def _weights(strategy: SelectionStrategy, givers: _Givers) -> Floats:
    """Say what each of them gives to a key that counts: by the number of keys alone, or of what measures leave of an account."""
    limit = strategy.max_keys_per_user
    if strategy.account is None:
        table = np.array([strategy.weight_of(keys) for keys in range(1, limit + 1)], np.float64)
        return np.asarray(np.interp(givers.keys, np.arange(1, limit + 1), table), np.float64)
    left = np.full(len(givers.keys), float(ACCOUNT))
    for size, charge in strategy.account.charges:
        left -= np.minimum(givers.squares[size] * charge.rate, charge.most)
    return np.asarray(np.sqrt(STEPS * np.maximum(left, 0) / np.minimum(givers.keys, limit)), np.float64)


def _but_largest(pairs: Pairs, weights: Floats, counted: Floats, left_out: int) -> Floats:
    """Take `left_out` of the users who count in a key off, those with the largest weights."""
    order = np.lexsort((-weights, pairs.key))
    keys = pairs.key[order]
    sums = np.concatenate(([0.0], np.cumsum(counted[order])))
    so_far = sums[1:] - sums[np.searchsorted(keys, keys, side="left")]
    rest = np.empty_like(counted)
    rest[order] = np.clip(so_far - left_out, 0, counted[order])
    return rest


def _mean_chance(strategy: SelectionStrategy, mean: Floats, deviation: Floats) -> Floats:
    """The mean chance of keys whose weight varies, since it is left to the order of keys which users count in them."""
    most = 1
    while strategy.chance(np.array([most]))[0] < _CERTAIN:
        most *= 2
    step = max(1, most // _TABLED)
    chances = strategy.chance(np.arange(0, most + 1, step))
    mean, deviation = mean / step, deviation / step
    chance = _between(chances, mean)
    # In most tables, most keys have hardly a user, and what varies with them hardly changes the chance.
    likely = np.flatnonzero(mean + POINTS[-1] * deviation > np.searchsorted(chances, _UNLIKELY) - 1)
    mean, deviation = mean[likely], deviation[likely]
    points = zip(POINTS, WEIGHTS, strict=True)
    chance[likely] = sum(weight * _between(chances, mean + point * deviation) for point, weight in points)
    return chance


def _between(table: Floats, at: Floats) -> Floats:
    """Read a table at and between its entries; `numpy.interp` would look for them, which takes longer."""
    at = np.clip(at, 0, len(table) - 1)
    entry = np.minimum(at.astype(np.intp), len(table) - 2)
    low = table[entry]
    return np.asarray(low + (at - entry) * (table[entry + 1] - low), np.float64)
