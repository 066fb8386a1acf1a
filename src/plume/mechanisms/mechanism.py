"""What a mechanism is: the paper's M, opened up into the four operations that a pipeline can place (Plume section 8)."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.noise.noise import Noise
from plume.plan.expressions import Aggregates, Columns

State = Mapping[str, NDArray[np.int64]]


class Mechanism(Protocol):
    """A private aggregation. Its state is a few named integers per key, in units of `grid`.

    `combine_raw` reads columns of the table, `preprocess` reads what `combine_raw` names, `combine_keyed` reads and writes what
    `preprocess` names, and `noise` reads that. The names are the mechanism's own; pipelines keep those of several mechanisms apart.
    """

    @property
    def name(self) -> str:
        """The released column."""

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns of the table it reads."""

    @property
    def grid(self) -> Fraction:
        """What one unit of its integers is worth."""

    def combine_raw(self) -> Aggregates:
        """Combine all records of one user and key into one row."""

    def preprocess(self) -> Columns:
        """Clip that row to bounded sensitivity."""

    def combine_keyed(self) -> Aggregates:
        """Combine all rows of one key into one; associative."""

    def sensitivity(self) -> int:
        """Bound what one user can change in one key, in units of the grid."""

    def noise(self, state: State, noise: Noise, entropy: Entropy) -> pa.Array:
        """Turn the exact state of many keys into values that may leave: the only operation that draws randomness."""
