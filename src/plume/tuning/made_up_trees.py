"""How likely quantiles are near, by simulation: keys that are alike but for the noise in their trees, walked as those of a release are.

Apart from `nearness`, where chances are computed: where a walk ends depends on many nodes at once, and no formula is known for that. No
data is read, and no noise that is drawn here ever hides anything, so the same is said of the same query each time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from plume.calibration.calibrated_part import CalibratedPart
from plume.errors import BoundError
from plume.mechanisms.quantile_tree import LEAVES, walk
from plume.mechanisms.quantiles import Quantiles
from plume.mechanisms.scale import Floats
from plume.mechanisms.tally import Integers
from plume.noise.gaussian import RoundedGaussian
from plume.plan.types import Kind
from plume.tuning.goal import Goal, error_unit

# With these keys a chance of 0.95 is off by 0.0009, as by 0.4 % more or less epsilon.
_KEYS = 2**16
# How many different noises there are, 2 to the power of it: more than a walk in each key looks at.
_NOISES = 22
# The steps of SplitMix64 (Steele, Lea and Flood 2014): nodes whose numbers are near each other get noises that have nothing in common.
_MIXED = np.uint64(0x9E3779B97F4A7C15)
_STIRS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
# More values than these, which are hundreds in each leaf, change nothing.
_MOST_VALUES = 2**20


@dataclass(frozen=True)
class MadeUpTrees:
    """The trees of many keys, as far as walks look at them; each has the same values, and noise of its own."""

    before: Floats
    """The values before each leaf, and at the end all of them."""
    deviation: float
    """The standard deviation of the noise on each node, in values."""
    gaussian: bool
    keys: int = _KEYS

    def sums(self, width: int, ranges: Integers) -> Floats:
        """Give noised sums over ranges of leaves; the same range has the same noise each time."""
        start = ranges * width % LEAVES
        noise = _noises(gaussian=self.gaussian)[_mixed(ranges, width) >> np.uint64(64 - _NOISES)]
        sums: Floats = self.before[start + width] - self.before[start] + self.deviation * noise
        return sums


def _mixed(ranges: Integers, width: int) -> NDArray[np.uint64]:
    """Turn the number of a range and its width into bits without a pattern: no source of randomness is needed for what nobody hides."""
    mixed = (ranges.astype(np.uint64) * np.uint64(2) + np.uint64(1)) * np.uint64(width) * _MIXED
    for shift, factor in _STIRS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed


@lru_cache
def _noises(*, gaussian: bool) -> Floats:
    """List values of noise with a standard deviation of one, each as likely as any other; weights are so fine that it may be continuous."""
    size = 1 << _NOISES
    chances = (np.arange(size) + 0.5) / size
    away = chances - 0.5
    noises: Floats = ndtri(chances) if gaussian else -math.sqrt(1 / 2) * np.sign(away) * np.log1p(-2 * np.abs(away))
    return noises


def chance_of_quantiles(part: CalibratedPart, measures: Sequence[Quantiles], goal: Goal) -> float:
    """Say how likely all columns of measures of one tree are as near as asked."""
    shares, places = _known_places(measures, goal)
    counting = goal.users * min(goal.values_of_user, measures[0].max_per_key)
    trees = _Trees(
        deviation=part.standard_deviation,
        gaussian=isinstance(part.noise, RoundedGaussian),
        values=goal.users * goal.values_of_user,
        weight=counting,
        shares=shares,
        places=places,
    )
    near = np.ones(_KEYS, bool)
    for measure in measures:
        truth = np.interp(measure.quantiles, shares, places)
        error = _error(measure, goal) / measure.extent
        near &= (np.abs(_ends(trees, measure) - truth) <= error).all(axis=1)
    return float(near.mean())


@dataclass(frozen=True)
class _Trees:
    """What the trees of a measure depend on."""

    deviation: float
    gaussian: bool
    values: int
    """How many values a key has."""
    weight: int
    """What all of them weigh: less than as many, if users have more than count."""
    shares: tuple[float, ...]
    places: tuple[float, ...]
    """Where in [0, 1] these shares of the values end; between them values are spread evenly."""


@lru_cache(maxsize=256)
def _ends(trees: _Trees, measure: Quantiles) -> Floats:
    """Walk to the quantiles of each key. A search asks for the same noise again and again, so that walks are kept."""
    made_up = MadeUpTrees(_weights(trees), trees.deviation, trees.gaussian)
    return walk(made_up, measure.ranks(made_up))


def _weights(trees: _Trees) -> Floats:
    """Add up what lies before each leaf."""
    points = min(trees.values, _MOST_VALUES)
    places = np.interp((np.arange(points) + 0.5) / points, trees.shares, trees.places)
    leaves: NDArray[np.int64] = np.minimum((places * LEAVES).astype(np.int64), LEAVES - 1)
    in_leaf = np.bincount(leaves, minlength=LEAVES) * (trees.weight / points)
    return np.concatenate([[0.0], np.cumsum(in_leaf)])


def _known_places(measures: Sequence[Quantiles], goal: Goal) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Say which shares of the values end where: at what is said of the measures, else evenly between the bounds."""
    known = {0.0: 0.0, 1.0: 1.0}
    for measure in measures:
        truth = goal.targets[measure.name].truth
        if truth is not None:
            (share,) = measure.quantiles
            known[share] = (truth - measure.scale.low) / measure.extent
    shares = tuple(sorted(known))
    places = tuple(known[share] for share in shares)
    if list(places) != sorted(places):
        names = ", ".join(measure.name for measure in measures)
        raise BoundError(
            f"totals of {names} contradict each other; a larger share of the values ends at a larger value."
        )
    return shares, places


def _error(measure: Quantiles, goal: Goal) -> float:
    """How far off a quantile may be before it is released, in steps of its own: dates are rounded to whole days."""
    error = float(goal.targets[measure.name].error)
    if measure.scale.kind is Kind.DATE:
        error = math.floor(error) + 1 / 2
    return error * error_unit(measure)
