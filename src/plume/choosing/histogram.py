"""What histograms have in common by which numbers are chosen: a bucket for each candidate, all of them always."""

import math
from collections.abc import Mapping
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.mechanisms.margins import LEVEL, Blur, quotient
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.plan.aggregates import Max, Sum
from plume.plan.expressions import Bucket, Clamp, Column, Comparator, Compare, Expression, Integer, Literal
from plume.plan.nodes import Append, Combine, Map, Node, Noise, Noiser, Scan

BUCKET = "bucket"
"""The column that numbers the buckets of a histogram, from 0 on."""
_LISTED = "listed"
# Buckets below what noise alone may give are taken to be empty; that happens to any of them with a chance of 2 %:
# docs/guarantees/auto-limit.md.
_CHANCE_OF_NOISE = 0.02
# Odds at which a share is as good as the whole.
_CERTAIN = 2.0**53
Share = tuple[float, float]
"""Between which shares of a whole a part of it lies, with a probability of 0.95."""
NOTHING_KNOWN: Share = (0.0, 1.0)
ABOVE = "above"
"""Where records keep which shares lie above the numbers that were chosen."""


class HistogramNoiser:
    """What noisers of histograms share: buckets are public, play the part of keys, and have draws of their own."""

    keys: tuple[str, ...] = (BUCKET,)
    passes: tuple[str, ...] = ()
    chooses_rows: bool = False
    account: None = None
    moved: None = None
    known_keys: None = None

    def begun(self, entropy: Entropy) -> Self:
        """Share nothing: every bucket has draws of its own."""
        del entropy
        return self


def list_buckets(number: int) -> pa.Table:
    """List the buckets that a histogram has, whatever the data."""
    return pa.table({BUCKET: pa.array(range(number), pa.int64())})


def table_of_buckets(step: str) -> str:
    """Name the public table in which the buckets of a step are listed."""
    return f"{step}_buckets"


def most_of_noise(noise: RoundedGaussian, buckets: int) -> float:
    """Say what noise hardly ever exceeds in any of the buckets."""
    return noise.standard_deviation * math.sqrt(2 * math.log(buckets / _CHANCE_OF_NOISE))


def share_of_last(counted: NDArray[np.float64], first: int, noise: RoundedGaussian) -> Share:
    """Bound which share of all that a noised histogram counts is in its last buckets, from number `first` on.

    The number is chosen by the same noise, so the intervals for all numbers hold together.

    Guarantee: it reads what is noised and nothing else. docs/guarantees/auto-limit.md.
    """
    parts = counted[first:], counted[:first]
    if not parts[0].size:
        return 0.0, 0.0
    # The odds of being in the last buckets, whose parts have noise of their own, give the share.
    last, others = (np.array([float(part.sum())]) for part in parts)
    of_last, of_others = (Blur(noise, terms=part.size) for part in parts)
    each = 1 - (1 - LEVEL) / counted.size
    odds = quotient(last, others, (of_last, of_others), most=_CERTAIN, level=each)
    low, high = (max(float(end[0]), 0.0) for end in odds)
    return low / (1 + low), high / (1 + high)


def bucket_of(size: Expression, edges: tuple[int, ...]) -> Expression:
    """Find the bucket of a size; the last one is open."""
    return Integer(Bucket(Clamp(size, 0, edges[-1] - 1), tuple(map(float, edges))))


def noise_histogram(
    name: str, source: Node, bucket: Expression, counted: Mapping[str, Expression], noiser: Noiser
) -> Noise:
    """Add up what is counted by bucket, and noise it: a stage. All buckets are there, whoever is in them."""
    placed = Map(f"{name}_placed", source, ((BUCKET, bucket), *counted.items(), (_LISTED, Literal(0))))
    listed = Map(
        f"{name}_listed",
        Scan(table_of_buckets(name), (BUCKET,), public=True),
        ((BUCKET, Column(BUCKET)), *((column, Literal(0)) for column in counted), (_LISTED, Literal(1))),
    )
    summed = Combine(
        f"{name}_histogram",
        Append(f"{name}_with_buckets", (placed, listed)),
        (BUCKET,),
        (*((column, Sum(Column(column))) for column in counted), (_LISTED, Max(Column(_LISTED)))),
        gather=(BUCKET,),
    )
    exact = Map(
        f"{name}_exact",
        summed,
        ((BUCKET, Column(BUCKET)), *((column, Integer(Column(column))) for column in counted)),
        where=Compare(Column(_LISTED), Comparator.EQUAL, Literal(1)),
    )
    return Noise(name, exact, noiser)
