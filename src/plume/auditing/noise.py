"""Layer B: the noise itself, drawn around a known centre: keys that are known and empty hold nothing else."""

import math
from dataclasses import replace

import numpy as np

from plume.auditing.finding import Finding
from plume.auditing.made_up import Row, with_public
from plume.auditing.statistics import ALPHA, Floats, Seen, is_rarer_than, scale_is
from plume.auditing.trial import Trial

LAYER = "B"
_KURTOSES = {"discrete Laplace": 6.2, "rounded Gaussian": 3.1}
"""Of the fourth powers of noise that is not narrower than its grid; a trifle above the continuous laws' 6 and 3."""
_BEYOND = {"discrete Laplace": math.exp(-3 * math.sqrt(2)), "rounded Gaussian": math.erfc(3 / math.sqrt(2))}
"""How much of the law lies beyond three standard deviations."""
_FINEST = 2.0**-44
"""Noise on a grid is coarser than this, of its standard deviation; floating-point noise is finer."""
_EMPTY: list[Row] = []


def noise(trial: Trial, draws: int) -> list[Finding]:
    """Check the noise of each measure: its size, its shape, its grid, and that no two draws depend on each other."""
    known = replace(trial, query=with_public(trial.query, [f"k{number:07}" for number in range(draws)]))
    first, second = known.release(_EMPTY), known.release(_EMPTY)
    found = [Finding("D", "two releases never draw the same noise", first.values != second.values, 2)]
    for position, said in enumerate(known.explain().noise):
        if said.kind not in _KURTOSES:
            continue
        drawn = np.array([values[position] for values in first.values.values()])
        again = np.array([values[position] for values in second.values.values()])
        found += _of_measure(drawn, again, said.measure, said.kind, said.standard_deviation)
    return found


def _of_measure(drawn: Floats, again: Floats, measure: str, kind: str, deviation: float) -> list[Finding]:
    trials = len(drawn)
    wide = np.abs(drawn) > 3 * deviation
    tails = is_rarer_than(Seen(int(wide.sum()), trials), _BEYOND[kind] * 1.15 + 10 / trials)
    unit = _FINEST * 2.0 ** math.floor(math.log2(deviation))
    on_grid = bool(np.all(np.rint(drawn / unit) * unit == drawn) and _is_coarse(drawn, deviation))
    return [
        Finding(
            LAYER,
            f"{measure}: noise has the size it is said to have",
            scale_is(drawn, deviation, _KURTOSES[kind]),
            trials,
        ),
        Finding(LAYER, f"{measure}: noise has no longer tails than it is said to have", tails, trials),
        Finding(LAYER, f"{measure}: values lie on a grid", on_grid, trials),
        Finding("D", f"{measure}: draws do not depend on each other", _independent(drawn, again), trials),
    ]


def _is_coarse(drawn: Floats, deviation: float) -> bool:
    """Tell whether values repeat, as they must on a grid that is not too fine to be told from none."""
    grid = np.diff(np.unique(drawn)).min() if len(np.unique(drawn)) > 1 else math.inf
    return bool(grid > _FINEST * deviation)


def _independent(drawn: Floats, again: Floats) -> bool:
    """Tell whether neighbours in one release, or the same key in two, move together."""
    far = math.sqrt(2 * math.log(4 / ALPHA) / len(drawn))
    pairs = [(drawn[:-1], drawn[1:]), (drawn, again)]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [float(np.corrcoef(one, other)[0, 1]) for one, other in pairs]
    # Laplace noise is a little further out than Gaussian noise of the same variance.
    return all(abs(one) <= 1.2 * far for one in found)
