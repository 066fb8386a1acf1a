"""The variance of a value and its root: the mean's parts, and the total of squares beside them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.errors import RangeError
from plume.mechanisms.count import refuse_bad_max_per_key
from plume.mechanisms.margins import LEVEL, Blur, Margins, quotient
from plume.mechanisms.mean import (
    at_least_one,
    mean_distance,
    mean_margins,
    moments_of,
    parts_of_moments,
    weighted_moments,
)
from plume.mechanisms.measure import PER_ROW, Form, Measure, SqlForm
from plume.mechanisms.mechanism import Mechanism, Part, State, number, size_of
from plume.mechanisms.rows import condition, given
from plume.mechanisms.scale import Floats, Scale, scale_between
from plume.plan.aggregates import Aggregates, Sum
from plume.plan.expressions import Clamp, Column, Columns, DownWeight, Square
from plume.plan.nodes import Size
from plume.plan.types import Kind

_THIRD = Fraction(1, 3)


@dataclass(frozen=True)
class Variance(Measure):
    """The population variance of a column per key, each value clamped to [low, high].

    A user with more than `max_per_key` values in a key is weighted down to as many, with all their values.

    Guarantee: one user changes number, total and squares of one key by at most `max_per_key` times what one value can be: 1, half the
    range, and half of its square. docs/guarantees/variance.md.
    """

    word: ClassVar[str] = "variance"

    column: str
    low: float
    high: float
    max_per_key: int
    name: str
    where: str | None = None

    def __post_init__(self) -> None:
        refuse_bad_max_per_key(self.max_per_key)
        if scale_between(self.low, self.high).kind is not Kind.FLOAT:
            raise RangeError(f"low is {self.low!r}; a variance is of numbers, not of dates.")
        condition(self.where)

    @property
    def scale(self) -> Scale:
        """The values' grid."""
        return scale_between(self.low, self.high, limit=self.max_per_key)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The variance, which is computed from three parts."""
        return {self.name: None}

    @property
    def extent(self) -> float:
        """The most that a variance can be."""
        return self._greatest

    @property
    def _greatest(self) -> float:
        """The variance of values of which half are at each bound."""
        return (self.high / 2 - self.low / 2) ** 2

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The column."""
        return {self.column: self.scale.kinds}

    def combine_raw(self) -> Aggregates:
        """Count the user's values, and total their distances from the middle and the squares of these."""
        squares = Square(self.scale.steps(self.column), self._centre, self.scale.bits)
        return {**moments_of(self.scale, self.column, self.where), "squares": Sum(given(self.where, squares))}

    @property
    def _centre(self) -> int:
        """Half of the largest square: squares less this are both positive and negative, and half as large."""
        return self.scale.largest * self.scale.largest // 2

    @property
    def _largest(self) -> int:
        """The most that the square of one value can be, less the centre."""
        step = 1 << self.scale.bits
        high = (self.scale.largest * self.scale.largest - self._centre + step // 2) // step
        return max(high, abs((step // 2 - self._centre) // step))

    def preprocess(self) -> Columns:
        """Weight down users with many values; one without any adds nothing."""
        limit = self.max_per_key
        squares = DownWeight(Column("squares"), Column("values"), limit)
        most = limit * self._largest
        return {**weighted_moments(self.scale, limit), "squares": Clamp(squares, -most, most)}

    def combine_keyed(self) -> Aggregates:
        """Add all three."""
        return {name: Sum(Column(name)) for name in ("values", "total", "squares")}

    def parts(self) -> tuple[Part, ...]:
        """What the limit and the bounds leave one user."""
        squares = number("squares", self.max_per_key * self._largest, weight=_THIRD, unit=self._unit)
        return (*parts_of_moments(self.scale, self.max_per_key, total=_THIRD, values=_THIRD), squares)

    @property
    def _unit(self) -> Fraction:
        return self.scale.unit * self.scale.unit * (1 << self.scale.bits)

    def size(self) -> Size:
        """The values that count: totals of them and of their squares are at most their number times what one can be."""
        return size_of(self.max_per_key, self.preprocess()["values"])

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Take the square of the mean from the mean of the squares; the variance of values in a range has bounds of its own."""
        return {self.name: pa.array(self.variance(noised))}

    def variance(self, noised: State) -> Floats:
        """The variance within its bounds."""
        squares = self.mean_square(noised["squares"] / at_least_one(noised))
        return self._within(squares - mean_distance(self.scale, noised) ** 2)

    def mean_square(self, steps: Floats | float) -> Floats | float:
        """The mean square, from its steps above the centre."""
        return steps * float(self._unit) + float(self._centre * self.scale.unit**2)

    def _within(self, variance: Floats) -> Floats:
        """Clamp a variance to what the variance of values in the range can be."""
        return np.clip(variance, 0, self._greatest)

    def margins(self, noised: State, blurs: Mapping[str, Blur]) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """Bound the variance."""
        low, high = self.variance_margins(noised, blurs)
        return {self.name: (pa.array(low), pa.array(high))}

    def variance_margins(self, noised: State, blurs: Mapping[str, Blur]) -> Margins:
        """Bound mean and mean square, each so that it fails half as often, and take what the variance can then be."""
        level = (1 + LEVEL) / 2
        low, high = mean_margins(self.scale, noised, blurs, level)
        above, below = (noised[name].astype(np.float64) for name in ("squares", "values"))
        squares = quotient(above, below, (blurs["squares"], blurs["values"]), most=self._largest, level=level)
        farthest, nearest = np.maximum(-low, high), np.maximum(0, np.maximum(low, -high))
        least, most = (self.mean_square(edge) for edge in squares)
        return self._within(least - farthest**2), self._within(most - nearest**2)


@dataclass(frozen=True)
class StandardDeviation(Variance):
    """The standard deviation of a column per key: the root of the variance, at no further cost.

    Guarantee: that of the variance, of which this is a function. docs/guarantees/variance.md.
    """

    word: ClassVar[str] = "stddev"

    @property
    def extent(self) -> float:
        """The most that a standard deviation can be: half of the range."""
        return math.sqrt(self._greatest)

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Take the root."""
        return {self.name: pa.array(np.sqrt(self.variance(noised)))}

    def margins(self, noised: State, blurs: Mapping[str, Blur]) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """Take the roots."""
        low, high = self.variance_margins(noised, blurs)
        return {self.name: (pa.array(np.sqrt(low)), pa.array(np.sqrt(high)))}


@call_checked()
def variance(
    column: str, low: float, high: float, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Take the population variance of a column per key; each value is clamped to [low, high].

    A user with more than `max_per_key` values in a key is weighted down to that number.

    >>> variance("seconds", low=0, high=60).name
    'seconds_variance'
    """
    return Variance(column, low, high, max_per_key, name=f"{column}_variance" if name is None else name, where=where)


@call_checked()
def stddev(
    column: str, low: float, high: float, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Take the standard deviation of a column per key: the root of the variance.

    >>> stddev("seconds", low=0, high=60).name
    'seconds_stddev'
    """
    chosen = f"{column}_stddev" if name is None else name
    return StandardDeviation(column, low, high, max_per_key, name=chosen, where=where)


FORMS = (
    Form(variance, "variance(seconds, 0, 60)", SqlForm("VAR_POP", (PER_ROW,)), alias="var"),
    Form(stddev, "stddev(seconds, 0, 60)", SqlForm("STDDEV_POP", (PER_ROW,)), alias="std"),
)
