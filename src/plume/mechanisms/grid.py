"""The power-of-two grid on which values become integers, so that sums are exact in any order (docs/guarantees/sum.md)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from plume.errors import RangeError, shown

# 2**20 steps up to the bound: finer than any noise, and sums of 2**40 users stay within 64 bits.
STEPS_BITS = 20
# Well inside what a float holds, so that no step of scaling rounds or overflows.
LARGEST_BOUND, SMALLEST_BOUND = 1e150, 1e-150


@dataclass(frozen=True)
class Grid:
    """Multiples of 2**exponent between two bounds, which are moved inward onto the grid."""

    exponent: int
    low: int
    high: int

    @property
    def unit(self) -> Fraction:
        """What one step is worth."""
        return Fraction(2) ** self.exponent

    @property
    def largest(self) -> int:
        """The largest magnitude between the bounds, in steps: exactly what one user can change."""
        return max(abs(self.low), abs(self.high))


def grid_between(low: Any, high: Any, *, names: tuple[str, str]) -> Grid:
    """Lay a grid between two bounds; `names` are the caller's words for them.

    Guarantee: it depends on the bounds alone, never on data.
    """
    _refuse_bad_bounds(low, high, names)
    exponent = math.frexp(max(abs(low), abs(high)))[1] - 1 - STEPS_BITS
    unit = Fraction(2) ** exponent
    grid = Grid(exponent, math.ceil(Fraction(low) / unit), math.floor(Fraction(high) / unit))
    if grid.low > grid.high:
        raise RangeError(
            f"{names[0]} = {low!r} and {names[1]} = {high!r} are too close to each other for their size; "
            "there must be a multiple of 2**-20 of the larger one between them."
        )
    return grid


def _refuse_bad_bounds(low: Any, high: Any, names: tuple[str, str]) -> None:
    for name, bound in zip(names, (low, high), strict=True):
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not abs(bound) <= LARGEST_BOUND:
            raise RangeError(f"{name} is {shown(bound)}; it must be a number of at most {LARGEST_BOUND:g}.")
    largest = max(abs(low), abs(high))
    if not low < high:
        raise RangeError(f"{names[0]} is {low!r} and {names[1]} is {high!r}; the first must be below the second.")
    if largest < SMALLEST_BOUND:
        raise RangeError(f"{names[0]} and {names[1]} are both within {SMALLEST_BOUND:g} of zero; rescale the column.")
