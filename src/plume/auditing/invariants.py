"""Layer A: what must hold without noise, exactly, for any two neighbours."""

import math
from collections.abc import Iterable
from dataclasses import replace

from plume.auditing.claims import claims, paid
from plume.auditing.finding import Answered, Finding
from plume.auditing.made_up import Row, crowd, records, with_private, with_public
from plume.auditing.trial import Trial
from plume.explanation import Explanation
from plume.pipelines.calibrated import CalibratedPart
from plume.privacy.budget import Budget
from plume.privacy.gaussian import delta_of

LAYER = "A"
# Thresholds are low there, so that few users make a key pass.
_GENEROUS = Budget(epsilon=8, delta=0.05)
_FEW_KEYS = 3
_MANY_RECORDS = 2_000
_EXTREMES = (1e9, -1e9, 1e308, -1e308, math.inf, -math.inf, math.nan, None, 2.0**63, -0.0)
# A known key without rows, and one with nothing but a user who has no value.
_EMPTY, _NOTHING = "empty", "nothing"
_NULLS: list[Row] = [("nobody", _NOTHING, None)]
_SLACK = 1 + 1e-6
_ROUNDED_UP = 1.01


def invariants(trial: Trial) -> list[Finding]:
    """Check all of them, for keys that are chosen and for keys that are known."""
    limit = min(trial.query.selection_limit, _FEW_KEYS)
    chosen = replace(trial, query=with_private(trial.query, budget=_GENEROUS, max_keys_per_user=limit))
    cells = [[f"c{cell:02}k{key:02}" for key in range(4 * limit)] for cell in range(len(_EXTREMES) + 1)]
    popular = [key for of_cell in cells for key in of_cell]
    known = replace(chosen, query=with_public(chosen.query, [*popular, _EMPTY, _NOTHING]))
    enough = _enough_users(chosen)
    base = [row for key in popular for row in crowd(key, enough)]
    before = {
        what: trial.exact(rows) for what, trial, rows in (("chosen", chosen, base), ("known", known, [*base, *_NULLS]))
    }
    changed = [
        _changes(trial, before[what], base, cells, what) for what, trial in (("chosen", chosen), ("known", known))
    ]
    return [claims_hold(trial), *changed, *_complete(before["known"], popular), *_rows(chosen, before["chosen"], base)]


def _enough_users(chosen: Trial) -> int:
    """So many users that a key passes without noise."""
    rounds = chosen.explain().selection
    certain = max(float(facts.get("threshold", facts.get("users_for_certainty", 0))) for facts in rounds)
    return 2 + math.ceil(certain) + chosen.query.min_users


def claims_hold(trial: Trial) -> Finding:
    """What the parts say they spend must compose to the budget, by the simplest formulas there are."""
    budget, parts = trial.query.budget, trial.explain().facts()["spent"]
    epsilon = math.fsum(part.get("epsilon", 0) for part in parts)
    delta = math.fsum(part["delta"] for part in parts)
    mu = math.sqrt(math.fsum(part.get("mu", 0) ** 2 for part in parts))
    gaussian = float(delta_of(mu, budget.epsilon - epsilon)) if mu else 0.0
    holds = epsilon <= budget.epsilon * _SLACK and max(delta, gaussian) <= budget.delta * _SLACK
    if delta < budget.delta and not holds:
        # What does not add up may still compose; dp-accounting rounds losses up.
        holds = trial.explain().recomputed.epsilon <= budget.epsilon * _ROUNDED_UP
    return Finding(LAYER, "the parts spend no more than the budget", holds, 1)


def _changes(trial: Trial, before: Answered, base: list[Row], cells: list[list[str]], what: str) -> Finding:
    """One user more, with many records of an extreme value in many keys, changes no more than noise pays for; each extreme in a cell."""
    more = [
        row
        for cell, extreme in enumerate(_EXTREMES)
        for row in records(f"u{cell}", cells[cell], extreme, times=_MANY_RECORDS // len(cells[cell]))
    ]
    more += records("u", cells[-1][:2], 1.0)
    after, said = trial.exact([*base, *(_NULLS if what == "known" else ()), *more]), trial.explain()
    worst = max(_excess(said, before, after, keys) for keys in cells) if before.keys == after.keys else math.inf
    test = f"one user changes no more than noise pays for, keys {what}"
    return Finding(LAYER, test, worst <= _SLACK, len(cells))


def _excess(said: Explanation, before: Answered, after: Answered, keys: list[str]) -> float:
    """By how much the change exceeds what each part's noise pays for: added up for Laplace noise, in Euclidean norm for Gaussian."""
    changes: dict[CalibratedPart, list[float]] = {}
    for claim in claims(said):
        # Whole numbers are rounded to after the noise, which may have changed them by a half.
        rounding = 0.5 if claim.part.rounded else 0.0
        for key in keys:
            change = abs(after.values[key][claim.position] - before.values[key][claim.position]) / float(claim.step)
            steps = max(0.0, change - rounding) * float(claim.step / claim.part.unit)
            changes.setdefault(claim.part, []).append(steps)
    norms = {part: math.hypot if part.cost.mu else _added_up for part in changes}
    worst = max((norms[part](*steps) / paid(part) for part, steps in changes.items()), default=0.0)
    return worst if not math.isnan(worst) else math.inf


def _added_up(*steps: float) -> float:
    return math.fsum(steps)


def _complete(answered: Answered, popular: list[str]) -> Iterable[Finding]:
    """Every known key has exactly one row, in order, with numbers in it."""
    complete = answered.keys == tuple(sorted([*popular, _EMPTY, _NOTHING]))
    yield Finding(LAYER, "every known key has one row, in order", complete, 1)
    finite = all(math.isfinite(value) for values in answered.values.values() for value in values)
    yield Finding(LAYER, "nothing released is infinite or not a number", finite, 1)


def _rows(chosen: Trial, once: Answered, base: list[Row]) -> Iterable[Finding]:
    """Neither the order of rows nor rows of nobody make a difference, and every popular key has one row, in order."""
    same = once == chosen.exact(base[::-1]) and once.keys == tuple(sorted({key for _, key, _ in base}))
    yield Finding(LAYER, "the order of rows makes no difference", same, 2)
    nobody = [(None, key, 1.0) for key in once.keys[:_FEW_KEYS] for _ in range(_MANY_RECORDS)]
    yield Finding(LAYER, "rows without a user change nothing", chosen.exact([*base, *nobody]) == once, 2)
