"""Audits of queries whose keys share a part of their noise: as many keys as the query has, and many draws for the same rows.

Apart from the other tests, which put thousands of neighbours into one table and take keys of one release for independent trials. Here
keys are not: each draw for all of them together is one trial.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from plume.auditing.cells import secret_order
from plume.auditing.claims import ColumnClaim, claims
from plume.auditing.finding import Finding
from plume.auditing.independence import apart, of_different_columns, of_different_keys
from plume.auditing.invariants import claims_hold
from plume.auditing.made_up_tables import Row, crowd, records
from plume.auditing.noise import follows
from plume.auditing.statistics import ALPHA, Floats, largest_epsilon_shown
from plume.auditing.trial import Trial
from plume.calibration.calibrated_part import CalibratedPart
from plume.noise.correlated import CorrelatedGaussian
from plume.privacy.budget import Budget
from plume.privacy.cost import GaussianCost

_LEAST_DRAWS = 4_000
_LOUD = Budget(4.0, 0.05)
_MANY_RECORDS = 2_000
# How many times as many keys as the limit users far above it have.
_TIMES = 4
_SLACK = 1 + 1e-6
# Of noise that is hardly more than a step the covariance is not that of normal numbers.
_WIDE = 1.0
_EXTREMES = (1e9, -1e9, math.inf, -math.inf, math.nan, None, 2.0**63, -0.0)
_NOBODY: list[Row] = []


def shared_noise(trial: Trial, trials: int) -> Iterator[Finding]:
    """Make all tests, the cheapest first."""
    names = _names(trial)
    listed = [(name, *["-"] * (len(trial.query.keys) - 1)) for name in names]
    known = replace(trial, query=replace(trial.query, public_keys=listed))
    draws = max(_LEAST_DRAWS, trials // len(names))
    yield claims_hold(known)
    yield from _rows(known, names)
    yield _changes(known, names)
    yield from _noise(known, draws)
    yield from secret_order(trial)
    for name, budget in {"as asked": trial.query.budget, "loud": _LOUD}.items():
        regime = replace(known, query=replace(known.query, budget=budget))
        yield from (replace(found, test=f"{found.test}, {name}") for found in _users(regime, names, draws))


def _names(trial: Trial) -> list[str]:
    return [f"k{number:07}" for number in range(trial.query.known_keys or 0)]


def _rows(known: Trial, names: list[str]) -> Iterator[Finding]:
    """Every known key has one row with numbers, in order, and neither the order of rows nor rows of nobody make a difference."""
    base = [row for key in names[1:] for row in crowd(key, 3)]
    once = known.exact(base)
    numbers = all(math.isfinite(value) for values in once.values.values() for value in values)
    yield Finding("A", "every known key has one row with numbers, in order", once.keys == tuple(names) and numbers, 1)
    yield Finding("A", "the order of rows makes no difference", once == known.exact(base[::-1]), 2)
    nobody: list[Row] = [(None, key, 1.0) for key in names for _ in range(_MANY_RECORDS // len(names) + 1)]
    yield Finding("A", "rows without a user change nothing", once == known.exact([*base, *nobody]), 2)


def _changes(known: Trial, names: list[str]) -> Finding:
    """One user more changes no more than noise pays for, as the covariance measures it; also with values of both signs."""
    before, newcomers = _exact(known, _NOBODY), _newcomers(known.query.selection_limit, names)
    worst = 0.0
    for rows in newcomers:
        after = _exact(known, rows)
        worst = max([worst, *(_excess(part, after[part] - before[part]) for part in before)])
    return Finding("A", "one user changes no more than noise that keys share pays for", worst <= _SLACK, len(newcomers))


def _newcomers(limit: int, names: list[str]) -> list[list[Row]]:
    """One user more: each extreme in every key; as many keys as the limit, fewer and more, and two extremes in turns."""
    numbers = sorted({min(keys, len(names)) for keys in (1, 2, limit, limit + 1, _TIMES * limit)})
    found = [_records(names, (extreme,)) for extreme in _EXTREMES]
    found += [_records(names[:keys], pair) for keys in numbers for pair in ((1e9,), (-1e9,), (1e9, -1e9))]
    return [*found, _records(names, (1e9, 0.25)), _records(names, (0.25,))]


def _records(names: list[str], values: tuple[float | None, ...], *, user: str = "u") -> list[Row]:
    times = _MANY_RECORDS // len(names) + 1
    return [
        row
        for number, name in enumerate(names)
        for row in records(user, [name], values[number % len(values)], times=times)
    ]


def _exact(known: Trial, rows: list[Row]) -> dict[CalibratedPart, Floats]:
    """What noise of each part is added to, key by key, in its finest steps."""
    explanation = known.explain()
    given = known.given(explanation.plan[-1].name, rows).sort_by(explanation.calibrated.keys[0])
    return {part: np.array(given[part.columns[0]].to_pylist(), np.float64) for part in explanation.calibrated.parts}


def _excess(part: CalibratedPart, change: Floats) -> float:
    """How far a change is, by the covariance of the draws on all of its keys, relative to what is paid for."""
    noise, cost = part.noise, part.cost
    if not isinstance(noise, CorrelatedGaussian) or not isinstance(cost, GaussianCost):
        return math.inf
    own, common = float(noise.own) ** 2, float(noise.common) ** 2
    taken = common / (own + len(change) * common)
    squared = float(np.sum(change**2) - taken * np.sum(change) ** 2) / own
    return math.sqrt(max(squared, 0.0)) / cost.mu


def _noise(known: Trial, draws: int) -> Iterator[Finding]:
    """Check the law of each key's noise, the covariance of all keys, and that draws of runs and of columns are independent."""
    first, second = known.release(_NOBODY), known.release(_NOBODY)
    yield Finding("D", "two releases never draw the same noise", first.values != second.values, 2)
    drawn = known.drawn_again(_NOBODY, times=draws)
    claimed = claims(known.explain())
    by_claim = [(claim, drawn[:, :, claim.position] / float(claim.step)) for claim in claimed]
    for claim, of_keys in by_claim:
        yield from _of_column(claim, of_keys)
    pairs = [
        pair
        for (one, these), (other, those) in combinations(by_claim, 2)
        if one.part != other.part
        for pair in of_different_columns(these.sum(axis=1), those.sum(axis=1))
    ]
    if pairs:
        yield Finding("D", "the noise of different columns is independent", apart(pairs), draws)


