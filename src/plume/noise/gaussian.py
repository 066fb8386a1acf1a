"""Rounded Gaussian noise and its distribution.

Separate because every draw here is exact: no rounding of floating-point numbers reaches the law that
is priced. `docs/guarantees/rounded-gaussian.md` holds the argument in full.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import mpmath
import numpy as np
from numpy.typing import NDArray

from plume.errors import EntropyError
from plume.noise.entropy import Entropy
from plume.noise.exact import MOST_BITS, MPMATH, SLACK, SMALLEST_FAST_WORD, WORD_BITS, minus_log, refuse_bad_scale

_DRAWS_AT_ONCE = 2**15  # the arrays of one piece fit in a core's cache; even, so that no pair is cut

_SMALLEST_RADIUS = 2.0**-24
_RELATIVE_MARGIN = 2.0**-46
_TURN_SLACK = 8  # 2π units for the unknown bits of the angle, one for cutting off, the rest for errors

_EXPONENT_LIMIT = 2000  # far beyond where exp underflows, so larger ones need not fit in a float
_SMALL_SCALE = 2
_SMALL_SCALE_REACH = 80  # 40 times the scale or more, where the tail underflows


@dataclass(frozen=True)
class RoundedGaussian:
    """Noise on the integers with the law of round(N(0, scale²)): Pr[x] = Φ((x + ½) / scale) - Φ((x - ½) / scale).

    Guarantee: added to integers that one user changes by at most Δ in Euclidean norm (L2), it is
    μ-Gaussian differentially private with μ = Δ / scale, like the continuous Gaussian it rounds, and
    with nothing to add for the rounding. `docs/guarantees/rounded-gaussian.md`.
    """

    scale: Fraction
    kind: ClassVar[str] = "rounded Gaussian"

    def __post_init__(self) -> None:
        refuse_bad_scale(self.scale)

    @property
    def standard_deviation(self) -> float:
        """The square root of the variance: √(scale² + 1/12) from 2 on, where that is exact to 1e-33; less below."""
        if self.scale >= _SMALL_SCALE:
            return math.sqrt(self.scale**2 + Fraction(1, 12))
        return math.sqrt(2 * math.fsum((2 * size - 1) * self.tail(size) for size in range(1, _SMALL_SCALE_REACH)))

    def tail(self, at_least: int) -> float:
        """Return Pr[X >= at_least], within a relative 1e-12 as long as it is above 1e-300."""
        if at_least < 1:
            return 1 - self.tail(1 - at_least)
        exponent = (at_least - Fraction(1, 2)) ** 2 / (2 * self.scale**2)
        return math.erfc(math.sqrt(min(exponent, Fraction(_EXPONENT_LIMIT)))) / 2

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw `size` independent integers exactly from this law."""
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _DRAWS_AT_ONCE):
            piece = noise[start : start + _DRAWS_AT_ONCE]
            words = entropy.words(piece.size + piece.size % 2)
            piece[:] = _rounded_pairs(words.reshape(2, -1), self.scale, entropy).ravel()[: piece.size]
        return noise


