"""Exponential numbers, known as exactly as a draw needs: what both kinds of Laplace noise are made of.

Separate because the one argument about rounding errors serves both; `docs/guarantees/discrete-laplace.md` holds it in full.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from plume.errors import EntropyError
from plume.noise.entropy import Entropy
from plume.noise.exact import MOST_BITS, SLACK, WORD_BITS, minus_log

_RELATIVE_MARGIN = 2.0**-47


def exponentials(words: NDArray[np.uint64], scale: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute scale · -ln U for numbers U that begin with these words, and how far that may be from the truth.

    Margin: a word r >= 2**48 leaves ln U open by at most 2**-49 around r + 1/2, and two roundings on
    the way to float64 add 2**-52. NumPy's logarithm is within 4 ulp, 2**-50 of its value; the roundings
    of scale and product add 2**-52 of the value. With a true value v the sum is therefore below
    2**-48 · scale + 2**-49 · v. The margin is at least twice that, which also covers its own roundings.
    """
    values = words.astype(np.float64)
    values += 0.5
    values *= 2.0**-WORD_BITS
    np.log(values, out=values)
    values *= -float(scale)

    margin = values + float(scale)
    margin *= _RELATIVE_MARGIN
    return values, margin


def resolve(word: int, scale: Fraction, entropy: Entropy, *, offset: Fraction) -> int:
    """Return floor(scale · -ln U + offset) for a U that begins with `word`, drawing its later bits as needed."""
    prefix = word
    for bits in range(WORD_BITS, MOST_BITS + 1, WORD_BITS):
        if prefix > 0:
            unit = Fraction(1 << bits)
            least = max(minus_log(prefix + 1, bits) - SLACK, 0) * scale / unit + offset
            most = (minus_log(prefix, bits) + SLACK) * scale / unit + offset
            if least // 1 == most // 1:
                return least // 1
        prefix = prefix << WORD_BITS | int(entropy.words(1)[0])
    raise EntropyError(f"{MOST_BITS} random bits did not decide one draw; the entropy source is stuck.")
