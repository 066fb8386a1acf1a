"""A query with its noise: every measure and the selection know what they draw, before any data is read."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from plume.mechanisms.mechanism import Mechanism
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.noise.rounded_laplace import RoundedLaplace
from plume.pipelines.tight import DELTA_OF_THRESHOLDS, PARTS_OF_ROUNDS, Tight
from plume.pipelines.ways import Way, best
from plume.privacy.budget import Budget
from plume.privacy.calibration import Shares, deviation_for, gaussian_for, laplace_for, share
from plume.privacy.cost import Cost, gaussian_cost, laplace_cost, rounded_laplace_cost
from plume.query import AUTO, BASIC, GAUSSIAN_STRATEGIES, NOISES, Query
from plume.selection.gaussian_threshold import gaussian_threshold
from plume.selection.laplace_threshold import laplace_threshold
from plume.selection.strategy import SelectionStrategy
from plume.selection.truncated_geometric import TruncatedGeometric
from plume.selection.two_round_weighted_gaussian import weighted_gaussian_round
from plume.selection.weighted_gaussian import weighted_gaussian

# Up to here the best rule without Gaussian noise keeps more keys than the best one with it (algorithms 1.6).
_FEW_KEYS = 2
# The mean of the absolute value of noise of scale 1.
_MEAN_ABSOLUTE = {DiscreteLaplace: 1.0, RoundedLaplace: 1.0, RoundedGaussian: 0.7978845608028654}

Scaled = DiscreteLaplace | RoundedLaplace | RoundedGaussian
_PRICES: dict[type[Scaled], Callable[..., Cost]] = {
    DiscreteLaplace: laplace_cost,
    RoundedLaplace: rounded_laplace_cost,
    RoundedGaussian: gaussian_cost,
}


@dataclass(frozen=True)
class CalibratedMeasure:
    """A mechanism, the noise it draws, and the prefix that keeps its columns apart from other measures'."""

    mechanism: Mechanism
    noise: Scaled
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
        return _PRICES[type(self.noise)](
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
    """Decide which noise is drawn and how keys are chosen, and scale the noise of each part to its share of the budget.

    Of what the query leaves open, the kind of noise with the smaller error is taken; nothing but the query is looked at.
    """
    noises = [query.noise] if query.noise != AUTO else list(NOISES)
    if query.budget.delta == 0 or query.composition == BASIC:
        noises = ["laplace"]
    return best((way for noise in noises for way in _ways(query, _strategy(query, noise), noise)), error=_error)


def _ways(query: Query, strategy: str | None, noise: str) -> Iterator[Way[CalibratedQuery]]:
    """List the ways to compose a strategy and noise: the formula for all-Gaussian plans, adding epsilons up, dp-accounting."""
    gaussian_selection = strategy in GAUSSIAN_STRATEGIES
    if noise == "gaussian" and (gaussian_selection or strategy is None):
        yield Way(partial(_with_gaussian, query, strategy))
        return
    if noise == "laplace" and not gaussian_selection:
        yield Way(partial(_with_laplace, query, strategy))
    if query.composition != BASIC and query.budget.delta > 0:
        tight = Tight(query.budget, query.max_keys_per_user, shares_of(query), strategy, noise, query.min_users)
        yield Way(
            hope=lambda: _with_tight(query, tight, tight.hoped_size()),
            find_out=lambda: _with_tight(query, tight, tight.smallest_size()),
        )


def _strategy(query: Query, noise: str) -> str | None:
    """Name the strategy that was asked for, or the one that keeps most keys (algorithms 1.6)."""
    if query.public_keys is not None:
        return None
    if query.selection != AUTO:
        return query.selection
    if query.composition == BASIC or (noise == "laplace" and query.max_keys_per_user <= _FEW_KEYS):
        return "truncated_geometric"
    # Weights of the fewest users that may count would have to be known one by one; plain counts only need to be shifted.
    return "gaussian_threshold" if query.min_users > 1 else "weighted_gaussian"


def _with_laplace(query: Query, strategy: str | None) -> CalibratedQuery:
    shares, epsilon, limit = shares_of(query), query.budget.exact_epsilon, query.max_keys_per_user
    measures = _measures(
        query,
        lambda sensitivity, share: laplace_for(sensitivity, max_keys_per_user=limit, epsilon=epsilon * share),
    )
    spent, delta = epsilon * shares.selection, query.budget.delta
    match strategy:
        case None:
            return CalibratedQuery(query, (), measures)
        case "laplace_threshold":
            threshold = laplace_threshold(limit, epsilon=spent, delta=delta, min_users=query.min_users)
            return CalibratedQuery(query, (threshold,), measures)
        case _:
            coins = TruncatedGeometric(limit, spent, delta, min_users=query.min_users)
            return CalibratedQuery(query, (coins,), measures)


def _with_gaussian(query: Query, strategy: str | None) -> CalibratedQuery:
    if strategy == "two_round_weighted_gaussian":
        return _with_two_rounds(query)
    shares, budget, limit = shares_of(query), query.budget, query.max_keys_per_user
    measures = _measures(
        query,
        lambda sensitivity, share: gaussian_for(sensitivity, max_keys_per_user=limit, budget=budget, share=share),
    )
    if strategy is None:
        return CalibratedQuery(query, (), measures)
    left = {
        "sigma": deviation_for(budget, shares.selection),
        "others": 1 / deviation_for(budget, 1 - shares.selection),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    if strategy == "gaussian_threshold":
        return CalibratedQuery(query, (gaussian_threshold(limit, min_users=query.min_users, **left),), measures)
    return CalibratedQuery(query, (weighted_gaussian(limit, **left),), measures)


def _with_two_rounds(query: Query) -> CalibratedQuery:
    """Take the delta of both thresholds off first: what a user can do in the second round depends on the first (algorithms 0.2)."""
    shares, budget, limit = shares_of(query), query.budget, query.max_keys_per_user
    alone = DELTA_OF_THRESHOLDS * budget.delta
    rest = Budget(budget.epsilon, budget.delta - alone)
    measures = _measures(
        query,
        lambda sensitivity, share: gaussian_for(sensitivity, max_keys_per_user=limit, budget=rest, share=share),
    )
    rounds = tuple(
        weighted_gaussian_round(
            number, limit, sigma=deviation_for(rest, shares.selection * part), delta=alone * float(part)
        )
        for number, part in enumerate(PARTS_OF_ROUNDS, start=1)
    )
    return CalibratedQuery(query, rounds, measures)


def _with_tight(query: Query, tight: Tight, size: float) -> CalibratedQuery:
    measures = _measures(query, lambda sensitivity, share: tight.noise_for(sensitivity, share, size=size))
    return CalibratedQuery(query, tight.rounds(size), measures)


def shares_of(query: Query) -> Shares:
    """Share the budget out among selection and measures."""
    names = tuple(measure.name for measure in query.measures)
    return share(dict(query.shares), names, selects_keys=query.public_keys is None)


def _measures(query: Query, noise_for: Callable[[int, Fraction], Scaled]) -> tuple[CalibratedMeasure, ...]:
    return tuple(
        CalibratedMeasure(
            mechanism, noise_for(mechanism.sensitivity(), share), query.max_keys_per_user, prefix=f"measure_{number}"
        )
        for number, (mechanism, share) in enumerate(
            zip(query.measures, shares_of(query).measures, strict=True), start=1
        )
    )


def _error(asked: CalibratedQuery) -> float:
    """The mean absolute noise of all measures together, each in units of what one user can change, times the users a key needs.

    Both grow with the noise; a way that is better at one and worse at the other is taken if it gains more than it loses.
    """
    noise = math.fsum(
        float(measure.noise.scale) * _MEAN_ABSOLUTE[type(measure.noise)] / measure.mechanism.sensitivity()
        for measure in asked.measures
    )
    return noise * (asked.rounds[-1].users_for_even_chance if asked.rounds else 1)