def _rounded_pairs(words: NDArray[np.uint64], scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
    """Turn each column of two words into round(scale · R · cos 2πT) and round(scale · R · sin 2πT), R = √(-2 ln U).

    The second word begins T; the exclusive or of both words begins 1 - U. Bits that are uniform and
    independent of T's remain so when T's are added, so U and T are independent and uniform, and the two
    numbers before rounding are independent and normal (Box and Muller). A source that gives one word
    for ever, as tests use it, has U = 1 and no noise.

    Ziv's strategy: float64 decides where its error cannot change the rounding, and more bits of U and T
    decide the rest, always for both numbers of a pair.
    """
    radius_words, turns = ~(words[0] ^ words[1]), words[1]
    values, margin = _pairs_before_rounding(radius_words, turns, float(scale))

    nearest = np.rint(values)
    values -= nearest
    np.abs(values, out=values)
    decided = (values.max(axis=0) + margin < 1 / 2) & (radius_words >= SMALLEST_FAST_WORD)

    noise = nearest.astype(np.int64)
    for pair in np.flatnonzero(~decided):
        noise[:, pair] = _resolve(int(radius_words[pair]), int(turns[pair]), scale, entropy)
    return noise


def _pairs_before_rounding(
    radius_words: NDArray[np.uint64], turns: NDArray[np.uint64], scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute scale · R · cos 2πT and scale · R · sin 2πT, and how far they may be from the truth.

    Margin: a word r >= 2**48 leaves 2 ln U open by at most 2**-48 around r + 1/2, and two roundings on the
    way to float64 add 2**-51: R is off by 9/8 · 2**-48 / R, and never by more than if R were 2**-24.
    In units of 2**-53 · R, NumPy's logarithm within 4 ulp adds 8, the root 1, three roundings and the
    unknown bits of an angle up to π 9.5, cosine or sine within 4 ulp 4, scale and products 3: 25.5.
    The sum is below scale · 2**-48 · (9/8 / R + 7/8 · R). The margin is over three times that.
    """
    radius = radius_words.astype(np.float64)
    radius += 0.5
    radius *= 2.0**-WORD_BITS
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)

    margin = 1 / np.maximum(radius, _SMALLEST_RADIUS)
    margin += radius
    margin *= scale * _RELATIVE_MARGIN

    angle = turns.view(np.int64) * (2 * math.pi * 2.0**-WORD_BITS)
    values = np.empty((2, radius.size))
    np.cos(angle, out=values[0])
    np.sin(angle, out=values[1])
    radius *= scale
    values *= radius
    return values, margin


def _resolve(radius_word: int, turn_word: int, scale: Fraction, entropy: Entropy) -> tuple[int, int]:
    """Return the two rounded numbers for a U and a T that begin with these words, drawing later bits as needed."""
    radius_prefix, turn_prefix = radius_word, turn_word
    for bits in range(WORD_BITS, MOST_BITS + 1, WORD_BITS):
        if radius_prefix > 0:
            radius = _radius(radius_prefix, bits)
            turn = MPMATH.ldexp(turn_prefix, 1 - bits)
            # The precision is an argument of the call, never a setting: threads share the context unharmed.
            cosine = MPMATH.cospi(turn, prec=bits + WORD_BITS)
            sine = MPMATH.sinpi(turn, prec=bits + WORD_BITS)
            rounded = _rounded(radius, cosine, scale, bits), _rounded(radius, sine, scale, bits)
            if rounded[0] is not None and rounded[1] is not None:
                return rounded[0], rounded[1]
        first, turn_bits = entropy.words(2).tolist()
        radius_prefix = radius_prefix << WORD_BITS | (first ^ turn_bits ^ (2**WORD_BITS - 1))
        turn_prefix = turn_prefix << WORD_BITS | turn_bits
    raise EntropyError(f"{MOST_BITS} random bits did not decide two draws; the entropy source is stuck.")


def _radius(prefix: int, bits: int) -> tuple[int, int]:
    """Return bounds on √(-2 ln U) in units of 2**-bits, for all U from prefix / 2**bits to (prefix + 1) / 2**bits."""
    least = max(minus_log(prefix + 1, bits) - SLACK, 0)
    most = minus_log(prefix, bits) + SLACK
    return math.isqrt(2 * least << bits), math.isqrt(2 * most << bits) + 1


def _rounded(radius: tuple[int, int], direction: mpmath.mpf, scale: Fraction, bits: int) -> int | None:
    """Round scale · radius · direction to the nearest integer, or return None if the bounds leave it open."""
    centre = int(MPMATH.ldexp(direction, bits))
    least = min(end * (centre - _TURN_SLACK) for end in radius) * scale.numerator
    most = max(end * (centre + _TURN_SLACK) for end in radius) * scale.numerator
    half = scale.denominator << 2 * bits
    rounded = (2 * least + half) // (2 * half)
    return rounded if rounded == (2 * most + half) // (2 * half) else None
