"""Weights of leaves, many keys at once, and their sums over ranges of leaves with noise on them.

A tally has a row for each leaf that anybody has a value in. Which leaves these are is as secret as their weights: noise goes on every
range that is asked for, whether or not there is a row in it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plume.errors import PlumeBug
from plume.noise.entropy import Entropy
from plume.noise.noise import Distribution

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ExactTally:
    """The exact weights of the leaves of many keys; the leaves of key number k are numbered from k * leaves on."""

    keys: int
    leaves: int
    numbers: Integers
    """The numbers of the leaves that have a weight, in order."""
    before: Integers
    """The weight of all leaves before each, and at the end the weight of all. It may wrap around; differences do not."""

    def between(self, start: Integers, stop: Integers) -> Integers:
        """Add the weights of leaves from `start` on, before `stop`."""
        ends = (self.before[np.searchsorted(self.numbers, at)] for at in (stop, start))
        total: Integers = np.subtract(*ends)
        return total


def tally_of(column: pa.Array, leaves: int) -> ExactTally:
    """Read lists of pairs of leaf and weight, one list per key; no list is an empty one."""
    kind = column.type
    if not pa.types.is_list(kind) or kind.value_type.field("weight").type != pa.int64():
        raise PlumeBug("a tally does not hold lists of leaves and 64-bit weights")
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    leaf, weight = (values.to_numpy().astype(np.int64) for values in column.flatten().flatten())
    numbers = np.repeat(np.arange(len(column)), lengths) * leaves + leaf
    order = np.argsort(numbers)
    before = np.concatenate([[0], np.cumsum(weight[order])])
    return ExactTally(len(column), leaves, numbers[order], before)


class NoisyTally:
    """Sums over ranges of leaves with noise on them, each drawn when it is first asked for and never again.

    It has a memory, unlike other mechanisms' state, since no tree could be noised as a whole: most of its nodes are never looked at.
    """

    def __init__(self, exact: ExactTally, noise: Distribution, entropy: Entropy) -> None:
        self._exact, self._noise, self._entropy = exact, noise, entropy
        self._drawn: dict[int, tuple[Integers, Integers]] = {}

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return self._exact.keys

    @property
    def noise(self) -> Distribution:
        """The noise on each range."""
        return self._noise

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on each range."""
        return self._noise.standard_deviation

    def sums(self, width: int, ranges: Integers) -> Integers:
        """Give noised sums over ranges of `width` leaves; range number r begins at leaf number r * width."""
        known, drawn = self._drawn.get(width, (np.empty(0, np.int64),) * 2)
        fresh = _missing(known, ranges)
        if fresh.size:
            exact = self._exact.between(fresh * width, (fresh + 1) * width)
            noised = exact + self._noise.sample(fresh.size, self._entropy)
            places = np.searchsorted(known, fresh)
            known, drawn = np.insert(known, places, fresh), np.insert(drawn, places, noised)
            self._drawn[width] = known, drawn
        sums: Integers = drawn[np.searchsorted(known, ranges)]
        return sums


def _missing(known: Integers, numbers: Integers) -> Integers:
    """Find the numbers that are not among the known ones, which are in order; in order too, and each once."""
    if known.size:
        numbers = numbers[known.take(np.searchsorted(known, numbers), mode="clip") != numbers]
    # NumPy's own functions for sets hash, which takes ten times as long.
    ordered = np.sort(numbers, axis=None)
    return ordered[np.diff(ordered, prepend=-1) > 0]
