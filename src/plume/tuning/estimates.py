"""What a release would be like, on average, worked out from exact contributions instead of drawn many times (algorithms 5.3).

NOT PRIVATE. Users are cut independently of each other, so sums over them have means and variances that add up. How many keys of a user
are selected is taken to be its mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from plume.mechanisms.mechanism import Part
from plume.noise.gaussian import RoundedGaussian
from plume.noise.noise import Noise
from plume.pipelines.calibrated import CalibratedPart, CalibratedQuery
from plume.selection.strategy import SelectionStrategy
from plume.tuning.pairs import Additive, Floats, Pairs, Piece, bounded

# Means over a normal distribution are taken at so many points.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Chances are tabulated at so many weights, up to where a key is as good as certain.
_TABLED = 1024
_CERTAIN = 1 - 1e-9
# Below this a chance is none: of a billion such keys one is shown in a thousand releases.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Estimate:
    """How far a measure would be off, and what would be missing from it; NOT PRIVATE."""

    absolute_error: float
    """The mean over shown keys of how far the released value is from the exact one."""
    lost_to_bounding: float
    """The share of all that users say that limits and bounds cut from shown keys."""
    lost_to_selection: float
    """The share of it that is in keys not shown."""


@dataclass(frozen=True)
class Candidate:
    """A measure with bounds to try, and what these do by themselves, whatever the limit is."""

    measure: Additive
    said: Floats
    """What users say within the bounds, place by place."""
    bias: Floats
    """By how much bounds move each key."""
    within: Floats
    """How much users say to each key within the bounds, signs aside."""
    whole: Floats
    """How much they say without them."""
    everything: float
    """How much they say in all keys that there are, be they among these places or not."""


def chances_of_keys(asked: CalibratedQuery, pairs: Pairs) -> Floats:
    """Say for each key how likely it is shown; in a second round users spread what they have over the keys left to them."""
    first, *further = asked.rounds
    shown = _kept(first, pairs, pairs.keys_of_user, pairs.given_by_users)
    for strategy in further:
        missed = 1 - shown[pairs.key]
        keys_left = pairs.by_user(missed) - missed + 1
        shown = shown + (1 - shown) * _kept(strategy, pairs, keys_left, pairs.by_key)
    return shown


def _kept(strategy: SelectionStrategy, pairs: Pairs, keys_of_user: Floats, by_key: Callable[[Floats], Floats]) -> Floats:
    """Say for each key how likely it is selected, given how many keys users have: one by one, or as each place has it."""
    limit = strategy.max_keys_per_user
    table = np.array([strategy.weight_of(keys) for keys in range(1, limit + 1)], np.float64)
    weights = np.interp(keys_of_user, np.arange(1, limit + 1), table)
    counted = np.minimum(1, limit / keys_of_user)
    deviation = np.sqrt(by_key(counted * (1 - counted) * weights**2))
    if strategy.left_out:
        weights, counted = pairs.at_places(weights), pairs.at_places(counted)
        counted, by_key = _but_largest(pairs, weights, counted, strategy.left_out), pairs.by_key
    return _mean_chance(strategy, by_key(counted * weights), deviation)


def _but_largest(pairs: Pairs, weights: Floats, counted: Floats, left_out: int) -> Floats:
    """Take so many of the users who count in a key off those with the largest weights."""
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
    tabled = np.unique(np.linspace(0, most, _TABLED + 1).astype(np.int64))
    chances = strategy.chance(tabled)
    # Most keys of most data have hardly a user, and no chance.
    hopeless = tabled[max(np.searchsorted(chances, _NEGLIGIBLE) - 1, 0)]
    hopeful = np.flatnonzero(mean + _POINTS[-1] * deviation > hopeless)
    found = np.zeros(len(mean))
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        found[hopeful] += weight * np.interp(mean[hopeful] + point * deviation[hopeful], tabled, chances)
    return np.where(found < _NEGLIGIBLE, 0, found)


def candidate(measure: Additive, pairs: Pairs) -> Candidate:
    """Bound what users say to a measure."""
    said = pairs.values[measure.name]
    within = bounded(measure, said)
    return Candidate(
        measure,
        within,
        bias=pairs.by_key(within - said),
        within=pairs.by_key(np.abs(within)),
        whole=pairs.by_key(np.abs(said)),
        everything=pairs.everything[measure.name] or 1.0,
    )


def estimate(
    asked: CalibratedQuery, pairs: Pairs, shown: Floats, candidates: Sequence[Candidate]
) -> tuple[Estimate, ...]:
    """Estimate measures, whose bounds may be others than in the query: noise is in proportion to them."""
    moved, variance, lost = (np.zeros((len(candidates), pairs.keys)) for _ in range(3))
    for piece in pairs.pieces(pairs.above(asked.max_keys_per_user)):
        chances = shown[piece.key]
        # Given that this key is selected.
        others = piece.by_user(chances) - chances
        counted = np.minimum(1, asked.keys_before_clipping / (others + 1))
        for number, tried in enumerate(candidates):
            said = tried.said[piece.places]
            kept = _clipped(asked, tried.measure, said, piece, chances, others)
            expected = kept * counted
            moved[number] += piece.by_key(expected - said)
            variance[number] += piece.by_key((kept - expected) * expected)
            lost[number] += piece.by_key(np.abs(said) - np.abs(expected))
    return tuple(
        _estimate(asked, shown, tried, moved[number], variance[number], lost[number])
        for number, tried in enumerate(candidates)
    )


def _clipped(
    asked: CalibratedQuery, measure: Additive, said: Floats, piece: Piece, chances: Floats, others: Floats
) -> Floats:
    """What is left of what users above the limit say to a key that counts, if others of theirs count beside it."""
    if not asked.clips:
        return said
    squares = said**2
    counted = np.minimum(1, (asked.keys_before_clipping - 1) / np.maximum(others, 1e-9))
    norm = np.sqrt(squares + counted * (piece.by_user(chances * squares) - chances * squares))
    allowed = math.sqrt(asked.max_keys_per_user) * _size(measure.parts()[0])
    return said * np.minimum(1, allowed / np.maximum(norm, 1e-300))


def _estimate(
    asked: CalibratedQuery, shown: Floats, tried: Candidate, moved: Floats, variance: Floats, lost: Floats
) -> Estimate:
    part = next(part for part in asked.parts if tried.measure.name in part.measures)
    size = _size(tried.measure.parts()[0]) / _size(part.part)
    error = _mean_absolute(part, size, tried.bias + moved, np.sqrt(variance))
    return Estimate(
        absolute_error=float(shown @ error / max(shown.sum(), 1e-300)),
        lost_to_bounding=float(shown @ (tried.whole - tried.within + lost)) / tried.everything,
        lost_to_selection=1 - float(shown @ tried.whole) / tried.everything,
    )


def _size(part: Part) -> float:
    """What one user changes in one key at most."""
    return float(part.absolute * part.unit)


def _mean_absolute(part: CalibratedPart, size: float, bias: Floats, deviation: Floats) -> Floats:
    """The mean of |bias + what varies + noise|, where noise is `size` times that of the part."""
    noise: Noise = part.noise
    if isinstance(noise, RoundedGaussian):
        spread = np.hypot(deviation, size * part.standard_deviation)
        middle = spread * math.sqrt(2 / math.pi) * np.exp(-0.5 * (bias / spread) ** 2)
        return np.asarray(middle + bias * (1 - 2 * ndtr(-bias / spread)), np.float64)
    scale = size * part.standard_deviation / math.sqrt(2)
    away = [np.abs(bias + point * deviation) for point in _POINTS]
    means = (weight * (far + scale * np.exp(-far / scale)) for weight, far in zip(_WEIGHTS, away, strict=True))
    return sum(means, np.zeros(len(bias)))
