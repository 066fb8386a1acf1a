"""How many users a key has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from plume.arguments import call_checked
from plume.mechanisms.measure import Form, Measure
from plume.mechanisms.mechanism import Mechanism, Part, State, number, size_of
from plume.mechanisms.rows import condition, given
from plume.noise.batches import column_of
from plume.plan.aggregates import Aggregates, CountValues, Sum
from plume.plan.expressions import Clamp, Column, Columns, Literal
from plume.plan.nodes import Size
from plume.plan.types import Kind


@dataclass(frozen=True)
class CountUsers(Measure):
    """The number of users per key, each counted once.

    Guarantee: one user changes one key by at most 1. docs/guarantees/users.md.
    """

    word: ClassVar[str] = "users"
    counts: ClassVar[bool] = True

    name: str = "users"
    where: str | None = None

    def __post_init__(self) -> None:
        condition(self.where)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The count."""
        return {self.name: "users"}

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """None: a user is there or not."""
        return {}

    def combine_raw(self) -> Aggregates:
        """Nothing to remember: the row itself says that the user is there; unless only some records count."""
        return {} if self.where is None else {"records": CountValues(given(self.where, Literal(1)))}

    def preprocess(self) -> Columns:
        """Count each user once."""
        return {"users": Literal(1) if self.where is None else Clamp(Column("records"), 0, 1)}

    def combine_keyed(self) -> Aggregates:
        """Add the users."""
        return {"users": Sum(Column("users"))}

    def parts(self) -> tuple[Part, ...]:
        """One."""
        return (number("users", 1),)

    def size(self) -> Size:
        """One for each user who counts."""
        return size_of(1, *self.preprocess().values())

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Release the noised counts, which stay integers."""
        return {self.name: column_of(noised["users"])}


@call_checked()
def users(*, name: str = "users", where: str | None = None) -> Mechanism:
    """Count users per key; with `where=`, those with a record that satisfies the condition.

    >>> users().name
    'users'
    """
    return CountUsers(name=name, where=where)


def counts_all_users(measure: Mechanism) -> bool:
    """Return whether a measure is the number of all users of a key, as records are too of which each user counts one."""
    return not measure.combine_raw() and list(measure.preprocess().values()) == [Literal(1)]


FORMS = (Form(users, "users()"),)
