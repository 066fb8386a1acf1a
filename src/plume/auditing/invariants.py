"""Layer A: what must hold without noise, exactly, for any two neighbours."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from plume.auditing.claims import added_up, claims, paid
from plume.auditing.finding import Answered, Finding
from plume.auditing.made_up_tables import Row, crowd, records, with_private, with_public
from plume.auditing.trial import Trial
from plume.calibration.calibrated_part import CalibratedPart
from plume.explanation import Explanation
from plume.pipelines.noisers import WEIGHT, SelectKeys
from plume.plan.analysis import costs, steps
from plume.plan.nodes import Noise
from plume.privacy.budget import Budget
from plume.privacy.cost import EpsilonCost, GaussianCost
from plume.privacy.gaussian import delta_of
from plume.selection.gaussian_threshold import GaussianThreshold
from plume.selection.pooled_gaussian import PooledGaussian
from plume.selection.strategy import SelectionStrategy
from plume.selection.weighted_gaussian import UNIT, WeightedGaussian

LAYER = "A"
# Thresholds are low there, so that few users make a key pass.
_GENEROUS = Budget(epsilon=8, delta=0.05)
_FEW_KEYS = 3
_MANY_RECORDS = 2_000
# How many times as many keys as the limit users far above it have.
_TIMES, _MANY_TIMES = 4, 16
_EXTREMES = (1e9, -1e9, 1e308, -1e308, math.inf, -math.inf, math.nan, None, 2.0**63, -0.0)
# A known key without rows, and one with nothing but a user who has no value.
_EMPTY, _NOTHING = "empty", "nothing"
_NULLS: list[Row] = [("nobody", _NOTHING, None)]
_SLACK = 1 + 1e-6
_ROUNDED_UP = 1.01


@dataclass(frozen=True)
class _Newcomer:
    """One user more: how many records of which value in each of how many keys."""

    value: float | None
    keys: int
    records: int


def _newcomers(limit: int) -> list[_Newcomer]:
    """Each extreme in more keys than the limit; and as many keys as the limit, one more, and many more."""
    numbers = [(extreme, _TIMES * limit) for extreme in _EXTREMES]
    numbers += [(_EXTREMES[0], keys) for keys in (limit, limit + 1, _MANY_TIMES * limit)]
    return [*(_Newcomer(value, keys, _MANY_RECORDS // keys) for value, keys in numbers), _Newcomer(1.0, 2, 1)]


def invariants(trial: Trial) -> list[Finding]:
    """Check all of them, for keys that are selected and for keys that are known."""
    limit = min(trial.query.selection_limit, _FEW_KEYS)
    chosen = replace(trial, query=with_private(trial.query, budget=_GENEROUS, max_keys_per_user=limit))
    newcomers = _newcomers(limit)
    cells = [[f"c{cell:02}k{key:02}" for key in range(one.keys)] for cell, one in enumerate(newcomers)]
    more = [
        row
        for cell, (one, keys) in enumerate(zip(newcomers, cells, strict=True))
        for row in records(f"u{cell}", keys, one.value, times=one.records)
    ]
    popular = [key for of_cell in cells for key in of_cell]
    known = replace(chosen, query=with_public(chosen.query, [*popular, _EMPTY, _NOTHING]))
    enough = _enough_users(chosen)
    base = [row for key in popular for row in crowd(key, enough)]
    before = {
        what: trial.exact(rows) for what, trial, rows in (("chosen", chosen, base), ("known", known, [*base, *_NULLS]))
    }
    changed = [
        _changes(trial, before[what], [*rows, *more], cells, what)
        for what, trial, rows in (("chosen", chosen, base), ("known", known, [*base, *_NULLS]))
    ]
    weighed = _weights_change(chosen, base, [*base, *more], cells)
    return [
        claims_hold(trial),
        *changed,
        weighed,
        *_accounts_hold(chosen, base, [*base, *more], cells),
        *_complete(before["known"], popular),
        *_rows(chosen, before["chosen"], base),
    ]


def _enough_users(chosen: Trial) -> int:
    """So many users that a key passes without noise."""
    explanation = chosen.explain()
    rounds = explanation.selection
    certain = max(float(facts.get("threshold", facts.get("users_for_certainty", 0))) for facts in rounds)
    whole = min(_part_of_a_unit(strategy) for strategy in explanation.calibrated.rounds)
    return 2 + math.ceil(certain / whole) + chosen.query.min_users


def _part_of_a_unit(strategy: SelectionStrategy) -> float:
    """What a user with one key gives to it at the least, of the unit that the threshold is told in."""
    return strategy.weight_of(1) / UNIT if isinstance(strategy, PooledGaussian) else 1.0


def claims_hold(trial: Trial) -> Finding:
    """What the parts say they spend must compose to the budget, by the simplest formulas there are."""
    budget = trial.query.budget
    epsilon, delta, mu = added_up(costs(trial.explain().plan))
    gaussian = float(delta_of(mu, budget.epsilon - epsilon)) if mu else 0.0
    holds = epsilon <= budget.epsilon * _SLACK and max(delta, gaussian) <= budget.delta * _SLACK
    if delta < budget.delta and not holds:
        # What does not add up may still compose; dp-accounting rounds losses up.
        holds = trial.explain().recomputed.epsilon <= budget.epsilon * _ROUNDED_UP
    return Finding(LAYER, "the parts spend no more than the budget", holds, 1)


def _changes(trial: Trial, before: Answered, rows: list[Row], cells: list[list[str]], what: str) -> Finding:
    """One user more changes no more than noise pays for; each such user in a cell."""
    after, explanation = trial.exact(rows), trial.explain()
    worst = max(_excess(explanation, before, after, keys) for keys in cells) if before.keys == after.keys else math.inf
    test = f"one user changes no more than noise pays for, keys {what}"
    return Finding(LAYER, test, worst <= _SLACK, len(cells))


def _weights_change(chosen: Trial, base: list[Row], rows: list[Row], cells: list[list[str]]) -> Finding:
    """One user more changes the weights by which keys are selected by no more than selection pays for."""
    explanation = chosen.explain()
    step = next(
        one.name for one in steps(explanation.plan) if isinstance(one, Noise) and isinstance(one.noiser, SelectKeys)
    )
    before, after = (_weights(chosen.given(step, listed), explanation) for listed in (base, rows))
    norm, most = _paid_by_choosing(explanation.calibrated.rounds[0])
    worst = max(norm(*(abs(after[key] - before[key]) for key in keys)) for keys in cells) / most
    return Finding(
        LAYER, "one user changes the weights of keys by no more than choosing pays for", worst <= _SLACK, len(cells)
    )


def _accounts_hold(chosen: Trial, base: list[Row], rows: list[Row], cells: list[list[str]]) -> Iterable[Finding]:
    """One user more changes weights and measures together by no more than one account, where both are drawn from it."""
    explanation = chosen.explain()
    strategies = [one for one in explanation.calibrated.rounds if isinstance(one, PooledGaussian)]
    if not strategies:
        return
    whole = math.hypot(*(one.cost.mu for one in strategies))
    step = next(
        one.name for one in steps(explanation.plan) if isinstance(one, Noise) and one.noiser.account is not None
    )
    before, after = (_weights(chosen.given(step, listed), explanation) for listed in (base, rows))
    without, everybody = chosen.exact(base), chosen.exact(rows)
    together = []
    for keys in cells:
        weights = math.hypot(*(after[key] - before[key] for key in keys)) / UNIT
        measures = _changed_norms(explanation, without, everybody, keys)
        moved = (norm * part.cost.mu for part, norm in measures.items() if isinstance(part.cost, GaussianCost))
        together.append(math.hypot(weights, math.hypot(*moved) / whole))
    test = "one user changes weights and measures together by no more than an account"
    # What is not a number is not within it.
    yield Finding(LAYER, test, all(share <= _SLACK for share in together), len(cells))


def _paid_by_choosing(strategy: SelectionStrategy) -> tuple[Callable[..., float], float]:
    """What one user may change the weights of keys by, and how that is measured: in Euclidean norm for Gaussian noise, else added up."""
    if isinstance(strategy, WeightedGaussian | GaussianThreshold):
        return math.hypot, strategy.cost.mu * float(strategy.noise.scale)
    return _added_up, strategy.max_keys_per_user


def _weights(given: pa.Table, explanation: Explanation) -> dict[str, int]:
    return dict(zip(given[explanation.calibrated.keys[0]].to_pylist(), given[WEIGHT].to_pylist(), strict=True))


def _excess(explanation: Explanation, before: Answered, after: Answered, keys: list[str]) -> float:
    """The most by which the change exceeds what the noise of a part pays for."""
    worst = max(_changed_norms(explanation, before, after, keys).values(), default=0.0)
    return worst if not math.isnan(worst) else math.inf


def _changed_norms(
    explanation: Explanation, before: Answered, after: Answered, keys: list[str]
) -> dict[CalibratedPart, float]:
    """What share of what its noise pays for each part changes by: added up for Laplace noise, in Euclidean norm for Gaussian."""
    changes: dict[CalibratedPart, list[float]] = {}
    for claim in claims(explanation):
        # Whole numbers are rounded to after the noise, which may have changed them by a half.
        rounding = 0.5 if claim.part.rounded else 0.0
        for key in keys:
            change = abs(after.values[key][claim.position] - before.values[key][claim.position]) / float(claim.step)
            steps = max(0.0, change - rounding) * float(claim.step / claim.part.unit)
            changes.setdefault(claim.part, []).append(steps)
    norms = {part: _added_up if isinstance(part.cost, EpsilonCost) else math.hypot for part in changes}
    return {part: norms[part](*steps) / paid(part) for part, steps in changes.items()}


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
