"""Whether draws of noise move together: those of different keys, of different columns, of two releases.

By rank, so that how often a test is wrong does not depend on the law of the noise; in value and in size, since noise that shares its
size alone with other noise tells as much.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.stats import rankdata

from plume.auditing.statistics import ALPHA, Floats

# Ranks of draws that are nearly all alike have no law that is known; how often they are alike is tested by itself.
_MOST_ALIKE = 0.75


def apart(pairs: Iterable[tuple[Floats, Floats]]) -> bool:
    """Return whether no pair of samples moves together; all pairs share one ALPHA."""
    looks = [look for one, other in pairs for look in ((one, other), (np.abs(one), np.abs(other)))]
    return all(abs(_correlation(*look)) <= _farthest(len(look[0]), tests=len(looks)) for look in looks)


def of_different_keys(drawn: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Pair the draws of a column with those of other keys: the next one, and ever farther ones, as pieces of work are powers of two."""
    lags = (2**power for power in range((len(drawn) // 2).bit_length()))
    return ((drawn[:-lag], drawn[lag:]) for lag in lags)


def of_different_columns(one: Floats, other: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Pair the draws of two columns, of the same key and of the keys beside it."""
    return iter([(one, other), (one[:-1], other[1:]), (one[1:], other[:-1])])


def _correlation(one: Floats, other: Floats) -> float:
    """The rank correlation of two samples; 0 where hardly any draw differs from the others."""
    if max(map(_alike, (one, other))) > _MOST_ALIKE:
        return 0.0
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


def _alike(sample: Floats) -> float:
    """Which share of a sample its most frequent value is."""
    return float(np.unique(sample, return_counts=True)[1].max() / len(sample))


def _farthest(size: int, *, tests: int) -> float:
    """What the correlation of independent samples exceeds with a chance of at most ALPHA in any of `tests` tests.

    Its variance is 1 / (size - 1) whatever the ranks, and from the thousands on, where all audits are, its tails are below the normal ones.
    """
    return math.sqrt(2 * math.log(2 * tests / ALPHA) / (size - 1))
