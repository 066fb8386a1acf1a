"""How likely a key is shown, and how likely its numbers are near what they would be without noise and limits.

Its own file because it is chances alone: what is asked comes from `asked`, and `need` looks for the budget.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import bdtr

from plume.calibration.calibrated_query import CalibratedPart, CalibratedQuery
from plume.calibration.columns import MeasureColumns
from plume.mechanisms.mean import Mean
from plume.mechanisms.scale import Floats
from plume.mechanisms.variance import StandardDeviation, Variance
from plume.noise.noise import half_width
from plume.plan.types import Kind
from plume.root import smallest, within
from plume.selection.chances import chance_of_users
from plume.tuning.asked import Goal, Target, error_unit, is_computed

# Where a limit cuts, the number of users who count in a key is looked at in so many places, as many standard deviations from its mean.
_PLACES, _DEVIATIONS = 301, 9
# The law of noise is tabulated at so many places, between which it hardly bends, as far as all but this share of it.
_TABLED, _BEYOND = 513, 1e-9
# Values that are spread evenly over a range have a variance of so much of the largest there can be.
_EVENLY = 1 / 3
_NEAR = 1e-3


def chance_shown(calibrated: CalibratedQuery, goal: Goal) -> float:
    """Say how likely a key of such users is shown."""
    return float(_points(calibrated, goal)[1] @ _shown(calibrated, goal))


def chance_near(calibrated: CalibratedQuery, goal: Goal) -> float:
    """Say how likely a key is shown with all numbers as near as asked: the noise of selection and of every part is independent."""
    near = _shown(calibrated, goal)
    computed = [measure for measure in _asked(calibrated, goal) if is_computed(measure.mechanism)]
    others = [measure for measure in _asked(calibrated, goal) if not is_computed(measure.mechanism)]
    alone = dict[tuple[str, ...], Floats]()
    for measure in others:
        (part,) = calibrated.parts_of(measure)
        # Measures that are made of the same part have the same noise.
        alone[part.columns] = np.minimum(_near(calibrated, measure, goal), alone.get(part.columns, 1.0))
    for of_number in _by_number(calibrated, computed):
        together = _Together(calibrated, goal, of_number, _allowed(calibrated, others, goal))
        for columns in together.columns:
            alone.pop(columns, None)
        near = near * together.chance()
    return float(_points(calibrated, goal)[1] @ np.prod([near, *alone.values()], axis=0))


def chance_alone(calibrated: CalibratedQuery, measure: MeasureColumns, goal: Goal) -> float:
    """Say how likely one measure of a key that is shown is as near as asked."""
    name = measure.mechanism.name
    one = replace(goal, targets={name: goal.targets[name]})
    return chance_near(replace(calibrated, rounds=()), one)


def width(calibrated: CalibratedQuery, measure: MeasureColumns, goal: Goal) -> float:
    """Find what noise alone stays within with the chance that is asked for."""
    if not is_computed(measure.mechanism):
        (part,) = calibrated.parts_of(measure)
        return float(part.half_width(goal.chance))
    name, most = measure.mechanism.name, measure.mechanism.extent / error_unit(measure.mechanism)

    def holds(error: float) -> bool:
        target = replace(goal.targets[name], error=Fraction(error))
        return chance_alone(calibrated, measure, replace(goal, targets={name: target})) >= goal.chance

    return min(most, smallest(holds, start=most / 8, close=within(_NEAR)))


def share_kept(calibrated: CalibratedQuery, goal: Goal) -> float:
    """Say how much the limit leaves, on average, of what these users add to the measure that it cuts most."""
    if not cuts(calibrated, goal):
        return 1.0
    return min((math.prod(_kept(calibrated, measure, goal)) for measure in _asked(calibrated, goal)), default=1.0)


def cuts(calibrated: CalibratedQuery, goal: Goal) -> bool:
    """Return whether these users are in more keys than the limit."""
    return goal.keys_of_user > calibrated.max_keys_per_user


def _asked(calibrated: CalibratedQuery, goal: Goal) -> Iterator[MeasureColumns]:
    return (measure for measure in calibrated.measures if measure.mechanism.name in goal.targets)


def _points(calibrated: CalibratedQuery, goal: Goal) -> tuple[Floats, Floats]:
    """How many of the users count in a key, in standard deviations from the mean, and how likely: all of them, if nothing is cut."""
    if not cuts(calibrated, goal):
        return np.zeros(1), np.ones(1)
    chance = calibrated.max_keys_per_user / goal.keys_of_user
    mean, spread = _binomial(goal.users, chance)
    reach = np.linspace(-_DEVIATIONS, _DEVIATIONS, _PLACES)
    counting = np.unique(np.clip(np.rint(mean + reach * spread), 0, goal.users))
    below = bdtr(np.floor((counting[1:] + counting[:-1]) / 2), goal.users, chance)
    return (counting - mean) / spread, np.diff(below, prepend=0.0, append=1.0)


def _binomial(users: int, chance: float) -> tuple[float, float]:
    """The mean and the standard deviation of how many of them count."""
    return users * chance, math.sqrt(users * chance * (1 - chance))


def _shown(calibrated: CalibratedQuery, goal: Goal) -> Floats:
    """The chance to be shown by how many of the users count in the key, from few to many."""
    limit = calibrated.max_keys_per_user
    users = np.rint(_counting(calibrated, goal, min(1.0, limit / goal.keys_of_user)))
    return chance_of_users(calibrated.rounds, users.astype(np.int64), keys_of_user=min(goal.keys_of_user, limit))


def _counting(calibrated: CalibratedQuery, goal: Goal, chance: float) -> Floats:
    """How many of the users count, each with a chance, from few to many."""
    (mean, spread), (places, _) = _binomial(goal.users, chance), _points(calibrated, goal)
    counting: Floats = np.clip(mean + places * spread, 0, goal.users)
    return counting


def _kept(calibrated: CalibratedQuery, measure: MeasureColumns, goal: Goal) -> tuple[float, float]:
    """The chance that a user above the limit counts in a key, and what is left of what they add to it, if all their keys are shown."""
    limit, most = calibrated.max_keys_per_user, calibrated.keys_before_clipping
    (part,) = calibrated.parts_of(measure)
    truth = goal.targets[measure.mechanism.name].truth
    adds = (
        1.0 if part.part.spread or truth is None else truth / goal.users / (part.part.absolute * float(part.part.unit))
    )
    counting = min(goal.keys_of_user, most)
    shrunk = math.sqrt(limit / counting) / min(adds, 1.0) if calibrated.clips else 1.0
    return min(1.0, most / goal.keys_of_user), min(1.0, shrunk)


def _near(calibrated: CalibratedQuery, measure: MeasureColumns, goal: Goal) -> Floats:
    """The chance that a measure of one part is as near as asked, by how many of the users count in the key."""
    (part,), target = calibrated.parts_of(measure), goal.targets[measure.mechanism.name]
    counted, shrunk = _kept(calibrated, measure, goal)
    lost = 1 - _counting(calibrated, goal, counted) / goal.users * shrunk
    truth = target.truth or 0.0  # where a limit cuts, it is known
    columns = len(measure.mechanism.columns)
    return np.array([part.chance_within(target.error, lost=Fraction(truth * one)) ** columns for one in lost.tolist()])


def _allowed(calibrated: CalibratedQuery, measures: list[MeasureColumns], goal: Goal) -> dict[tuple[str, ...], float]:
    """How far off each part may be by itself, in its own steps."""
    found = dict[tuple[str, ...], float]()
    for measure in measures:
        (part,) = calibrated.parts_of(measure)
        error = float(goal.targets[measure.mechanism.name].error / part.part.unit)
        found[part.columns] = min(error, found.get(part.columns, math.inf))
    return found


def _by_number(calibrated: CalibratedQuery, measures: list[MeasureColumns]) -> Iterator[list[MeasureColumns]]:
    """Put measures together that divide by the same noised number of values."""
    found = dict[tuple[str, ...], list[MeasureColumns]]()
    for measure in measures:
        found.setdefault(_part(calibrated, measure, "values").columns, []).append(measure)
    yield from found.values()


def _part(calibrated: CalibratedQuery, measure: MeasureColumns, name: str) -> CalibratedPart:
    return next(part for part in calibrated.parts_of(measure) if part.columns == (measure.state[name],))


@dataclass(frozen=True)
class _Law:
    """How likely noise on a part is below each of many places, in steps of the part."""

    edges: Floats
    below: Floats

    def chance(self, low: Floats | float, high: Floats | float) -> Floats:
        """Say how likely noise is between two places."""
        found: Floats = np.maximum(self._below(high) - self._below(low), 0)
        return found

    def pieces(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Cut the noise between two places into pieces: where each is, and how likely; a row for each pair of places."""
        edges = np.clip(self.edges, low[:, np.newaxis], high[:, np.newaxis])
        return (edges[:, 1:] + edges[:, :-1]) / 2, np.maximum(np.diff(self._below(edges), axis=1), 0)

    def _below(self, places: Floats | float) -> Floats:
        return np.asarray(np.interp(places, self.edges, self.below, left=0.0, right=1.0), np.float64)


