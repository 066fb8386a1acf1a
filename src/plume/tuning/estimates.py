"""What a release would be like, on average, worked out from exact contributions instead of drawn many times.

NOT PRIVATE. Users are cut independently of each other, so sums over them have means and variances that add up. How many keys of a user
are selected is taken to be its mean. docs/decisions/0042-tuning-by-estimates.md says more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import CalibratedQuery
from plume.mechanisms.mechanism import Part
from plume.noise.gaussian import RoundedGaussian
from plume.noise.noise import Distribution
from plume.tuning.chances_on_data import POINTS, WEIGHTS
from plume.tuning.pairs import Additive, Floats, Pairs, Piece, bounded


@dataclass(frozen=True)
class Estimate:
    """How far a measure would be off, and what would be missing from it; NOT PRIVATE."""

    absolute_error: float
    """The mean over shown keys of how far the released value is from the exact one."""
    error_on_shared_keys: float | None
    """The same over keys that weigh as much as is said, None if nothing is said."""
    lost_to_bounding: float
    """The share of all contributions that limits and bounds cut from shown keys."""
    lost_to_selection: float
    """The share of it that is in keys not shown."""


@dataclass(frozen=True)
class Candidate:
    """A measure with bounds to try, and what these do by themselves, whatever the limit is."""

    measure: Additive
    bias: Floats
    """By how much bounds move each key."""
    lost: Floats
    """How much they take from each key, signs aside."""


@dataclass
class _Cut:
    """What a limit does to what is left within the bounds, added up over users."""

    moved: Floats
    """By how much it moves each key, on average."""
    variance: Floats
    lost: float = 0.0
    """How much it takes from shown keys, signs aside."""


@dataclass(frozen=True)
class _Counted:
    """How likely the keys of a few users are to count."""

    shown: Floats
    """How likely the key is shown."""
    counted: Floats | float
    """How likely it is among those of its user that count, if it is shown."""
    others: Floats | float
    """How likely each of the user's other shown keys is among them beside it."""


def candidate(measure: Additive, pairs: Pairs) -> Candidate:
    """Say what the bounds of a measure do."""
    contributions = pairs.values[measure.name]
    within = bounded(measure, contributions)
    bias = pairs.by_key(within - contributions)
    positive = min(contributions.min(initial=0), within.min(initial=0)) == 0
    lost = -bias if positive else pairs.by_key(np.abs(contributions) - np.abs(within))
    return Candidate(measure, bias, lost)


def estimate(
    calibrated: CalibratedQuery, pairs: Pairs, shown: Floats, tried: Sequence[Candidate], shared: Floats | None = None
) -> tuple[Estimate, ...]:
    """Estimate measures, whose bounds may be others than in the query: noise is in proportion to them.

    Errors are means over shown keys; and over keys that weigh as much as `shared` says, which are the same in several settings.
    """
    cuts = [_Cut(np.zeros(pairs.keys), np.zeros(pairs.keys)) for _ in tried]
    for piece in pairs.pieces(pairs.above(calibrated.max_keys_per_user)):
        counted = _counted(calibrated, piece, shown)
        for one, cut in zip(tried, cuts, strict=True):
            contributions = bounded(one.measure, pairs.values[one.measure.name][piece.places])
            _add(cut, piece, contributions, counted, _factor(calibrated, one.measure, piece, contributions, counted))
    return tuple(_estimate(calibrated, pairs, shown, one, cut, shared) for one, cut in zip(tried, cuts, strict=True))


def _counted(calibrated: CalibratedQuery, piece: Piece, shown: Floats) -> _Counted:
    most, chances = calibrated.most_keys, shown[piece.key]
    others = piece.by_user(chances) - chances
    if others.max() <= most - 1:
        return _Counted(chances, 1.0, 1.0)
    return _Counted(chances, np.minimum(1, most / (others + 1)), np.minimum(1, (most - 1) / np.maximum(others, 1e-9)))


def _factor(
    calibrated: CalibratedQuery, measure: Additive, piece: Piece, contributions: Floats, counted: _Counted
) -> Floats | float:
    """By how much users are clipped in a key of theirs that counts."""
    if not calibrated.clips:
        return 1.0
    squares = contributions**2
    mean = counted.shown * squares
    norms = np.sqrt(squares + counted.others * (piece.by_user(mean) - mean))
    allowed = math.sqrt(calibrated.max_keys_per_user) * _size(measure.parts()[0])
    return allowed / np.maximum(norms, allowed) if norms.max() > allowed else 1.0


def _add(cut: _Cut, piece: Piece, contributions: Floats, counted: _Counted, factor: Floats | float) -> None:
    if isinstance(factor, float) and isinstance(counted.counted, float):
        return  # Both are 1: nobody here is cut.
    kept = contributions * factor
    expected = kept * counted.counted
    removed = contributions - expected
    cut.moved -= piece.by_key(removed)
    # Not `@`, which would start threads of its own for it.
    cut.lost += float(np.sum(counted.shown * np.abs(removed)))
    if not isinstance(counted.counted, float):
        cut.variance += piece.by_key((kept - expected) * expected)


def _estimate(
    calibrated: CalibratedQuery, pairs: Pairs, shown: Floats, tried: Candidate, cut: _Cut, shared: Floats | None
) -> Estimate:
    name = tried.measure.name
    everything = pairs.everything[name] or 1.0
    part = next(part for part in calibrated.parts if name in part.measures)
    size = _size(tried.measure.parts()[0]) / _size(part.part)
    error = _mean_absolute(part, size, tried.bias + cut.moved, np.sqrt(np.maximum(cut.variance, 0)))
    return Estimate(
        absolute_error=_mean(error, shown),
        error_on_shared_keys=None if shared is None else _mean(error, shared),
        lost_to_bounding=(float(np.sum(shown * tried.lost)) + cut.lost) / everything,
        lost_to_selection=1 - float(np.sum(shown * pairs.size[name])) / everything,
    )


def _mean(values: Floats, weights: Floats) -> float:
    return float(np.sum(weights * values) / max(weights.sum(), 1e-300))


def _size(part: Part) -> float:
    """What one user changes in one key at most."""
    return float(part.absolute * part.unit)


def _mean_absolute(part: CalibratedPart, size: float, bias: Floats, deviation: Floats) -> Floats:
    """The mean of |bias + what varies + noise|, where noise is `size` times that of the part."""
    noise: Distribution = part.noise
    if isinstance(noise, RoundedGaussian):
        spread = np.hypot(deviation, size * part.standard_deviation)
        middle = spread * math.sqrt(2 / math.pi) * np.exp(-0.5 * (bias / spread) ** 2)
        return np.asarray(middle + bias * (1 - 2 * ndtr(-bias / spread)), np.float64)
    scale = size * part.standard_deviation / math.sqrt(2)
    away = [np.abs(bias + point * deviation) for point in POINTS]
    means = (weight * (far + scale * np.exp(-far / scale)) for weight, far in zip(WEIGHTS, away, strict=True))
    return sum(means, np.zeros(len(bias)))
