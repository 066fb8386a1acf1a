"""What a mechanism is: the paper's M, opened up into the four operations that a pipeline can place (Plume section 8).

`measure.py` beside this file says what a new measure takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.mechanisms.margins import Blur
from plume.plan.aggregates import Aggregates
from plume.plan.expressions import Columns, Expression
from plume.plan.nodes import Size
from plume.plan.types import Kind

State = Mapping[str, NDArray[np.int64]]
"""Integers per key, by the names of a mechanism."""


@dataclass(frozen=True)
class Part:
    """Integers of a mechanism's state that get noise of one kind and scale.

    One user changes those of one key by at most `absolute` in the sum of absolute changes, which is what Laplace noise is paid in, and by
    at most `squared` in the sum of their squares, which is what Gaussian noise is paid in.
    """

    name: str
    absolute: int
    squared: int
    weight: Fraction = Fraction(1)
    """Its share of what the measure may spend."""
    unit: Fraction = Fraction(1)
    """What one step of its integers is worth."""
    states: tuple[str, ...] = ()
    """The names of its integers, if they are several."""
    leaves: int = 0
    """If it is a tally, of how many leaves."""

    @property
    def spread(self) -> bool:
        """Whether it is several numbers in one key."""
        return len(self.states) > 1 or self.leaves > 0

    @property
    def covers(self) -> tuple[str, ...]:
        """The names of its integers."""
        return self.states or (self.name,)


def number(name: str, most: int, *, weight: Fraction = Fraction(1), unit: Fraction = Fraction(1)) -> Part:
    """Make the part that is one integer per key, which one user changes by at most `most`."""
    return Part(name, absolute=most, squared=most**2, weight=weight, unit=unit)


def size_of(most: int, *of: Expression) -> Size:
    """Make the size of rows whose integers are, in Euclidean norm, at most `most`."""
    return Size(of, most**2)


class Mechanism(Protocol):
    """A private aggregation. Its state is a few named integers per key.

    `combine_raw` reads columns of the table, `preprocess` reads what `combine_raw` names, `combine_keyed` reads and writes what
    `preprocess` names, and `noise` reads that. The names are the mechanism's own; pipelines keep those of several mechanisms apart, but
    what two mechanisms compute in the same way is computed, noised and paid once.
    """

    word: ClassVar[str]
    """What ledgers call this kind of measure."""
    counts: ClassVar[bool]
    """Whether it is a number of users or records."""

    @property
    def name(self) -> str:
        """What the measure is called."""

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The released columns; each with the part that it is, noise and all, or None if it is computed from several."""

    @property
    def extent(self) -> float:
        """How far apart two values of a column that is computed from several parts can be, by its bounds alone; days in microseconds."""

    @property
    def parts_in_time(self) -> frozenset[str]:
        """The parts that are in microseconds, since values are dates or timestamps."""

    def is_whole(self, kinds: Mapping[str, Kind]) -> bool:
        """Whether its one number is released as a whole one, for columns of these kinds."""

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The columns whose values it reads, and of which kinds they may be."""

    def call(self) -> tuple[str, dict[str, Any]]:
        """Name the function of `plume` that makes it, and all its arguments."""

    @property
    def condition(self) -> Expression | None:
        """Which rows it counts; all, if there is none."""

    def combine_raw(self) -> Aggregates:
        """Combine all records of one user and key into one row."""

    def preprocess(self) -> Columns:
        """Clamp that row to bounded sensitivity."""

    def combine_keyed(self) -> Aggregates:
        """Combine all rows of one key into one; associative."""

    def parts(self) -> tuple[Part, ...]:
        """Bound what one user can change in one key; the noise is made for it."""

    def size(self) -> Size:
        """Say how large a row is; what one row can change in any part is in proportion to it, so that a user's rows can shrink together."""

    def noise(self, noised: Mapping[str, Any]) -> Mapping[str, pa.Array]:
        """Turn the states of many keys, on which there is noise now, into the released columns: a State, or a NoisyTally each."""

    def margins(self, noised: Mapping[str, Any], blurs: Mapping[str, Blur]) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """Bound what the released columns that are computed from several parts would be without noise, from the same states."""
