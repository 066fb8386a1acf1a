"""A query with its noise: every measure and the selection know what they draw, before any data is read."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from plume.mechanisms.mechanism import Mechanism
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.privacy.budget import Budget
from plume.privacy.calibration import Shares, deviation_for, gaussian_for, laplace_for, share
from plume.privacy.cost import Cost, gaussian_cost, laplace_cost
from plume.query import AUTO, Query
from plume.selection.gaussian_threshold import gaussian_threshold
from plume.selection.laplace_threshold import laplace_threshold
from plume.selection.strategy import SelectionStrategy
from plume.selection.truncated_geometric import TruncatedGeometric
from plume.selection.two_round_weighted_gaussian import weighted_gaussian_round
from plume.selection.weighted_gaussian import weighted_gaussian

# Up to here the best rule without Gaussian noise keeps more keys than the best one with it (algorithms 1.6).
_FEW_KEYS = 2
# What the rounds of a two-round selection get of its share, and which part of delta goes to thresholds (algorithms 1.5).
_PARTS_OF_ROUNDS = (Fraction(1, 10), Fraction(9, 10))
_DELTA_OF_THRESHOLDS = 0.4
# The mean of the absolute value of noise of scale 1.
_MEAN_ABSOLUTE = {DiscreteLaplace: 1.0, RoundedGaussian: 0.7978845608028654}


@dataclass(frozen=True)
class CalibratedMeasure:
    """A mechanism, the noise it draws, and the prefix that keeps its columns apart from other measures'."""

    mechanism: Mechanism
    noise: DiscreteLaplace | RoundedGaussian
    max_keys_per_user: int
    prefix: str

    @property
    def state(self) -> dict[str, str]:
        """The plan's column for each name of the mechanism's state."""
        return {name: f"{self.prefix}_{name}" for name in self.mechanism.combine_keyed()}

    @property
    def raw(self) -> dict[str, str]:
        """The plan's column for each name that combining raw rows makes."""
        return {name: f"{self.prefix}_raw_{name}" for name in self.mechanism.combine_raw()}

    @property
    def standard_deviation(self) -> float:
        """The noise's standard deviation in the units of the released column."""
        return self.noise.standard_deviation * float(self.mechanism.grid)

    @property
    def cost(self) -> Cost:
        """What releasing this measure spends."""
        price = laplace_cost if isinstance(self.noise, DiscreteLaplace) else gaussian_cost
        return price(
            self.mechanism.name,
            scale=self.noise.scale,
            sensitivity=self.mechanism.sensitivity(),
            max_keys_per_user=self.max_keys_per_user,
        )


@dataclass(frozen=True)
class CalibratedQuery:
    """What a pipeline makes a plan of."""

    query: Query
    rounds: tuple[SelectionStrategy, ...]
    """How keys are chosen, round by round; none if they are public."""
    measures: tuple[CalibratedMeasure, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The plan's key columns; the caller's own names stay outside of it."""
        return tuple(f"key_{number}" for number in range(1, len(self.query.keys) + 1))

    @property
    def values(self) -> dict[str, str]:
        """The plan's column for each value column of the table."""
        return {name: f"value_{number}" for number, name in enumerate(self.query.value_columns, start=1)}


def calibrate(query: Query) -> CalibratedQuery:
    """Decide which noise is drawn and how keys are chosen, and scale the noise of each part to its share of the budget."""
    if query.noise_kind != AUTO:
        return _CALIBRATIONS[query.noise_kind](query)
    if query.public_keys is None and query.max_keys_per_user > _FEW_KEYS:
        return _with_gaussian(query)
    laplace = _with_laplace(query)
    if query.budget.delta == 0:
        return laplace
    gaussian = _with_gaussian(query)
    return laplace if _error(laplace) <= _error(gaussian) else gaussian


def _with_laplace(query: Query) -> CalibratedQuery:
    shares, epsilon, limit = _shares(query), query.budget.exact_epsilon, query.max_keys_per_user
    measures = _measures(
        query,
        lambda sensitivity, share: laplace_for(sensitivity, max_keys_per_user=limit, epsilon=epsilon * share),
    )
    if query.public_keys is not None:
        return CalibratedQuery(query, (), measures)
    spent, delta = epsilon * shares.selection, query.budget.delta
    if query.selection == "laplace_threshold":
        threshold = laplace_threshold(limit, epsilon=spent, delta=delta, min_users=query.min_users)
        return CalibratedQuery(query, (threshold,), measures)
    return CalibratedQuery(query, (TruncatedGeometric(limit, spent, delta, min_users=query.min_users),), measures)


def _with_gaussian(query: Query) -> CalibratedQuery:
    if query.selection == "two_round_weighted_gaussian":
        return _with_two_rounds(query)
    shares, budget, limit = _shares(query), query.budget, query.max_keys_per_user
    measures = _measures(
        query,
        lambda sensitivity, share: gaussian_for(sensitivity, max_keys_per_user=limit, budget=budget, share=share),
    )
    if query.public_keys is not None:
        return CalibratedQuery(query, (), measures)
    left = {
        "sigma": deviation_for(budget, shares.selection),
        "others": 1 / deviation_for(budget, 1 - shares.selection),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    # Weights of the fewest users that may count would have to be known one by one; plain counts only need to be shifted.
    if query.selection == "gaussian_threshold" or query.min_users > 1:
        return CalibratedQuery(query, (gaussian_threshold(limit, min_users=query.min_users, **left),), measures)
    return CalibratedQuery(query, (weighted_gaussian(limit, **left),), measures)


def _with_two_rounds(query: Query) -> CalibratedQuery:
    """Take the delta of both thresholds off first: what a user can do in the second round depends on the first (algorithms 0.2)."""
    shares, budget, limit = _shares(query), query.budget, query.max_keys_per_user
    alone = _DELTA_OF_THRESHOLDS * budget.delta
    rest = Budget(budget.epsilon, budget.delta - alone)
    measures = _measures(
        query,
        lambda sensitivity, share: gaussian_for(sensitivity, max_keys_per_user=limit, budget=rest, share=share),
    )
    rounds = tuple(
        weighted_gaussian_round(
            number, limit, sigma=deviation_for(rest, shares.selection * part), delta=alone * float(part)
        )
        for number, part in enumerate(_PARTS_OF_ROUNDS, start=1)
    )
    return CalibratedQuery(query, rounds, measures)


_CALIBRATIONS: dict[str, Callable[[Query], CalibratedQuery]] = {"laplace": _with_laplace, "gaussian": _with_gaussian}


def _shares(query: Query) -> Shares:
    names = tuple(measure.name for measure in query.measures)
    return share(dict(query.shares), names, selects_keys=query.public_keys is None)


def _measures(
    query: Query, noise_for: Callable[[int, Fraction], DiscreteLaplace | RoundedGaussian]
) -> tuple[CalibratedMeasure, ...]:
    return tuple(
        CalibratedMeasure(
            mechanism, noise_for(mechanism.sensitivity(), share), query.max_keys_per_user, prefix=f"measure_{number}"
        )
        for number, (mechanism, share) in enumerate(zip(query.measures, _shares(query).measures, strict=True), start=1)
    )


def _error(asked: CalibratedQuery) -> float:
    """The mean absolute noise of all measures together, each in units of what one user can change."""
    return math.fsum(
        float(measure.noise.scale) * _MEAN_ABSOLUTE[type(measure.noise)] / measure.mechanism.sensitivity()
        for measure in asked.measures
    )
