"""A query with its noise: every measure and the selection know what they draw, before any data is read."""

from dataclasses import dataclass

from plume.mechanisms.mechanism import Mechanism
from plume.noise.laplace import DiscreteLaplace
from plume.privacy.calibration import laplace_for, share
from plume.privacy.cost import Cost, laplace_cost
from plume.query import Query
from plume.selection.laplace_threshold import laplace_threshold
from plume.selection.strategy import SelectionStrategy


@dataclass(frozen=True)
class CalibratedMeasure:
    """A mechanism, the noise it draws, and the prefix that keeps its columns apart from other measures'."""

    mechanism: Mechanism
    noise: DiscreteLaplace
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
        return laplace_cost(
            self.mechanism.name,
            scale=self.noise.scale,
            sensitivity=self.mechanism.sensitivity(),
            max_keys_per_user=self.max_keys_per_user,
        )


@dataclass(frozen=True)
class CalibratedQuery:
    """What a pipeline makes a plan of."""

    query: Query
    selection: SelectionStrategy | None
    """How keys are chosen; None if they are public."""
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
    """Share the query's budget out and scale the noise of each part."""
    limit = query.max_keys_per_user
    shares = share(query.budget, measures=len(query.measures), selects_keys=query.public_keys is None)
    selection = None
    if query.public_keys is None:
        selection = laplace_threshold(
            limit, epsilon=shares.selection_epsilon, delta=shares.selection_delta, min_users=query.min_users
        )
    measures = tuple(
        CalibratedMeasure(
            mechanism,
            laplace_for(mechanism.sensitivity(), max_keys_per_user=limit, epsilon=shares.measure_epsilon),
            limit,
            prefix=f"measure_{number}",
        )
        for number, mechanism in enumerate(query.measures, start=1)
    )
    return CalibratedQuery(query, selection, measures)
