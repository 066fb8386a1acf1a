"""What a release would be like, on average, worked out from exact contributions instead of drawn many times (algorithms 5.3).

NOT PRIVATE. Users are cut independently of each other, so sums over them have means and variances that add up. How many keys of a user
are selected is taken to be its mean.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from plume.mechanisms.mechanism import Part
from plume.noise.gaussian import RoundedGaussian
from plume.noise.noise import Noise
from plume.pipelines.calibrated import CalibratedPart, CalibratedQuery
from plume.selection.strategy import SelectionStrategy
from plume.tuning.pairs import Additive, Floats, Pairs, bounded

# Means over a normal distribution are taken at so many points.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Chances are tabulated at so many weights, up to where a key is as good as certain.
_TABLED = 1024
_CERTAIN = 1 - 1e-9


@dataclass(frozen=True)
class Estimate:
    """How far a measure would be off, and what would be missing from it; NOT PRIVATE."""

    absolute_error: float
    """The mean over shown keys of how far the released value is from the exact one."""
    lost_to_bounding: float
    """The share of all that users say that limits and bounds cut from shown keys."""
    lost_to_selection: float
    """The share of it that is in keys not shown."""


def chances_of_keys(asked: CalibratedQuery, pairs: Pairs) -> Floats:
    """Say for each key how likely it is shown; in a second round users spread what they have over the keys left to them."""
    shown, keys_left = np.zeros(pairs.keys), pairs.keys_of_user
    for strategy in asked.rounds:
        shown = shown + (1 - shown) * _kept(strategy, pairs, keys_left)
        missed = 1 - shown[pairs.key]
        keys_left = pairs.by_user(missed) - missed + 1
    return shown


def _kept(strategy: SelectionStrategy, pairs: Pairs, keys_of_user: Floats) -> Floats:
    limit = strategy.max_keys_per_user
    table = np.array([strategy.weight_of(keys) for keys in range(1, limit + 1)], np.float64)
    weights = np.interp(keys_of_user, np.arange(1, limit + 1), table)
    counted = np.minimum(1, limit / keys_of_user)
    variance = pairs.by_key(counted * (1 - counted) * weights**2)
    if strategy.left_out:
        counted = _but_largest(pairs, weights, counted, strategy.left_out)
    return _mean_chance(strategy, pairs.by_key(counted * weights), np.sqrt(variance))


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
    points = zip(_POINTS, _WEIGHTS, strict=True)
    return sum(
        (weight * np.interp(mean + point * deviation, tabled, chances) for point, weight in points), np.zeros(len(mean))
    )


def estimate(asked: CalibratedQuery, pairs: Pairs, shown: Floats, measure: Additive) -> Estimate:
    """Estimate one measure, whose bounds may be others than in the query: noise is in proportion to them."""
    said = pairs.values[measure.name]
    counted, scale = _counted(asked, pairs, shown, measure)
    part = next(part for part in asked.parts if measure.name in part.measures)
    kept = bounded(measure, said).copy()
    kept[: len(scale)] *= scale
    expected = kept.copy()
    expected[: len(counted)] *= counted
    bias = pairs.by_key(expected - said)
    variance = pairs.by_key(counted * (1 - counted) * kept[: len(counted)] ** 2)
    size = _size(measure.parts()[0]) / _size(part.part)
    error = _mean_absolute(part, size, bias, np.sqrt(variance))
    everything = float(np.abs(said).sum()) or 1.0
    present = pairs.by_key(np.abs(said))
    return Estimate(
        absolute_error=float(shown @ error / max(shown.sum(), 1e-300)),
        lost_to_bounding=float(shown @ (present - pairs.by_key(np.abs(expected)))) / everything,
        lost_to_selection=float((1 - shown) @ present) / everything,
    )


def _size(part: Part) -> float:
    """What one user changes in one key at most."""
    return float(part.absolute * part.unit)


def _counted(asked: CalibratedQuery, pairs: Pairs, shown: Floats, measure: Additive) -> tuple[Floats, Floats]:
    """For users above the limit: with which probability a selected key of theirs counts, and by how much it shrinks if it does."""
    limit, most = asked.max_keys_per_user, asked.keys_before_clipping
    above = pairs.above(limit)
    chances = shown[pairs.key[:above]]
    # Given that this key is selected.
    selected = pairs.by_user(chances) - chances + 1
    counted = np.minimum(1, most / selected)
    if not asked.clips:
        return counted, np.ones(above)
    squares = bounded(measure, pairs.values[measure.name][:above]) ** 2
    others = np.minimum(1, (most - 1) / np.maximum(selected - 1, 1e-9))
    norm = np.sqrt(squares + others * (pairs.by_user(chances * squares) - chances * squares))
    allowed = math.sqrt(limit) * _size(measure.parts()[0])
    return counted, np.minimum(1, allowed / np.maximum(norm, 1e-300))


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
