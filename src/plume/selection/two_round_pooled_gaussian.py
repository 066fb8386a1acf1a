"""Pooled Gaussian selection twice: in both rounds users spread what their measures leave, in the second over the keys that are left.

It keeps the most keys of all strategies, with hardly more noise on measures than one round, for one more shuffle by key.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from plume.plan.nodes import Account
from plume.privacy.budget import Budget
from plume.privacy.gaussian import joint_delta
from plume.privacy.pooled import Charge, Pooled
from plume.privacy.scales import deviation_for
from plume.privacy.two_rounds import FewUsers, PooledRounds
from plume.selection.pooled_gaussian import (
    LEFT,
    PooledGaussian,
    charged_to_accounts,
    keys_when_selecting,
    weight_of_selection,
)
from plume.selection.rule import JointBudget, Rounds, Rule
from plume.selection.threshold import on_grid, smallest_threshold, unreachable
from plume.selection.two_round_weighted_gaussian import KEPT_BACK, PARTS_OF_ROUNDS
from plume.selection.weighted_gaussian import UNIT, noise_of

# A search looks at few users; thresholds then rise until all users are within delta, in steps by what these spend more.
_LOOKED_OVER, _FOR_EACH, _STEP = 0.01, 0.25, 2e-4
# A few are enough.
_RAISES = 30


@dataclass(frozen=True, kw_only=True)
class PooledRound(PooledGaussian):
    """One round, on the keys that no round before it has selected, with weights from the account as it was before the first.

    Guarantee: both rounds and the measures that accounts are charged for together, docs/guarantees/two-round-pooled-gaussian.md.
    """

    number: int = 1
    name: str = "pooled Gaussian in two rounds"

    @property
    def what(self) -> str:
        """What its cost is called."""
        return f"selection, round {self.number}"


def _jointly(given: JointBudget) -> Rounds:
    """Charge the measures to accounts, and find the thresholds of both rounds together."""
    budget = Budget(given.epsilon, given.delta * (1 - KEPT_BACK))
    noises = tuple(noise_of(deviation_for(budget, part)) for part in PARTS_OF_ROUNDS)
    charged = charged_to_accounts(
        given, sum((UNIT**2 / noise.scale**2 for noise in noises), start=0 * UNIT / noises[0].scale)
    )
    charges, sigmas = tuple(charge for _, charge in charged), tuple(float(noise.scale) / UNIT for noise in noises)
    thresholds = _smallest_thresholds(sigmas, given.max_keys_per_user, charges, given.epsilon, given.delta)
    return tuple(
        PooledRound(
            given.max_keys_per_user,
            noise,
            on_grid(threshold, unit=UNIT),
            min_users=given.min_users,
            pool=Account(LEFT, charged),
            number=number,
        )
        for number, (noise, threshold) in enumerate(zip(noises, thresholds, strict=True), start=1)
    )


@lru_cache(maxsize=64)
def _smallest_thresholds(
    sigmas: tuple[float, ...], limit: int, charges: tuple[Charge, ...], epsilon: float, delta: float
) -> tuple[float, float]:
    """Find the lowest threshold of the second round that any first round leaves delta for, and the lowest one of the first beside it."""
    first, second = (Pooled(sigma, math.inf, limit, charges) for sigma in sigmas)
    if PooledRounds(first, second).least_delta(epsilon) > delta * (1 - _LOOKED_OVER):
        raise unreachable(epsilon, delta)

    def find(make: Callable[[float], FewUsers]) -> FewUsers:
        return smallest_threshold(make, others=0.0, epsilon=epsilon, delta=delta * (1 - _LOOKED_OVER))

    chosen = find(lambda threshold: FewUsers(first, replace(second, threshold=threshold))).second
    beside = find(lambda threshold: FewUsers(replace(first, threshold=threshold), chosen)).first
    for _ in range(_RAISES):
        spent = joint_delta(PooledRounds(beside, chosen), others=0.0, epsilon=epsilon)
        if spent <= delta:
            return beside.threshold, chosen.threshold
        raised = 1 + _STEP + _FOR_EACH * math.log(spent / delta)
        beside, chosen = (replace(one, threshold=raised * one.threshold) for one in (beside, chosen))
    raise unreachable(epsilon, delta)


RULE = Rule(jointly=_jointly, keys=keys_when_selecting, weight=weight_of_selection, delta_kept_back=KEPT_BACK)
