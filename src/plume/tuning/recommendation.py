"""Which of the settings that were tried to recommend: errors compare only on keys that both show, and showing more keys counts first.

NOT PRIVATE. docs/decisions/0042-tuning-by-estimates.md says why it is done this way.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plume.calibration.calibrated_query import CalibratedQuery
from plume.tuning.pairs import Floats

# How far estimates are from simulated runs: tests hold them to that. Numbers of keys that are nearer may be in the other order.
NOISE_OF_ESTIMATES = 0.05
# What hardly shows a key is not recommended.
_A_KEY = 1.0


@dataclass(frozen=True)
class TuningRow:
    """What a measure would be like with one limit, epsilon, selection and bounds; NOT PRIVATE."""

    epsilon: float
    selection: str
    max_keys_per_user: int
    keys_shown: float
    """How many keys would be shown, on average."""
    measure: str
    bounds: str
    absolute_error: float
    """How far the released value would be from the exact one, on average over shown keys."""
    lost_to_bounding: float
    """The share of the data that limits and bounds would cut from shown keys."""
    lost_to_selection: float
    """The share of the data that is in keys not shown."""
    error_on_shared_keys: float | None = None
    """`absolute_error` over the keys that all settings of this epsilon show that show as many; None if this one shows clearly fewer."""
    recommended: bool = False


def shared_keys(settings: Sequence[CalibratedQuery], chances: Sequence[Floats]) -> list[Floats | None]:
    """Say for each setting how much each key weighs where errors are compared; None for one that shows clearly fewer keys than another.

    Settings of one epsilon are compared. A key weighs the smallest of its chances, so what one of them hardly shows weighs nothing.
    """
    expected = [float(shown.sum()) for shown in chances]
    epsilons = [one.query.budget.epsilon for one in settings]
    most = {epsilon: max(_of(epsilon, epsilons, expected)) for epsilon in epsilons}
    as_many = [
        keys >= max(_A_KEY, (1 - NOISE_OF_ESTIMATES) * most[epsilon])
        for keys, epsilon in zip(expected, epsilons, strict=True)
    ]
    least: dict[float, Floats] = {}
    for epsilon, shown, compared in zip(epsilons, chances, as_many, strict=True):
        if compared:
            least[epsilon] = np.minimum(shown, least.get(epsilon, shown))
    return [least[epsilon] if compared else None for epsilon, compared in zip(epsilons, as_many, strict=True)]


def _of(epsilon: float, epsilons: Iterable[float], values: Iterable[float]) -> Iterable[float]:
    return (value for value, each in zip(values, epsilons, strict=True) if each == epsilon)


def recommend(rows: Sequence[TuningRow]) -> list[TuningRow]:
    """Mark the setting whose errors, each relative to the smallest that its measure can have, are smallest together, with its best bounds.

    The rows are those of one epsilon. Settings that show clearly fewer keys than another do not compete.
    """
    best: dict[tuple[str, int], dict[str, tuple[float, TuningRow]]] = {}
    for row in rows:
        if row.error_on_shared_keys is not None:
            of_setting = best.setdefault((row.selection, row.max_keys_per_user), {})
            candidate = (row.error_on_shared_keys, row)
            of_setting[row.measure] = min(of_setting.get(row.measure, candidate), candidate, key=lambda one: one[0])
    if not best:
        return list(rows)
    least = {name: min(of_setting[name][0] for of_setting in best.values()) for name in next(iter(best.values()))}
    chosen = min(
        best.values(), key=lambda of_setting: math.fsum(of_setting[name][0] / error for name, error in least.items())
    )
    marks = {id(row) for _, row in chosen.values()}
    return [replace(row, recommended=id(row) in marks) for row in rows]
