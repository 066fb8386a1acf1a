"""Gaussian differential privacy in closed form: what noise a budget buys, and what a threshold on noised weights adds to it.

Its own file because it is mathematics alone: numbers in, numbers out. docs/guarantees/gaussian-composition.md holds the proofs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from plume import root
from plume.errors import PlumeBug, RangeError

Floats = NDArray[np.float64]

# Bisection in floats stops within an ulp or two; noise is scaled up by more than that.
SAFETY = 1 + 1e-9
# All pairs (keys of a user, novel ones among them) are tried up to here; beyond, ranges of them by their worst corner.
_TRIED_ONE_BY_ONE = 128
_RANGE = 1.05
# Beyond, the difference of two probabilities that is delta loses the digits that SAFETY relies on.
_LARGEST_SIGMA = 1e6
_RELATIVE_STEP = 1e-10


def delta_of(mu: Floats | float, epsilon: Floats | float) -> Floats:
    """The delta at which a mu-Gaussian mechanism is (epsilon, delta)-private (Balle and Wang 2018); mu may be 0, epsilon below 0."""
    mu, epsilon = np.broadcast_arrays(np.asarray(mu, np.float64), np.asarray(epsilon, np.float64))
    safe = np.where(mu > 0, mu, 1.0)
    gaussian = ndtr(safe / 2 - epsilon / safe) - np.exp(epsilon + log_ndtr(-safe / 2 - epsilon / safe))
    nothing = -np.expm1(np.minimum(epsilon, 0))
    return np.maximum(np.where(mu > 0, gaussian, nothing), 0)


def noise_for(epsilon: float, delta: float) -> float:
    """The standard deviation that makes sensitivity 1 (epsilon, delta)-private, slightly too large rather than too small."""
    sigma = SAFETY * smallest(lambda sigma: float(delta_of(1 / sigma, epsilon)) <= delta, start=1.0)
    if sigma > _LARGEST_SIGMA:
        raise RangeError(
            f"epsilon = {epsilon:g} and delta = {delta:g} need more noise than can be priced exactly; raise epsilon."
        )
    return sigma


class Threshold(Protocol):
    """A threshold on noised weights, and what it reveals about any user."""

    @property
    def slack(self) -> float:
        """How far two looks at the same users may be apart, at most, in proportion."""

    def delta(self) -> float:
        """The chance that any key of one user alone passes."""

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> "WorstUser":
        """Find the user with the largest delta beside Gaussian measures of total mu `others`."""


@dataclass(frozen=True)
class Novel:
    """A threshold on noised weights: what a user can do to keys that nobody else has.

    A user with t keys gives `weight(t)` to each; `sigma` and `threshold` are in the same units.
    """

    weight: Callable[[Floats], Floats]
    sigma: float
    threshold: float
    max_keys_per_user: int
    slack: float = 0.0

    def delta(self) -> float:
        """The chance that any key of one user alone passes."""
        keys = np.arange(1, self.max_keys_per_user + 1, dtype=np.float64)
        with np.errstate(divide="ignore"):  # a threshold so low that everything passes
            return float(np.max(-np.expm1(self.log_hidden(keys, keys))))

    def log_hidden(self, keys: Floats, novel: Floats) -> Floats:
        """The logarithm of the chance that none of `novel` keys of a user with `keys` keys passes."""
        hidden: Floats = novel * np.log1p(-ndtr((self.weight(keys) - self.threshold) / self.sigma))
        return hidden

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> "WorstUser":
        """Find the user with the largest delta beside Gaussian measures of total mu `others`."""
        return worst_user(self, others=others, epsilon=epsilon, fewest_novel=fewest_novel)


def joint_delta(novel: Threshold, *, others: float, epsilon: float) -> float:
    """The delta of selection by a threshold together with Gaussian measures of total mu `others`, exactly.

    A user of whose t keys j are novel moves the other t - j by less, so the two costs are never paid in full together. The worst of
    all t and j, in both directions, is what counts: docs/guarantees/weighted-gaussian.md.
    """
    return novel.worst(others=others, epsilon=epsilon).delta


@dataclass(frozen=True)
class WorstUser:
    """Of all users, the one about whom most is revealed: how far they move noised numbers, and how likely a key of theirs is shown."""

    mu: float
    shown_alone: float
    delta: float


def worst_user(novel: Novel, *, others: float, epsilon: float, fewest_novel: int = 0) -> WorstUser:
    """Find the user with the largest delta beside Gaussian measures of total mu `others`, of those with `fewest_novel` keys or more."""
    low, high, fewest, most = pairs(novel.max_keys_per_user, fewest_novel)
    # The worst corner of a range: most novel keys of the largest weight, and most shared weight, which grows with the keys.
    with np.errstate(all="ignore"):  # thresholds so low that everything passes give infinities, which hold no budget
        hidden = novel.log_hidden(low, most)
        shared = novel.weight(high) ** 2 * (high - fewest) / novel.sigma**2
        mu = np.sqrt(shared + others**2)
        passing = -np.expm1(hidden)
        adding = passing + (1 - passing) * delta_of(mu, epsilon - hidden)
        removing = delta_of(mu, epsilon + hidden)
    spent = np.maximum(adding, removing)
    worst = int(np.argmax(spent))  # where one is NaN, the first of these
    delta = float(spent[worst])
    return WorstUser(float(mu[worst]), float(passing[worst]), 1.0 if math.isnan(delta) else delta)


@lru_cache
def pairs(limit: int, fewest_novel: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Cover all pairs fewest_novel <= novel <= keys <= limit by ranges: keys from low to high, novel from fewest to most."""
    lows, highs = np.array(_steps(limit), dtype=np.float64).T
    # A range of keys goes with every range of novel keys up to itself, and with no novel key at all.
    keys, novel = np.tril_indices(len(lows))
    none = np.zeros_like(lows)
    low, high = (np.concatenate([ends, ends[keys]]) for ends in (lows, highs))
    fewest, most = (np.concatenate([none, ends[novel]]) for ends in (lows, highs))
    enough = fewest >= fewest_novel
    return low[enough], high[enough], fewest[enough], most[enough]


def _steps(limit: int) -> list[tuple[int, int]]:
    """Cut 1..limit into ranges: single numbers first, then ever longer ones."""
    steps, low = [], 1
    while low <= limit:
        high = low if low <= _TRIED_ONE_BY_ONE else min(limit, math.floor(low * _RANGE))
        steps.append((low, high))
        low = high + 1
    return steps


def smallest(holds: Callable[[float], bool], *, start: float, step: float = _RELATIVE_STEP) -> float:
    """Find the smallest noise or threshold from which on a property holds, or one that is hardly larger."""
    return root.smallest(holds, start=start, close=root.within(step), grow=_doubled)


def _doubled(size: float) -> float:
    if math.isinf(size):
        raise PlumeBug("no noise or threshold, however large, keeps this part within its budget")
    return 2 * size
