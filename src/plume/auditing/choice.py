"""A limit that is chosen within the budget: one user more hardly ever decides it, and users are held to whichever it is."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from plume.auditing.cells import measures
from plume.auditing.finding import Finding
from plume.auditing.made_up import records, with_public
from plume.auditing.statistics import Seen, epsilon_shown
from plume.auditing.trial import Trial
from plume.pipelines.calibrated import CalibratedQuery, calibrate
from plume.pipelines.chosen import chosen_limit
from plume.pipelines.keys_per_user import FULL, OFFERS, buckets
from plume.privacy.calibration import LIMIT
from plume.privacy.gaussian import delta_of, smallest

LAYER = "C"
_KEYS, _RELEASES, _CELL_KEYS = 32, 40, 8
_MOST_USERS = 2**20
# So little of what the choice spends is left to delta here.
_DELTA = 1e-9


def choice(trial: Trial, trials: int) -> Iterator[Finding]:
    """Check the choice itself, and what is released with it."""
    yield _one_user_more(trial)
    for finding in measures(trial, trials, keys=_CELL_KEYS):
        yield replace(finding, test=f"{finding.test}, {LIMIT} chosen")


def with_fixed_limit(trial: Trial) -> Trial:
    """Ask the same with a number for the limit."""
    shares = tuple((name, weight) for name, weight in trial.query.shares if name != LIMIT)
    return replace(trial, query=replace(trial.query, max_keys_per_user=trial.query.selection_limit, shares=shares))


def _one_user_more(trial: Trial) -> Finding:
    """Where without noise one user more would decide the limit, chance must decide: it comes out as often with the user as without."""
    names = [f"k{number:02}" for number in range(_KEYS)]
    known = replace(trial, query=with_public(trial.query, names))
    asked = calibrate(known.query)
    users = _tipping_point(asked)
    usual = _exact_choice(asked, users)
    with_user, without = (
        Seen(sum(known.choose(_users(number, names)) != usual for _ in range(_RELEASES)), _RELEASES)
        for number in (users + 1, users)
    )
    mu = sum(cost.mu for cost in asked.choice.costs) if asked.choice else 0.0
    claimed = smallest(lambda epsilon: float(delta_of(mu, epsilon)) <= _DELTA, start=1.0)
    shown = max(
        epsilon_shown(with_user, without, _DELTA),
        epsilon_shown(_others(without), _others(with_user), _DELTA),
    )
    test = f"one user more does not decide {LIMIT}"
    return Finding(LAYER, test, shown <= claimed, 2 * _RELEASES, claimed, shown)


def _others(seen: Seen) -> Seen:
    return Seen(seen.trials - seen.times, seen.trials)


def _users(number: int, names: list[str]) -> Iterator[tuple[str | None, str, float | None]]:
    return (row for user in range(number) for row in records(f"u{user}", names, 1e9, times=2))


def _tipping_point(asked: CalibratedQuery) -> int:
    """Find a number of users with all keys such that, without noise, one more changes the limit."""
    few, many = 0, _MOST_USERS
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if _exact_choice(asked, middle) == _exact_choice(asked, 0) else (few, middle)
    return few


def _exact_choice(asked: CalibratedQuery, users: int) -> int:
    placed = np.zeros(len(OFFERS), np.int64)
    placed[np.searchsorted(OFFERS, _KEYS)] = users
    rows = pa.table([*buckets().columns, pa.array(placed), pa.array(FULL * placed)], ["bucket", "users", "fullness"])
    return chosen_limit(asked, rows, selected=_KEYS)
