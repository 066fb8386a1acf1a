"""A query with its noise: every measure and the selection know what they draw, before any data is read."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from plume.calibration.alternatives import Alternative, best
from plume.calibration.calibrated_part import CalibratedPart, Gaussian, Scaled
from plume.calibration.columns import MeasureColumns, columns_of_measures, values_of
from plume.calibration.default import default_selection, kinds_of_noise, selection_beside
from plume.calibration.required_parts import required_parts, shares_by_part
from plume.calibration.shares import Shares, shares_of
from plume.calibration.tight_composition import Tight
from plume.errors import PlumeBug, RangeError
from plume.mechanisms.grid import STEPS_BITS
from plume.mechanisms.mechanism import Part
from plume.mechanisms.users import counts_all_users
from plume.noise.correlated import CorrelatedGaussian
from plume.noise.gaussian import RoundedGaussian
from plume.plan.aggregates import Count
from plume.plan.expressions import Clamp, Column, Expression, Literal
from plume.plan.nodes import Moved, Size
from plume.privacy.budget import Budget
from plume.privacy.scales import correlated_for, deviation_for, drawable, gaussian_for, laplace_for
from plume.query import Query
from plume.selection.released_users import ReleasedUsers
from plume.selection.rule import EpsilonBudget, JointBudget, Measured, rule_of
from plume.selection.strategy import SelectionStrategy
from plume.settings import AUTO, BASIC, CORRELATED

NoiseFor = Callable[[Part, Fraction], Scaled]


@dataclass(frozen=True)
class CalibratedQuery:
    """What a pipeline makes a plan of."""

    query: Query
    rounds: tuple[SelectionStrategy, ...]
    """How keys are selected, round by round; none if they are public."""
    measures: tuple[MeasureColumns, ...]
    parts: tuple[CalibratedPart, ...]
    max_keys_per_user: int
    """How many keys of one user the noise of measures pays for."""

    @property
    def selecting(self) -> "CalibratedQuery":
        """The same, for as many keys of a user as count when keys are selected."""
        return replace(self, max_keys_per_user=min(self._keys_when_selecting, default=self.max_keys_per_user))

    @property
    def never_cut(self) -> "CalibratedQuery":
        """The same, for as many keys as a user may have whom no bounding ever cuts, neither for selection nor for measures."""
        return replace(self, max_keys_per_user=min((self.max_keys_per_user, *self._keys_when_selecting)))

    @property
    def _keys_when_selecting(self) -> tuple[int, ...]:
        return tuple(strategy.max_keys_per_user for strategy in self.rounds)

    @property
    def releasing(self) -> ReleasedUsers | None:
        """The strategy that selects keys by the released number of users, if it is that one."""
        return next((strategy for strategy in self.rounds if isinstance(strategy, ReleasedUsers)), None)

    @property
    def released_by_selection(self) -> tuple[str, ...]:
        """The columns of integers that selection noises and releases, so that nothing else draws noise for them."""
        counted = (one for one in self.measures if counts_all_users(one.mechanism))
        return tuple(dict.fromkeys(name for one in counted for name in one.state.values())) if self.releasing else ()

    @property
    def noised_parts(self) -> tuple[CalibratedPart, ...]:
        """The parts that get their noise once keys are selected."""
        return tuple(part for part in self.parts if not set(part.columns) & set(self.released_by_selection))

    @property
    def keys(self) -> tuple[str, ...]:
        """The plan's key columns; the caller's own names stay outside of it."""
        return tuple(self.key_inputs)

    @property
    def key_inputs(self) -> dict[str, Expression]:
        """What each of them is made of; a query without keys has one that is the same for all rows."""
        inputs: list[Expression] = [Column(name) for name in self.query.key_columns] or [Literal(1)]
        return {f"key_{number}": key for number, key in enumerate(inputs, start=1)}

    @property
    def unnamed_keys(self) -> tuple[str, ...]:
        """Those that the caller did not ask for."""
        return self.keys[len(self.query.keys) :]

    @property
    def values(self) -> dict[str, str]:
        """The plan's column for each value column of the table."""
        return values_of(self.query)

    @property
    def clips(self) -> bool:
        """Whether users above the limit count in all of their keys, and are clipped: all noise must be paid in squares."""
        return all(isinstance(part.noise, Gaussian) for part in self.parts)

    @property
    def most_keys(self) -> float:
        """How many keys of a user count at all, each in full or shrunk (docs/guarantees/clipping.md)."""
        return math.inf if self.clips else self.max_keys_per_user

    def parts_of(self, measure: MeasureColumns) -> tuple[CalibratedPart, ...]:
        """The parts that a measure is made of."""
        columns = {measure.covered(part) for part in measure.mechanism.parts()}
        return tuple(part for part in self.parts if part.columns in columns)


