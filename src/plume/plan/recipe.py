"""What a pass over the rows of each user can do, as a closed list: a recipe, and how expressions of a plan are read as parts of one.

Apart from `one_pass.py`, which finds the steps that a recipe stands for: here are single expressions, there whole steps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from plume.plan.aggregates import Aggregate, Count, CountValues, Sum
from plume.plan.expressions import (
    Clamp,
    Column,
    DownWeight,
    Expression,
    InverseRoot,
    Literal,
    PooledWeight,
    Quantise,
    Square,
    Times,
    When,
)
from plume.plan.nodes import Account, CountKeys, Node
from plume.privacy.pooled import Charge

# Sums of squares are added up in 64 bits up to the double of it, and more than it takes all that a charge can take.
_MOST_SQUARED = 2**61

RECORDS, KEYS_OF_USER, LEFT, ORDER = "records", "keys", "left", "order"
"""The columns that a pass makes of users above the limit, beside those that say whose and what they are."""


@dataclass(frozen=True)
class Counted:
    """What a row of a user and key counts for: a number between bounds, or nothing where there is no value; times a factor."""

    low: int
    high: int
    of: str | None = None
    """The column of the number; None where being there is all that counts."""
    values: str | None = None
    """Of how many values it is the total, if it is weighted down where these are more than `limit`."""
    limit: int = 1
    factor: int = 1

    @property
    def largest(self) -> int:
        """The most that it can be, by these numbers alone."""
        return max(abs(self.low), abs(self.high)) * self.factor


@dataclass(frozen=True)
class Spread:
    """A weight by the number of a user's keys, of which at most `most` count: one unit spread over them, or the same for all keys."""

    most: int
    unit: int
    alike: bool = False

    def weight_of(self, keys: int) -> int:
        """Give the weight of a user with that number of keys to each of them, as SQL does: floating point finds the exact integer."""
        return self.unit if self.alike else math.floor(self.unit / math.sqrt(min(max(keys, 1), self.most)))


@dataclass(frozen=True)
class Drawn:
    """A weight that is drawn from the account of the user, and spread over at most `most` keys."""

    most: int


@dataclass(frozen=True)
class Recipe:
    """What a pass does with the rows of a user: from distinct keys and what is added up of each to weights, contributions and an order."""

    rows: Node
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    """What is added up of the rows of a user and key: how many there are, how many have a value, totals of integers."""
    limit: int
    """Users with more keys are above the limit."""
    kept: int
    """How many keys of these users count, the first ones in their secret order."""
    cut_above: int
    """Users with more keys have them put in this order."""
    weight: Spread | Drawn
    contributions: tuple[Counted, ...]
    """What users within the limit contribute, in columns after the weight."""
    charges: tuple[tuple[Counted, Charge], ...]
    """What measures take from accounts, if there are any."""
    keyed: tuple[str, ...]
    """The columns of what is known of each key: its own, the weight, and the contributions in their order."""
    above: tuple[tuple[str, str], ...]
    """The columns of rows of users above the limit, and which of a pass's columns each is."""

    @property
    def added(self) -> tuple[tuple[str, CountValues | Sum], ...]:
        """What is added up of a column of its own, in which each row has what it adds."""
        return tuple((name, one) for name, one in self.aggregates if isinstance(one, CountValues | Sum))


def is_added_up(aggregate: Aggregate) -> bool:
    """Return whether a pass can add up what an aggregate does: rows, values, and integers of 64 bits."""
    return isinstance(aggregate, Count | CountValues) or (isinstance(aggregate, Sum) and _is_whole(aggregate.of))


def _is_whole(expression: Expression) -> bool:
    return isinstance(expression, Quantise | Square) or (isinstance(expression, When) and _is_whole(expression.of))


def counted_of(expression: Expression, known: Mapping[str, Aggregate]) -> Counted | None:
    """Read what counts of a row in which these aggregates are known; None, if it is anything else."""
    match expression:
        case Literal(int(value)) if value == 1:
            return Counted(1, 1)
        case Clamp(Column(of), low, high) if of in known and low <= high:
            return Counted(low, high, of)
        case Clamp(DownWeight(Column(of), Column(values), limit), low, high) if low <= high and limit >= 1:
            is_of_values = isinstance(known.get(of), Sum) and isinstance(known.get(values), Count | CountValues)
            return Counted(low, high, of, values, limit) if is_of_values else None
        case Times(of, factor) if factor >= 1:
            once = counted_of(of, known)
            return None if once is None else replace(once, factor=once.factor * factor)
        case _:
            return None


def charges_of(account: Account | None, known: Mapping[str, Aggregate]) -> tuple[tuple[Counted, Charge], ...] | None:
    """Read what measures take of an account; None, if a size is more than one number, or its squares might leave 64 bits."""
    found: list[tuple[Counted, Charge]] = []
    for size, charge in account.charges if account else ():
        counted = counted_of(size.of[0], known) if len(size.of) == 1 else None
        if counted is None or counted.factor != 1 or max(charge.whole, counted.largest**2) > _MOST_SQUARED:
            return None
        found.append((counted, charge))
    return tuple(found)


def weight_of(expression: Expression, counted: CountKeys) -> Spread | Drawn | None:
    """Read how a weight is made of the number of keys and of what is left of an account."""
    match expression:
        case Literal(int(value)) if value >= 1:
            return Spread(1, value, alike=True)
        case InverseRoot(of, unit):
            most = _most(of, counted)
            return None if most is None else Spread(most, unit)
        case PooledWeight(Column(left), keys) if counted.account and left == counted.account.column:
            most = _most(keys, counted)
            return None if most is None else Drawn(most)
        case _:
            return None


def _most(expression: Expression, counted: CountKeys) -> int | None:
    """Read how many keys of a user count at most."""
    match expression:
        case Clamp(Column(column), 1, high) if column == counted.column:
            return high
        case Clamp(of, 1, high):
            fewer = _most(of, counted)
            return None if fewer is None else min(fewer, high)
        case _:
            return None
