"""The total of a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.mechanisms.grid import Grid, grid_between
from plume.mechanisms.measure import PER_GROUP, Form, Measure, SqlForm
from plume.mechanisms.mechanism import Mechanism, Part, State, number, size_of
from plume.mechanisms.open_bound import OpenBound, between, in_fine_steps, is_open, on_grid, open_bound
from plume.mechanisms.rows import NUMBERS, condition, given
from plume.noise.batches import column_of
from plume.plan.aggregates import Aggregates, Sum
from plume.plan.expressions import Absolute, Clamp, Column, Columns, Quantise
from plume.plan.nodes import Size
from plume.plan.types import Kind
from plume.settings import AUTO

_BOUNDS = ("low_total", "high_total")
_WHOLE = frozenset({Kind.INTEGER, Kind.BOOLEAN})
# Sums of 2**32 users stay within 64 bits.
_LARGEST_WHOLE = 2.0**31
NO_LOW = "a sum has low_total and high_total, not low and high: they bound what one user adds to a key in total, not single values"
"""What to say to those who bound values."""


@dataclass(frozen=True)
class SumOfTotals(Measure):
    """The sum of a column per key, each user's own total in the key clamped to [low_total, high_total].

    Guarantee: one user changes one key by at most max(|low_total|, |high_total|), exactly, on the grid. docs/guarantees/sum.md.
    """

    word: ClassVar[str] = "sum"

    column: str
    low_total: float | str
    high_total: float | str
    name: str
    where: str | None = None

    def __post_init__(self) -> None:
        if not self._is_open:
            self._grid()
        condition(self.where)

    def _grid(self) -> Grid:
        return grid_between(self.low_total, self.high_total, names=_BOUNDS)

    @property
    def _is_open(self) -> bool:
        return is_open(self.low_total, self.high_total, _BOUNDS)

    def is_whole(self, kinds: Mapping[str, Kind]) -> bool:
        """Whether the column and the bounds are whole, and sums stay within 64 bits. docs/guarantees/sum.md."""
        return kinds[self.column] in _WHOLE and self._has_whole_bounds

    @property
    def _has_whole_bounds(self) -> bool:
        bounds = (self.low_total, self.high_total)
        return all(float(bound).is_integer() and abs(float(bound)) <= _LARGEST_WHOLE for bound in bounds)

    @property
    def open_bound(self) -> OpenBound | None:
        """The upper bound, if it is left open: a user's own total, and its noise, are in proportion to it."""
        total = Column("total")
        size = Absolute(total) if self.low_total == AUTO else total
        return open_bound("high_total", size, part="total", clips=True) if self._is_open else None

    def with_bound(self, bound: float) -> "SumWithChosenRange":
        """Give the open bound a number."""
        return SumWithChosenRange(self.column, *between(self.low_total, bound), self.name, self.where)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The sum."""
        return {self.name: "total"}

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The summed column."""
        return {self.column: NUMBERS}

    def combine_raw(self) -> Aggregates:
        """Total the user's values on the grid, or on a finer one that is the same for all data where bounds are left open."""
        if self._is_open:
            return _fine_total(self)
        return {"total": Sum(given(self.where, Quantise(Column(self.column), self._grid().exponent)))}

    def preprocess(self) -> Columns:
        """Clamp the total to its bounds; a user without values adds nothing."""
        grid = self._grid()
        return {"total": Clamp(Column("total"), grid.low, grid.high)}

    def combine_keyed(self) -> Aggregates:
        """Add the users' totals."""
        return {"total": Sum(Column("total"))}

    def parts(self) -> tuple[Part, ...]:
        """The larger bound, in steps of the grid."""
        grid = self._grid()
        return (number("total", grid.largest, unit=grid.unit),)

    def size(self) -> Size:
        """The total itself."""
        return size_of(self._grid().largest, *self.preprocess().values())

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Leave the grid."""
        return {self.name: column_of(noised["total"].astype(np.float64) * float(self._grid().unit))}


@dataclass(frozen=True)
class SumWithChosenRange(SumOfTotals):
    """The same with a range that was chosen: by then the user's values have been added up, in finer steps.

    Guarantee: that of a sum with this range. docs/guarantees/auto-bounds.md.
    """

    @property
    def _has_whole_bounds(self) -> bool:
        """Take all bounds that 64 bits allow for whole, so that what is chosen does not change the type of the sum."""
        return abs(float(self.high_total)) <= _LARGEST_WHOLE

    def combine_raw(self) -> Aggregates:
        """Total the user's values, as was done before the range was known."""
        return _fine_total(self)

    def preprocess(self) -> Columns:
        """Clamp the total to its range, and onto the grid."""
        return {"total": on_grid(Column("total"), self._grid())}


def _fine_total(measure: SumOfTotals) -> Aggregates:
    return {"total": Sum(given(measure.where, in_fine_steps(Column(measure.column))))}


@call_checked(auto=("high_total",), instead={"low": NO_LOW, "high": NO_LOW})
def sum(  # noqa: A001 - plume.sum, as in pandas and SQL
    column: str, low_total: float | str, high_total: float | str, *, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Sum a column per key; each user's total per key is clamped to [low_total, high_total].

    With `high_total="auto"` the bound is chosen within the budget; `low_total` then is 0, or "auto" for minus the same. With `where=`,
    only records that satisfy the condition are summed.

    >>> sum("seconds", low_total=0, high_total=60).name
    'seconds_sum'
    """
    return SumOfTotals(column, low_total, high_total, name=f"{column}_sum" if name is None else name, where=where)


FORMS = (
    Form(
        sum,
        "sum(seconds, 0, 60), where one user's total per key is clamped to the range 0 to 60",
        SqlForm("SUM", (PER_GROUP,)),
    ),
)
