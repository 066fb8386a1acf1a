"""How likely a key is shown, and how likely its numbers are near what they would be without noise and limits.

Its own file because it is chances alone: what is asked comes from `goal`, and `need` looks for the budget.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import bdtr

from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import CalibratedQuery
from plume.calibration.columns import MeasureColumns
from plume.mechanisms.mean import Mean
from plume.mechanisms.quantiles import Quantiles
from plume.mechanisms.scale import Floats
from plume.mechanisms.variance import StandardDeviation, Variance
from plume.noise.noise import half_width
from plume.plan.types import Kind
from plume.root import smallest, within
from plume.selection.strategy import SelectionStrategy
from plume.tuning.goal import Goal, Target, error_unit, is_computed
from plume.tuning.made_up_trees import chance_of_quantiles

# Where a limit cuts, the number of users who count in a key is looked at in this many places, up to this many deviations from its mean.
_PLACES, _DEVIATIONS = 301, 9
# The law of noise is tabulated at this many places, between which it hardly bends, as far as all but this share of it.
_TABLED, _BEYOND = 513, 1e-9
# Values that are spread evenly over a range have a variance of this part of the largest there can be.
_EVENLY = 1 / 3
_NEAR = 1e-3


def chance_shown(calibrated: CalibratedQuery, goal: Goal) -> float:
    """Say how likely a key of such users is shown."""
    return float(_points(calibrated, goal)[1] @ _shown(calibrated, goal))


def chance_near(calibrated: CalibratedQuery, goal: Goal) -> float:
    """Say how likely a key is shown with all numbers as near as asked: the noise of selection and of every part is independent."""
    near = _shown(calibrated, goal)
    computed = [measure for measure in _targeted(calibrated, goal) if is_computed(measure.mechanism)]
    others = [measure for measure in _targeted(calibrated, goal) if not is_computed(measure.mechanism)]
    alone = dict[tuple[str, ...], Floats]()
    for measure in others:
        (part,) = calibrated.parts_of(measure)
        # Measures that are made of the same part have the same noise.
        alone[part.columns] = np.minimum(_near(calibrated, measure, goal), alone.get(part.columns, 1.0))
    for of_tree in _by_part(calibrated, computed, "leaves"):
        near = near * chance_of_quantiles(_part(calibrated, of_tree[0], "leaves"), _quantiles(of_tree), goal)
    for of_number in _by_part(calibrated, computed, "values"):
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
    kept = (_kept(calibrated, measure, goal)[0] for measure in _targeted(calibrated, goal))
    return min(kept, default=1.0) if cuts(calibrated, goal) else 1.0


def cuts(calibrated: CalibratedQuery, goal: Goal) -> bool:
    """Return whether some of these users are in more keys than the limit."""
    return goal.most_keys > calibrated.max_keys_per_user


def _targeted(calibrated: CalibratedQuery, goal: Goal) -> Iterator[MeasureColumns]:
    return (measure for measure in calibrated.measures if measure.mechanism.name in goal.targets)


def _points(calibrated: CalibratedQuery, goal: Goal) -> tuple[Floats, Floats]:
    """How many of the users count in a key, in standard deviations from the mean, and how likely: all of them, if nothing is cut.

    Selection and measures may cut at different numbers of keys; users are drawn in the same order for both.
    """
    limit = calibrated.never_cut.max_keys_per_user
    if goal.most_keys <= limit:
        return np.zeros(1), np.ones(1)
    reach = np.linspace(-_DEVIATIONS, _DEVIATIONS, _PLACES)
    if len(goal.keys_of_users) > 1:
        likely = np.exp(-(reach**2) / 2)
        return reach, likely / likely.sum()
    chance = limit / goal.most_keys
    mean, spread = goal.users * chance, math.sqrt(goal.users * chance * (1 - chance))
    counting = np.unique(np.clip(np.rint(mean + reach * spread), 0, goal.users))
    below = bdtr(np.floor((counting[1:] + counting[:-1]) / 2), goal.users, chance)
    return (counting - mean) / spread, np.diff(below, prepend=0.0, append=1.0)


def _counting(goal: Goal, most: float, weight: Callable[[int], float]) -> tuple[float, float]:
    """The mean and the standard deviation of what the users of a key weigh who count in it, if each counts in up to `most` keys."""
    groups = [(goal.users * share, min(1.0, most / keys), weight(keys)) for keys, share in goal.keys_of_users]
    mean = math.fsum(users * chance * each for users, chance, each in groups)
    return mean, math.sqrt(math.fsum(users * chance * (1 - chance) * each**2 for users, chance, each in groups))


def _shown(calibrated: CalibratedQuery, goal: Goal) -> Floats:
    """The chance to be shown by how many of the users count in the key, from few to many; public keys always are."""
    places, _ = _points(calibrated, goal)
    shown = np.zeros(places.shape) if calibrated.rounds else np.ones(places.shape)
    for strategy in calibrated.rounds:
        mean, spread = _counting(goal, strategy.max_keys_per_user, strategy.weight_of)
        weights = np.rint(mean + places * spread - _left_out(strategy, goal)).astype(np.int64)
        shown = shown + (1 - shown) * strategy.chance(np.maximum(weights, 0))
    return shown


def _left_out(strategy: SelectionStrategy, goal: Goal) -> float:
    """What the users weigh who are left out: those with the largest weights, who are in the fewest keys."""
    left, weights = float(strategy.left_out), 0.0
    for keys, share in goal.keys_of_users:
        users = min(left, goal.users * share * min(1.0, strategy.max_keys_per_user / keys))
        left, weights = left - users, weights + users * strategy.weight_of(keys)
    return weights + left * strategy.weight_of(goal.most_keys)


def _kept(calibrated: CalibratedQuery, measure: MeasureColumns, goal: Goal) -> tuple[float, float]:
    """How much of what users add to a measure counts, if all their keys are shown: mean and standard deviation."""
    limit, most = calibrated.max_keys_per_user, calibrated.most_keys
    (part,), truth = calibrated.parts_of(measure), goal.targets[measure.mechanism.name].truth
    adds = 1.0  # of the most that a user can add
    if truth is not None and not part.part.spread:
        adds = min(1.0, truth / goal.users / (part.part.absolute * float(part.part.unit)))

    def counts(keys: int) -> float:
        return min(1.0, math.sqrt(limit / keys) / adds) if calibrated.clips else 1.0

    mean, spread = _counting(goal, most, counts)
    return mean / goal.users, spread / goal.users


def _near(calibrated: CalibratedQuery, measure: MeasureColumns, goal: Goal) -> Floats:
    """The chance that a measure of one part is as near as asked, by how many of the users count in the key."""
    (part,), target = calibrated.parts_of(measure), goal.targets[measure.mechanism.name]
    columns = len(measure.mechanism.columns)
    if not cuts(calibrated, goal):
        return np.full(_points(calibrated, goal)[0].shape, part.chance_within(target.error) ** columns)
    mean, spread = _kept(calibrated, measure, goal)
    lost = np.clip(1 - mean - _points(calibrated, goal)[0] * spread, 0, 1) * (target.truth or 0.0)  # it is known then
    return np.array([part.chance_within(target.error, lost=Fraction(one)) ** columns for one in lost.tolist()])


def _allowed(calibrated: CalibratedQuery, measures: list[MeasureColumns], goal: Goal) -> dict[tuple[str, ...], float]:
    """How far off each part may be by itself, in its own steps."""
    found = dict[tuple[str, ...], float]()
    for measure in measures:
        (part,) = calibrated.parts_of(measure)
        error = float(goal.targets[measure.mechanism.name].error / part.part.unit)
        found[part.columns] = min(error, found.get(part.columns, math.inf))
    return found


def _by_part(calibrated: CalibratedQuery, measures: list[MeasureColumns], name: str) -> Iterator[list[MeasureColumns]]:
    """Put measures together that are made of the same part: a number of values they divide by, or a tree they walk down."""
    found = dict[tuple[str, ...], list[MeasureColumns]]()
    for measure in measures:
        if name in {part.part.name for part in calibrated.parts_of(measure)}:
            found.setdefault(_part(calibrated, measure, name).columns, []).append(measure)
    yield from found.values()


def _quantiles(measures: list[MeasureColumns]) -> list[Quantiles]:
    return [measure.mechanism for measure in measures if isinstance(measure.mechanism, Quantiles)]


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
