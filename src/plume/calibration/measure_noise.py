"""The noise on each measure, part by part, as it is told."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import CalibratedQuery
from plume.calibration.columns import MeasureColumns
from plume.errors import printable
from plume.noise.correlated import CorrelatedGaussian
from plume.privacy.correlated import best_correlation


@dataclass(frozen=True)
class MeasureNoise:
    """The noise on one part of a measure; most measures have one part only."""

    measure: str
    part: str | None
    """None where there is one only, which then is the released column itself."""
    kind: str
    standard_deviation: float
    standard_deviation_of_total: float | None = None
    """That of a total over all keys, where keys share a part of their noise, so that it does not average out."""

    def __str__(self) -> str:
        return printable(self.measure if self.part is None else f"{self.measure} ({self.part})")


def noise_of(calibrated: CalibratedQuery, measure: MeasureColumns) -> Iterator[MeasureNoise]:
    """Give the noise on a measure, part by part."""
    parts = calibrated.parts_of(measure)
    for part in parts:
        name = part.part.name if len(parts) > 1 else None
        yield MeasureNoise(
            measure.mechanism.name, name, part.noise.kind, part.standard_deviation, _deviation_of_total(part)
        )


def _deviation_of_total(part: CalibratedPart) -> float | None:
    noise = part.noise
    return noise.deviation_of_total() * float(part.unit) if isinstance(noise, CorrelatedGaussian) else None


def shared_by_keys(noise: MeasureNoise, keys: int, max_keys_per_user: int) -> str:
    """Say what it means that keys share a part of their noise."""
    best = best_correlation(keys, max_keys_per_user).standard_deviation
    gaussian = noise.standard_deviation / best * math.sqrt(max_keys_per_user * keys)
    return (
        f"the {keys} keys share a part of it, so that totals over keys get worse: standard deviation "
        f"{noise.standard_deviation_of_total or 0.0:.4g} over all keys, where noise = 'gaussian' has {gaussian:.4g}"
    )
