"""What accuracy costs: the smallest epsilon with which a key of some size is shown, and its numbers are off by at most what is asked.

Beside `expectation`, which asks the other way round. Made from the query alone too, so it costs nothing and may be shown to anybody.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import pyarrow as pa

from plume.arguments import call_checked
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.cautions import Caution
from plume.choosing.keys_per_user import CANDIDATES
from plume.errors import (
    BoundError,
    BudgetError,
    MeasureError,
    PlumeError,
    RangeError,
    printable,
)
from plume.output.text_table import show
from plume.planning import refuse_other_than_query
from plume.privacy.budget import LEAST_EPSILON, Budget
from plume.query import LIMIT, Query
from plume.root import crossing
from plume.running import explain
from plume.selection.chances import KeysOfUser
from plume.settings import AUTO
from plume.tuning.expectation import LEVEL, refuse_open_numbers
from plume.tuning.goal import Goal, Wanted, goal_of, is_computed
from plume.tuning.nearness import chance_alone, chance_near, chance_shown, share_kept, width
from plume.tuning.people import described_keys, many, refuse_no_list

MOST_EPSILON = 100.0
"""Beyond it a guarantee says nothing, so no larger one is looked for."""
# How near the smallest epsilon the search ends, before it is rounded up to four digits.
_NEAR = 5e-4
# With another kind of noise a smaller epsilon can do where a larger one does not; so far down, in such steps, they are all looked at.
_FARTHEST, _STEP = 1 / 3, 0.95
# Chances are compared as places of a normal distribution, along which they hardly bend.
_NORMAL, _CERTAIN = NormalDist(), 1e-12
_ALL_ROWS = 10**6


@dataclass(frozen=True)
class NeededNumber:
    """What the budget gives one measure."""

    measure: str
    error: float
    """How far off it may be, in its own unit; of dates and timestamps, in days."""
    chance: float
    """How likely it is within that."""
    half_width: float
    """What noise stays within with the chance that was asked for: the half width of such an interval."""
    noise: str


@dataclass(frozen=True)
class TriedLimit:
    """What one limit would cost."""

    max_keys_per_user: int
    epsilon: float | None
    """The smallest epsilon; None if none up to `MOST_EPSILON` is enough."""
    kept: float
    """How much of what these users add counts on average: less than all of it, if they are in more keys than the limit."""


@dataclass(frozen=True, repr=False)
class Need:
    """The smallest budget for an accuracy; `print` it, and run its `query`.

    Errors are those of noise, and of the limit where users are said to be in more keys. What the bounds of measures cut away comes on
    top, and only the data says how much that is.
    """

    query: Query
    """The query with this budget, ready to run."""
    users: int
    """How many users the key has."""
    keys_of_user: KeysOfUser
    """In how many keys each of them is taken to be, or which share of them in how many."""
    values_of_user: int
    """How many values each of them is taken to have in the key, of those that means, variances and quantiles are of."""
    asked_chance: float
    chance: float
    """How likely the key is shown with all its numbers as near as asked: at least what was asked."""
    chance_shown: float
    """How likely it is shown."""
    selection: str
    """The name of the strategy."""
    numbers: tuple[NeededNumber, ...]
    limits: tuple[TriedLimit, ...]
    """What each limit would cost that was tried, the query's own among them."""
    cautions: tuple[Caution, ...]
    """What to be careful about with this budget."""

    @property
    def epsilon(self) -> float:
        """The smallest epsilon, rounded up to four digits."""
        return self.query.budget.epsilon

    @property
    def delta(self) -> float:
        """The query's delta."""
        return self.query.budget.delta

    @property
    def max_keys_per_user(self) -> int:
        """The query's limit, or the one that costs least of those that were tried."""
        return self.query.selection_limit

    def to_arrow(self) -> pa.Table:
        """Give one row for each measure with an error to keep; one row without a measure if there is none."""
        place = {name: value for name, value in self.record().items() if name not in ("numbers", "limits", "cautions")}
        place["keys_of_user"] = described_keys(self.keys_of_user)
        rows = [place | asdict(number) | {"chance_within": number.chance} for number in self.numbers] or [place]
        return pa.Table.from_pylist([row | {"chance": self.chance} for row in rows])

    def record(self) -> dict[str, Any]:
        """Give everything as plain values."""
        names = ("epsilon", "delta", LIMIT, "users", "keys_of_user", "values_of_user", "asked_chance", "chance")
        facts = {name: getattr(self, name) for name in (*names, "chance_shown", "selection")}
        listed = {name: [asdict(one) for one in getattr(self, name)] for name in ("numbers", "limits", "cautions")}
        return facts | listed

    def to_json(self) -> str:
        """Give the record as JSON."""
        return json.dumps(self.record(), indent=2)

    def __str__(self) -> str:
        lines = [_HEAD, "", *(f"{name:<18} {value}" for name, value in self._facts().items())]
        for table in (self._lines(), self._limit_lines()):
            if rows := list(table):
                lines += ["", show(pa.Table.from_pylist(rows), _ALL_ROWS)]
        if self.cautions:
            lines += ["", *map(str, self.cautions)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        from plume.report.sheet import Listing, Sheet, show_sheet  # noqa: PLC0415 - for notebooks only

        tables = ((list(self._lines()), {"number", "noise"}), (list(self._limit_lines()), {" "}))
        listings = [Listing("", rows, frozenset(words)) for rows, words in tables if rows]
        return show_sheet(Sheet(_HEAD, facts=self._facts(), listings=listings, notes=[*map(str, self.cautions)]))

    def _facts(self) -> dict[str, str]:
        shows = _ALWAYS.get(self.selection, f"{self.chance_shown:.2%} ({self.selection})")
        facts = {
            "epsilon": f"{self.epsilon:g}",
            "delta": f"{self.delta:g}",
            LIMIT: f"{self.max_keys_per_user:,}",
            "for a key of": f"{many(self.users, 'user')}, {described_keys(self.keys_of_user)}",
            "is shown": shows,
            "all of it as asked": f"{self.chance:.2%} (asked for: {self.asked_chance:.6g})",
        }
        near = {number.measure for number in self.numbers}
        if any(is_computed(measure) for measure in self.query.measures if measure.name in near):
            facts["values"] = f"{self.values_of_user:,} of each user, spread evenly between the bounds"
        return facts

    def _lines(self) -> Iterator[dict[str, str]]:
        for number in self.numbers:
            yield {
                "number": printable(number.measure),
                "off by at most": f"{number.error:.6g}",
                "chance": f"{number.chance:.2%}",
                "noise": number.noise,
            }

    def _limit_lines(self) -> Iterator[dict[str, str]]:
        if len(self.limits) == 1:
            return
        for one, larger in zip(self.limits, (*self.limits[1:], None), strict=True):
            if one.epsilon is None and larger is not None and larger.epsilon is None:
                continue  # of the limits that are too small the largest says enough
            yield {
                " ": "*" if one.max_keys_per_user == self.max_keys_per_user else "",
                LIMIT: f"{one.max_keys_per_user:,}",
                "epsilon": f"above {MOST_EPSILON:g}" if one.epsilon is None else f"{one.epsilon:g}",
                "counts of what users add": f"{one.kept:.1%}",
            }


_HEAD = "the smallest epsilon for what is asked; no data was read, nothing is spent"
_PUBLIC, _TOTAL = "public keys", "no keys"
_ALWAYS = {_PUBLIC: "always: keys are public", _TOTAL: "always: there are no keys"}


@call_checked()
def need(  # noqa: PLR0913 - what may be asked
    query: Query,
    *,
    users: int,
    error: float | None = None,
    absolute: Mapping[str, float] | None = None,
    totals: Mapping[str, float] | None = None,
    chance: float = LEVEL,
    keys_of_user: KeysOfUser | None = None,
    values_of_user: int = 1,
    limits: Sequence[int] = (),
) -> Need:
    """Find the smallest epsilon with which a key of `users` users is shown and its numbers are off by at most `error`. Reads no data.

    Both together hold with a probability of `chance`. `error` is relative: to `users` for measures that count, to what a key has for those
    in `totals`. `absolute` holds errors of measures in their own units instead; `math.inf` if any will do. The query's own epsilon does
    not matter. Each user is in as many keys as the limit, or in `keys_of_user`, or a share of them in each number: `{5: 0.9, 100: 0.1}`.
    If measures leave the rest of a user's budget to selection, rows are taken to be as large as can be.
    They have `values_of_user` values each in the key that means, variances and quantiles are of, spread evenly between their bounds.

    Further `limits` are tried beside the query's own; the one that costs least is taken, what it cuts away counting as error. If the
    query's is "auto", limits up to `keys_of_user` are tried.
    """
    refuse_other_than_query(query)
    if keys_of_user is None and (query.chooses_limit or limits):
        what = f"{LIMIT} is {AUTO!r}" if query.chooses_limit else "several limits are tried"
        raise BoundError(
            f"{what}; give keys_of_user too, the number of keys of a typical user. No data is read for it."
        )
    keys = query.selection_limit if keys_of_user is None else keys_of_user
    wanted = Wanted(error, absolute or {}, totals or {})
    goal = goal_of(query, wanted, users=users, keys_of_user=keys, values_of_user=values_of_user, chance=chance)
    _refuse_pointless(query, goal)
    return _cheapest(_with_limits(query, goal, limits), goal)


def _with_limits(query: Query, goal: Goal, limits: Sequence[int]) -> list[Query]:
    """List the query with each limit that is tried, from small to large; of their own accord only those of which enough is known."""
    refuse_no_list("[4, 16]", limits=limits)
    given: list[int | str] = [query.max_keys_per_user]
    if query.chooses_limit:
        known = _unknown_cut(query, goal) is None
        given = [*(one for one in CANDIDATES if known and one < goal.most_keys), goal.most_keys]
    tried = {one: replace(query, max_keys_per_user=one) for one in (*given, *limits)}
    for one in tried.values():
        refuse_open_numbers(one)
        if one.selection_limit < goal.most_keys and (refusal := _unknown_cut(one, goal)):
            raise refusal
    return [tried[limit] for limit in sorted(tried, key=int)]


def _with_epsilon(query: Query, epsilon: float) -> Query:
    return replace(query, budget=Budget(epsilon, query.budget.delta))


def _refuse_pointless(query: Query, goal: Goal) -> None:
    """Refuse what every budget reaches, and what none does."""
    if query.has_public_keys and not goal.targets:
        raise MeasureError("keys are public and any error will do, so every epsilon is enough; give an error.")
    if query.min_users > goal.users:
        raise BoundError(
            f"min_users is {query.min_users}, so a key of {many(goal.users, 'user')} is never shown; "
            f"ask for at least {query.min_users} users, or lower min_users."
        )


def _unknown_cut(query: Query, goal: Goal) -> PlumeError | None:
    """Name the first error of which it is not known what a limit adds to it that is below the keys of a user."""
    for measure in query.measures:
        if measure.name not in goal.targets:
            continue
        cut = f"{LIMIT} is below the {goal.most_keys:,} keys of a user, which cuts away part of {measure.name}"
        if is_computed(measure):
            return BoundError(
                f"{cut}, and what that changes depends on values; give a limit of {goal.most_keys} or more."
            )
        if goal.targets[measure.name].truth is None:
            return MeasureError(f"{cut}; give totals={{{measure.name!r}: ...}} too, its value in such a key.")
    return None


def _cheapest(tried: Sequence[Query], goal: Goal) -> Need:
    """Search with each limit, and take the smallest epsilon; of equal ones the one that cuts least."""
    searched = [(one, _smallest_epsilon(one, goal)) for one in tried]
    enough = [(epsilon, -one.selection_limit, one) for one, epsilon in searched if epsilon is not None]
    if not enough:
        raise _not_enough(tried, goal)
    epsilon, _, query = min(enough, key=lambda candidate: candidate[:2])
    limits = tuple(_tried(one, epsilon, goal) for one, epsilon in searched)
    return _need(_with_epsilon(query, epsilon), goal, limits)


def _not_enough(tried: Sequence[Query], goal: Goal) -> BudgetError:
    calibrated = max(
        (calibrate(_with_epsilon(one, MOST_EPSILON)) for one in tried), key=lambda one: chance_near(one, goal)
    )
    lower = ", or change max_keys_per_user" if len(tried) == 1 else ""
    return BudgetError(
        f"no epsilon up to {MOST_EPSILON:g} is enough: at {MOST_EPSILON:g} and delta = {calibrated.query.budget.delta:g}, "
        f"a key of {many(goal.users, 'user')} is shown with a probability of {chance_shown(calibrated, goal):.6g}, "
        f"and with numbers as near as asked with {chance_near(calibrated, goal):.6g}; "
        f"ask for more users, a larger error or a smaller chance{lower}."
    )


def _chance(query: Query, goal: Goal, epsilon: float) -> float:
    if epsilon < LEAST_EPSILON:
        return 0.0
    try:
        calibrated = calibrate(_with_epsilon(query, epsilon))
    except RangeError:  # noise that is too wide to be drawn
        return 0.0
    return chance_near(calibrated, goal)


def _smallest_epsilon(query: Query, goal: Goal) -> float | None:
    """Search where epsilon is enough; then further down, since the default kind of noise can change between (docs/choosing.md)."""

    def missing(log_epsilon: float) -> float:
        chance = _chance(query, goal, min(math.exp(log_epsilon), MOST_EPSILON))
        return _NORMAL.inv_cdf(goal.chance) - _NORMAL.inv_cdf(min(max(chance, _CERTAIN), 1 - _CERTAIN))

    def holds(epsilon: float) -> bool:
        return missing(math.log(epsilon)) <= 0

    if not holds(MOST_EPSILON):
        return None
    smallest = min(math.exp(crossing(missing, 0.0, _NEAR, first_step=1.0)), MOST_EPSILON)
    if query.noise == AUTO and _kinds(query, smallest) != _kinds(query, smallest * _FARTHEST):
        lower = [smallest * _STEP**step for step in range(1, math.ceil(math.log(_FARTHEST, _STEP)))]
        if enough := [epsilon for epsilon in lower if holds(epsilon)]:
            smallest = math.exp(crossing(missing, math.log(enough[-1]), _NEAR))
    rounded = min(_rounded_up(smallest), MOST_EPSILON)
    return rounded if holds(rounded) else smallest


def _kinds(query: Query, epsilon: float) -> set[str]:
    """Name the noise of the measures; none, where it is too wide to be drawn."""
    try:
        return {part.noise.kind for part in calibrate(_with_epsilon(query, max(epsilon, LEAST_EPSILON))).parts}
    except RangeError:
        return set()


def _rounded_up(number: float) -> float:
    digits = 3 - math.floor(math.log10(number))
    return float(math.ceil(Fraction(number) * Fraction(10) ** digits) / Fraction(10) ** digits)


def _tried(query: Query, epsilon: float | None, goal: Goal) -> TriedLimit:
    calibrated = calibrate(_with_epsilon(query, epsilon or MOST_EPSILON))
    return TriedLimit(query.selection_limit, epsilon, share_kept(calibrated, goal))


def _need(query: Query, goal: Goal, limits: tuple[TriedLimit, ...]) -> Need:
    calibrated = calibrate(query)
    return Need(
        query=query,
        users=goal.users,
        keys_of_user=dict(goal.keys_of_users) if len(goal.keys_of_users) > 1 else goal.most_keys,
        values_of_user=goal.values_of_user,
        asked_chance=goal.chance,
        chance=chance_near(calibrated, goal),
        chance_shown=chance_shown(calibrated, goal),
        selection=calibrated.rounds[-1].name if calibrated.rounds else _PUBLIC if query.keys else _TOTAL,
        numbers=tuple(_numbers(calibrated, goal)),
        limits=limits,
        cautions=explain(query).cautions,
    )


def _numbers(calibrated: CalibratedQuery, goal: Goal) -> Iterator[NeededNumber]:
    for measure in calibrated.measures:
        name = measure.mechanism.name
        if name in goal.targets:
            kinds = sorted({part.noise.kind for part in calibrated.parts_of(measure)})
            near = chance_alone(calibrated, measure, goal)
            yield NeededNumber(
                name, float(goal.targets[name].error), near, width(calibrated, measure, goal), ", ".join(kinds)
            )
