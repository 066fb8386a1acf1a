"""How large contributions are before a bound that is left open, noised: a histogram from which the bound may be chosen by anybody.

Its own file because what is chosen is post-processing: the noiser here is all that sees rows. docs/guarantees/auto-bounds.md.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.choosing.histogram import BUCKET, NOTHING_KNOWN, Share, share_of_last
from plume.mechanisms.open_bound import OpenBound
from plume.noise.batches import exact_integers
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.privacy.cost import GaussianCost

Floats = NDArray[np.float64]

PAIRS = "pairs"
# Up to two octaves are looked at together; any of them is taken to be more than noise by mistake with a chance of 1 in 10,000.
_WIDTHS, _CHANCE_OF_NOISE = (1, 2, 4), 1e-4
# In standard deviations of noise.
_SURELY = 3


@dataclass(frozen=True)
class NoiseSizes:
    """Buckets of the histogram come in, all of them always, and go out with noise.

    Guarantee: one user is in `max_keys_per_user` of its buckets, or that many times in one. So they change it by at most that number
    in Euclidean norm, for which it is Gaussian differentially private. docs/guarantees/auto-bounds.md.
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
    keys: tuple[str, ...] = (BUCKET,)
    passes: tuple[str, ...] = ()
    chooses_rows: bool = False
    account: None = None
    moved: None = None

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


def choose_bound(histogram: pa.Table, noiser: NoiseSizes, *, selected: int, noise: float, kept: int) -> float:
    """Choose the smallest bound beyond which there are too few pairs for a larger one to be worth its noise.

    The rule is that of docs/decisions/0051-chosen-bounds.md. `noise` is what a bound of 1 costs in each selected key. Users above the
    limit keep up to `kept` times as many keys as were looked at; how much of what is beyond a bound is theirs is not known, so all of it
    counts as much as lies in the middle, by the root. What noise may have made does not count. Bounds below the fullest bucket are not
    chosen.
    """
    pairs = histogram.sort_by(BUCKET).column(PAIRS).to_numpy().astype(np.float64)
    last = _last_seen(pairs, noiser.pairs)
    beyond = np.cumsum(pairs[last::-1])[::-1] - pairs[: last + 1]
    doubt = _SURELY * noiser.pairs.standard_deviation * np.sqrt(np.arange(last, -1, -1))
    few = beyond <= np.maximum(noise * selected / math.sqrt(kept), doubt)
    best = noiser.bound.candidates[int(np.argmax(few & (np.arange(last + 1) >= np.argmax(pairs))))]
    return int(best) if noiser.bound.unit == 1 else best


def _last_seen(pairs: Floats, noise: RoundedGaussian) -> int:
    """Find the last bucket in which, alone or with a few before it, there is more than noise makes; or else the fullest."""
    last = int(np.argmax(pairs))
    for width in _WIDTHS:
        sums = np.convolve(pairs, np.ones(width), "valid")
        floor = noise.standard_deviation * math.sqrt(2 * width * math.log(len(_WIDTHS) * len(pairs) / _CHANCE_OF_NOISE))
        last = max([last, *(np.flatnonzero(sums >= floor) + width - 1)])
    return last


def share_above_bound(histogram: pa.Table, noiser: NoiseSizes, bound: float) -> Share:
    """Bound which share of the contributions that were looked at are larger than the bound; the last bucket has no end."""
    first = noiser.bound.candidates.index(bound) + 1
    if first == noiser.buckets:
        return NOTHING_KNOWN
    pairs = histogram.sort_by(BUCKET).column(PAIRS).to_numpy().astype(np.float64)
    return share_of_last(pairs, first, noiser.pairs)
