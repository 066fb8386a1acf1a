"""The heavy-tailed distribution of the paper's synthetic data.

It stands alone because the numbers of records, the keys and the recipes all follow it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator  # noqa: TID251 - made-up data must be repeatable, and hides nobody
from numpy.typing import NDArray

_BUCKETS = 1 << 20  # a power of two, so that the bucket of a float is exact
_SEVERAL = -1


@dataclass(frozen=True)
class ZipfMandelbrot:
    """The distribution on 1..size where Pr[x] is proportional to (x + shift)^-exponent."""

    size: int
    exponent: float
    shift: float

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size is {self.size}; it must be at least 1, the number of values.")
        if self.shift <= -1:
            raise ValueError(f"shift is {self.shift}; it must be above -1, or Pr[1] would be infinite.")

    def probabilities(self) -> NDArray[np.float64]:
        """Return Pr[1], ..., Pr[size]."""
        weights = (np.arange(1.0, self.size + 1) + self.shift) ** -self.exponent
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    def sample(self, count: int, generator: Generator) -> NDArray[np.int64]:
        """Draw `count` independent values, each the inverse of the distribution function at a uniform."""
        uniforms = generator.random(count)
        values = self._value_of_bucket[(uniforms * _BUCKETS).astype(np.int64)]
        searched = np.flatnonzero(values == _SEVERAL)
        # A search in ascending order is several times quicker: it stays in the processor's cache.
        searched = searched[np.argsort(uniforms[searched])]
        values[searched] = self._invert(uniforms[searched])
        return values

    def _invert(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.searchsorted(self._cumulative, uniforms, side="right") + 1

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        """Pr[X <= x] for x in 1..size - 1; the last value takes all that is left, whatever the rounding."""
        return np.cumsum(self.probabilities())[:-1]

    @cached_property
    def _value_of_bucket(self) -> NDArray[np.int64]:
        """The value of all uniforms in a bucket, or `_SEVERAL` where they differ.

        Four fifths of the draws of the paper's keys, and nearly all of steeper distributions, need no more.
        """
        edges = self._invert(np.arange(_BUCKETS + 1) / _BUCKETS)
        return np.where(edges[:-1] == edges[1:], edges[:-1], _SEVERAL)
