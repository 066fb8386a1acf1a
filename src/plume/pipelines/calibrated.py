"""A query with its noise: every measure and the selection know what they draw, before any data is read."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from plume.mechanisms.grid import STEPS_BITS
from plume.mechanisms.mechanism import Part
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.pipelines.columns import MeasureColumns, columns_of_measures, values_of
from plume.privacy.budget import Budget
from plume.privacy.calibration import Shares, deviation_for, drawable, gaussian_for, laplace_for, share
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
# A user above the limit counts in up to so many times as many keys, each a little less (algorithms 4.3).
_CAP = 4
# What the rounds of a two-round selection get of its share, and which part of delta goes to thresholds (algorithms 1.5).
_PARTS_OF_ROUNDS = (Fraction(1, 10), Fraction(9, 10))
_DELTA_OF_THRESHOLDS = 0.4
# The mean of the absolute value of noise of scale 1.
_MEAN_ABSOLUTE = {DiscreteLaplace: 1.0, RoundedGaussian: 0.7978845608028654}


NoiseFor = Callable[[Part, Fraction], DiscreteLaplace | RoundedGaussian]


@dataclass(frozen=True)
class CalibratedPart:
    """Exact integers of the plan, the noise they get, and the measures that are made of them."""

    part: Part
    columns: tuple[str, ...]
    """The plan's columns of these integers."""
    measures: tuple[str, ...]
    noise: DiscreteLaplace | RoundedGaussian
    """In steps of 2**-bits of the part's own."""
    max_keys_per_user: int
    bits: int
    """How much finer the plan counts than the part does."""

    @property
    def unit(self) -> Fraction:
        """What one step of the plan is worth."""
        return self.part.unit / (1 << self.bits)

    @property
    def rounded(self) -> bool:
        """Whether it leaves the plan's finer steps after the noise, for whole numbers."""
        return self.bits > 0 or self.part.leaves > 0

    @property
    def standard_deviation(self) -> float:
        """The noise's standard deviation in the units of the part."""
        return self.noise.standard_deviation * float(self.unit)

    @property
    def cost(self) -> Cost:
        """What releasing this part spends."""
        what = ", ".join(self.measures)
        named = what if self.part.weight == 1 else f"{what}: {self.part.name}"
        limit, scale = self.max_keys_per_user, self.noise.scale / (1 << self.bits)
        if isinstance(self.noise, DiscreteLaplace):
            return laplace_cost(named, scale=scale, sensitivity=self.part.absolute, max_keys_per_user=limit)
        sensitivity = math.sqrt(self.part.squared)
        return gaussian_cost(named, scale=scale, sensitivity=sensitivity, max_keys_per_user=limit)


