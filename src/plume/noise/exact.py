"""What exact samplers share: which scales they take, and logarithms to as many bits as a draw needs (Ziv's strategy)."""

from fractions import Fraction

import mpmath
import numpy as np

LARGEST_SCALE = 2**40
WORD_BITS = 64
MOST_BITS = 64 * WORD_BITS
SMALLEST_FAST_WORD = np.uint64(2**48)
SLACK = 2  # one unit for cutting off a logarithm's last bits, one for its error of 2**-50 units
MPMATH = mpmath.mp.clone()  # its own, so that nobody's settings reach it


def refuse_bad_scale(scale: Fraction) -> None:
    """Refuse a scale that is not exact or too wide to be drawn exactly."""
    if not isinstance(scale, Fraction):
        raise TypeError(f"scale is a {type(scale).__name__}; it must be an exact Fraction.")
    if not 0 < scale < LARGEST_SCALE:
        raise ValueError(f"scale is {scale}; it must be above 0 and below 2**40.")


def minus_log(numerator: int, bits: int) -> int:
    """Return -ln(numerator / 2**bits) in units of 2**-bits, wrong by less than `SLACK` units."""
    # The precision is an argument of the call, never a setting: threads share the context unharmed.
    logarithm = MPMATH.ln(MPMATH.ldexp(numerator, -bits), prec=bits + WORD_BITS)
    return -int(MPMATH.ldexp(logarithm, bits))
