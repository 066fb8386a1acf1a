"""The mean of a value: total and number of values, noised together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.errors import BoundError
from plume.mechanisms.count import refuse_bad_max_per_key
from plume.mechanisms.margins import LEVEL, Blur, Margins, quotient
from plume.mechanisms.measure import PER_GROUP, PER_ROW, Form, Measure, SqlForm
from plume.mechanisms.mechanism import Mechanism, Part, State, number, size_of
from plume.mechanisms.open_bound import OpenBound, between, finely, in_fine_steps, is_open, open_bound
from plume.mechanisms.rows import NUMBERS, condition, given
from plume.mechanisms.scale import Bound, Floats, Scale, scale_between
from plume.plan.aggregates import Aggregates, CountValues, Sum
from plume.plan.expressions import Absolute, Clamp, Column, Columns, DownWeight, Number, Quantise
from plume.plan.nodes import Size
from plume.plan.types import Kind
from plume.settings import AUTO

# The error of a mean is least if the total gets twice what the number of values gets (docs/guarantees/mean.md).
_TOTAL_WEIGHT = Fraction(2, 3)
_BOUNDS = ("low", "high")
# What is read of a user's own mean where the bounds of single values are not known in time.
_OWN_MEAN = DownWeight(Column("total"), Column("values"), 1)


@dataclass(frozen=True)
class Mean(Measure):
    """The mean of a column per key, each value clamped to [low, high].

    A user with more than `max_per_key` values in a key is weighted down to as many, with all their values.

    Guarantee: one user changes the number of values of one key by at most `max_per_key`, and their total, counted from the middle of the
    bounds, by at most `max_per_key` times half the range. docs/guarantees/mean.md.
    """

    word: ClassVar[str] = "mean"

    column: str
    low: Bound | str
    high: Bound | str
    max_per_key: int
    name: str
    where: str | None = None

    def __post_init__(self) -> None:
        refuse_bad_max_per_key(self.max_per_key)
        if self._is_open and self.max_per_key != 1:
            raise BoundError(
                f"max_per_key is {self.max_per_key} beside high = {AUTO!r}, which holds for each user's own mean; leave it at 1."
            )
        if not self._is_open:
            scale_between(self.low, self.high)
        condition(self.where)

    @property
    def _is_open(self) -> bool:
        return is_open(self.low, self.high, _BOUNDS)

    @property
    def scale(self) -> Scale:
        """The values' grid."""
        return scale_between(self.low, self.high, limit=self.max_per_key)

    @property
    def open_bound(self) -> OpenBound | None:
        """The upper bound, if it is left open; then it is one of each user's own mean, since single values are gone when it is chosen."""
        size = Absolute(_OWN_MEAN) if self.low == AUTO else _OWN_MEAN
        return open_bound("high", size, part="total", clips=False) if self._is_open else None

    def with_bound(self, bound: float) -> "MeanWithChosenRange":
        """Give the open bound a number."""
        return MeanWithChosenRange(self.column, *between(self.low, bound), self.max_per_key, self.name, self.where)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The mean, which is computed from two parts."""
        return {self.name: None}

    @property
    def extent(self) -> float:
        """The range."""
        return self.scale.high - self.scale.low

    @property
    def parts_in_time(self) -> frozenset[str]:
        """The total, if the values are dates or timestamps."""
        return frozenset() if self._is_open or self.scale.kind is Kind.FLOAT else frozenset({"total"})

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The column."""
        return {self.column: NUMBERS if self._is_open else self.scale.kinds}

    def combine_raw(self) -> Aggregates:
        """Count the user's values, and total their distances from the middle, or from zero where the range is left open."""
        return _fine_moments(self) if self._is_open else moments_of(self.scale, self.column, self.where)

    def preprocess(self) -> Columns:
        """Weight down users with many values; one without any adds nothing."""
        return weighted_moments(self.scale, self.max_per_key)

    def combine_keyed(self) -> Aggregates:
        """Add both."""
        return {name: Sum(Column(name)) for name in ("values", "total")}

    def parts(self) -> tuple[Part, ...]:
        """What the limit and the bounds leave one user."""
        return parts_of_moments(self.scale, self.max_per_key, total=_TOTAL_WEIGHT, values=1 - _TOTAL_WEIGHT)

    def size(self) -> Size:
        """The values that count: the total is at most half the range times their number."""
        return size_of(self.max_per_key, self.preprocess()["values"])

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Divide, and come back from the middle."""
        return {self.name: self.scale.release(self.scale.middle + mean_distance(self.scale, noised))}

    def margins(self, noised: State, blurs: Mapping[str, Blur]) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """Bound the quotient, and come back from the middle."""
        low, high = mean_margins(self.scale, noised, blurs)
        return {self.name: (self.scale.release(self.scale.middle + low), self.scale.release(self.scale.middle + high))}


@dataclass(frozen=True)
class MeanWithChosenRange(Mean):
    """The same with a range that was chosen: by then the user's values have been added up, and it is their own mean that is clamped to it.

    Guarantee: that of a mean with this range. docs/guarantees/auto-bounds.md.
    """

    def combine_raw(self) -> Aggregates:
        """Count the user's values and total them, as was done before the range was known."""
        return _fine_moments(self)

    def preprocess(self) -> Columns:
        """Move the user's own mean into the range, and count its distance from the middle once."""
        scale = self.scale
        exponent, origin = finely(scale.exponent, scale.middle)
        total = Clamp(Quantise(_OWN_MEAN, exponent, origin, *scale.bounds), -scale.largest, scale.largest)
        return {**weighted_moments(scale, self.max_per_key), "total": total}


