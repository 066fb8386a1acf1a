"""What parts of different kinds reveal together: their privacy loss distributions, composed by Google's dp-accounting.

Its own file because nothing else imports that library, and this does so only when asked: all-Gaussian plans have a formula, plans that
add epsilons up need none, and the import takes most of a second.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, reduce
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln

from plume.errors import RangeError
from plume.privacy.gaussian import SAFETY, Floats, delta_of, smallest
from plume.root import crossing

# Distributions are kept on a grid of this many steps to an epsilon; what it rounds up costs less than a thousandth of the noise.
_STEPS = 1e4
_COARSE = 10
# Lines between points of a curve lie so close to it that fewer are enough.
_STEPS_OF_CURVES = 1e3
_LARGEST_EPSILON = 1e5
# What float64 may err by in convolutions, many times over: once, and for each of many convolutions at once. Added to every delta.
LEAST_DELTA, _FOR_EACH = 1e-13, 1e-15
# What a sum of few losses may err by, many times over, as a difference of probabilities; its chances err by less than SAFETY.
_DIFFERENCES = 1e-15
# How far from its mean a binomial number is worth counting; Bernstein's inequality leaves e**-72 to the rest.
_DEVIATIONS, _REACH = 12, 60
# Up to how many different losses an estimate looks at.
_MOST_ATOMS = 20_000


class Shape(Enum):
    """What is known of the loss of a coordinate beside its epsilon."""

    ANY = "any"
    LAPLACE = "Laplace"


@dataclass(frozen=True)
class Coordinates:
    """Independent numbers or choices, each of which reveals at most epsilon about a user."""

    epsilon: float
    """Of one of them."""
    times: int
    shape: Shape


@dataclass(frozen=True)
class Losses:
    """What a release reveals about one user apart from a delta: Gaussian noise of one total mu, and coordinates of other kinds."""

    mu: float
    coordinates: tuple[Coordinates, ...]


def losses_of(mu: float, coordinates: Iterable[Coordinates]) -> Losses:
    """Gather coordinates that are alike, since alike ones are composed at once."""
    gathered: dict[tuple[float, Shape], int] = {}
    for one in coordinates:
        alike = (one.epsilon, one.shape)
        gathered[alike] = gathered.get(alike, 0) + one.times
    return Losses(mu, tuple(Coordinates(epsilon, times, shape) for (epsilon, shape), times in gathered.items()))


@lru_cache(maxsize=256)
def composed_delta(losses: Losses, epsilon: float) -> float:
    """The delta at which the losses together are (epsilon, delta)-private, as dp-accounting composes them: never too small.

    Nor is it below what the signs of the noise alone reveal, which shares no code and no numerical trouble with dp-accounting.
    """
    composed = _delta(losses, epsilon, _interval(epsilon))
    return max(composed, estimated_delta(losses, epsilon)) if few_atoms(losses) else composed


@lru_cache(maxsize=256)
def composed_epsilon(losses: Losses, delta: float, near: float) -> float:
    """The epsilon at which the losses together are (epsilon, delta)-private, as dp-accounting composes them on a grid fit for `near`."""
    return epsilon_within(losses, max(delta, _rounding(losses) + LEAST_DELTA), interval=_interval(near))


def epsilon_within(losses: Losses, delta: float, *, interval: float) -> float:
    """The epsilon at which the losses together are (epsilon, delta)-private, on a grid: never too small.

    What computing it may err by is taken from delta first. It is infinite where that leaves nothing.
    """
    left = delta - _rounding(losses)
    return float(_distribution(losses, interval).get_epsilon_for_delta(left)) if left > 0 else math.inf


class Curves(Protocol):
    """What a mechanism reveals, as a curve of deltas for each direction."""

    def adding(self, epsilons: Floats) -> Floats:
        """The delta of adding a user, at each epsilon."""

    def removing(self, epsilons: Floats) -> Floats:
        """The same for removing one."""


def epsilon_with_curves(mu: float, passing: float, follows: Curves, delta: float, *, near: float) -> float:
    """The epsilon at which Gaussian noise, a chance that all is shown, and what follows are together (epsilon, delta)-private.

    What follows may depend on what came before. It is known by its curves of deltas alone, and composed by dp-accounting.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution as pld  # noqa: PLC0415, I001 - takes most of a second

    interval = near / _STEPS_OF_CURVES
    reach = math.ceil((_DEVIATIONS * mu + mu**2) / interval) + 2
    places = np.arange(-reach, reach + 1) + round(near / interval)
    removing, adding = (
        pld_pmf.create_pmf_pessimistic_connect_dots(interval, places, curve(np.asarray(places * interval, np.float64)))
        for curve in (follows.removing, follows.adding)
    )
    parts = [pld.PrivacyLossDistribution(removing, adding)]
    if mu:
        parts.append(pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval))
    together = reduce(lambda one, other: one.compose(other), parts)
    left = (delta - LEAST_DELTA - passing) / (1 - passing)
    return float(together.get_epsilon_for_delta(left)) if left > 0 else math.inf


