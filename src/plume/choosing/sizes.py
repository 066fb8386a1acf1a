"""How large contributions are before a bound that is left open, noised: a histogram from which the bound may be chosen by anybody.

Its own file because what is chosen is post-processing: the noiser here is all that sees rows. docs/guarantees/auto-bounds.md.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import erfcx

from plume.choosing.histogram import BUCKET, NOTHING_KNOWN, HistogramNoiser, Share, share_of_last
from plume.mechanisms.open_bound import OpenBound
from plume.noise.batches import exact_integers
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.privacy.cost import GaussianCost

Floats = NDArray[np.float64]

PAIRS = "pairs"
# Up to two octaves are looked at together; any of them is taken to be more than noise by mistake with a chance of 1 in 10,000.
_WIDTHS, _CHANCE_OF_NOISE = (1, 2, 4), 1e-4


@dataclass(frozen=True)
class NoiseSizes(HistogramNoiser):
    """Buckets of the histogram come in, all of them always, and go out with noise.

    Guarantee: of one user at most `max_keys_per_user` contributions are in its buckets, possibly all in one. So they change it by at most
    that number in Euclidean norm, for which it is Gaussian differentially private. docs/guarantees/auto-bounds.md.
    """

    what: str
    """What is chosen by it."""
    step: str
    measure: int
    """Of which measure the bound is, from 0 on."""
    pairs: RoundedGaussian
    bound: OpenBound
    max_keys_per_user: int
    reads: tuple[str, ...] = (PAIRS,)
    writes: tuple[str, ...] = (BUCKET, PAIRS)

    @property
    def buckets(self) -> int:
        """How many buckets the histogram has, whatever the data."""
        return len(self.bound.candidates)

    @property
    def costs(self) -> tuple[GaussianCost, ...]:
        """What it spends; all keys of a user may be in one bucket, so squares do not help."""
        return (GaussianCost(self.what, mu=self.max_keys_per_user / float(self.pairs.scale)),)

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Noise every bucket, once."""
        noised = exact_integers(batch, PAIRS) + self.pairs.sample(batch.num_rows, entropy)
        return pa.RecordBatch.from_arrays([batch.column(BUCKET), pa.array(noised)], names=list(self.writes))


def choose_bound(histogram: pa.Table, noiser: NoiseSizes, *, selected: int, noise: float) -> float:
    """Choose the bound with the smallest estimated error, of those within which half of what was looked at lies.

    `noise` is the mean absolute noise of a bound of 1 in each selected key. What noise may have made does not count.
    docs/decisions/0080-bounds-by-estimated-error.md.
    """
    pairs = histogram.sort_by(BUCKET).column(PAIRS).to_numpy().astype(np.float64)
    seen = pairs[: _last_seen(pairs, noiser.pairs) + 1]
    bounds = np.array(noiser.bound.candidates[: seen.size])
    errors = estimated_error(_lost(seen, noiser.bound) / max(selected, 1), noise * bounds)
    half = int(np.argmax(2 * np.cumsum(seen) >= seen.sum()))
    best = noiser.bound.candidates[half + int(np.argmin(errors[half:]))]
    return int(best) if noiser.bound.unit == 1 else best


def estimated_error(lost: Floats, noise: Floats) -> Floats:
    """Estimate how far keys are off on average, if they lack `lost` and Gaussian noise moves them by `noise`, both on average.

    Some lack more than others. Of all ways to spread what is lacking over keys, of which only the mean is known, this takes the one that
    assumes least: an exponential distribution. Where keys lack less than noise moves them, it hardly counts; where they lack much more,
    noise hardly does.
    """
    ratio = np.divide(noise, lost, out=np.full_like(noise, np.inf), where=lost > 0)
    both: Floats = noise + lost * erfcx(math.sqrt(math.pi) / 2 * ratio)
    return both


def _lost(pairs: Floats, bound: OpenBound) -> Floats:
    """Add up what pairs exceed each bound by, as if each were as large as the middle of its bucket."""
    edges = np.array((0, *bound.steps[: pairs.size]), np.float64)
    middles = (edges[:-1] + 1 + edges[1:]) / 2
    beyond = np.maximum(middles - edges[1:, np.newaxis], 0)
    return np.maximum(beyond @ pairs, 0) * float(bound.unit)


def _last_seen(pairs: Floats, noise: RoundedGaussian) -> int:
    """Find the last bucket in which, alone or with a few others beyond all that is seen, there is more than noise makes."""
    last = int(np.argmax(pairs))
    while further := _seen_further(pairs[last + 1 :], noise, buckets=pairs.size):
        last += further
    return last


def _seen_further(pairs: Floats, noise: RoundedGaussian, *, buckets: int) -> int:
    """Count the buckets up to the last of a few adjacent ones that hold more than noise makes; 0 if there are none."""
    ends, total = [0], np.cumsum([0.0, *pairs])
    for width in _WIDTHS:
        floor = noise.standard_deviation * math.sqrt(2 * width * math.log(len(_WIDTHS) * buckets / _CHANCE_OF_NOISE))
        ends += [int(first) + width for first in np.flatnonzero(total[width:] - total[:-width] >= floor)]
    return max(ends)


def share_above_bound(histogram: pa.Table, noiser: NoiseSizes, bound: float) -> Share:
    """Bound which share of the contributions that were looked at, the largest of each user, exceed the bound; the last has no end."""
    first = noiser.bound.candidates.index(bound) + 1
    if first == noiser.buckets:
        return NOTHING_KNOWN
    pairs = histogram.sort_by(BUCKET).column(PAIRS).to_numpy().astype(np.float64)
    return share_of_last(pairs, first, noiser.pairs)
