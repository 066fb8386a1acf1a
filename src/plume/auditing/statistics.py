"""How sure one can be of a rate seen in trials, and what that says about epsilon.

Every test here is wrong with a probability of at most `ALPHA` on a build that keeps its promise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom, norm

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
    found = [0.0]
    for likelier, rarer, test_likelier, test_rarer in tests:
        sign, limit = _best_event(likelier, rarer, delta)
        found.append(epsilon_shown(_seen(sign * test_likelier, limit), _seen(sign * test_rarer, limit), delta))
    return max(found)


def _best_event(likelier: Floats, rarer: Floats, delta: float) -> tuple[int, float]:
    limits = [(sign, limit) for sign in (1, -1) for limit in _limits(sign * np.concatenate([likelier, rarer]))]
    return max(
        limits,
        key=lambda event: epsilon_shown(_seen(event[0] * likelier, event[1]), _seen(event[0] * rarer, event[1]), delta),
    )


def _limits(values: Floats) -> Sequence[float]:
    return [float(limit) for limit in np.unique(np.quantile(values, np.linspace(0.002, 0.998, 120)))]


def _seen(values: Floats, limit: float) -> Seen:
    return Seen(int(np.count_nonzero(values >= limit)), len(values))


def is_rarer_than(seen: Seen, most: float) -> bool:
    """Tell whether a rate of at most `most` could have shown an event so often."""
    return float(binom.sf(seen.times - 1, seen.trials, min(most, 1.0))) >= ALPHA


def scale_is(values: Floats, standard_deviation: float, kurtosis: float) -> bool:
    """Tell whether the mean square and the mean of a sample fit noise around zero of this standard deviation and kurtosis."""
    far = float(norm.isf(ALPHA / 4))
    square, trials = values**2, len(values)
    by = standard_deviation**2 * math.sqrt((kurtosis - 1) / trials)
    centred = abs(values.mean()) <= far * standard_deviation / math.sqrt(trials)
    return bool(centred and abs(square.mean() - standard_deviation**2) <= far * by)
