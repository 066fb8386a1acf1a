"""How large rows of users are before a bound that is left open, noised: a histogram from which the bound may be chosen by anybody.

Its own file because what is chosen is post-processing: the noiser here is all that sees rows. docs/guarantees/auto-bounds.md.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from plume.mechanisms.open_bound import OpenBound
from plume.noise.batches import exact_integers
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.pipelines.offers import BUCKET, most_of_noise
from plume.privacy.cost import Cost

PAIRS = "pairs"


@dataclass(frozen=True)
class NoiseSizes:
    """Rows of the histogram come in, all of them always, and go out with noise.

    Guarantee: one user is in `max_keys_per_user` of its rows, or so many times in one. Counted so, they change it by at most that number
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
    chooses_rows: bool = False

    @property
    def rows(self) -> int:
        """How many rows the histogram has, whatever the data are."""
        return len(self.bound.offers)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What it spends; all keys of a user may be in one row, so squares do not help."""
        return (Cost(self.what, mu=self.max_keys_per_user / float(self.pairs.scale)),)

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Noise every row, once."""
        noised = exact_integers(batch, PAIRS) + self.pairs.sample(batch.num_rows, entropy)
        return pa.RecordBatch.from_arrays([batch.column(BUCKET), pa.array(noised)], names=list(self.writes))


def choose_bound(rows: pa.Table, noiser: NoiseSizes, *, selected: int, noise: float) -> float:
    """Choose the bound with the smallest estimated error: what it cuts away per selected key, and the noise.

    `noise` is what a bound of 1 costs. Rows that noise alone could have made are taken to be empty, all but the fullest: something must be
    there to choose by.
    """
    pairs = rows.sort_by(BUCKET).column(PAIRS).to_numpy().astype(np.float64)
    offers = np.array(noiser.bound.offers)
    seen = (pairs >= most_of_noise(noiser.pairs, noiser.rows)) | (pairs == pairs.max())
    # Of whole numbers the smallest in a row is one above the offer before; of others it is as good as that offer.
    whole = noiser.bound.unit == 1
    least = np.concatenate(([0.0], offers[:-1])) + whole
    sizes = (least + offers) / 2
    counted = np.where(seen, np.maximum(pairs, 0), 0)
    errors = [float(np.sum(counted * np.maximum(sizes - o, 0))) / max(selected, 1) + noise * o for o in offers]
    best = noiser.bound.offers[int(np.argmin(errors))]
    return int(best) if whole else best
