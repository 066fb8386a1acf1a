"""What a group of rows may become: a closed set, as the expressions are."""

from collections.abc import Mapping
from dataclasses import dataclass

from plume.plan.expressions import Expression


@dataclass(frozen=True)
class Count:
    """How many rows a group has."""


@dataclass(frozen=True)
class CountValues:
    """How many rows of a group have a value."""

    of: Expression


@dataclass(frozen=True)
class Sum:
    """The exact total of integers; NULLs do not count, and a group of NULLs only has the total NULL."""

    of: Expression


@dataclass(frozen=True)
class SumButLargest:
    """The exact total of positive integers without the given number of the largest; 0 where there are no more than these."""

    of: Expression
    number: int


@dataclass(frozen=True)
class Collect:
    """The values of a group in a list, in no order; NULLs are left out."""

    of: Expression


@dataclass(frozen=True)
class AddTallies:
    """The tallies of a group as one, in which each leaf comes once, with all of its weight."""

    of: Expression


@dataclass(frozen=True)
class Max:
    """The largest value of a group."""

    of: Expression


Aggregate = Count | CountValues | Sum | SumButLargest | Collect | AddTallies | Max

Aggregates = Mapping[str, Aggregate]
