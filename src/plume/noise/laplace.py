"""Discrete Laplace noise and its distribution.

Separate because every draw here is exact: no rounding of floating-point numbers reaches the law that
is priced. `docs/guarantees/discrete-laplace.md` holds the argument in full.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.noise.exact import SMALLEST_FAST_WORD, refuse_bad_scale
from plume.noise.exponential import exponentials, resolve

_DRAWS_AT_ONCE = 2**15  # the arrays of one piece fit in a core's cache

_EXPONENT_LIMIT = 2000  # far beyond where exp underflows, so larger ones need not fit in a float


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise on the integers with Pr[x] = (1 - q) / (1 + q) · q^|x|, where q = exp(-1 / scale).

    Guarantee: added to integers that one user changes by at most Δ in total (L1), it is
    (Δ / scale)-differentially private, exactly. `docs/guarantees/discrete-laplace.md`.
    """

    scale: Fraction
    kind: ClassVar[str] = "discrete Laplace"

    def __post_init__(self) -> None:
        refuse_bad_scale(self.scale)

    @property
    def standard_deviation(self) -> float:
        """The square root of the variance, √(2q) / (1 - q)."""
        exponent = self._exponent(1)
        return math.sqrt(2) * math.exp(-exponent / 2) / -math.expm1(-exponent)

    def tail(self, at_least: int) -> float:
        """Return Pr[X >= at_least], within a relative 1e-12 as long as it is above 1e-300."""
        if at_least < 1:
            return 1 - self.tail(1 - at_least)
        return math.exp(-self._exponent(at_least)) / (1 + math.exp(-self._exponent(1)))

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw `size` independent integers exactly from this law."""
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _DRAWS_AT_ONCE):
            piece = noise[start : start + _DRAWS_AT_ONCE]
            counts = _geometric(entropy.words(2 * piece.size), self.scale, entropy)
            np.subtract(counts[: piece.size], counts[piece.size :], out=piece)
        return noise

    def _exponent(self, steps: int) -> float:
        """Return x where q^steps = exp(-x)."""
        return float(min(Fraction(steps) / self.scale, Fraction(_EXPONENT_LIMIT)))


def _geometric(words: NDArray[np.uint64], scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
    """Turn each word, the first 64 bits of a real number U in (0, 1), into floor(scale · -ln U).

    So Pr[count >= k] = Pr[U <= exp(-k / scale)] = exp(-k / scale). Ziv's strategy: float64 decides
    where its error cannot change the floor, and more bits of U decide the rest.
    """
    values, margin = exponentials(words, scale)
    distance = np.rint(values)
    distance -= values
    np.abs(distance, out=distance)
    undecided = (distance < margin) | (words < SMALLEST_FAST_WORD)

    counts = values.astype(np.int64)
    for index in np.flatnonzero(undecided):
        counts[index] = resolve(int(words[index]), scale, entropy, offset=Fraction(0))
    return counts
