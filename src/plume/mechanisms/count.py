"""How many records a key has."""

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from plume.errors import BoundError
from plume.mechanisms.mechanism import State
from plume.noise.entropy import Entropy
from plume.noise.noise import Noise
from plume.plan.expressions import Aggregates, Clamp, Column, Columns, Count, Literal, Sum

# Public bounds of algorithms 3.1: with fewer than 2**40 users no sum of counts leaves 64 bits.
LARGEST_COUNT = 2**20


@dataclass(frozen=True)
class CountRecords:
    """The number of records per key, of which each user adds at most `max_per_key`.

    Guarantee: one user changes one key by at most `max_per_key`. docs/guarantees/count.md.
    """

    max_per_key: int
    name: str = "count"
    value_columns: tuple[str, ...] = ()
    grid: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        limit = self.max_per_key
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST_COUNT:
            raise BoundError(
                f"max_per_key is {limit!r}; it must be a whole number from 1 to {LARGEST_COUNT}: "
                "how many records of one user count per key."
            )

    def combine_raw(self) -> Aggregates:
        """Count the records; a user who is there at all has one, so with a limit of one there is nothing to count."""
        return {} if self.max_per_key == 1 else {"records": Count()}

    def preprocess(self) -> Columns:
        """Let no user count for more than the limit."""
        if self.max_per_key == 1:
            return {"records": Literal(1)}
        return {"records": Clamp(Column("records"), 0, self.max_per_key)}

    def combine_keyed(self) -> Aggregates:
        """Add the users' counts."""
        return {"records": Sum(Column("records"))}

    def sensitivity(self) -> int:
        """One user's records in one key, at most."""
        return self.max_per_key

    def noise(self, state: State, noise: Noise, entropy: Entropy) -> pa.Array:
        """Add noise; counts stay integers."""
        exact = state["records"]
        return pa.array(exact + noise.sample(len(exact), entropy))


def count(max_per_key: int, *, name: str = "count") -> CountRecords:
    """Count records per key; each user adds at most `max_per_key` to a key.

    >>> count(max_per_key=3).name
    'count'
    """
    return CountRecords(max_per_key, name=name)
