"""Where the threshold comes from: about the lowest one that a key held by one user alone passes with a small enough probability.

With Laplace noise, that probability is at most delta for all keys of a user together (`lowest_laplace_threshold`, already on its grid).
With Gaussian noise, keys of one user alone and the noise on everything else stay within epsilon and delta together (`smallest_threshold`,
which asks what each user spends: `privacy/gaussian.py`, with pooled weights `privacy/pooled.py`, in two rounds `privacy/two_rounds.py`).
Strategies of two rounds search both of their thresholds by it, in `_smallest_thresholds` of their own modules. With pooled weights, which
are the default, the search looks at few users, and thresholds are raised afterwards until all users are within delta
(`lowest_threshold` in `pooled_gaussian.py`).
Where other noise is drawn as well, keys of one user alone get a share of delta for themselves: `threshold_alone`, of the share
`DELTA_OF_THRESHOLDS` in `rule.py` beside this file.

Epsilon, delta and the scale of the noise are given: they come from `calibration/calibrated_query.py`, or with tight composition from
`calibration/tight_composition.py`. `on_grid` rounds a threshold for Gaussian noise up to the integers that strategies compare; Laplace
thresholds are integers. A threshold on the number of users is then raised by `min_users` - 1, by the strategy, which applies it in
`keep`. Truncated geometric selection has no threshold: it tosses a biased coin for each key.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import mpmath
from scipy.optimize import brentq

from plume import root
from plume.errors import PlumeBug, RangeError
from plume.noise.laplace import DiscreteLaplace
from plume.noise.rounded_laplace import RoundedLaplace
from plume.privacy.gaussian import Threshold, joint_delta, smallest

# Strategies round thresholds up to their grids, the finest of which is a hundred times coarser than this step.
_STEP = 1e-8
# Of the smallest delta there may be, 1e-300, strategies that look with some slack leave a little unspent.
_LEAST = 1e-307
# Thresholds for Laplace noise have enough digits that rounding up is the only rounding that matters.
_exact = mpmath.MPContext()
_exact.dps = 60


Made = TypeVar("Made", bound=Threshold)


def smallest_threshold(make: Callable[[float], Made], *, others: float, epsilon: float, delta: float) -> Made:
    """Find the lowest threshold at which selection and measures together stay within delta, or one only slightly higher."""

    def excess(threshold: float) -> float:
        # Of users without novel keys no threshold changes anything, and their delta is hardly below the budget's.
        made = make(threshold)
        worst = made.worst(others=others, epsilon=epsilon, fewest_novel=1)
        return math.log(max(worst.delta, _LEAST) / (delta * (1 - made.slack)))

    if excess(math.inf) > 0:
        raise unreachable(epsilon, delta)
    # Keys of one user alone need a threshold as high as this; measures beside them raise it only a little.
    # Each call tries all kinds of users.
    start = _alone(make, delta)
    low, lowest = root.bracket(lambda threshold: excess(threshold) <= 0, start, start, lambda high: 1.1 * high)
    if low < lowest:
        lowest = brentq(excess, low, lowest, xtol=_STEP)
    return raised(make, lowest, others=others, epsilon=epsilon, delta=delta)


def unreachable(epsilon: float, delta: float) -> RangeError:
    """Say that no threshold would do, as far as floating-point numbers can tell: budgets are too large, or too small, to be priced."""
    return RangeError(
        f"with epsilon = {epsilon:g} and delta = {delta:g} no threshold is known to be high enough for this way to select keys; "
        "take a smaller epsilon or a larger delta, or another selection."
    )


def raised(make: Callable[[float], Made], threshold: float, *, others: float, epsilon: float, delta: float) -> Made:
    """Raise a threshold, which is low enough or hardly too low, until selection and measures together stay within delta."""
    step = _STEP
    while joint_delta(make(threshold), others=others, epsilon=epsilon) > delta:
        if math.isinf(threshold):
            raise PlumeBug("no threshold, however high, keeps selection within its budget")
        threshold, step = threshold + step, 2 * step
    return make(threshold)


def threshold_alone(make: Callable[[float], Made], *, delta: float) -> Made:
    """Find the lowest threshold that a key of one user alone passes with a chance of at most delta."""
    return make(_alone(make, delta))


def _alone(make: Callable[[float], Made], delta: float) -> float:
    return smallest(lambda threshold: make(threshold).delta() <= delta, start=10.0)


def on_grid(threshold: float, *, unit: int) -> int:
    """Round a threshold for noise before rounding up to one for noise after it, in steps of which a weight of 1 has `unit`."""
    return math.ceil(threshold * unit + 0.5)


def lowest_laplace_threshold(noise: DiscreteLaplace | RoundedLaplace, max_keys_per_user: int, delta: float) -> int:
    """Find the smallest threshold that a key with one user passes with probability at most 1 - (1 - delta)^(1/max_keys_per_user)."""
    per_key = -_exact.expm1(_exact.log1p(-_exact.mpf(delta)) / max_keys_per_user)
    exact_scale = _exact.mpf(noise.scale.numerator) / noise.scale.denominator
    if isinstance(noise, RoundedLaplace):
        steps = exact_scale * -_exact.log(2 * per_key) + _exact.mpf(1) / 2
        # Where even no noise at all would do, noise of 1 is still the least that can be asked for.
        return 1 + max(1, int(_exact.ceil(steps)))
    ratio = _exact.exp(-1 / exact_scale)
    return 1 + max(0, int(_exact.ceil(exact_scale * -_exact.log((1 + ratio) * per_key))))


def chance_alone(noise: DiscreteLaplace | RoundedLaplace, max_keys_per_user: int, steps: int) -> float:
    """The chance that any key of one user alone passes a threshold that is `steps` above what the user adds to it."""
    alone = _tail(noise, steps)
    return float(-_exact.expm1(max_keys_per_user * _exact.log1p(-alone)))


def _tail(noise: DiscreteLaplace | RoundedLaplace, at_least: int) -> mpmath.mpf:
    """Pr[noise >= at_least], for discrete noise where at_least >= 0, for rounded noise where at_least >= 1."""
    rate = _exact.mpf(noise.scale.denominator) / noise.scale.numerator
    if isinstance(noise, RoundedLaplace):
        return _exact.exp(-rate * (at_least - _exact.mpf(1) / 2)) / 2
    return _exact.exp(-rate * at_least) / (1 + _exact.exp(-rate))