def calibrate(query: Query, shares: Shares | None = None) -> CalibratedQuery:
    """Decide which noise is drawn and how keys are selected, and scale the noise of each part to its share of the budget.

    What the query leaves open is decided by the query alone: `default.py` says how. All its numbers must be there. Where some of them
    were chosen within the budget, `shares` leaves that aside, and no account can know them; else all of it is shared out.
    """
    selection = default_selection(query) if shares is None else None
    if selection is not None:
        # Its noise may be too wide to be drawn, and shares may leave it too little, where others can still serve.
        with suppress(RangeError):
            return replace(calibrate(replace(query, selection=selection)), query=query)
    shared = _Shared(query, shares or shares_of(query))
    ways = ((selection_beside(query, noise), noise) for noise in kinds_of_noise(query))
    return best((one for way in ways for one in _alternatives(shared, *way)), error=_error)


def with_other_numbers(calibrated: CalibratedQuery, query: Query, shares: Shares) -> CalibratedQuery:
    """Select keys as before, and scale Gaussian noise for the numbers of another query, which were chosen after keys were selected.

    Guarantee: each part spends its share of the budget, whatever the numbers are. docs/guarantees/auto-limit.md.
    """
    return _with_gaussian_measures(_Shared(query, shares), calibrated.rounds)


@dataclass(frozen=True)
class _Shared:
    """A query, and the shares of its budget."""

    query: Query
    shares: Shares


def _alternatives(shared: _Shared, strategy: str | None, noise: str) -> Iterator[Alternative[CalibratedQuery]]:
    """List what composes a strategy and noise: the formula for all-Gaussian plans, adding epsilons up, dp-accounting."""
    query, rule = shared.query, None if strategy is None else rule_of(strategy)
    if noise == CORRELATED:
        yield Alternative(partial(_with_correlated, shared))
        return
    if noise == "gaussian" and (rule is None or rule.jointly):
        yield Alternative(partial(_with_gaussian, shared, strategy))
        return
    if noise == "laplace" and (rule is None or rule.by_epsilon):
        yield Alternative(partial(_with_laplace, shared, strategy))
    # Between the best of both families composing takes seconds and gains little, so it is for those who ask for a combination.
    named = query.noise != AUTO or query.selection != AUTO
    composes = rule is None or rule.composed is not None
    if named and composes and query.composition != BASIC and query.budget.delta > 0:
        shares, spread = shares_by_part(query, shared.shares), _spread(shared)
        tight = Tight(query.budget, query.selection_limit, shares, strategy, noise, query.min_users, spread)
        yield Alternative(
            estimate=lambda: _with_tight(shared, tight, tight.estimated_size()),
            exact=lambda: _with_tight(shared, tight, tight.smallest_size()),
        )


def _with_laplace(shared: _Shared, strategy: str | None) -> CalibratedQuery:
    query, epsilon, limit = shared.query, shared.query.budget.exact_epsilon, shared.query.selection_limit
    rounds: tuple[SelectionStrategy, ...] = ()
    if strategy is not None and (by_epsilon := rule_of(strategy).by_epsilon):
        spent = epsilon * shared.shares.selection
        rounds = by_epsilon(EpsilonBudget(limit, query.min_users, spent, query.budget.delta))
    return _calibrated(
        shared,
        lambda part, share: laplace_for(part.absolute, max_keys_per_user=limit, epsilon=epsilon * share),
        rounds,
    )


def _with_gaussian(shared: _Shared, strategy: str | None) -> CalibratedQuery:
    query, share, budget = shared.query, shared.shares.selection, budget_of_gaussian_noise(shared.query)
    made = _with_gaussian_measures(shared, ())
    if strategy is not None and (jointly := rule_of(strategy).jointly):
        given = JointBudget(
            rule_of(strategy).keys(query.selection_limit),
            query.min_users,
            sigma_of=lambda part: deviation_for(budget, share * part),
            others=1 / deviation_for(budget, 1 - share),  # the measures, and choices
            epsilon=query.budget.epsilon,
            delta=query.budget.delta,
            measured=partial(_measured, made),
        )
        return replace(made, rounds=jointly(given))
    return made


def moved_by_size(measures: tuple[MeasureColumns, ...], parts: tuple[CalibratedPart, ...]) -> tuple[Moved, ...] | None:
    """Say of each part the most that a user moves, and by which size of rows; None, unless all noise is paid in squares."""
    if not all(isinstance(part.noise, RoundedGaussian) for part in parts):
        return None
    return tuple(Moved(part.columns, _size_of(part, measures), part.moved) for part in parts)


