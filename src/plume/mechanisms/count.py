"""How many records a key has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from plume.arguments import call_checked
from plume.errors import BoundError, PlumeBug, shown
from plume.mechanisms.measure import PER_GROUP, Form, Measure, SqlForm
from plume.mechanisms.mechanism import Mechanism, Part, State, number, size_of
from plume.mechanisms.open_bound import OpenBound, open_count
from plume.mechanisms.rows import NUMBERS, condition, given, values
from plume.noise.batches import column_of
from plume.plan.aggregates import Aggregates, Count, CountValues, Sum
from plume.plan.expressions import Clamp, Column, Columns, Literal
from plume.plan.nodes import Size
from plume.plan.types import Kind
from plume.settings import AUTO

# The same for all data (docs/guarantees/count.md): with fewer than 2**40 users no sum of counts leaves 64 bits.
LARGEST_COUNT = 2**20
# For measures of single values, whose grid becomes coarser with it.
MOST_VALUES = 2**10


@dataclass(frozen=True)
class CountRecords(Measure):
    """The number of records per key, of which each user adds at most `max_per_key`.

    Guarantee: one user changes one key by at most `max_per_key`. docs/guarantees/count.md.
    """

    word: ClassVar[str] = "count"
    counts: ClassVar[bool] = True

    max_per_key: int | str
    column: str | None = None
    name: str = "count"
    where: str | None = None

    def __post_init__(self) -> None:
        if self.max_per_key != AUTO:
            refuse_bad_max_per_key(self.max_per_key, LARGEST_COUNT, or_auto=f", or {AUTO!r}")
        condition(self.where)

    @property
    def most_per_key(self) -> int:
        """The most records of one user that count per key."""
        if not isinstance(self.max_per_key, int):
            raise PlumeBug("records are counted up to a bound that is not chosen yet")
        return self.max_per_key

    @property
    def open_bound(self) -> OpenBound | None:
        """The bound, if it is left open."""
        is_open = self.max_per_key == AUTO
        return open_count("max_per_key", Column("records"), part="records") if is_open else None

    def with_bound(self, bound: float) -> "CountWithChosenBound":
        """Give the open bound a number."""
        return CountWithChosenBound(int(bound), self.column, self.name, self.where)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The count."""
        return {self.name: "records"}

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The column that must have a value, if one must."""
        return {} if self.column is None else {self.column: NUMBERS}

    def combine_raw(self) -> Aggregates:
        """Count the records; a user who is there at all has one, so with a bound of one there may be nothing to count."""
        if self.column is not None:
            return {"records": values(self.column, self.where)}
        if self.where is not None:
            return {"records": CountValues(given(self.where, Literal(1)))}
        return {} if self.max_per_key == 1 else {"records": Count()}

    def preprocess(self) -> Columns:
        """Let no user count for more than the bound."""
        if not self.combine_raw():
            return {"records": Literal(1)}
        return {"records": Clamp(Column("records"), 0, self.most_per_key)}

    def combine_keyed(self) -> Aggregates:
        """Add the users' counts."""
        return {"records": Sum(Column("records"))}

    def parts(self) -> tuple[Part, ...]:
        """One user's records in one key, at most."""
        return (number("records", self.most_per_key),)

    def size(self) -> Size:
        """The records that count."""
        return size_of(self.most_per_key, *self.preprocess().values())

    def noise(self, noised: State) -> Mapping[str, pa.Array]:
        """Release the noised counts, which stay integers."""
        return {self.name: column_of(noised["records"])}


@dataclass(frozen=True)
class CountWithChosenBound(CountRecords):
    """The same with a bound that was chosen: by then a user's records have been counted, even where one is the bound.

    Guarantee: that of a count with this bound. docs/guarantees/auto-bounds.md.
    """

    def combine_raw(self) -> Aggregates:
        """Count the records, as was done before the bound was known."""
        return {"records": Count(), **super().combine_raw()}


def refuse_bad_max_per_key(max_per_key: Any, largest: int = MOST_VALUES, *, or_auto: str = "") -> None:
    """Refuse a bound on records that is out of range."""
    if isinstance(max_per_key, bool) or not isinstance(max_per_key, int) or not 1 <= max_per_key <= largest:
        raise BoundError(
            f"max_per_key is {shown(max_per_key)}; it must be a whole number from 1 to {largest}{or_auto}: "
            "how many records of one user count per key."
        )


@call_checked(auto=("max_per_key",))
def count(
    max_per_key: int | str, *, column: str | None = None, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Count records per key; each user adds at most `max_per_key` to a key, or as many as "auto" chooses within the budget.

    With a column, only records with a number in it are counted, and the count is called `<column>_count`; with `where=`, only those that
    satisfy the condition.

    >>> count(max_per_key=3).name
    'count'
    """
    default = "count" if column is None else f"{column}_count"
    return CountRecords(max_per_key, column, name=default if name is None else name, where=where)


FORMS = (
    Form(
        count,
        "count(3), where one user counts at most 3 times per key",
        SqlForm("COUNT", (PER_GROUP,)),
    ),
)
