"""Where max_keys_per_user="auto" is chosen: `choose_limit` decides, from a noised histogram of how many selected keys users have.

It takes the one of `CANDIDATES` with the smallest estimated error. `choosing/open_query.py` plans the histogram, in which each user is in
one bucket, as a stage between selection and release, and tells `choose_limit` how much noise there is; `running.py` runs that stage and
asks for the decision. Of all that is here only `NoiseKeysPerUser` sees exact rows; everything else is post-processing of what it gives.
docs/guarantees/auto-limit.md.

Bounds of measures are chosen in `choosing/sizes.py`. Limits that `plume tune` and `plume need` recommend are not chosen in a run:
`tuning/`.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.choosing.histogram import BUCKET, NOTHING_KNOWN, HistogramNoiser, Share, most_of_noise, share_of_last
from plume.noise.batches import exact_integers
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.privacy.cost import GaussianCost
from plume.query import LIMIT

Floats = NDArray[np.float64]

USERS, FULLNESS = "users", "fullness"
# The fullness of a user whose contributions are all as large as the measures allow.
FULL = 2**10
# Four to an octave, from 1 to 2**14: a limit between two of them could gain next to nothing.
_OCTAVES, _PER_OCTAVE = 14, 4
CANDIDATES = tuple(sorted({math.ceil(2 ** (step / _PER_OCTAVE) - 1e-9) for step in range(_OCTAVES * _PER_OCTAVE + 1)}))
"""The limits that may be chosen, and the most keys of a user in each bucket of the histogram."""
EDGES = (1, *(one + 1 for one in CANDIDATES))
"""Where the buckets of the histogram begin and end."""


@dataclass(frozen=True)
class NoiseKeysPerUser(HistogramNoiser):
    """Buckets of the histogram come in, all of them always, and go out with noise.

    Guarantee: each user is in one bucket, in which they change the number of users by at most 1 and their fullness by at most 2**10. Both
    together are Gaussian differentially private. docs/guarantees/auto-limit.md.
    """

    users: RoundedGaussian
    fullness: RoundedGaussian
    what: str = LIMIT
    """What is chosen by it."""
    step: str = "keys_per_user"
    max_keys_per_user: int = 1
    """Buckets play the part of keys, and each user is in one."""
    reads: tuple[str, ...] = (USERS, FULLNESS)
    writes: tuple[str, ...] = (BUCKET, USERS, FULLNESS)

    @property
    def buckets(self) -> int:
        """How many buckets the histogram has, whatever the data."""
        return len(CANDIDATES)

    @property
    def costs(self) -> tuple[GaussianCost, ...]:
        """What both columns spend together."""
        return (GaussianCost(self.what, mu=math.hypot(1 / float(self.users.scale), FULL / float(self.fullness.scale))),)

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Noise both columns of every bucket, once."""
        noised = {name: exact_integers(batch, name) for name in self.reads}
        noised[USERS] = noised[USERS] + self.users.sample(batch.num_rows, entropy)
        noised[FULLNESS] = noised[FULLNESS] + self.fullness.sample(batch.num_rows, entropy)
        columns = [batch.column(BUCKET), *map(pa.array, noised.values())]
        return pa.RecordBatch.from_arrays(columns, names=list(self.writes))


@dataclass(frozen=True)
class KeysPerUser:
    """What is known after the noise: how many users have about that number of selected keys, and how full their contributions are."""

    keys: Floats
    users: Floats
    fullness: float

    def lost(self, limit: int) -> float:
        """Estimate how many whole contributions a limit cuts away, of users who are clipped to it."""
        within = np.sqrt(limit * self.keys)
        return self.fullness * float(np.sum(self.users * np.where(self.keys > limit, self.keys - within, 0)))


def read_keys_per_user(histogram: pa.Table, noiser: NoiseKeysPerUser, *, selected: int) -> KeysPerUser:
    """Read a noised histogram: buckets that could be noise alone count as empty, and nobody has more keys than were selected."""
    ordered = histogram.sort_by(BUCKET)
    users, fullness = (ordered.column(name).to_numpy().astype(np.float64) for name in (USERS, FULLNESS))
    seen = users >= most_of_noise(noiser.users, noiser.buckets)
    middles = np.minimum([(low + high - 1) / 2 for low, high in pairwise(EDGES)], max(selected, 1))
    pairs = float(np.sum((users * middles)[seen]))
    contributed = float(np.sum((fullness * middles)[seen])) / FULL
    return KeysPerUser(middles[seen], users[seen], min(max(contributed / pairs, 1 / FULL), 1.0) if pairs > 0 else 1.0)


def choose_limit(known: KeysPerUser, *, selected: int, noise: float, parts: int, largest: int) -> int:
    """Choose the limit with the smallest estimated error: what it cuts away per selected key, and the noise.

    `noise` is the mean absolute noise at a limit of 1, summed over the `parts`, each divided by the most that one user can change in
    one key. No limit above `largest` is chosen.
    """

    def error(limit: int) -> float:
        return parts * known.lost(limit) / max(selected, 1) + noise * math.sqrt(limit)

    return min((one for one in CANDIDATES if one <= max(largest, 1)), key=error)


def share_above_limit(histogram: pa.Table, noiser: NoiseKeysPerUser, limit: int, *, selected: int) -> Share:
    """Bound which share of the users have more keys than the limit; nobody has more than all selected ones."""
    if selected > limit == CANDIDATES[-1]:
        return NOTHING_KNOWN
    users = histogram.sort_by(BUCKET).column(USERS).to_numpy().astype(np.float64)
    possible = sum(fewest <= selected for fewest in EDGES[:-1])
    return share_of_last(users[:possible], CANDIDATES.index(limit) + 1, noiser.users)
