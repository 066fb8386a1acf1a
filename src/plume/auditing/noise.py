"""Layer B: the noise itself, drawn around a known centre: keys that are known and empty hold nothing else."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from plume.auditing.claims import Claim, claims
from plume.auditing.finding import Finding
from plume.auditing.made_up import Row, with_public
from plume.auditing.statistics import ALPHA, Floats, Seen, has_rate
from plume.auditing.trial import Trial

LAYER = "B"
_PLACES = (0, 0.25, 0.5, 1, 1.5, 2, 3, 4)
"""How far out noise is counted, on both sides, in standard deviations."""
_SMALL = 0.25
"""In steps: noise as small as this may well be nothing throughout."""
_EMPTY: list[Row] = []


def noise(trial: Trial, draws: int) -> list[Finding]:
    """Check the noise of each column that is one part: its law, its steps, and that no two draws depend on each other."""
    known = replace(trial, query=with_public(trial.query, [f"k{number:07}" for number in range(draws)]))
    said = known.explain()
    first, second = known.release(_EMPTY), known.release(_EMPTY)
    small = all(part.standard_deviation < _SMALL * float(part.part.unit) for part in said.asked.parts)
    found = [Finding("D", "two releases never draw the same noise", small or first.values != second.values, 2)]
    for claim in claims(said):
        drawn, again = (
            np.array([values[claim.position] for values in one.values.values()]) / float(claim.step)
            for one in (first, second)
        )
        found += _of_column(claim, drawn, again)
    return found


def _of_column(claim: Claim, drawn: Floats, again: Floats) -> list[Finding]:
    trials = len(drawn)
    on_grid = bool(np.all(np.rint(drawn) == drawn))
    return [
        Finding(
            LAYER,
            f"{claim.column}: noise has the law it is said to have",
            follows(drawn, claim.deviation, claim.tail),
            trials,
        ),
        Finding(LAYER, f"{claim.column}: values lie on a grid", on_grid, trials),
        Finding("D", f"{claim.column}: draws do not depend on each other", _independent(drawn, again), trials),
    ]


def follows(drawn: Floats, deviation: float, tail: Callable[[int, int], float]) -> bool:
    """Count how many draws lie beyond each place, and hold that against the probability; scale, centre and tails all show there.

    `tail` is the probability that a draw with a sign comes to at least so many steps.
    """
    steps = sorted({max(1, round(deviation * place)) for place in _PLACES})
    places = [(sign, step) for sign in (1, -1) for step in steps]
    return all(
        has_rate(Seen(int(np.count_nonzero(sign * drawn >= step)), len(drawn)), tail(sign, step), tests=len(places))
        for sign, step in places
    )


def _independent(drawn: Floats, again: Floats) -> bool:
    """Tell whether neighbours in one release, or the same key in two, move together; where nothing moves, the law has its say."""
    far = math.sqrt(2 * math.log(4 / ALPHA) / len(drawn))
    pairs = [(drawn[:-1], drawn[1:]), (drawn, again)]
    moving = [(one, other) for one, other in pairs if np.ptp(one) > 0 and np.ptp(other) > 0]
    # Laplace noise is a little further out than Gaussian noise of the same variance.
    return all(abs(float(np.corrcoef(one, other)[0, 1])) <= 1.2 * far for one, other in moving)