@dataclass(frozen=True)
class CalibratedQuery:
    """What a pipeline makes a plan of."""

    query: Query
    rounds: tuple[SelectionStrategy, ...]
    """How keys are chosen, round by round; none if they are public."""
    measures: tuple[MeasureColumns, ...]
    parts: tuple[CalibratedPart, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The plan's key columns; the caller's own names stay outside of it."""
        return tuple(f"key_{number}" for number in range(1, len(self.query.keys) + 1))

    @property
    def values(self) -> dict[str, str]:
        """The plan's column for each value column of the table."""
        return values_of(self.query)

    @property
    def clips(self) -> bool:
        """Whether users above the limit are let into more keys, and clipped: all noise must be paid in squares."""
        return all(isinstance(part.noise, RoundedGaussian) for part in self.parts)

    @property
    def keys_before_clipping(self) -> int:
        """How many keys of a user count at all."""
        return self.query.max_keys_per_user * (_CAP if self.clips else 1)

    def parts_of(self, measure: MeasureColumns) -> tuple[CalibratedPart, ...]:
        """The parts that a measure is made of."""
        needed = {measure.covered(part) for part in measure.mechanism.parts()}
        return tuple(part for part in self.parts if part.columns in needed)


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

    def noise_for(part: Part, share: Fraction) -> DiscreteLaplace:
        return laplace_for(part.absolute, max_keys_per_user=limit, epsilon=epsilon * share)

    if query.public_keys is not None:
        return _calibrated(query, (), shares, noise_for)
    spent, delta = epsilon * shares.selection, query.budget.delta
    if query.selection == "laplace_threshold":
        threshold = laplace_threshold(limit, epsilon=spent, delta=delta, min_users=query.min_users)
        return _calibrated(query, (threshold,), shares, noise_for)
    coins = TruncatedGeometric(limit, spent, delta, min_users=query.min_users)
    return _calibrated(query, (coins,), shares, noise_for)


def _with_gaussian(query: Query) -> CalibratedQuery:
    if query.selection == "two_round_weighted_gaussian":
        return _with_two_rounds(query)
    shares, budget, limit = _shares(query), query.budget, query.max_keys_per_user
    noise_for = _gaussian_noise(query, budget)
    if query.public_keys is not None:
        return _calibrated(query, (), shares, noise_for)
    left = {
        "sigma": deviation_for(budget, shares.selection),
        "others": 1 / deviation_for(budget, 1 - shares.selection),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    # Weights of the fewest users that may count would have to be known one by one; plain counts only need to be shifted.
    if query.selection == "gaussian_threshold" or query.min_users > 1:
        return _calibrated(query, (gaussian_threshold(limit, min_users=query.min_users, **left),), shares, noise_for)
    return _calibrated(query, (weighted_gaussian(limit, **left),), shares, noise_for)


def _with_two_rounds(query: Query) -> CalibratedQuery:
    """Take the delta of both thresholds off first: what a user can do in the second round depends on the first (algorithms 0.2)."""
    shares, budget, limit = _shares(query), query.budget, query.max_keys_per_user
    alone = _DELTA_OF_THRESHOLDS * budget.delta
    rest = Budget(budget.epsilon, budget.delta - alone)
    rounds = tuple(
        weighted_gaussian_round(
            number, limit, sigma=deviation_for(rest, shares.selection * part), delta=alone * float(part)
        )
        for number, part in enumerate(_PARTS_OF_ROUNDS, start=1)
    )
    return _calibrated(query, rounds, shares, _gaussian_noise(query, rest))


def _gaussian_noise(query: Query, budget: Budget) -> NoiseFor:
    limit = query.max_keys_per_user
    return lambda part, share: gaussian_for(
        math.sqrt(part.squared), max_keys_per_user=limit, budget=budget, share=share
    )


_CALIBRATIONS: dict[str, Callable[[Query], CalibratedQuery]] = {"laplace": _with_laplace, "gaussian": _with_gaussian}


def _shares(query: Query) -> Shares:
    names = tuple(measure.name for measure in query.measures)
    return share(dict(query.shares), names, selects_keys=query.public_keys is None)


def _calibrated(
    query: Query, rounds: tuple[SelectionStrategy, ...], shares: Shares, noise_for: NoiseFor
) -> CalibratedQuery:
    """Give every part its noise; a part that several measures need has the shares of all of them."""
    measures = columns_of_measures(query)
    needed: dict[tuple[str, ...], list[tuple[str, Part, Fraction]]] = {}
    for measure, share_of_measure in zip(measures, shares.measures, strict=True):
        for part in measure.mechanism.parts():
            needing = (measure.mechanism.name, part, share_of_measure * part.weight)
            needed.setdefault(measure.covered(part), []).append(needing)
    parts = tuple(_calibrated_part(query, columns, needing, noise_for) for columns, needing in needed.items())
    return CalibratedQuery(query, rounds, measures, parts)


def _calibrated_part(
    query: Query, columns: tuple[str, ...], needing: list[tuple[str, Part, Fraction]], noise_for: NoiseFor
) -> CalibratedPart:
    part, measures = needing[0][1], tuple(name for name, _, _ in needing)
    noise = noise_for(part, sum((share for _, _, share in needing), Fraction()))
    bits = _finer(part) if isinstance(noise, RoundedGaussian) else 0
    fine = replace(noise, scale=drawable(noise.scale * (1 << bits)))
    return CalibratedPart(part, columns, measures, fine, query.max_keys_per_user, bits)


def _finer(part: Part) -> int:
    """Count so fine that what a user can change is 2**20 steps or more: a contribution that shrinks a little must not vanish."""
    return max(0, STEPS_BITS - (part.squared.bit_length() - 1) // 2)


def _error(asked: CalibratedQuery) -> float:
    """How large the noise is over all parts: the mean logarithm of its mean size, so that no part's unit matters."""
    return math.fsum(
        math.log(float(part.noise.scale / (1 << part.bits)) * _MEAN_ABSOLUTE[type(part.noise)]) for part in asked.parts
    )
