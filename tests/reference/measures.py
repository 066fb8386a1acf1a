"""The measures of the reference, as the paper describes them: what a user's records in a key become, and what is made of all users'.

Numbers are added as integers, by name; `release` is what comes out if there is no noise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reference.pipelines import Record, Total

Where = Callable[[Record], bool]


def anywhere(record: Record) -> bool:
    del record
    return True


def numbers(records: Sequence[Record], column: str, where: Where) -> list[float]:
    values = [record.values[column] for record in records if where(record)]
    return [float(value) for value in values if value is not None and math.isfinite(value)]


@dataclass(frozen=True)
class Users:
    where: Where = anywhere
    most: int = 1

    def sizes(self, state: int) -> list[int]:
        return [min(state, 1)]

    def largest(self, name: str) -> int:
        return {"users": 1}[name]

    def combine_raw(self, records: Sequence[Record]) -> int:
        return sum(map(self.where, records))

    def preprocess(self, state: int) -> Total:
        return {"users": min(state, 1)}

    def release(self, total: Total) -> list[Any]:
        return [total["users"]]


@dataclass(frozen=True)
class Count:
    max_per_key: int
    where: Where = anywhere

    @property
    def most(self) -> int:
        return self.max_per_key

    def sizes(self, state: int) -> list[int]:
        return [min(state, self.max_per_key)]

    def largest(self, name: str) -> int:
        return {"records": self.max_per_key}[name]

    def combine_raw(self, records: Sequence[Record]) -> int:
        return sum(map(self.where, records))

    def preprocess(self, state: int) -> Total:
        return {"records": min(state, self.max_per_key)}

    def release(self, total: Total) -> list[Any]:
        return [total["records"]]


@dataclass(frozen=True)
class Sum:
    """A total in steps of a power of two, 2**20 or more of them up to the larger bound; bounds moved inward onto the steps."""

    column: str
    low: float
    high: float
    where: Where = anywhere

    @property
    def most(self) -> int:
        return max(abs(math.ceil(self.low / self.step)), abs(math.floor(self.high / self.step)))

    def sizes(self, state: int | None) -> list[int]:
        return list(self.preprocess(state).values())

    def largest(self, name: str) -> int:
        return {"total": self.most}[name]

    @property
    def step(self) -> float:
        return 2.0 ** (math.floor(math.log2(max(abs(self.low), abs(self.high)))) - 20)

    def combine_raw(self, records: Sequence[Record]) -> int | None:
        finite = numbers(records, self.column, self.where)
        return sum(self.quantise(value) for value in finite) if finite else None

    def quantise(self, value: float) -> int:
        guard = 2.0**62
        return math.floor(min(max(value / self.step, -guard), guard) + 0.5)

    def preprocess(self, state: int | None) -> Total:
        if state is None:
            return {"total": 0}
        return {"total": max(math.ceil(self.low / self.step), min(math.floor(self.high / self.step), state))}

    def release(self, total: Total) -> list[Any]:
        return [total["total"] * self.step]


@dataclass(frozen=True)
class OpenSum(Sum):
    """A total whose bound is chosen late: until then in steps of 2**-22, then within the bound, in its own steps, cut toward zero."""

    def combine_raw(self, records: Sequence[Record]) -> int | None:
        values = numbers(records, self.column, self.where)
        return sum(fine(value) for value in values) if values else None

    def preprocess(self, state: int | None) -> Total:
        inside = max(int(self.low * 2**22), min(int(self.high * 2**22), state or 0))
        return {"total": int(Fraction(inside, 2**22) / Fraction(self.step))}


def fine(value: float) -> int:
    return math.floor(min(max(value, -(2.0**40)), 2.0**40) * 2.0**22 + 0.5)


@dataclass(frozen=True)
class Mean:
    """Values as steps from the middle of their bounds; a user with more than `limit` of them is weighted down, toward zero."""

    column: str
    low: float
    high: float
    limit: int
    where: Where = anywhere

    @property
    def most(self) -> int:
        return self.limit

    def sizes(self, state: list[int]) -> list[int]:
        return [min(len(state), self.limit)]

    def largest(self, name: str) -> int:
        return {"values": self.limit, "total": self.limit * self.furthest}[name]

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def step(self) -> float:
        return 2.0 ** (math.floor(math.log2((self.high - self.low) / 2)) - self.bits)

    @property
    def bits(self) -> int:
        """20, less one for each time that the limit doubles after 2."""
        return 20 - max(0, math.ceil(math.log2(self.limit)) - 1)

    @property
    def furthest(self) -> int:
        return max(math.floor((self.high - self.middle) / self.step), math.floor((self.middle - self.low) / self.step))

    def quantise(self, value: float) -> int:
        low, high = math.ceil((self.low - self.middle) / self.step), math.floor((self.high - self.middle) / self.step)
        return math.floor(min(max(value - self.middle, low * self.step), high * self.step) / self.step + 0.5)

    def combine_raw(self, records: Sequence[Record]) -> list[int]:
        return [self.quantise(value) for value in numbers(records, self.column, self.where)]

    def preprocess(self, state: list[int]) -> Total:
        return {"values": min(len(state), self.limit), "total": self.weighted(sum(state), len(state))}

    def weighted(self, total: int, count: int) -> int:
        return total if count <= self.limit else int(Fraction(total * self.limit, count))

    def release(self, total: Total) -> list[Any]:
        return [self.middle + self.distance(total)]

    def distance(self, total: Total) -> float:
        """The mean from the middle of the bounds, and within them."""
        found = total["total"] / max(total["values"], 1) * self.step
        return min(max(found, self.low - self.middle), self.high - self.middle)


@dataclass(frozen=True)
class OpenMean(Mean):
    """Each user's own mean, whose bounds are chosen late: until then in steps of 2**-22, cut toward zero."""

    def combine_raw(self, records: Sequence[Record]) -> list[int]:
        return [fine(value) for value in numbers(records, self.column, self.where)]

    def own(self, state: list[int]) -> int | None:
        return int(Fraction(sum(state), len(state))) if state else None

    def preprocess(self, state: list[int]) -> Total:
        own = self.own(state)
        return {"values": min(len(state), 1), "total": 0 if own is None else self.quantise(float(own) / 2.0**22)}