def _size_of(part: CalibratedPart, measures: tuple[MeasureColumns, ...]) -> Size:
    """The one size by which a part shrinks: measures that share a column must agree on it."""
    sizes = {
        one.size for one in measures if any(set(one.covered(p)) & set(part.columns) for p in one.mechanism.parts())
    }
    if len(sizes) != 1:
        raise PlumeBug("measures that share a column are of different sizes")
    return sizes.pop()


def _measured(calibrated: CalibratedQuery) -> tuple[Measured, ...]:
    """Add up what measures of each size move."""
    moved: dict[Size, Fraction] = {}
    for part in moved_by_size(calibrated.measures, calibrated.parts) or ():
        moved[part.size] = moved.get(part.size, Fraction()) + part.squared
    least = {one.size: _least(one) for one in calibrated.measures}
    return tuple(Measured(size, squared, calibrated.max_keys_per_user, least[size]) for size, squared in moved.items())


def _least(measure: MeasureColumns) -> int:
    """Say what every row counts for at the least: one, where any record counts, as for users and records without a condition."""
    counted = measure.mechanism.combine_raw().values()
    match measure.size.of:
        case (Literal(1),):
            return 1
        case (Clamp(Column(), 0, high),) if high >= 1 and all(isinstance(one, Count) for one in counted):
            return 1
        case _:
            return 0


def budget_of_gaussian_noise(query: Query) -> Budget:
    """Say what the noise of an all-Gaussian query may spend together.

    With two rounds a little of delta is kept back: what a user can do in the second round depends on the first, and with all of delta
    spent on noise no threshold would be high enough (docs/guarantees/two-round-weighted-gaussian.md).
    """
    budget, strategy = query.budget, selection_beside(query, "gaussian")
    kept_back = 0.0 if strategy is None else rule_of(strategy).delta_kept_back
    return Budget(budget.epsilon, budget.delta - kept_back * budget.delta)


def _with_gaussian_measures(shared: _Shared, rounds: tuple[SelectionStrategy, ...]) -> CalibratedQuery:
    """Give every part Gaussian noise by its share."""
    limit, budget = shared.query.selection_limit, budget_of_gaussian_noise(shared.query)
    return _calibrated(
        shared,
        lambda part, share: gaussian_for(math.sqrt(part.squared), max_keys_per_user=limit, budget=budget, share=share),
        rounds,
    )


def _with_correlated(shared: _Shared) -> CalibratedQuery:
    keys, limit, budget = shared.query.known_keys or 1, shared.query.selection_limit, shared.query.budget
    scale = partial(correlated_for, keys=keys, max_keys_per_user=limit, budget=budget)
    return _calibrated(shared, lambda part, share: scale(math.sqrt(part.squared), share=share), ())


def _with_tight(shared: _Shared, tight: Tight, size: float) -> CalibratedQuery:
    return _calibrated(shared, partial(tight.noise_for, size=size), tight.rounds(size))


def _spread(shared: _Shared) -> tuple[bool, ...]:
    return tuple(one.part.spread for one in required_parts(shared.query, shared.shares))


def _calibrated(shared: _Shared, noise_for: NoiseFor, rounds: tuple[SelectionStrategy, ...]) -> CalibratedQuery:
    """Give every part its noise, in finer steps where contributions are clipped."""
    query, limit = shared.query, shared.query.selection_limit
    parts = tuple(
        CalibratedPart(one.part, one.columns, one.measures, noise_for(one.part, one.share), limit, bits=0)
        for one in required_parts(query, shared.shares)
    )
    calibrated = CalibratedQuery(query, rounds, columns_of_measures(query), parts, limit)
    return replace(calibrated, parts=tuple(map(_finer, parts))) if calibrated.clips else calibrated


def _finer(part: CalibratedPart) -> CalibratedPart:
    """Count so fine that what a user can change is 2**20 steps or more: a contribution that shrinks a little must not vanish."""
    if part.part.leaves:
        return part  # tallies weigh leaves that finely anyway
    bits = max(0, STEPS_BITS - (part.part.squared.bit_length() - 1) // 2)
    if isinstance(part.noise, CorrelatedGaussian):
        return replace(part, noise=part.noise.times(1 << bits), bits=bits)
    return replace(part, noise=replace(part.noise, scale=drawable(part.noise.scale * (1 << bits))), bits=bits)


def _error(calibrated: CalibratedQuery) -> float:
    """The mean absolute noise of all parts together times the users a key needs.

    Both grow with the noise; an alternative that is better at one and worse at the other is taken if it gains more than it loses.
    """
    return mean_noise(calibrated) * (calibrated.rounds[-1].users_for_even_chance if calibrated.rounds else 1)


def mean_noise(calibrated: CalibratedQuery) -> float:
    """The mean absolute noise of all parts together, each in units of what one user can change."""
    return math.fsum(part.mean_noise / (1 << part.bits) / part.part.absolute for part in calibrated.parts)
