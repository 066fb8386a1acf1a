"""What quantiles cost in Python: seconds of a processor for the walks to them, and for those to the ends of their intervals.

`.venv/bin/python benchmarks/quantile_walks.py`: keys of 200 users each, noise of a usual budget.
"""

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import plume
from plume.mechanisms.quantile_tree import LEAVES
from plume.mechanisms.quantiles import Quantiles
from plume.mechanisms.tally import ExactTally, NoisyTally
from plume.noise.entropy import SystemEntropy
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace

USERS, UNIT = 200, 2**20
NOISES = (RoundedGaussian(Fraction(30 * UNIT)), DiscreteLaplace(Fraction(30 * UNIT)))
MEASURES = (plume.median("v", 0, 1), plume.quantiles("v", [0.5, 0.9, 0.99], 0, 1), plume.maximum("v", 0, 1))


def tally(keys: int) -> ExactTally:
    """Skewed values, alike in all keys."""
    values = -np.log((np.arange(USERS) + 0.5) / USERS) / 8
    leaves = np.minimum((values * LEAVES).astype(np.int64), LEAVES - 1)
    numbers, counts = np.unique(np.add.outer(np.arange(keys) * LEAVES, leaves), return_counts=True)
    return ExactTally(keys, LEAVES, numbers, np.concatenate([[0], np.cumsum(counts * UNIT)]))


def seconds(call: Callable[[], Any]) -> float:
    """Seconds of a processor."""
    start = time.process_time()
    call()
    return time.process_time() - start


def walks(measure: Quantiles, exact: ExactTally, noise: Any) -> tuple[float, float]:
    """Walk to the quantiles, and then to the ends of their intervals."""
    state = {"leaves": NoisyTally(exact, noise, SystemEntropy())}
    return seconds(lambda: measure.noise(state)), seconds(lambda: measure.margins(state, {}))


def main() -> None:
    """Print the least of a few runs each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=4_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    exact = tally(given.keys)
    for noise in NOISES:
        for measure in MEASURES:
            values, ends = np.min([walks(measure, exact, noise) for _ in range(given.repeats)], axis=0)
            print(f"{noise.kind}, {measure.name}: values {values:.2f} s, ends of intervals {ends:.2f} s")


if __name__ == "__main__":
    main()