def _law(part: CalibratedPart) -> _Law:
    """Tabulate the law of the noise between whole steps of a part, to which finer ones are rounded after the noise."""
    finer = 1 << part.bits
    reach = math.ceil(half_width(part.noise, 1 - _BEYOND) / finer) + 1
    edges = np.unique(np.rint(np.linspace(-reach, reach, _TABLED))) + 0.5
    return _Law(edges, np.array([1 - part.noise.tail(math.ceil(Fraction(edge) * finer)) for edge in edges.tolist()]))


@dataclass(frozen=True)
class _Together:
    """Means and variances that divide by the same number of values, and so are near together or off together."""

    calibrated: CalibratedQuery
    goal: Goal
    measures: list[MeasureColumns]
    allowed: dict[tuple[str, ...], float]
    """How far off each part may be, beside what these measures ask for."""

    @property
    def columns(self) -> set[tuple[str, ...]]:
        """The columns of all parts."""
        return {part.columns for measure in self.measures for part in self.calibrated.parts_of(measure)}

    def chance(self) -> float:
        """Say how likely all of them are as near as asked: the noise on their number first, then that on each total, then on squares."""
        one = self.measures[0].mechanism
        assert isinstance(one, Mean | Variance)  # noqa: S101 - nothing else is computed from a number of values here
        values = float(self.goal.users * min(self.goal.values_of_user, one.max_per_key))
        part = _part(self.calibrated, self.measures[0], "values")
        most = np.array([self.allowed.get(part.columns, math.inf)])
        noise, likely = _law(part).pieces(-most, most)
        number = np.maximum(values + noise[0], 1)
        totals = dict[tuple[str, ...], list[MeasureColumns]]()
        for measure in self.measures:
            totals.setdefault(_part(self.calibrated, measure, "total").columns, []).append(measure)
        near = [self._near(of_total, values, number) for of_total in totals.values()]
        return float(likely[0] @ np.prod(near, axis=0))

    def _near(self, measures: list[MeasureColumns], values: float, number: Floats) -> Floats:
        """Say for each noised number of values how likely the measures of one total are near."""
        part = _part(self.calibrated, measures[0], "total")
        means = [one.mechanism for one in measures if isinstance(one.mechanism, Mean)]
        targets = [(mean, self.goal.targets[mean.name]) for mean in means]
        distance = next((_distance(mean, target) for mean, target in targets), 0.0)
        allowed = np.full(number.shape, self.allowed.get(part.columns, math.inf))
        low, high = -allowed, allowed
        for mean, target in targets:
            error, most = _error_of_mean(mean, target), float(mean.extent / 2 / mean.scale.unit)
            # Beyond its bounds a mean is moved into them.
            if distance - error > -most:
                low = np.maximum(low, number * (distance - error) - values * distance)
            if distance + error < most:
                high = np.minimum(high, number * (distance + error) - values * distance)
        squares = [one for one in measures if isinstance(one.mechanism, Variance)]
        if not squares:
            return _law(part).chance(low, high)
        noise, likely = _law(part).pieces(low, np.maximum(low, high))
        means_then = (values * distance + noise) / number[:, np.newaxis]
        near: Floats = np.sum(likely * self._near_squares(squares, values, number, distance, means_then), axis=1)
        return near

    def _near_squares(
        self, measures: list[MeasureColumns], values: float, number: Floats, distance: float, means: Floats
    ) -> Floats:
        """Say for each noised number of values and each noised mean how likely variances are near."""
        part, variances = _part(self.calibrated, measures[0], "squares"), [one.mechanism for one in measures]
        low, high = np.full(means.shape, -math.inf), np.full(means.shape, math.inf)
        for variance in variances:
            assert isinstance(variance, Variance)  # noqa: S101 - as they were chosen
            unit, step = float(part.part.unit), float(variance.scale.unit)
            truth = _variance(variance, self.goal.targets[variance.name], distance * step)
            exact = values * (truth + (distance * step) ** 2 - variance.mean_square(0)) / unit
            most = variance.extent**2 if isinstance(variance, StandardDeviation) else variance.extent
            off = np.clip(means, -variance.scale.largest, variance.scale.largest) * step
            least, largest = _variances_near(variance, self.goal.targets[variance.name], truth)
            # What the squares must then be: their mean less the centre, times the number of values.
            must = [
                number[:, np.newaxis] * (edge + off**2 - variance.mean_square(0)) / unit - exact
                for edge in (least, largest)
            ]
            low = np.maximum(low, must[0]) if least > 0 else low
            high = np.minimum(high, must[1]) if largest < most else high
        return _law(part).chance(low, np.maximum(low, high))