def _of_column(claim: ColumnClaim, drawn: Floats) -> Iterator[Finding]:
    """Of each draw one key tells of the law, in turns; the total tells of what keys share."""
    draws, keys = drawn.shape
    in_turns = drawn[np.arange(draws), np.arange(draws) % keys]
    holds = follows(in_turns, claim.deviation, claim.tail)
    yield Finding("B", f"{claim.column}: noise follows the stated law", holds, draws)
    on_grid = bool(np.all(np.rint(drawn) == drawn))
    yield Finding("B", f"{claim.column}: values lie on a grid", on_grid, draws)
    yield Finding("B", f"{claim.column}: keys share as much noise as stated", has_covariance(claim, drawn), draws)
    series = (drawn.sum(axis=1), drawn[:, 0])
    alone = apart([pair for one in series for pair in of_different_keys(one)])
    yield Finding("D", f"{claim.column}: draws of different runs do not depend on each other", alone, draws)


def has_covariance(claim: ColumnClaim, drawn: Floats) -> bool:
    """Return whether products of the noise of any two keys are as large, on average, as they are said to be.

    For normal numbers each mean of products is farther off than `reach` with a chance of at most 2 exp(-x) (Laurent and Massart 2000,
    both tails of a quadratic form), so that all of them together are wrong with a chance of at most ALPHA.
    """
    noise = claim.part.noise
    if not isinstance(noise, CorrelatedGaussian):
        return False
    if claim.deviation < _WIDE:
        return True
    step = float(claim.step / claim.part.unit)
    own, common = (float(scale) / step for scale in (noise.own, noise.common))
    draws, keys = drawn.shape
    rounding = 1 / 12 if step > 1 else 0.0
    expected = common**2 + np.eye(keys) * (own**2 + rounding)
    variances = np.diag(expected)
    chance = math.log(keys * (keys + 1) / ALPHA)
    norm = np.sqrt((np.outer(variances, variances) + expected**2) / 2)
    largest = (np.sqrt(np.outer(variances, variances)) + expected) / 2
    reach = 2 * np.sqrt(chance / draws) * norm + 2 * chance / draws * largest
    return bool(np.all(np.abs(drawn.T @ drawn / draws - expected) <= reach))


def _users(known: Trial, names: list[str], draws: int) -> Iterator[Finding]:
    """A user with high, low or mixed records in as many keys as count is no easier to see than epsilon and delta allow."""
    budget, keys = known.query.budget, names[: min(known.query.selection_limit, len(names))]
    without = _summed(known, _NOBODY, len(keys), draws)
    for family, values in {"high": (1e9,), "low": (-1e9,), "mixed": (1e9, -1e9)}.items():
        with_user = _summed(known, _records(keys, values), len(keys), draws)
        shown = largest_epsilon_shown(*_along_the_difference(with_user, without), budget.delta)
        test = f"{family} values of one user in {len(keys)} of {len(names)} keys that share noise"
        yield Finding("C", test, shown <= budget.epsilon, 2 * draws, budget.epsilon, shown)


def _summed(known: Trial, rows: list[Row], keys: int, draws: int) -> Floats:
    """Add up each column over every second one of the user's keys, over the others of them, and over all other keys."""
    drawn = known.drawn_again(rows, times=draws)
    pieces = (drawn[:, 0:keys:2], drawn[:, 1:keys:2], drawn[:, keys:])
    return np.concatenate([piece.sum(axis=1) for piece in pieces], axis=1)


def _along_the_difference(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Turn samples into numbers along which the first halves of the two differ most for how they vary together."""
    first, second = (sample[: len(sample) // 2] for sample in (one, other))
    spread = np.cov(first, rowvar=False) + np.cov(second, rowvar=False)
    # Pieces without keys do not vary.
    weights = np.linalg.lstsq(spread, first.mean(axis=0) - second.mean(axis=0), rcond=1e-12)[0]
    return one @ weights, other @ weights
