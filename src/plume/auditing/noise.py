"""Layer B: the noise itself, drawn around a known centre: keys that are known and empty hold nothing else."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from plume.auditing.claims import ColumnClaim, claims
from plume.auditing.finding import Answered, Finding
from plume.auditing.independence import apart, of_different_columns, of_different_keys
from plume.auditing.made_up_tables import Row, crowd, with_public
from plume.auditing.statistics import Floats, Seen, has_rate
from plume.auditing.trial import Trial
from plume.explanation import Explanation

LAYER = "B"
Tail = Callable[[int, int], float]
"""The probability that a draw with a sign comes to at least a number of steps."""
_PLACES = (0, 0.25, 0.5, 1, 1.5, 2, 3, 4)
"""How far out noise is counted, on both sides, in standard deviations."""
_SMALL = 0.25
"""In steps: noise as small as this may well be nothing throughout."""
_EMPTY: list[Row] = []


def noise(trial: Trial, draws: int) -> list[Finding]:
    """Check the noise of each column that is one part: its law, its steps, and that no two draws depend on each other."""
    known = replace(trial, query=with_public(trial.query, [f"k{number:07}" for number in range(draws)]))
    explanation = known.explain()
    first, second = known.release(_EMPTY), known.release(_EMPTY)
    small = all(part.standard_deviation < _SMALL * float(part.part.unit) for part in explanation.calibrated.parts)
    findings = [Finding("D", "two releases never draw the same noise", small or first.values != second.values, 2)]
    for claim in claims(explanation):
        findings += _of_column(claim, _drawn(claim, first), _drawn(claim, second))
    return [*findings, *_of_columns_together(explanation, first)]


def _drawn(claim: ColumnClaim, answered: Answered, exact: float = 0.0) -> Floats:
    """The noise on a column, in released steps, around the exact value that all keys have."""
    drawn: Floats = np.array([values[claim.position] - exact for values in answered.values.values()])
    return drawn / float(claim.step)


def _of_column(claim: ColumnClaim, drawn: Floats, again: Floats) -> list[Finding]:
    trials = len(drawn)
    on_grid = bool(np.all(np.rint(drawn) == drawn))
    return [
        Finding(
            LAYER,
            f"{claim.column}: noise follows the stated law",
            follows(drawn, claim.deviation, claim.tail),
            trials,
        ),
        Finding(LAYER, f"{claim.column}: values lie on a grid", on_grid, trials),
        Finding(
            "D",
            f"{claim.column}: draws do not depend on each other",
            apart([*of_different_keys(drawn), (drawn, again)]),
            trials,
        ),
    ]


def _of_columns_together(explanation: Explanation, answered: Answered) -> Iterator[Finding]:
    """No two columns share their draws, but where they are the same part, noised once for both."""
    drawn = [
        (_drawn(one, answered), _drawn(other, answered))
        for one, other in combinations(claims(explanation), 2)
        if one.part != other.part or _in_one_measure(explanation, one, other)
    ]
    if drawn:
        pairs = [pair for columns in drawn for pair in of_different_columns(*columns)]
        yield Finding("D", "the noise of different columns is independent", apart(pairs), len(answered.keys))


def _in_one_measure(explanation: Explanation, one: ColumnClaim, other: ColumnClaim) -> bool:
    return any(
        {one.column, other.column} <= set(measure.mechanism.columns) for measure in explanation.calibrated.measures
    )


def noise_of_selected_keys(trial: Trial, draws: int) -> list[Finding]:
    """Check the noise on keys that were selected by chance: it has its law if it shares no draw with what selected them."""
    explanation = trial.explain()
    even = max(float(facts.get("threshold", facts.get("users_for_even_chance", 0))) for facts in explanation.selection)
    # Where the fewest users are demanded, the largest weights may not count.
    users = max(1, round(even)) + trial.query.min_users - 1
    names = [f"k{number:07}" for number in range(max(1000, draws // users))]
    answered = trial.release(row for name in names for row in crowd(name, users))
    known = replace(trial, query=with_public(trial.query, names[:1]))
    exact = known.exact(crowd(names[0], users)).values[names[0]]
    return [
        Finding(
            LAYER,
            f"{claim.column}: noise on selected keys {what}",
            follows(_drawn(claim, answered, exact[claim.position]), claim.deviation, tail),
            len(answered.keys),
        )
        for claim in claims(explanation)
        for what, tail in [_said_of_selected(claim, explanation, users)]
    ]


def _said_of_selected(claim: ColumnClaim, explanation: Explanation, users: int) -> tuple[str, Tail]:
    """Say what is claimed of the noise on keys with these users that were selected: its law, unless it is what selected them."""
    strategy = explanation.calibrated.releasing
    if strategy is None or not set(claim.part.columns) & set(explanation.calibrated.released_by_selection):
        return "does not depend on the selection", claim.tail
    least = strategy.threshold - users

    def tail(sign: int, steps: int) -> float:
        """The chance of such noise, given that it is enough to be shown."""
        beyond = strategy.noise.tail(max(least, steps))
        if sign < 0:
            beyond = max(0.0, strategy.noise.tail(least) - strategy.noise.tail(1 - steps))
        return beyond / strategy.noise.tail(least)

    return "is what selected them", tail


def follows(drawn: Floats, deviation: float, tail: Tail) -> bool:
    """Count how many draws lie beyond each place, and hold that against the probability; scale, centre and tails all show there.

    `tail` is the probability that a draw with a sign comes to at least a number of steps.
    """
    steps = sorted({max(1, round(deviation * place)) for place in _PLACES})
    places = [(sign, step) for sign in (1, -1) for step in steps]
    return all(
        has_rate(Seen(int(np.count_nonzero(sign * drawn >= step)), len(drawn)), tail(sign, step), tests=len(places))
        for sign, step in places
    )
