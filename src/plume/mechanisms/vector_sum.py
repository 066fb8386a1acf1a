"""The total of several columns at once: one vector per user, shortened to a length."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.errors import MeasureError, RangeError, shown
from plume.mechanisms.grid import LARGEST_BOUND, Grid, grid_between
from plume.mechanisms.measure import Form, Measure
from plume.mechanisms.mechanism import Mechanism, Part, State, size_of
from plume.mechanisms.rows import NUMBERS, condition, given
from plume.plan.aggregates import Aggregates, Sum
from plume.plan.expressions import Clamp, Column, Columns, Quantise, Shorten
from plume.plan.nodes import Size
from plume.plan.types import Kind

# Each coordinate is printed with all the others beside it, so SQL grows with the square of their number.
MOST_COLUMNS = 64


@dataclass(frozen=True)
class VectorSum(Measure):
    """The sums of several columns per key, each user's own vector of totals shortened to a Euclidean length of at most `norm`.

    Guarantee: one user changes the vector of one key by a Euclidean length of at most `norm`, exactly, on the grid.
    docs/guarantees/vector-sum.md.
    """

    word: ClassVar[str] = "vector_sum"

    coordinates: tuple[str, ...]
    norm: float
    name: str
    where: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.coordinates) <= MOST_COLUMNS or len(set(self.coordinates)) < len(self.coordinates):
            raise MeasureError(
                f"columns is {self.coordinates!r}; a vector sum is of 1 to {MOST_COLUMNS} columns, each named once."
            )
        self._grid()
        condition(self.where)

    def _grid(self) -> Grid:
        if not _is_number(self.norm) or not 0 < self.norm <= LARGEST_BOUND:
            raise RangeError(
                f"norm is {shown(self.norm)}; it must be a number above 0 and at most {LARGEST_BOUND:g}, such as 3."
            )
        return grid_between(-self.norm, self.norm, names=("-norm", "norm"))

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The sum of each column."""
        return {f"{column}_{self.name}": "vector" for column in self.coordinates}

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The summed columns."""
        return dict.fromkeys(self.coordinates, NUMBERS)

    def call(self) -> tuple[str, dict[str, Any]]:
        """Name the function; what it calls columns are the coordinates here, since columns are those of the result."""
        word, arguments = super().call()
        return word, {"columns": arguments.pop("coordinates"), **arguments}

    @property
    def _states(self) -> tuple[str, ...]:
        return tuple(f"total_{number}" for number in range(1, len(self.coordinates) + 1))

    def combine_raw(self) -> Aggregates:
        """Total the user's values of each column on the grid."""
        exponent = self._grid().exponent
        return {
            name: Sum(given(self.where, Quantise(Column(column), exponent)))
            for name, column in zip(self._states, self.coordinates, strict=True)
        }

    def preprocess(self) -> Columns:
        """Shorten the vector; a column without values counts as 0."""
        most = self._grid().high
        vector = tuple(Column(name) for name in self._states)
        return {name: Clamp(Shorten(Column(name), vector, most), -most, most) for name in self._states}

    def combine_keyed(self) -> Aggregates:
        """Add the users' vectors."""
        return {name: Sum(Column(name)) for name in self._states}

    def parts(self) -> tuple[Part, ...]:
        """The length, in steps of the grid; in absolute values a vector of that length can be longer."""
        grid, dimensions = self._grid(), len(self.coordinates)
        squared = grid.high**2
        absolute = math.isqrt(dimensions * squared)
        return (Part("vector", absolute, squared, unit=grid.unit, states=self._states),)

    def size(self) -> Size:
        """The length of the vector."""
        return size_of(self._grid().high, *self.preprocess().values())

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Leave the grid."""
        unit = float(self._grid().unit)
        return {
            column: pa.array(noised[name].astype(np.float64) * unit)
            for column, name in zip(self.columns, self._states, strict=True)
        }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@call_checked(
    meanings={
        "columns": "the names of the columns that are added up, such as ['east', 'north']",
        "norm": "the greatest length of one user's vector of totals in a key, such as 3",
    }
)
def vector_sum(columns: Sequence[str], norm: float, *, name: str = "vector_sum", where: str | None = None) -> Mechanism:
    """Sum several columns per key; each user's vector of totals per key is shortened to a Euclidean length of at most `norm`.

    Its columns are called `<column>_<name>`.

    >>> list(vector_sum(["x", "y"], norm=3).columns)
    ['x_vector_sum', 'y_vector_sum']
    """
    listed = (columns,) if isinstance(columns, str) or not isinstance(columns, Iterable) else tuple(columns)
    return VectorSum(listed, norm, name=name, where=where)


FORMS = (Form(vector_sum, "vector_sum([east, north], 3), where one user's vector per key is at most 3 long"),)
