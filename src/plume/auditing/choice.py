"""Numbers that are chosen within the budget: one user more hardly ever decides them, and users are held to whatever they are."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from plume.auditing.cells import measures
from plume.auditing.finding import Finding
from plume.auditing.invariants import claims_hold
from plume.auditing.made_up import records, with_public
from plume.auditing.statistics import Seen, epsilon_shown
from plume.auditing.trial import Trial
from plume.mechanisms.count import CountRecords
from plume.mechanisms.mean import Mean
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.open_bound import between, open_bounds, until_chosen
from plume.mechanisms.sum import SumOfTotals
from plume.pipelines.calibrated import CalibratedQuery, calibrate
from plume.pipelines.choices import Choice
from plume.pipelines.chosen import choose
from plume.pipelines.keys_per_user import FULL, OFFERS, NoiseKeysPerUser
from plume.pipelines.offers import buckets
from plume.privacy.calibration import LIMIT
from plume.privacy.gaussian import delta_of, smallest

LAYER = "C"
_KEYS, _RELEASES, _CELL_KEYS = 32, 40, 8
_VALUE, _TIMES = 1e9, 2
_MOST_USERS = 2**20
# So little of what the choice spends is left to delta here.
_DELTA = 1e-9


def choice(trial: Trial, trials: int) -> Iterator[Finding]:
    """Check each choice by itself, and what is released with all of them."""
    yield claims_hold(trial)
    for what in trial.query.choices:
        yield _one_user_more(with_fixed_numbers(trial, but=what), what)
    for finding in measures(trial, trials, keys=_CELL_KEYS):
        yield replace(finding, test=f"{finding.test}, {', '.join(trial.query.choices)} chosen")


def with_fixed_numbers(trial: Trial, *, but: str | None = None) -> Trial:
    """Ask the same with numbers for all that is left open, but for one of them."""
    query = trial.query
    limit = query.max_keys_per_user if but == LIMIT else query.selection_limit
    fixed = {number for what, (number, _) in open_bounds(query.measures).items() if what != but}
    measures = tuple(_closed(one) if number in fixed else one for number, one in enumerate(query.measures))
    gone = set(query.choices) - {but}
    shares = tuple((name, weight) for name, weight in query.shares if name not in gone)
    return replace(trial, query=replace(query, max_keys_per_user=limit, measures=measures, shares=shares))


def _closed(measure: Mechanism) -> Mechanism:
    match measure:
        case CountRecords():
            return replace(measure, max_per_key=int(until_chosen(None)))
        case SumOfTotals():
            low, high = between(measure.low_total, None)
            return replace(measure, low_total=low, high_total=high)
        case Mean():
            low, high = between(measure.low, None)
            return replace(measure, low=low, high=high)
        case _:
            return measure


def _one_user_more(trial: Trial, what: str) -> Finding:
    """Where without noise one user more would decide a number, chance must decide: it comes out as often with the user as without."""
    names = [f"k{number:02}" for number in range(_KEYS)]
    known = replace(trial, query=with_public(trial.query, names))
    asked = calibrate(known.query)
    (chooser,) = asked.choices
    users = _tipping_point(asked, chooser)
    usual = _exact_choice(asked, chooser, users)
    with_user, without = (
        Seen(sum(known.choose(what, _users(number, names)) != usual for _ in range(_RELEASES)), _RELEASES)
        for number in (users + 1, users)
    )
    mu = sum(cost.mu for cost in chooser.costs)
    claimed = smallest(lambda epsilon: float(delta_of(mu, epsilon)) <= _DELTA, start=1.0)
    shown = max(
        epsilon_shown(with_user, without, _DELTA),
        epsilon_shown(_others(without), _others(with_user), _DELTA),
    )
    return Finding(LAYER, f"one user more does not decide {what}", shown <= claimed, 2 * _RELEASES, claimed, shown)


def _others(seen: Seen) -> Seen:
    return Seen(seen.trials - seen.times, seen.trials)


def _users(number: int, names: list[str]) -> Iterator[tuple[str | None, str, float | None]]:
    return (row for user in range(number) for row in records(f"u{user}", names, _VALUE, times=_TIMES))


def _tipping_point(asked: CalibratedQuery, chooser: Choice) -> int:
    """Find a number of users with all keys such that, without noise, one more changes what is chosen."""
    few, many, first = 0, _MOST_USERS, _exact_choice(asked, chooser, 0)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if _exact_choice(asked, chooser, middle) == first else (few, middle)
    return few


def _exact_choice(asked: CalibratedQuery, chooser: Choice, users: int) -> float:
    placed = np.zeros(chooser.rows, np.int64)
    if isinstance(chooser, NoiseKeysPerUser):
        placed[np.searchsorted(OFFERS, _KEYS)] = users
        counted = [placed, FULL * placed]
    else:
        size = {"max_per_key": _TIMES, "high": _VALUE}.get(chooser.bound.name, _TIMES * _VALUE)
        placed[np.searchsorted(chooser.bound.offers, size)] = users * min(_KEYS, asked.max_keys_per_user)
        counted = [placed]
    rows = pa.table([*buckets(chooser.rows).columns, *map(pa.array, counted)], list(chooser.writes))
    return choose(asked, chooser, rows, selected=_KEYS)