def _distance(mean: Mean, target: Target) -> float:
    """How far a mean is from the middle of its bounds, in steps: not at all, if it is not known."""
    return 0.0 if target.truth is None else float((target.truth - mean.scale.middle) / mean.scale.unit)


def _error_of_mean(mean: Mean, target: Target) -> float:
    """How far off a mean may be before it is released, in steps: dates are rounded to whole days."""
    error = target.error
    if mean.scale.kind is Kind.DATE:
        error = math.floor(error) + Fraction(1, 2)
    return float(error * error_unit(mean) / mean.scale.unit)


def _variance(variance: Variance, target: Target, distance: float) -> float:
    """What a variance is in such a key: what is said of it, or that of values that are spread evenly, as far as their mean allows."""
    most = (variance.scale.high / 2 - variance.scale.low / 2) ** 2
    if target.truth is None:
        return min(_EVENLY * most, most - distance**2)
    return target.truth**2 if isinstance(variance, StandardDeviation) else target.truth


def _variances_near(variance: Variance, target: Target, truth: float) -> tuple[float, float]:
    """Between which variances what is released is as near as asked."""
    error = float(target.error)
    if isinstance(variance, StandardDeviation):
        root = math.sqrt(truth)
        return max(0.0, root - error) ** 2, (root + error) ** 2
    return truth - error, truth + error
