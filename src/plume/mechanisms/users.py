"""How many users a key has."""

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from plume.mechanisms.mechanism import State
from plume.noise.entropy import Entropy
from plume.noise.noise import Noise
from plume.plan.expressions import Aggregates, Column, Columns, Literal, Sum


@dataclass(frozen=True)
class CountUsers:
    """The number of users per key, each counted once.

    Guarantee: one user changes one key by at most 1. docs/guarantees/users.md.
    """

    name: str = "users"
    value_columns: tuple[str, ...] = ()
    grid: Fraction = Fraction(1)

    def combine_raw(self) -> Aggregates:
        """Nothing to remember: the row itself says that the user is there."""
        return {}

    def preprocess(self) -> Columns:
        """Count each user once."""
        return {"users": Literal(1)}

    def combine_keyed(self) -> Aggregates:
        """Add the users."""
        return {"users": Sum(Column("users"))}

    def sensitivity(self) -> int:
        """One."""
        return 1

    def noise(self, state: State, noise: Noise, entropy: Entropy) -> pa.Array:
        """Add noise; counts stay integers."""
        exact = state["users"]
        return pa.array(exact + noise.sample(len(exact), entropy))


def users(*, name: str = "users") -> CountUsers:
    """Count users per key.

    >>> users().name
    'users'
    """
    return CountUsers(name=name)
