"""The expressions a plan may hold: a closed set, so that every engine can print them and none can raise on data.

Plain frozen trees; `printing/` prints them, nothing evaluates them in Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

Value = bool | int | float | str | date | datetime


@dataclass(frozen=True)
class Column:
    """A column of the source, by name."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant of the query."""

    value: Value


@dataclass(frozen=True)
class NoValue:
    """NULL."""


# The same for all data (docs/guarantees/sum.md): no value of one record counts for more than this many steps.
GUARD = 2**62


@dataclass(frozen=True)
class Number:
    """A number, date or timestamp as a floating-point number, if it is a finite one; NULL, NaN and infinities become NULL."""

    of: "Expression"


@dataclass(frozen=True)
class Microseconds:
    """A date or timestamp as microseconds since 1970; what has none, such as infinity, becomes NULL."""

    of: "Expression"


@dataclass(frozen=True)
class When:
    """A value where a condition holds, and NULL elsewhere."""

    condition: "Expression"
    of: "Expression"


@dataclass(frozen=True)
class Quantise:
    """A number as whole steps of 2**exponent from an origin, rounded half up and clamped to [low, high]; anything else becomes NULL."""

    of: "Expression"
    exponent: int
    origin: float = 0.0
    low: int = -GUARD
    high: int = GUARD


@dataclass(frozen=True)
class Square:
    """The square of an integer below 2**26 in magnitude, less a centre, as whole multiples of 2**exponent, rounded half up."""

    of: "Expression"
    centre: int
    exponent: int


@dataclass(frozen=True)
class DownWeight:
    """A total of `count` values, weighted down as if there were `limit` of them, if there are more; cut toward zero.

    With a limit above 1, it is one of 64 bits.
    """

    of: "Expression"
    count: "Expression"
    limit: int


@dataclass(frozen=True)
class Shorten:
    """One coordinate of a vector of integers that is shortened to a Euclidean length of at most `limit`; cut toward zero."""

    of: "Expression"
    vector: tuple["Expression", ...]
    limit: int


@dataclass(frozen=True)
class Leaf:
    """Which of a number of ranges of equal width between two bounds a number lies in, from 0 on; what is not a number becomes NULL."""

    of: "Expression"
    low: float
    high: float
    leaves: int


@dataclass(frozen=True)
class Bucket:
    """Between which two of the edges a number lies, from 0 on; upper edges belong to the next one, but for the last; NULL outside."""

    of: "Expression"
    edges: tuple[float, ...]


@dataclass(frozen=True)
class Tally:
    """A list of leaves as pairs of leaf and weight: `unit` for each, or less if there are more than `limit` of them; cut toward zero."""

    of: "Expression"
    count: "Expression"
    limit: int
    unit: int


@dataclass(frozen=True)
class NoTally:
    """A tally of nothing."""


@dataclass(frozen=True)
class Clamp:
    """An integer clamped to [low, high]; NULL, which means no value at all, becomes 0."""

    of: "Expression"
    low: int
    high: int


@dataclass(frozen=True)
class Times:
    """An integer times a constant; public bounds keep it within 64 bits."""

    of: "Expression"
    factor: int


@dataclass(frozen=True)
class Coarser:
    """An integer in steps 2**bits as large; cut toward zero."""

    of: "Expression"
    bits: int


@dataclass(frozen=True)
class Absolute:
    """An integer without its sign."""

    of: "Expression"


@dataclass(frozen=True)
class Shrink:
    """An integer, or each weight of a tally, times a factor that a Clip found, a fraction of 2**30; cut toward zero."""

    of: "Expression"
    factor: Column


@dataclass(frozen=True)
class Fullness:
    """How much of the `most` that each of some integers can be they are, on average, in parts of `full`; cut down."""

    of: tuple["Expression", ...]
    most: tuple[int, ...]
    full: int


@dataclass(frozen=True)
class Integer:
    """A sum that public bounds keep within 64 bits, as a 64-bit integer."""

    of: "Expression"


@dataclass(frozen=True)
class InverseRoot:
    """floor(unit / sqrt(of)) of a positive whole number; unit is a power of two, for which floating point gives the exact integer."""

    of: "Expression"
    unit: int


@dataclass(frozen=True)
class PooledWeight:
    """What a user gives to each of a number of keys, by what is left of the user's account: the root of an equal part, cut down.

    Integers that floating point gives exactly: docs/guarantees/pooled-gaussian.md.
    """

    left: Column
    keys: "Expression"


@dataclass(frozen=True)
class SecretOrder:
    """A hash of columns and of a secret drawn anew for each run: an order that nobody can foresee, the same on every engine."""

    of: tuple[Column, ...]


class Comparator(Enum):
    """How two values are compared; the value is the SQL operator."""

    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True)
class Compare:
    """A comparison; unknown when a side is NULL."""

    left: "Expression"
    comparator: Comparator
    right: "Expression"


@dataclass(frozen=True)
class UsersWithin:
    """True for the rows of users who have at most `limit` of what a step counted into a column; NULL there means few enough."""

    counted: Column
    limit: int


@dataclass(frozen=True)
class UsersAbove:
    """True for the rows of users who have more than `limit` of what a step counted into a column."""

    counted: Column
    limit: int


@dataclass(frozen=True)
class AllOf:
    """True where every condition is."""

    conditions: tuple["Expression", ...]


@dataclass(frozen=True)
class AnyOf:
    """True where at least one condition is."""

    conditions: tuple["Expression", ...]


@dataclass(frozen=True)
class Not:
    """True where the condition is false."""

    of: "Expression"


@dataclass(frozen=True)
class IsNull:
    """True where there is no value."""

    of: "Expression"


@dataclass(frozen=True)
class IsIn:
    """True where the value is one of the constants."""

    of: "Expression"
    among: tuple[Literal, ...]


MOST_WILDCARDS = 100
"""How many a pattern may have. Spark descends once for each, as far as a text fits, and with thousands fails on a text that is long."""


@dataclass(frozen=True)
class Like:
    """True where text fits a pattern with % and _."""

    of: "Expression"
    pattern: Literal


Expression = (
    Column
    | Literal
    | NoValue
    | Number
    | Microseconds
    | When
    | Quantise
    | Square
    | DownWeight
    | Shorten
    | Leaf
    | Bucket
    | Tally
    | NoTally
    | Clamp
    | Times
    | Coarser
    | Absolute
    | Shrink
    | Fullness
    | Integer
    | InverseRoot
    | PooledWeight
    | SecretOrder
    | Compare
    | UsersWithin
    | UsersAbove
    | AllOf
    | AnyOf
    | Not
    | IsNull
    | IsIn
    | Like
)


def has_too_many_wildcards(pattern: str) -> bool:
    """Return whether a pattern has more wildcards than every engine follows on every text."""
    return pattern.count("%") + pattern.count("_") > MOST_WILDCARDS


Columns = Mapping[str, Expression]