def _fine_moments(measure: Mean) -> Aggregates:
    column = Column(measure.column)
    return {
        "values": CountValues(given(measure.where, Number(column))),
        "total": Sum(given(measure.where, in_fine_steps(column))),
    }


def moments_of(scale: Scale, column: str, where: str | None) -> Aggregates:
    """Count a user's values and total their distances from the middle of the scale, in steps."""
    return {
        "values": CountValues(given(where, scale.read(column))),
        "total": Sum(given(where, scale.steps(column))),
    }


def weighted_moments(scale: Scale, limit: int) -> Columns:
    """Weight a user's values down to the limit."""
    most = limit * scale.largest
    return {
        "values": Clamp(Column("values"), 0, limit),
        "total": Clamp(DownWeight(Column("total"), Column("values"), limit), -most, most),
    }


def parts_of_moments(scale: Scale, limit: int, *, total: Fraction, values: Fraction) -> tuple[Part, Part]:
    """Bound what one user can change of the total and of the number of values."""
    return (
        number("total", limit * scale.largest, weight=total, unit=scale.unit),
        number("values", limit, weight=values),
    )


def mean_distance(scale: Scale, noised: State) -> Floats:
    """The mean distance from the middle, within the bounds; keys that seem to be empty have the total for one value."""
    distance = noised["total"] * float(scale.unit) / at_least_one(noised)
    return np.clip(distance, scale.low - scale.middle, scale.high - scale.middle)


def mean_margins(scale: Scale, noised: State, blurs: Mapping[str, Blur], level: float = LEVEL) -> Margins:
    """Bound the mean distance from the middle."""
    above, below = (noised[name].astype(np.float64) for name in ("total", "values"))
    edges = quotient(above, below, (blurs["total"], blurs["values"]), most=scale.largest, level=level)
    low, high = (edge * float(scale.unit) for edge in edges)
    return low, high


def at_least_one(noised: State) -> Floats:
    """The noised number of values, where it can be divided by."""
    return np.maximum(noised["values"], 1).astype(np.float64)


@call_checked(auto=("high",))
def mean(
    column: str,
    low: Bound | str,
    high: Bound | str,
    *,
    max_per_key: int = 1,
    name: str | None = None,
    where: str | None = None,
) -> Mechanism:
    """Average a column per key; each value is clamped to [low, high], which are numbers, dates or timestamps.

    A user with more than `max_per_key` values in a key is weighted down to that number. With 1, each user's own mean counts once. With
    `high="auto"` the bound is chosen within the budget and each user's own mean is clamped to the bounds; `low` then is 0, or "auto" for
    minus the same.

    >>> mean("seconds", low=0, high=60).name
    'seconds_mean'
    """
    return Mean(column, low, high, max_per_key, name=f"{column}_mean" if name is None else name, where=where)


FORMS = (
    Form(
        mean,
        "mean(seconds, 0, 60), where every value is clamped to the range 0 to 60",
        SqlForm("AVG", (PER_GROUP, PER_ROW)),
        alias="avg",
    ),
)
