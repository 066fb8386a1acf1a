"""How far a number that is computed from several noised ones may be from what it was before the noise.

Separate because it is post-processing: all it sees is noised already, and the law of the noise is public. docs/guarantees/intervals.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plume.errors import UsageError, shown
from plume.mechanisms.scale import Floats
from plume.noise.noise import Distribution, half_width

LEVEL = 0.95
"""How often, at least, the value before noise lies between the margins of a released number."""

Margins = tuple[Floats, Floats]
# An interval that is wider than this share of what the declared bounds allow tells hardly more than the bounds do.
_WIDEST = 0.5


@dataclass(frozen=True)
class Blur:
    """What lies between an exact integer of a state and the noised one: noise, in steps of 2**-bits, and rounding where there are such."""

    noise: Distribution
    bits: int = 0
    terms: int = 1
    """How many such integers are added up, each with noise of its own."""

    @property
    def variance(self) -> float:
        """The variance, in the steps of the state."""
        rounding = 1 / 12 if self.bits else 0.0
        return self.terms * (math.ldexp(self.noise.standard_deviation, -self.bits) ** 2 + rounding)

    def reach(self, level: float = LEVEL) -> float:
        """How many standard deviations noise stays within, on either side, with a probability of at least `level`.

        Sums of such noise are taken to stay within as many of their own: for Gaussian noise they do, for Laplace noise it is measured.
        """
        normal, deviation = NormalDist().inv_cdf((1 + level) / 2), self.noise.standard_deviation
        # Of very little noise the deviation is not above 0.
        return max(half_width(self.noise, level) / deviation, normal) if deviation else normal


def quotient(above: Floats, below: Floats, blurs: tuple[Blur, Blur], *, most: float, level: float = LEVEL) -> Margins:
    """Bound the quotient of two numbers that are known with noise, by Fieller's method; its magnitude is at most `most`.

    A quotient d is possible if `above - d * below`, which without noise would be zero, is no further from zero than noise reaches. If the
    number below may be zero, every quotient is.
    """
    reach = max(blur.reach(level) for blur in blurs)
    of_above, of_below = (reach**2 * blur.variance for blur in blurs)
    known = (below > 0) & (below * below > of_below)
    square = np.where(known, below * below - of_below, 1.0)
    root = np.sqrt(np.maximum(below * below * of_above + above * above * of_below - of_above * of_below, 0))
    middle = above * below
    low, high = (np.where(known, (middle + side * root) / square, side * most) for side in (-1, 1))
    return np.clip(low, -most, most), np.clip(high, -most, most)


def is_reliable(low: pa.ChunkedArray, high: pa.ChunkedArray, extent: float) -> pa.ChunkedArray:
    """Say where an interval is at most half as wide as what the declared bounds allow, `extent`; days count in microseconds.

    An interval without a width, as one with an end that is not a number, is too wide.
    """
    return pc.less_equal(pc.subtract(*map(_positions, (high, low))), _WIDEST * extent)


def _positions(ends: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ends of intervals as numbers, on the scale that their bounds are on."""
    match ends.type:
        case kind if pa.types.is_date(kind):
            return ends.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64())
        case kind if pa.types.is_timestamp(kind):
            return ends.cast(pa.int64()).cast(pa.float64())
        case _:
            return ends


def refuse_intervals(level: float, columns: Sequence[str], computed: Sequence[str]) -> None:
    """Refuse a level that is not a probability or that a column has no intervals of, and columns whose names intervals would take."""
    refuse_bad_level(level)
    others = [name for name in computed if name in columns]
    if others and level != LEVEL:
        also = ", which hold at this level too" if level < LEVEL else ""
        raise UsageError(
            f"level is {level:g}, and {others[0]} has intervals of the level {LEVEL:g} only, made of parts that a release does not "
            f"keep; use those of {LEVEL:g}{also}, or a release without means, deviations and quantiles."
        )
    names = set(columns)
    for name in columns:
        if {f"{name}_low", f"{name}_high"} & names:
            raise UsageError(f"there is a column {name}_low or {name}_high already; give the measure a different name.")


def refuse_bad_level(level: float) -> None:
    """Refuse a level that is not a probability."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise UsageError(f"level is {shown(level)}; it must be above 0 and below 1, such as 0.95.")
