"""Layer A: what must hold without noise, exactly, for any two neighbours."""

import math
from collections.abc import Iterable
from dataclasses import replace

from plume.auditing.finding import Answered, Finding
from plume.auditing.made_up import Row, crowd, records, with_private, with_public
from plume.auditing.trial import Trial
from plume.explanation import Explanation
from plume.mechanisms.count import CountRecords
from plume.mechanisms.sum import SumOfTotals
from plume.mechanisms.users import CountUsers
from plume.privacy.budget import Budget
from plume.privacy.gaussian import delta_of

LAYER = "A"
# Thresholds are low there, so that few users make a key pass.
_GENEROUS = Budget(epsilon=8, delta=0.05)
_FEW_KEYS = 3
_MANY_RECORDS = 2_000
_EXTREMES = (1e9, -1e9, 1e308, -1e308, math.inf, -math.inf, math.nan, None, 2.0**63, -0.0)
_SLACK = 1 + 1e-6
_ROUNDED_UP = 1.01
# Of other measures the released value is not the sum of what users add.
_ADDITIVE = (CountRecords, CountUsers, SumOfTotals)


def invariants(trial: Trial) -> list[Finding]:
    """Check all of them, for keys that are chosen and for keys that are known."""
    limit = min(trial.query.selection_limit, _FEW_KEYS)
    chosen = replace(trial, query=with_private(trial.query, budget=_GENEROUS, max_keys_per_user=limit))
    popular = [f"p{number}" for number in range(4 * limit)]
    known = replace(chosen, query=with_public(chosen.query, [*popular, "empty", "null"]))
    base = [row for key in popular for row in crowd(key, _enough_users(chosen))]
    found = [claims(trial), *_changes(chosen, base, popular, "chosen"), *_changes(known, base, popular, "known")]
    return [*found, *_rows(chosen, known, base, popular)]


def _enough_users(chosen: Trial) -> int:
    """So many users that a key passes without noise."""
    rounds = chosen.explain().selection
    certain = max(float(facts.get("threshold", facts.get("users_for_certainty", 0))) for facts in rounds)
    return 2 + math.ceil(certain) + chosen.query.min_users


def claims(trial: Trial) -> Finding:
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


def _changes(trial: Trial, base: list[Row], popular: list[str], what: str) -> list[Finding]:
    """One user more, with many records of each extreme value in many keys, changes no more than noise pays for."""
    before, said, worst = trial.exact(base), trial.explain(), 0.0
    for extreme in _EXTREMES:
        after = trial.exact([*base, *records("u*", popular, extreme, times=_MANY_RECORDS // len(popular))])
        worst = max(worst, _excess(said, before, after))
    only_some = trial.exact([*base, *records("u*", popular[:2], 1.0)])
    worst = max(worst, _excess(said, before, only_some))
    test = f"one user changes no more than noise pays for, keys {what}"
    return [Finding(LAYER, test, worst <= _SLACK, len(_EXTREMES) + 1)]


def _excess(said: Explanation, before: Answered, after: Answered) -> float:
    """By how much the change exceeds what each measure's noise pays for: in L1 of Laplace noise, in L2 of Gaussian noise."""
    if before.keys != after.keys:
        return math.inf
    parts = {part["part"]: part for part in said.facts()["spent"]}
    worst = 0.0
    for position, measure in enumerate(said.asked.query.measures):
        if not isinstance(measure, _ADDITIVE):
            continue
        part, noise = parts[measure.name], said.noise[position]
        changes = [abs(after.values[key][position] - before.values[key][position]) for key in before.keys]
        if "mu" in part:
            worst = max(worst, math.hypot(*changes) / (part["mu"] * noise.standard_deviation))
        else:
            scale = _laplace_scale(noise.standard_deviation, float(getattr(measure, "grid", 1)))
            worst = max(worst, math.fsum(changes) / (part["epsilon"] * scale))
    return worst if not math.isnan(worst) else math.inf


def _laplace_scale(deviation: float, grid: float) -> float:
    """The scale of discrete Laplace noise of this standard deviation: the variance is 2q / (1 - q)^2, where q = exp(-1 / scale)."""
    return grid / (2 * math.asinh(grid / (math.sqrt(2) * deviation)))


def _rows(chosen: Trial, known: Trial, base: list[Row], popular: list[str]) -> Iterable[Finding]:
    """Every known or chosen key has exactly one row, in order, whatever the order of the data."""
    nulls = [*base, *records("nobody", ["null"], None)]
    answered = known.exact(nulls)
    complete = answered.keys == tuple(sorted([*popular, "empty", "null"]))
    yield Finding(LAYER, "every known key has one row, in order", complete, 1)
    finite = all(math.isfinite(value) for values in answered.values.values() for value in values)
    yield Finding(LAYER, "nothing released is infinite or not a number", finite, 1)
    once, again = chosen.exact(base), chosen.exact(base[::-1])
    same = once == again and once.keys == tuple(sorted(popular))
    yield Finding(LAYER, "the order of rows makes no difference", same, 2)
    nobody = [(None, key, 1.0) for key in popular for _ in range(_MANY_RECORDS)]
    yield Finding(LAYER, "rows without a user change nothing", chosen.exact([*base, *nobody]) == once, 2)