def estimated_delta(losses: Losses, epsilon: float) -> float:
    """A delta that is hardly below the composed one, without dp-accounting: to choose by and to search from, never to rely on.

    Of Laplace noise only the sign is taken, which is nearly all there is to know, and what is thrown away can only be missing. Where
    coordinates differ and are many, they are taken for as many of a middling epsilon.
    """
    groups = losses.coordinates
    if not few_atoms(losses):
        times = sum(one.times for one in groups)
        squares = math.fsum(one.times * one.epsilon**2 for one in groups)
        groups = (Coordinates(math.sqrt(squares / times), times, Shape.LAPLACE),)
    loss, chances = np.zeros(1), np.ones(1)
    for one in groups:
        more, of_them = _signs(one)
        loss, chances = np.add.outer(loss, more).ravel(), np.multiply.outer(chances, of_them).ravel()
    return float(chances @ delta_of(losses.mu, epsilon - loss))


def few_atoms(losses: Losses) -> bool:
    """Return whether signs can be composed without a grid: by a sum over all their losses."""
    return math.prod(one.times + 1 for one in losses.coordinates) <= _MOST_ATOMS


def summed_delta(losses: Losses, epsilon: float) -> float:
    """The delta at which few coordinates of any shape and Gaussian noise are together (epsilon, delta)-private: never too small.

    Of any shape the signs are all there is, so the estimate is exact but for rounding, and that is paid for.
    """
    return estimated_delta(losses, epsilon) * SAFETY + _DIFFERENCES


def _signs(one: Coordinates) -> tuple[Floats, Floats]:
    """The losses of coordinates of which only one of two outcomes is seen, each with its chance."""
    if one.shape is Shape.ANY:
        against, log_true = one.epsilon, -math.log1p(math.exp(-one.epsilon))
        # Not from the chance of the truth, which is 1 to all digits where epsilon is large.
        log_false = log_true - one.epsilon
    else:
        against, log_true, log_false = math.log1p(-math.expm1(-one.epsilon)), -math.log(2), -math.log(2)
    true = _likely(one.times, math.exp(log_true))
    log_chances = true * log_true + (one.times - true) * log_false
    return true * one.epsilon - (one.times - true) * against, np.exp(_log_choices(one.times, true) + log_chances)


def estimated_noise(make: Callable[[float], Losses], *, epsilon: float, delta: float) -> float:
    """A size of noise that is hardly below the smallest one whose losses stay within epsilon and delta."""
    if not delta <= epsilon <= _LARGEST_EPSILON:
        # A grid for a smaller epsilon would have millions of steps; one for a larger epsilon has steps whose powers are beyond floats.
        raise RangeError(
            f"epsilon is {epsilon:g}; noise of two kinds, to which delta leaves {delta:.3g}, "
            f"needs an epsilon from {delta:.3g} to {_LARGEST_EPSILON:g}; change it, or ask for one kind of noise."
        )
    return smallest(lambda size: estimated_delta(make(size), epsilon) <= delta, start=1.0, step=1e-4)


