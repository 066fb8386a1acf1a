"""The closed form of the chance with which truncated geometric selection keeps a key. The package throws its coins by a table."""

from fractions import Fraction

import mpmath

from plume.selection.truncated_geometric import turning_points

EXACT = mpmath.MPContext()
EXACT.prec = 512


def keep_probability(users: int, *, epsilon: Fraction, delta: float) -> float:
    """Return the chance of one key, where epsilon and delta are those of one key; the table's rounding is below 2**-128 a step."""
    growing, uncertain = turning_points(epsilon=epsilon, delta=delta)
    step = EXACT.mpf(epsilon.numerator) / epsilon.denominator
    if users > uncertain:
        return 1.0
    chance = delta * EXACT.expm1(min(max(users, 0), growing) * step) / EXACT.expm1(step)
    if users > growing:
        chance -= (1 - chance + delta / EXACT.expm1(step)) * EXACT.expm1((growing - users) * step)
    return float(chance)
