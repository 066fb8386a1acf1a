"""Numbers that are chosen within the budget: one user more hardly ever decides them, and users are held to whatever they are."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from plume.auditing.cells import measures
from plume.auditing.finding import Finding
from plume.auditing.invariants import claims_hold
from plume.auditing.made_up_tables import crowd, records, with_public
from plume.auditing.noise import follows
from plume.auditing.statistics import Floats, Seen, epsilon_shown
from plume.auditing.trial import Trial
from plume.auditing.watching import Noised
from plume.choosing.calibrated_choice import Choice
from plume.choosing.histogram import BUCKET, list_buckets
from plume.choosing.keys_per_user import CANDIDATES, FULL, FULLNESS, USERS, NoiseKeysPerUser
from plume.choosing.open_numbers import example_numbers
from plume.choosing.open_query import OpenQuery, choose, plan_open
from plume.choosing.sizes import PAIRS
from plume.mechanisms.count import CountRecords
from plume.mechanisms.mean import Mean
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.open_bound import between, open_bounds
from plume.mechanisms.sum import SumOfTotals
from plume.noise.gaussian import RoundedGaussian
from plume.privacy.gaussian import delta_of, smallest
from plume.query import LIMIT

LAYER = "C"
_KEYS, _RELEASES, _CELL_KEYS, _FEW_USERS = 32, 40, 8, 10
_TIMES_THE_LIMIT = 4
_VALUE, _TIMES = 1e9, 2
_MOST_USERS = 2**20
# So little of what the choice spends is left to delta here.
_DELTA = 1e-9
_SLACK = 1 + 1e-6


def choice(trial: Trial, trials: int) -> Iterator[Finding]:
    """Check each choice by itself, and what is released with all of them."""
    yield claims_hold(trial)
    for what in trial.query.choices:
        yield from _of_one(with_fixed_numbers(trial, but=what), what)
    for finding in measures(trial, trials, keys=_CELL_KEYS):
        yield replace(finding, test=f"{finding.test}, {', '.join(trial.query.choices)} chosen")


def with_fixed_numbers(trial: Trial, *, but: str | None = None) -> Trial:
    """Ask the same with numbers for all that is left open, but for one of them."""
    query = trial.query
    limit = query.max_keys_per_user if but == LIMIT else query.selection_limit
    examples = example_numbers(query)
    fixed = {number: examples[what] for what, (number, _) in open_bounds(query.measures).items() if what != but}
    measures = tuple(
        _closed(one, fixed[number]) if number in fixed else one for number, one in enumerate(query.measures)
    )
    gone = set(query.choices) - {but}
    shares = tuple((name, weight) for name, weight in query.shares if name not in gone)
    return replace(trial, query=replace(query, max_keys_per_user=limit, measures=measures, shares=shares))


def _closed(measure: Mechanism, bound: float) -> Mechanism:
    """Ask for a bound as one that was known before."""
    match measure:
        case CountRecords():
            return replace(measure, max_per_key=int(bound))
        case SumOfTotals():
            low, high = between(measure.low_total, bound)
            return replace(measure, low_total=low, high_total=high)
        case Mean():
            low, high = between(measure.low, bound)
            return replace(measure, low=low, high=high)
        case _:
            return measure


def _of_one(trial: Trial, what: str) -> Iterator[Finding]:
    """Look at one number that is chosen: at its histogram without noise, at the noise on it, and at what is chosen in the end."""
    names = [f"k{number:02}" for number in range(_KEYS)]
    known = replace(trial, query=with_public(trial.query, names))
    planned = plan_open(known.query, known.pipeline)
    chooser = planned.choice
    yield _histogram_moves(trial, what)
    users = _tipping_point(planned)
    usual = _exact_choice(planned, users)
    with_user, without = (
        known.choose(what, chooser.step, _users(number, names), times=_RELEASES) for number in (users + 1, users)
    )
    yield from _noise_on_histogram(chooser, [noised for _, noised in [*with_user, *without]])
    yield _one_user_more(chooser, *([number != usual for number, _ in chosen] for chosen in (with_user, without)))


def _histogram_moves(trial: Trial, what: str) -> Finding:
    """One user more in more keys than count, with rows all of one size, changes a histogram by no more than its noise pays for."""
    names = [f"k{number:05}" for number in range(_TIMES_THE_LIMIT * trial.query.selection_limit)]
    known = replace(trial, query=with_public(trial.query, names))
    chooser = plan_open(known.query, known.pipeline).choice
    others = [*crowd(names[0], _FEW_USERS)]
    one = records("one more", names, _VALUE, times=_TIMES)
    before, after = (known.given(chooser.step, rows) for rows in (others, [*others, *one]))
    same = before.num_rows == after.num_rows == chooser.buckets
    moved = math.hypot(*(_moved(before, after, column) / float(noise.scale) for column, noise in _noises(chooser)))
    holds = same and moved <= _mu(chooser) * _SLACK
    return Finding("A", f"one user changes what {what} is chosen from by no more than noise pays for", holds, 2)


def _moved(before: pa.Table, after: pa.Table, column: str) -> float:
    rows = (_numbers(table.sort_by(BUCKET)[column]) for table in (before, after))
    return float(np.linalg.norm(np.subtract(*rows)))


def _noises(chooser: Choice) -> list[tuple[str, RoundedGaussian]]:
    """The noise on each column of a histogram."""
    if isinstance(chooser, NoiseKeysPerUser):
        return [(USERS, chooser.users), (FULLNESS, chooser.fullness)]
    return [(PAIRS, chooser.pairs)]


def _noise_on_histogram(chooser: Choice, releases: list[Noised]) -> Iterator[Finding]:
    """What was added to histograms must follow the stated law."""
    for column, noise in _noises(chooser):
        drawn = np.concatenate([_numbers(one.released[column]) - _numbers(one.exact[column]) for one in releases])
        passed = follows(drawn, noise.standard_deviation, partial(_tail, noise))
        yield Finding("B", f"{chooser.what}: noise on {column} follows the stated law", passed, len(drawn))


def _tail(noise: RoundedGaussian, sign: int, steps: int) -> float:
    del sign  # the same on both sides
    return noise.tail(steps)


def _numbers(column: pa.ChunkedArray) -> Floats:
    numbers: Floats = column.to_numpy().astype(np.float64)
    return numbers


def _mu(chooser: Choice) -> float:
    return math.hypot(*(cost.mu for cost in chooser.costs))


def _one_user_more(chooser: Choice, with_user: list[bool], without: list[bool]) -> Finding:
    """Where without noise one user more would decide a number, chance must decide: it comes out as often with the user as without."""
    often, seldom = (Seen(sum(others), len(others)) for others in (with_user, without))
    claimed = smallest(lambda epsilon: float(delta_of(_mu(chooser), epsilon)) <= _DELTA, start=1.0)
    shown = max(epsilon_shown(often, seldom, _DELTA), epsilon_shown(_others(seldom), _others(often), _DELTA))
    test = f"one user more does not decide {chooser.what}"
    return Finding(LAYER, test, shown <= claimed, often.trials + seldom.trials, claimed, shown)


def _others(seen: Seen) -> Seen:
    return Seen(seen.trials - seen.times, seen.trials)


def _users(number: int, names: list[str]) -> Iterator[tuple[str | None, str, float | None]]:
    return (row for user in range(number) for row in records(f"u{user}", names, _VALUE, times=_TIMES))


def _tipping_point(planned: OpenQuery) -> int:
    """Find a number of users with all keys such that, without noise, one more changes what is chosen."""
    few, many, first = 0, _MOST_USERS, _exact_choice(planned, 0)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if _exact_choice(planned, middle) == first else (few, middle)
    return few


def _exact_choice(planned: OpenQuery, users: int) -> float:
    chooser = planned.choice
    placed = np.zeros(chooser.buckets, np.int64)
    if isinstance(chooser, NoiseKeysPerUser):
        placed[np.searchsorted(CANDIDATES, _KEYS)] = users
        counted = [placed, FULL * placed]
    else:
        size = {"max_per_key": _TIMES, "high": _VALUE}.get(chooser.bound.name, _TIMES * _VALUE)
        placed[np.searchsorted(chooser.bound.candidates, size)] = users * min(
            _KEYS, planned.calibrated.max_keys_per_user
        )
        counted = [placed]
    histogram = pa.table([*list_buckets(chooser.buckets).columns, *map(pa.array, counted)], list(chooser.writes))
    return choose(planned, histogram, selected=_KEYS)
