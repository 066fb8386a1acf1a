"""What pipelines do in Python and not as SQL: select keys, select them by a number that is released, and noise what is known of them.

The noisers of numbers that are chosen within the budget are in `choosing/keys_per_user.py` and `choosing/sizes.py`.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import moved_by_size
from plume.calibration.columns import MeasureColumns
from plume.mechanisms.tally import NoisyTally, tally_of
from plume.noise.batches import column_of, exact_integers
from plume.noise.correlated import CorrelatedGaussian
from plume.noise.entropy import Entropy
from plume.plan.nodes import Account, KnownKeys, Moved
from plume.privacy.cost import Cost
from plume.selection.released_users import ReleasedUsers
from plume.selection.strategy import SelectionStrategy

WEIGHT = "weight"


@dataclass(frozen=True)
class SelectKeys:
    """Rows of keys with their weight come in, the keys that may be shown go out.

    Guarantee: the strategy's, for rows to which each user gave weight in at most `max_keys_per_user` keys. Plume section 4.2.
    """

    strategy: SelectionStrategy
    keys: tuple[str, ...]
    reads: tuple[str, ...] = (WEIGHT,)
    passes: tuple[str, ...] = ()
    chooses_rows: bool = True
    known_keys: None = None

    @property
    def max_keys_per_user(self) -> int:
        """How many keys of one user the strategy pays for."""
        return self.strategy.max_keys_per_user

    @property
    def account(self) -> Account | None:
        """The account that the strategy's weights are drawn from."""
        return self.strategy.account

    @property
    def moved(self) -> None:
        """Weights are not in proportion to sizes."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The keys, and nothing that was used to choose them."""
        return self.keys

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What the strategy spends."""
        return (self.strategy.cost,)

    def begun(self, entropy: Entropy) -> Self:
        """Share nothing: every key has a draw of its own."""
        del entropy
        return self

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Keep the rows the strategy keeps, without their weight."""
        kept = self.strategy.keep(exact_integers(batch, WEIGHT), entropy)
        return batch.select(list(self.keys)).filter(column_of(kept))


@dataclass(frozen=True, kw_only=True)
class SelectAndReleaseUsers(SelectKeys):
    """Rows of keys with their number of users come in, the keys that may be shown go out with the number that they were selected by.

    Guarantee: the strategy's, keys and numbers together; nothing is drawn twice. docs/guarantees/released-users.md.
    """

    strategy: ReleasedUsers
    columns: tuple[str, ...]
    """What the number is called; under several names it is the same number."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The keys and their noised numbers."""
        return (*self.keys, *self.columns)

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Keep the rows whose noised number reaches the threshold, with that number."""
        noised, shown = self.strategy.release(exact_integers(batch, WEIGHT), entropy)
        columns = [*(batch.column(key) for key in self.keys), *(column_of(noised) for _ in self.columns)]
        return pa.RecordBatch.from_arrays(columns, names=list(self.writes)).filter(column_of(shown))


@dataclass(frozen=True)
class NoiseMeasures:
    """Rows of keys with exact states come in, the same keys with noised measures go out.

    Guarantee: that of the parts together, for states in which each user changed at most `max_keys_per_user` keys. Plume section 4.1.
    """

    measures: tuple[MeasureColumns, ...]
    parts: tuple[CalibratedPart, ...]
    keys: tuple[str, ...]
    max_keys_per_user: int
    passes: tuple[str, ...] = ()
    chooses_rows: bool = False
    account: None = None

    @property
    def moved(self) -> tuple[Moved, ...] | None:
        """The most that each part moves, where all noise is Gaussian."""
        return moved_by_size(self.measures, self.parts)

    @property
    def known_keys(self) -> KnownKeys | None:
        """The columns whose noise keys share, and for how many keys it is made."""
        shared = [(part, part.noise) for part in self.parts if isinstance(part.noise, CorrelatedGaussian)]
        columns = tuple(column for part, _ in shared for column in part.columns)
        return KnownKeys(columns, min(noise.keys for _, noise in shared)) if shared else None

    @property
    def reads(self) -> tuple[str, ...]:
        """The exact states."""
        return tuple(column for part in self.parts for column in part.columns)

    @property
    def writes(self) -> tuple[str, ...]:
        """The keys, the columns of each measure, and the margins of those that are computed from several parts."""
        released = (column for measure in self.measures for column in measure.released.values())
        return (*self.keys, *released, *self.margins)

    @property
    def margins(self) -> tuple[str, ...]:
        """The columns of margins, the lower one first."""
        return tuple(side for measure in self.measures for sides in measure.margins.values() for side in sides)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What each part spends."""
        return tuple(part.cost for part in self.parts)

    def begun(self, entropy: Entropy) -> Self:
        """Draw what keys share of the noise of each part, where they do."""
        return replace(self, parts=tuple(part.begun(entropy) for part in self.parts))

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Noise every state once, then let each measure make its columns of those it needs."""
        noised = {column: _noised(part, batch, column, entropy) for part in self.parts for column in part.columns}
        noised |= {column: exact_integers(batch, column) for column in self.passes}
        blurs = {column: part.blur for part in self.parts for column in part.columns}
        released = {key: batch.column(key) for key in self.keys}
        margins: dict[str, pa.Array] = {}
        for measure in self.measures:
            state = {name: noised[column] for name, column in measure.state.items()}
            made = measure.mechanism.noise(state)
            released |= {measure.released[name]: values for name, values in made.items()}
            of_state = {name: blurs[column] for name, column in measure.state.items() if column in blurs}
            for name, (low, high) in measure.mechanism.margins(state, of_state).items():
                sides = pc.min_element_wise(low, made[name]), pc.max_element_wise(high, made[name])
                margins |= dict(zip(measure.margins[name], sides, strict=True))
        return pa.RecordBatch.from_arrays([*released.values(), *margins.values()], names=[*released, *margins])


def _noised(
    part: CalibratedPart, batch: pa.RecordBatch, column: str, entropy: Entropy
) -> NDArray[np.int64] | NoisyTally:
    """Noise the integers of a column; of a tally, those that will be asked for."""
    if part.part.leaves:
        return NoisyTally(tally_of(batch.column(column), part.part.leaves), part.noise, entropy)
    exact = exact_integers(batch, column)
    return _rounded(exact + part.noise.sample(len(exact), entropy), part.bits)


def _rounded(fine: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Leave the plan's finer steps, half up."""
    return (fine + (1 << bits >> 1)) >> bits
