"""Rounded Laplace noise and its distribution: what is drawn where Laplace noise is composed by privacy loss distributions.

Separate from discrete Laplace because the two are priced differently: this one exactly like the continuous law it rounds.
`docs/guarantees/rounded-laplace.md` holds the argument in full.
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
_HALF = Fraction(1, 2)
_EXPONENT_LIMIT = 2000  # far beyond where exp underflows, so larger ones need not fit in a float


@dataclass(frozen=True)
class RoundedLaplace:
    """Noise on the integers with the law of a rounded Laplace number: Pr[X >= m] = exp(-(m - 1/2) / scale) / 2 for m >= 1.

    Guarantee: added to integers, it reveals exactly what the continuous Laplace noise it rounds reveals, whatever the shifts, and with
    nothing to add for the rounding. A coordinate that one user changes by at most Δ is (Δ / scale)-differentially private.
    `docs/guarantees/rounded-laplace.md`.
    """

    scale: Fraction
    kind: ClassVar[str] = "rounded Laplace"

    def __post_init__(self) -> None:
        refuse_bad_scale(self.scale)

    @property
    def standard_deviation(self) -> float:
        """The square root of the variance, √q (1 + q) / (1 - q)² with q = exp(-1 / scale)."""
        exponent = self._exponent(Fraction(1))
        return math.sqrt(math.exp(-exponent / 2) * (1 + math.exp(-exponent))) / -math.expm1(-exponent)

    def tail(self, at_least: int) -> float:
        """Return Pr[X >= at_least], within a relative 1e-12 as long as it is above 1e-300."""
        if at_least < 1:
            return 1 - self.tail(1 - at_least)
        return math.exp(-self._exponent(at_least - _HALF)) / 2

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw `size` independent integers exactly from this law."""
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _DRAWS_AT_ONCE):
            piece = noise[start : start + _DRAWS_AT_ONCE]
            piece[:] = _rounded(entropy.words(2 * piece.size).reshape(2, -1), self.scale, entropy)
        return noise

    def _exponent(self, steps: Fraction) -> float:
        return float(min(steps / self.scale, Fraction(_EXPONENT_LIMIT)))


def _rounded(words: NDArray[np.uint64], scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
    """Turn each column of two words into ± floor(scale · -ln U + 1/2).

    The second word's first bit is the sign; the exclusive or of both words begins 1 - U. Bits that are uniform and independent of the
    second word's remain so when those are added, so U and the sign are independent. A source that gives one word for ever, as tests
    use it, has U = 1 and no noise.

    Ziv's strategy: float64 decides where its error cannot change the rounding, and more bits of U decide the rest.
    """
    sizes = ~(words[0] ^ words[1])
    values, margin = exponentials(sizes, scale)
    nearest = np.rint(values)
    values -= nearest
    np.abs(values, out=values)
    # 1/2 is a float, so a sum below it in float64 is below it in truth.
    decided = (values + margin < 1 / 2) & (sizes >= SMALLEST_FAST_WORD)

    noise = nearest.astype(np.int64)
    for index in np.flatnonzero(~decided):
        noise[index] = resolve(int(sizes[index]), scale, entropy, offset=_HALF)
    np.negative(noise, out=noise, where=words[1].view(np.int64) < 0)
    return noise