def noise_within(make: Callable[[float], Losses], *, epsilon: float, delta: float) -> float:
    """Find the smallest size of noise whose losses, composed by dp-accounting, stay within epsilon and delta.

    First on a coarse grid, which is quick and only ever finds too much noise, then nearby on the fine one.
    """
    if delta <= 2 * _rounding(make(1.0)):
        raise RangeError(
            f"delta leaves {delta:.3g} to noise of two kinds, less than can be composed exactly; raise delta, or ask for one kind of noise."
        )
    fine = _interval(epsilon)
    start = math.log(estimated_noise(make, epsilon=epsilon, delta=delta))
    coarse = crossing(lambda size: math.log(_delta(make(math.exp(size)), epsilon, _COARSE * fine) / delta), start, 3e-3)
    return math.exp(crossing(lambda size: math.log(_delta(make(math.exp(size)), epsilon, fine) / delta), coarse, 2e-4))


def _interval(epsilon: float) -> float:
    return epsilon / _STEPS


def _delta(losses: Losses, epsilon: float, interval: float) -> float:
    composed = float(_distribution(losses, interval).get_delta_for_epsilon(epsilon))
    return max(composed, 0.0) + _rounding(losses)


def _rounding(losses: Losses) -> float:
    return LEAST_DELTA + _FOR_EACH * sum(one.times for one in losses.coordinates)


def _distribution(losses: Losses, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415 - takes most of a second

    parts = [_coordinates(pld, one, interval) for one in losses.coordinates[-1:]]
    if len(losses.coordinates) > 1:
        parts.insert(0, _composed(losses.coordinates[:-1], interval))
    if losses.mu:
        parts.append(pld.from_gaussian_mechanism(1 / losses.mu, value_discretization_interval=interval))
    return reduce(lambda one, other: one.compose(other), parts)


@lru_cache(maxsize=4)
def _composed(coordinates: tuple[Coordinates, ...], interval: float) -> Any:
    """Compose all coordinates but the last, which a search for what still fits changes again and again."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415 - the same

    return reduce(lambda one, other: one.compose(other), (_coordinates(pld, one, interval) for one in coordinates))


def _coordinates(pld: Any, one: Coordinates, interval: float) -> Any:
    if one.shape is Shape.LAPLACE:
        alone = pld.from_laplace_mechanism(1 / one.epsilon, value_discretization_interval=interval)
        return alone.self_compose(one.times) if one.times > 1 else alone
    # Whatever reveals epsilon at most is no worse than the truth told with odds of e^epsilon to 1 (Kairouz, Oh and Viswanath 2015). How
    # many of several choices tell the truth is binomial: rounding the sum of their losses once loses far less than rounding each.
    loss, chances = _signs(one)
    rounded = np.ceil(loss / interval).astype(np.int64)
    places, which = np.unique(rounded, return_inverse=True)
    masses = np.bincount(which, weights=chances)
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        dict(zip(places.tolist(), masses.tolist(), strict=True)), 0.0, interval
    )


def _likely(times: int, chance: float) -> Floats:
    """The numbers of successes out of `times` that are worth counting: all others together have a chance below 1e-30."""
    mean, deviation = times * chance, math.sqrt(times * chance * (1 - chance))
    reach = _DEVIATIONS * deviation + _REACH
    return np.arange(max(0, math.floor(mean - reach)), min(times, math.ceil(mean + reach)) + 1, dtype=np.float64)


def _log_choices(times: int, of: Floats) -> Floats:
    choices: Floats = gammaln(times + 1) - gammaln(of + 1) - gammaln(times - of + 1)
    return choices
