"""How sure one can be of a rate seen in trials, and what that says about epsilon.

Every test here is wrong with a probability of at most `ALPHA` on a build that keeps its promise.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

ALPHA = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """How often an event was seen in how many trials."""

    times: int
    trials: int

    def at_least(self) -> float:
        """A rate that the true one is below with a probability of at most half of ALPHA (Clopper and Pearson 1934)."""
        return float(beta.ppf(ALPHA / 2, self.times, self.trials - self.times + 1)) if self.times else 0.0

    def at_most(self) -> float:
        """A rate that the true one is above with a probability of at most half of ALPHA."""
        return (
            float(beta.ppf(1 - ALPHA / 2, self.times + 1, self.trials - self.times))
            if self.times < self.trials
            else 1.0
        )


def epsilon_shown(likelier: Seen, rarer: Seen, delta: float) -> float:
    """The epsilon that must at least be there, given how often one event was seen with a user and without."""
    numerator = likelier.at_least() - delta
    return math.log(numerator / rarer.at_most()) if numerator > 0 else 0.0


def largest_epsilon_shown(one: Floats, other: Floats, delta: float) -> float:
    """Choose an event on the first half of two samples, test it on the second, in both directions.

    Events are a statistic at or above a limit, or at or below one. Each direction is one test.
    """
    halves = [(sample[: len(sample) // 2], sample[len(sample) // 2 :]) for sample in (one, other)]
    (first, first_test), (second, second_test) = halves
    tests = [(first, second, first_test, second_test), (second, first, second_test, first_test)]
    epsilons = [0.0]
    for likelier, rarer, test_likelier, test_rarer in tests:
        sign, limit = _best_event(likelier, rarer, delta)
        epsilons.append(epsilon_shown(_seen(sign * test_likelier, limit), _seen(sign * test_rarer, limit), delta))
    return max(epsilons)


def _best_event(likelier: Floats, rarer: Floats, delta: float) -> tuple[int, float]:
    return max((_best_limit(sign, likelier, rarer, delta) for sign in (1, -1)), key=lambda event: event[0])[1:]


def _best_limit(sign: int, likelier: Floats, rarer: Floats, delta: float) -> tuple[float, int, float]:
    """Find where an event of one kind shows most, all limits at once; the rates are those of `Seen`."""
    limits = _limits(sign * np.concatenate([likelier, rarer]))
    above, below = (_times(sign * sample, limits) for sample in (likelier, rarer))
    least = np.where(above > 0, beta.ppf(ALPHA / 2, above, len(likelier) - above + 1), 0.0) - delta
    most = np.where(below < len(rarer), beta.ppf(1 - ALPHA / 2, below + 1, len(rarer) - below), 1.0)
    shown = np.log(np.maximum(least, np.finfo(float).tiny) / most)
    best = int(np.argmax(shown))
    return float(shown[best]), sign, float(limits[best])


def _times(values: Floats, limits: Floats) -> NDArray[np.int64]:
    """Count the values at or above each limit."""
    return len(values) - np.searchsorted(np.sort(values), limits, side="left")


def _limits(values: Floats) -> Floats:
    limits: Floats = np.unique(np.quantile(values, np.linspace(0.002, 0.998, 120)))
    return limits


def _seen(values: Floats, limit: float) -> Seen:
    return Seen(int(np.count_nonzero(values >= limit)), len(values))


def is_rarer_than(seen: Seen, most: float) -> bool:
    """Return whether a rate of at most `most` could have shown an event as often as it was seen."""
    return float(binom.sf(seen.times - 1, seen.trials, min(most, 1.0))) >= ALPHA


def has_rate(seen: Seen, rate: float, *, tests: int) -> bool:
    """Return whether an event of this rate could have been seen as often as it was; `tests` of it share one ALPHA."""
    likely = ALPHA / (2 * tests)
    often, seldom = binom.sf(seen.times - 1, seen.trials, rate), binom.cdf(seen.times, seen.trials, rate)
    return bool(min(often, seldom) >= likely)


def along_the_difference(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Turn samples of several numbers each into samples of one, in which the first halves of the two differ most.

    Second halves have no say in it, so that what is found on the first can be tested on them.
    """
    first, second = (sample[: len(sample) // 2] for sample in (one, other))
    spread = first.var(axis=0) + second.var(axis=0)
    difference = first.mean(axis=0) - second.mean(axis=0)
    # What does not vary at all tells all by itself.
    weights = difference / np.where(spread > 0, spread, np.finfo(float).tiny ** 0.5)
    return one @ weights, other @ weights
