"""Layers C and D: what is released with one user more is no likelier than epsilon and delta allow; thousands of pairs in one table."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from plume.auditing.finding import Answered, Finding
from plume.auditing.made_up import Row, crowd, records, with_public
from plume.auditing.statistics import Floats, Seen, is_rarer_than, largest_epsilon_shown
from plume.auditing.trial import Trial
from plume.privacy.budget import Budget
from plume.privacy.gaussian import delta_of

LAYER = "C"
_EXTREMES = {"high": 1e9, "low": -1e9}
_MANY_KEYS = 300
_MANY_RECORDS = 40
_FEW_KEYS = 4
_USERS = 200
_NO_NOISE = 1e-3
_CLEARLY = 50
"""In standard deviations: far above what noise does, far below what a key that counts or does not count does."""


def measures(trial: Trial, cells: int, *, keys: int | None = None) -> list[Finding]:
    """Known keys: half of the cells hold a user with many records in as many keys as count, or as said, half hold nobody."""
    limit, budget = keys or trial.query.selection_limit, trial.query.budget
    cells = max(1000, cells // limit)
    names = [[f"c{cell}k{key}" for key in range(limit)] for cell in range(2 * cells)]
    known = replace(trial, query=with_public(trial.query, [key for of_cell in names for key in of_cell]))
    deviations = np.array([noise.standard_deviation for noise in known.explain().noise])
    found = []
    for family, value in _EXTREMES.items():
        rows = (row for cell in range(cells) for row in records(f"u{cell}", names[cell], value, times=_MANY_RECORDS))
        answered = known.release(rows)
        totals = np.array([_total(answered, of_cell, deviations) for of_cell in names])
        shown = largest_epsilon_shown(totals[:cells], totals[cells:], budget.delta)
        test = f"{family} values of one user in {limit} known keys"
        found.append(Finding(LAYER, test, shown <= budget.epsilon, 2 * cells, budget.epsilon, shown))
    return found


def _total(answered: Answered, keys: list[str], deviations: Floats) -> float:
    values = np.array([answered.values.get(key, (math.nan,) * len(deviations)) for key in keys])
    return float(np.nansum(values / deviations))


def novel_keys(trial: Trial, cells: int) -> list[Finding]:
    """Chosen keys: users with keys that nobody else has must hardly ever have one shown."""
    limit, most = trial.query.selection_limit, trial.query.budget.delta
    found = []
    # All counts of keys matter: what a user gives to each key may depend on how many there are.
    for keys in sorted({1, min(2, limit), limit, _MANY_KEYS}):
        users = max(300, cells // max(keys, 4))
        rows = (
            row for user in range(users) for row in records(f"u{user}", (f"u{user}k{key}" for key in range(keys)), 1.0)
        )
        shown = {key.partition("k")[0] for key in trial.release(rows).keys}
        seen = Seen(len(shown), users)
        found.append(Finding(LAYER, f"keys of one user alone, {keys} of them", is_rarer_than(seen, most), users))
    return found


def shared_keys(trial: Trial, cells: int) -> list[Finding]:
    """Chosen keys: a user more in as many keys as count, each with so many users that noise decides."""
    limit = min(trial.query.selection_limit, 8)
    trial = replace(trial, query=replace(trial.query, max_keys_per_user=limit))
    epsilon, delta = _of_selection(trial)
    rounds = trial.explain().selection
    middle = max(float(facts.get("threshold", facts.get("users_for_even_chance", 0))) for facts in rounds)
    found = []
    # Just below the threshold, where one user more decides if noise does not, at it, and where passing is rare.
    for users in sorted({max(1, math.ceil(middle) - 1), max(1, round(middle)), max(1, round(middle / 2))}):
        number = max(600, cells // (limit * users))
        answered = trial.release(_shared(number, limit, users))
        passed = np.array(
            [sum(f"c{cell}k{key}" in answered.values for key in range(limit)) for cell in range(2 * number)]
        )
        shown = largest_epsilon_shown(passed[:number].astype(float), passed[number:].astype(float), delta)
        test = f"one user more in {limit} keys of {users} users"
        found.append(Finding(LAYER, test, shown <= epsilon, 2 * number, epsilon, shown))
    return found


def _shared(cells: int, limit: int, users: int) -> Iterable[Row]:
    for cell in range(2 * cells):
        names = [f"c{cell}k{key}" for key in range(limit)]
        for name in names:
            yield from crowd(name, users)
        if cell < cells:
            yield from records(f"u{cell}", names, 1.0)


def _of_selection(trial: Trial) -> tuple[float, float]:
    """The epsilon and delta that choosing keys may spend by itself."""
    parts = [part for part in trial.explain().facts()["spent"] if part["part"].startswith("selection")]
    epsilon = math.fsum(part.get("epsilon", 0) for part in parts)
    delta = math.fsum(part["delta"] for part in parts)
    mu = math.sqrt(math.fsum(part.get("mu", 0) ** 2 for part in parts))
    if not mu:
        return epsilon, delta
    # At the epsilon that is half of the budget; any would do.
    half = trial.query.budget.epsilon / 2
    return half, float(delta_of(mu, half - epsilon)) + delta


def secret_order(trial: Trial) -> list[Finding]:
    """Which keys of a user count is decided by a secret that is new in each release, and rows come sorted by key alone."""
    limit = min(trial.query.selection_limit, _FEW_KEYS)
    # More keys than count even where a user above the limit is let into four times as many.
    keys = [[f"u{user:03}k{key:02}" for key in range(4 * limit + 4)] for user in range(_USERS)]
    # With so little noise it can be seen which keys count.
    clear = replace(
        trial.query, max_keys_per_user=limit, budget=Budget(10_000 * limit * len(trial.query.measures), 0.05)
    )
    known = replace(trial, query=with_public(clear, [key for of_user in keys for key in of_user]))
    rows = [row for user, of_user in enumerate(keys) for row in records(f"u{user}", of_user, 1e9, times=_MANY_RECORDS)]
    first, second = known.release(rows), known.release(rows)
    counted = [[np.array(one.values[key]) for key in one.keys] for one in (first, second)]
    deviations = np.array([max(noise.standard_deviation, _NO_NOISE) for noise in known.explain().noise])
    moved = max(float(np.max(np.abs(one - other) / deviations)) for one, other in zip(*counted, strict=True))
    return [
        Finding("D", "which keys of a user count is decided anew each time", moved > _CLEARLY, 2),
        Finding("D", "rows come sorted by key", first.keys == tuple(sorted(first.keys)), 1),
    ]
