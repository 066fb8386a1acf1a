"""The two islands of Python that see rows: choosing keys, and noising what is known of them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.errors import PlumeBug
from plume.noise.entropy import Entropy
from plume.pipelines.calibrated import CalibratedMeasure
from plume.privacy.cost import Cost
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
    chooses_rows: bool = True

    @property
    def max_keys_per_user(self) -> int:
        """How many keys of one user the strategy pays for."""
        return self.strategy.max_keys_per_user

    @property
    def writes(self) -> tuple[str, ...]:
        """The keys, and nothing that was used to choose them."""
        return self.keys

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What the strategy spends."""
        return (self.strategy.cost,)

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Keep the rows the strategy keeps, without their weight."""
        kept = self.strategy.keep(_integers(batch, WEIGHT), entropy)
        return batch.select(list(self.keys)).filter(pa.array(kept))


@dataclass(frozen=True)
class NoiseMeasures:
    """Rows of keys with exact states come in, the same keys with noised measures go out.

    Guarantee: each measure's own, for states in which each user changed at most `max_keys_per_user` keys. Plume section 4.1.
    """

    measures: tuple[CalibratedMeasure, ...]
    keys: tuple[str, ...]
    max_keys_per_user: int
    chooses_rows: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The exact states."""
        return tuple(column for measure in self.measures for column in measure.state.values())

    @property
    def writes(self) -> tuple[str, ...]:
        """The keys, and one column per measure."""
        return (*self.keys, *(measure.prefix for measure in self.measures))

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What each measure spends."""
        return tuple(measure.cost for measure in self.measures)

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Replace every measure's state by its noised value."""
        noised = [_noised(measure, batch, entropy) for measure in self.measures]
        keys = [batch.column(key) for key in self.keys]
        return pa.RecordBatch.from_arrays([*keys, *noised], names=list(self.writes))


def _noised(measure: CalibratedMeasure, batch: pa.RecordBatch, entropy: Entropy) -> pa.Array:
    state = {name: _integers(batch, column) for name, column in measure.state.items()}
    return measure.mechanism.noise(state, measure.noise, entropy)


def _integers(batch: pa.RecordBatch, column: str) -> NDArray[np.int64]:
    values = batch.column(column)
    if values.type != pa.int64() or values.null_count:
        raise PlumeBug(f"column {column} of exact states does not hold 64-bit integers only")
    integers: NDArray[np.int64] = values.to_numpy(zero_copy_only=True)
    return integers
