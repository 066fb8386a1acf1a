"""The total of a value."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from plume.mechanisms.grid import Grid, grid_between
from plume.mechanisms.mechanism import State
from plume.noise.entropy import Entropy
from plume.noise.noise import Noise
from plume.plan.expressions import Aggregates, Clamp, Column, Columns, Quantise, Sum


@dataclass(frozen=True)
class SumOfTotals:
    """The sum of a column per key, each user's own total in the key moved into [low_total, high_total].

    Guarantee: one user changes one key by at most max(|low_total|, |high_total|), exactly, on the grid. docs/guarantees/sum.md.
    """

    column: str
    low_total: float
    high_total: float
    name: str

    def __post_init__(self) -> None:
        self._grid()

    def _grid(self) -> Grid:
        return grid_between(self.low_total, self.high_total, names=("low_total", "high_total"))

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The summed column."""
        return (self.column,)

    @property
    def grid(self) -> Fraction:
        """What one unit of the integer total is worth."""
        return self._grid().unit

    def combine_raw(self) -> Aggregates:
        """Total the user's values on the grid."""
        return {"total": Sum(Quantise(Column(self.column), self._grid().exponent))}

    def preprocess(self) -> Columns:
        """Move the total into its bounds; a user without values adds nothing."""
        grid = self._grid()
        return {"total": Clamp(Column("total"), grid.low, grid.high)}

    def combine_keyed(self) -> Aggregates:
        """Add the users' totals."""
        return {"total": Sum(Column("total"))}

    def sensitivity(self) -> int:
        """The larger bound, in steps of the grid."""
        return self._grid().largest

    def noise(self, state: State, noise: Noise, entropy: Entropy) -> pa.Array:
        """Add noise on the grid, then leave it."""
        exact = state["total"]
        noised = exact + noise.sample(len(exact), entropy)
        return pa.array(noised.astype(np.float64) * float(self.grid))


def sum(column: str, low_total: float, high_total: float, *, name: str | None = None) -> SumOfTotals:  # noqa: A001
    """Sum a column per key; each user's total per key is moved into [low_total, high_total].

    >>> sum("seconds", low_total=0, high_total=60).name
    'seconds_sum'
    """
    return SumOfTotals(column, low_total, high_total, name=name if name is not None else f"{column}_sum")
