"""Single values between two bounds, as whole steps from their middle: numbers, or dates and timestamps on a public grid of time."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.errors import RangeError, shown
from plume.mechanisms.grid import LARGEST_BOUND, SMALLEST_BOUND, STEPS_BITS
from plume.mechanisms.rows import NUMBERS
from plume.plan.expressions import Column, Expression, Leaf, Microseconds, Number, Quantise
from plume.plan.types import Kind
from plume.settings import AUTO

Bound = float | date | datetime
Floats = NDArray[np.float64]

_MOMENTS = frozenset({Kind.DATE, Kind.TIMESTAMP})
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_A_DATE = "datetime.date(2026, 1, 31)"


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`: numbers as they are, dates and timestamps as microseconds since 1970.

    Guarantee: it depends on the bounds alone, never on data.
    """

    low: float
    high: float
    kind: Kind
    """What the bounds are, and so what is released."""
    bits: int
    """There are 2**bits steps or more from the middle to a bound."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """What a column with such values may hold."""
        return NUMBERS if self.kind is Kind.FLOAT else _MOMENTS

    @property
    def middle(self) -> float:
        """Where steps are counted from: far from zero this makes sums of values small, and the noise on them."""
        return self.low / 2 + self.high / 2

    @property
    def exponent(self) -> int:
        """The logarithm of the grid."""
        return math.frexp(self.high / 2 - self.low / 2)[1] - 1 - self.bits

    @property
    def unit(self) -> Fraction:
        """What one step is worth."""
        return Fraction(2) ** self.exponent

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds in steps from the middle, moved inward onto the grid."""
        low, middle, high = Fraction(self.low), Fraction(self.middle), Fraction(self.high)
        return math.ceil((low - middle) / self.unit), math.floor((high - middle) / self.unit)

    @property
    def largest(self) -> int:
        """The most steps a value can be from the middle."""
        return max(map(abs, self.bounds))

    def read(self, column: str) -> Number:
        """Read a column as finite numbers."""
        return Number(self._position(column))

    def leaf(self, column: str, leaves: int) -> Leaf:
        """Read in which of `leaves` ranges of equal width each value of a column lies, clamped to the bounds."""
        return Leaf(self._position(column), self.low, self.high, leaves)

    def steps(self, column: str) -> Quantise:
        """Read a column in steps from the middle, each value clamped to the bounds."""
        low, high = self.bounds
        return Quantise(self._position(column), self.exponent, self.middle, low, high)

    def _position(self, column: str) -> Expression:
        return Column(column) if self.kind is Kind.FLOAT else Microseconds(Column(column))

    def release(self, values: Floats) -> pa.Array:
        """Clamp values to the bounds and give them as what the bounds are."""
        inside = np.clip(values, self.low, self.high)
        match self.kind:
            case Kind.DATE:
                return pa.array(np.rint(inside / _DAY).astype(np.int32), pa.int32()).cast(pa.date32())
            case Kind.TIMESTAMP:
                return pa.array(np.rint(inside).astype(np.int64)).cast(pa.timestamp("us"))
            case _:
                return pa.array(inside)


def scale_between(low: Any, high: Any, *, limit: int = 1) -> Scale:
    """Lay a scale between two numbers, two dates or two timestamps, of which one user has at most `limit` in a key.

    The grid is the coarser, the more one user may add, so that the sums of 2**40 users stay within 64 bits.
    """
    kinds = {_kind(bound) for bound in (low, high)}
    if len(kinds) != 1:
        raise RangeError(
            f"low is {low!r} and high is {high!r}; both must be numbers, or both dates, or both timestamps."
        )
    (kind,) = kinds
    bits = STEPS_BITS - max(0, (limit - 1).bit_length() - 1)
    scale = Scale(_position("low", low), _position("high", high), kind, bits)
    if not scale.low < scale.high:
        raise RangeError(f"low is {low!r} and high is {high!r}; the first must be below the second.")
    if scale.high / 2 - scale.low / 2 < SMALLEST_BOUND:
        raise RangeError(f"low and high are within {SMALLEST_BOUND:g} of each other; rescale the column.")
    return scale


def _kind(bound: Any) -> Kind:
    match bound:
        case datetime():
            return Kind.TIMESTAMP
        case date():
            return Kind.DATE
        case _:
            return Kind.FLOAT


def _position(name: str, bound: Any) -> float:
    match bound:
        case datetime(tzinfo=None):
            return (bound.replace(tzinfo=UTC) - _START) / _MICROSECOND
        case datetime():
            raise RangeError(f"{name} is {bound!r}; a timestamp is given without a time zone, as the column holds it.")
        case date():
            return float((bound.toordinal() - _START.toordinal()) * _DAY)
        case bool():
            pass
        case int() | float() if abs(bound) <= LARGEST_BOUND:
            return float(bound)
    known = "; bounds of counts, sums and means are chosen by it, and no others" if bound == AUTO else ""
    dates = f", such as {_A_DATE}" if isinstance(bound, str) and bound != AUTO else ""
    raise RangeError(
        f"{name} is {shown(bound)}{known}; it must be a number of at most {LARGEST_BOUND:g}, a date or a timestamp{dates}."
    )
