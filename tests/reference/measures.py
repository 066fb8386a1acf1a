"""The measures of the reference, as the paper describes them: what a user's records in a key become."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reference.pipelines import Record


@dataclass(frozen=True)
class Users:
    def combine_raw(self, records: Sequence[Record]) -> int:
        return len(records)

    def preprocess(self, state: int) -> int:
        return min(state, 1)


@dataclass(frozen=True)
class Count:
    max_per_key: int

    def combine_raw(self, records: Sequence[Record]) -> int:
        return len(records)

    def preprocess(self, state: int) -> int:
        return min(state, self.max_per_key)


@dataclass(frozen=True)
class Sum:
    """A total in steps of a power of two, 2**20 or more of them up to the larger bound; bounds moved inward onto the steps."""

    column: str
    low: float
    high: float

    @property
    def step(self) -> float:
        return 2.0 ** (math.floor(math.log2(max(abs(self.low), abs(self.high)))) - 20)

    def combine_raw(self, records: Sequence[Record]) -> int | None:
        values = [record.values[self.column] for record in records]
        finite = [float(value) for value in values if value is not None and math.isfinite(value)]
        return sum(self.quantise(value) for value in finite) if finite else None

    def quantise(self, value: float) -> int:
        guard = 2.0**62
        return math.floor(min(max(value / self.step, -guard), guard) + 0.5)

    def preprocess(self, state: int | None) -> int:
        if state is None:
            return 0
        return max(math.ceil(self.low / self.step), min(math.floor(self.high / self.step), state))