@dataclass(frozen=True)
class Variance(Mean):
    """Squares of the steps beside them, less half of the largest, in multiples of 2**bits."""

    def largest(self, name: str) -> int:
        step = 2**self.bits
        high, low = (self.furthest**2 - self.centre + step // 2) // step, (step // 2 - self.centre) // step
        return self.limit * max(high, abs(low)) if name == "squares" else super().largest(name)

    def preprocess(self, state: list[int]) -> Total:
        squares = sum(math.floor(Fraction(step**2 - self.centre, 2**self.bits) + Fraction(1, 2)) for step in state)
        return super().preprocess(state) | {"squares": self.weighted(squares, len(state))}

    @property
    def centre(self) -> int:
        return self.furthest**2 // 2

    def release(self, total: Total) -> list[Any]:
        square = total["squares"] * 2**self.bits / max(total["values"], 1) + self.centre
        found = square * self.step**2 - self.distance(total) ** 2
        return [min(max(found, 0), ((self.high - self.low) / 2) ** 2)]


@dataclass(frozen=True)
class StandardDeviation(Variance):
    def release(self, total: Total) -> list[Any]:
        return [math.sqrt(*super().release(total))]


@dataclass(frozen=True)
class VectorSum:
    """A vector of totals in steps of a power of two, shortened to `norm` by a factor in multiples of 2**-30 that is rather too small."""

    columns: tuple[str, ...]
    norm: float
    where: Where = anywhere

    @property
    def step(self) -> float:
        return 2.0 ** (math.floor(math.log2(self.norm)) - 20)

    def combine_raw(self, records: Sequence[Record]) -> list[int]:
        sums = [Sum(column, -self.norm, self.norm, self.where) for column in self.columns]
        return [total.combine_raw(records) or 0 for total in sums]

    @property
    def most(self) -> int:
        return math.floor(self.norm / self.step)

    def sizes(self, state: list[int]) -> list[int]:
        return list(self.preprocess(state).values())

    def largest(self, name: str) -> int:
        del name
        return self.most

    def preprocess(self, state: list[int]) -> Total:
        limit = self.most
        square = sum(total**2 for total in state)
        if square > limit**2:
            factor = max(math.floor(2**30 * limit / math.sqrt(square)) - 1, 0)
            state = [int(Fraction(factor * total, 2**30)) for total in state]
        return {f"total_{number}": total for number, total in enumerate(state, start=1)}

    def release(self, total: Total) -> list[Any]:
        return [total[f"total_{number}"] * self.step for number in range(1, len(self.columns) + 1)]


def tally(leaves: list[int], limit: int) -> Total:
    """Weights of leaves in steps of a power of two; a user with more than `limit` values is weighted down, toward zero."""
    unit = 2 ** (20 - math.ceil(math.log2(limit)))
    share = Fraction(min(len(leaves), limit), max(len(leaves), 1))
    return {("leaves", leaf): int(leaves.count(leaf) * unit * share) for leaf in set(leaves)}


@dataclass(frozen=True)
class Histogram:
    column: str
    edges: tuple[float, ...]
    limit: int
    where: Where = anywhere

    def combine_raw(self, records: Sequence[Record]) -> list[int]:
        found = numbers(records, self.column, self.where)
        return [self.bucket(value) for value in found if self.edges[0] <= value <= self.edges[-1]]

    def bucket(self, value: float) -> int:
        return min(sum(edge <= value for edge in self.edges), len(self.edges) - 1) - 1

    @property
    def most(self) -> int:
        return self.limit

    def sizes(self, state: list[int]) -> list[int]:
        return [min(len(state), self.limit)]

    def largest(self, name: tuple[str, int]) -> int:
        del name
        return 2**20

    def preprocess(self, state: list[int]) -> Total:
        return tally(state, self.limit)

    def release(self, total: Total) -> list[Any]:
        unit = 2 ** (20 - math.ceil(math.log2(self.limit)))
        return [math.floor(total["leaves", bucket] / unit + 0.5) for bucket in range(len(self.edges) - 1)]


@dataclass(frozen=True)
class Quantiles:
    """Where the given shares of the weights end, as if those of a leaf were spread evenly over it."""

    column: str
    quantiles: tuple[float, ...]
    low: float
    high: float
    limit: int
    where: Where = anywhere

    def combine_raw(self, records: Sequence[Record]) -> list[int]:
        return [self.leaf(value) for value in numbers(records, self.column, self.where)]

    def leaf(self, value: float) -> int:
        inside = min(max(value, self.low), self.high)
        return min(math.floor((inside - self.low) * (4096 / (self.high - self.low))), 4095)

    @property
    def most(self) -> int:
        return self.limit

    def sizes(self, state: list[int]) -> list[int]:
        return [min(len(state), self.limit)]

    def largest(self, name: tuple[str, int]) -> int:
        del name
        return 2**20

    def preprocess(self, state: list[int]) -> Total:
        return tally(state, self.limit)
