"""Layer C: what is released with one user more is no likelier than epsilon and delta allow; thousands of pairs in one table.

Of layer D, the secret order of keys.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from plume.auditing.claims import added_up
from plume.auditing.finding import Answered, Finding
from plume.auditing.made_up_tables import Row, crowd, records, with_public
from plume.auditing.statistics import Floats, Seen, along_the_difference, is_rarer_than, largest_epsilon_shown
from plume.auditing.trial import Trial
from plume.pipelines.noisers import SelectKeys
from plume.plan.analysis import steps
from plume.plan.nodes import Noise
from plume.privacy.budget import Budget
from plume.privacy.gaussian import delta_of

LAYER = "C"
_EXTREMES = {"high": 1e9, "low": -1e9}
_TIMES = (4, 16)
"""How many times as many keys as the limit users far above it have."""
_MANY_RECORDS = 12
_FEW_KEYS = 4
_USERS = 200
_CLEARLY = 0.25
"""Of the range of a column: far above what hardly any noise does, far below what a key that counts or does not count does."""


def measures(trial: Trial, cells: int, *, keys: int | None = None) -> list[Finding]:
    """Known keys: cells hold a user with many high records in as many keys as count, or as said, or one with low ones, or nobody."""
    limit, budget = keys or trial.query.selection_limit, trial.query.budget
    cells = max(1000, cells // limit)
    names = [[f"c{cell}k{key}" for key in range(limit)] for cell in range((len(_EXTREMES) + 1) * cells)]
    known = replace(trial, query=with_public(trial.query, [key for of_cell in names for key in of_cell]))
    values = [value for value in _EXTREMES.values() for _ in range(cells)]
    rows = (
        row for cell, value in enumerate(values) for row in records(f"u{cell}", names[cell], value, times=_MANY_RECORDS)
    )
    *with_user, without = np.split(_totals(known.release(rows), names), len(_EXTREMES) + 1)
    found = []
    for family, totals in zip(_EXTREMES, with_user, strict=True):
        shown = largest_epsilon_shown(*along_the_difference(totals, without), budget.delta)
        test = f"{family} values of one user in {limit} known keys"
        found.append(Finding(LAYER, test, shown <= budget.epsilon, 2 * cells, budget.epsilon, shown))
    return found


def _totals(answered: Answered, names: list[list[str]]) -> Floats:
    """Add up each released column over the keys of each cell."""
    columns = len(next(iter(answered.values.values())))
    missing = (math.nan,) * columns
    values = np.array([answered.values.get(key, missing) for of_cell in names for key in of_cell])
    totals: Floats = np.nansum(values.reshape(len(names), -1, columns), axis=1)
    return totals


def novel_keys(trial: Trial, cells: int) -> list[Finding]:
    """Selected keys: users with keys that nobody else has must hardly ever have one shown."""
    limit, most = trial.query.selection_limit, trial.query.budget.delta
    # All counts of keys matter: what a user gives to each key may depend on how many there are.
    users = {keys: max(300, cells // max(keys, 4)) for keys in sorted(_numbers_of_keys(limit))}
    rows = (
        row
        for keys, number in users.items()
        for user in range(number)
        for row in records(f"n{keys}u{user}", (f"n{keys}u{user}k{key}" for key in range(keys)), 1.0)
    )
    shown = Counter(user.partition("u")[0] for user in {key.partition("k")[0] for key in trial.release(rows).keys})
    return [
        Finding(
            LAYER,
            f"keys of one user alone, {keys} of them",
            is_rarer_than(Seen(shown[f"n{keys}"], number), most),
            number,
        )
        for keys, number in users.items()
    ]


def _numbers_of_keys(limit: int) -> set[int]:
    """Few, as many as the limit, one more, and many more."""
    return {1, min(2, limit), limit, limit + 1, *(times * limit for times in _TIMES)}


def shared_keys(trial: Trial, cells: int) -> list[Finding]:
    """Selected keys: a user more in as many keys as count, each with so many users that noise decides."""
    limit = min(trial.query.selection_limit, 8)
    trial = replace(trial, query=replace(trial.query, max_keys_per_user=limit))
    epsilon, delta = _of_selection(trial)
    rounds = trial.explain().selection
    middle = max(float(facts.get("threshold", facts.get("users_for_even_chance", 0))) for facts in rounds)
    # Just below the threshold, where one user more decides if noise does not, at it, and where passing is rare.
    crowds = sorted({max(1, math.ceil(middle) - 1), max(1, round(middle)), max(1, round(middle / 2))})
    numbers = {users: max(250, cells // (limit * users)) for users in crowds}
    answered = trial.release(row for users, number in numbers.items() for row in _shared(number, limit, users))
    found = []
    for users, number in numbers.items():
        passed = np.array(
            [sum(name in answered.values for name in _names(cell, limit, users)) for cell in range(2 * number)]
        )
        shown = largest_epsilon_shown(passed[:number].astype(float), passed[number:].astype(float), delta)
        test = f"one user more in {limit} keys of {users} users"
        found.append(Finding(LAYER, test, shown <= epsilon, 2 * number, epsilon, shown))
    return found


def _names(cell: int, limit: int, users: int) -> list[str]:
    return [f"s{users}c{cell}k{key}" for key in range(limit)]


def _shared(cells: int, limit: int, users: int) -> Iterable[Row]:
    """Half of the cells have one user more, in all of their keys."""
    for cell in range(2 * cells):
        names = _names(cell, limit, users)
        for name in names:
            yield from crowd(name, users)
        if cell < cells:
            yield from records(f"s{users}u{cell}", names, 1.0)


def _of_selection(trial: Trial) -> tuple[float, float]:
    """The epsilon and delta that selecting keys may spend by itself."""
    noisers = (step.noiser for step in steps(trial.explain().plan) if isinstance(step, Noise))
    epsilon, delta, mu = added_up(cost for noiser in noisers if isinstance(noiser, SelectKeys) for cost in noiser.costs)
    if not mu:
        return epsilon, delta
    # At the epsilon that is half of the budget; any would do.
    half = trial.query.budget.epsilon / 2
    return half, float(delta_of(mu, half - epsilon)) + delta


def secret_order(trial: Trial) -> list[Finding]:
    """Which keys of a user count is decided by a secret that is new in each release, and rows come sorted by key alone."""
    limit = min(trial.query.selection_limit, _FEW_KEYS)
    # Many more keys than count.
    keys = [[f"u{user:03}k{key:02}" for key in range(4 * limit + 4)] for user in range(_USERS)]
    # With so little noise it can be seen which keys count; Gaussian noise would have a user count a little in many.
    clear = replace(
        trial.query,
        max_keys_per_user=limit,
        budget=Budget(10_000 * limit * len(trial.query.measures), 0.05),
        selection="auto",
        noise="laplace",
        composition="basic",
    )
    known = replace(trial, query=with_public(clear, [key for of_user in keys for key in of_user]))
    rows = [
        row
        for user, of_user in enumerate(keys)
        for row in records(f"u{user}", of_user, _EXTREMES["low" if user % 2 else "high"], times=_MANY_RECORDS)
    ]
    first, second = known.release(rows), known.release(rows)
    one, other = (np.array([answered.values[key] for key in answered.keys]) for answered in (first, second))
    moved = bool(np.any(np.abs(one - other) > _CLEARLY * np.ptp(one, axis=0)))
    return [
        Finding("D", "which keys of a user count is decided anew each time", moved, 2),
        Finding("D", "rows come sorted by key", first.keys == tuple(sorted(first.keys)), 1),
    ]
