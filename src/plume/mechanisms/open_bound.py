"""A bound that a measure leaves open: what may be chosen for it within the budget, and what is looked at to choose.

Until it is chosen, contributions stay on a grid that is the same for all data; then they are clamped to the bound and onto its own grid.
docs/guarantees/auto-bounds.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from plume.errors import RangeError
from plume.mechanisms.grid import Grid
from plume.plan.expressions import Clamp, Coarser, Expression, Quantise, Times
from plume.settings import AUTO

# Steps of 2**-22: fine enough for bounds from 0.001 on, and 2**62 of them, the most that one value counts for, are 10**12.
_FINE = -22
_OCTAVES, _OCTAVES_OF_COUNTS = range(-10, 40), range(20)


def _candidates(octaves: range) -> tuple[float, ...]:
    """Two to an octave, 1 and 1.5 times powers of two: a bound between two of them could gain little."""
    listed = [factor * 2.0**octave for octave in octaves for factor in (1, 1.5)]
    return (*listed, 2.0**octaves.stop)


@dataclass(frozen=True)
class OpenBound:
    """A bound without a number: its name, the numbers that may be chosen, and how large a contribution is before anything bounds it."""

    name: str
    size: Expression
    """Of what combining raw rows gives, in steps; rows without values, and those below 0 where that is the lower bound, have none."""
    part: str
    """The part of the measure whose noise is in proportion to the bound."""
    candidates: tuple[float, ...]
    unit: Fraction
    """What one step is worth."""
    clips: bool
    """Whether the size of a row that is clipped, as of one key of many, is in proportion to the bound too."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The candidates in steps."""
        return tuple(int(Fraction(one) / self.unit) for one in self.candidates)


def open_bound(name: str, size: Expression, *, part: str, clips: bool) -> OpenBound:
    """Leave the bound of a number open."""
    return OpenBound(name, size, part, _candidates(_OCTAVES), Fraction(2) ** _FINE, clips)


def open_count(name: str, size: Expression, *, part: str) -> OpenBound:
    """Leave the bound of a count open: whole numbers only."""
    candidates = tuple(one for one in _candidates(_OCTAVES_OF_COUNTS) if one.is_integer())
    return OpenBound(name, size, part, candidates, Fraction(1), clips=True)


def is_open(low: Any, high: Any, names: tuple[str, str]) -> bool:
    """Return whether bounds are left open: the upper one, above 0 or for both signs alike."""
    if not any(isinstance(bound, str) and bound == AUTO for bound in (low, high)):
        return False
    if high != AUTO or isinstance(low, bool) or low not in (0, AUTO):
        raise RangeError(
            f"{names[0]} is {low!r} and {names[1]} is {high!r}; beside {names[1]} = {AUTO!r}, {names[0]} is 0, "
            f"or {AUTO!r} for the same bound below 0."
        )
    return True


def between(low: Any, bound: float) -> tuple[float, float]:
    """Give open bounds a number."""
    return (-bound if low == AUTO else 0), bound


def in_fine_steps(of: Expression) -> Quantise:
    """Read a number on the grid that is the same for all data."""
    return Quantise(of, _FINE)


def on_grid(of: Expression, grid: Grid) -> Expression:
    """Move what is in fine steps into bounds, and onto their grid, toward zero.

    Guarantee: what comes out is within the bounds in steps of the grid.
    """
    finer = grid.exponent - _FINE
    low, high = (int(Fraction(bound) * Fraction(2) ** finer) for bound in (grid.low, grid.high))
    clamped = Clamp(of, low, high)
    return Coarser(clamped, finer) if finer > 0 else Times(clamped, 1 << -finer)


def finely(exponent: int, origin: float) -> tuple[int, float]:
    """Say what a grid and a place are in fine steps."""
    return exponent - _FINE, origin * 2.0**-_FINE


def open_bounds(measures: Iterable[Any]) -> dict[str, tuple[int, OpenBound]]:
    """List the bounds that measures leave open: what each is called among all that is chosen, and of which measure, from 0 on, it is."""
    bounds = {}
    for number, measure in enumerate(measures):
        bound = getattr(measure, "open_bound", None)
        if bound is not None:
            bounds[f"{measure.name}: {bound.name}"] = (number, bound)
    return bounds
