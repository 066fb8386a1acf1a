"""What accuracy costs: the smallest epsilon with which a key of some size is shown, and its numbers are off by at most what is asked.

Beside `expectation`, which asks the other way round. Made from the query alone too, so it costs nothing and may be shown to anybody.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.errors import BoundError, BudgetError, MeasureError, RangeError, UsageError, printable, shown
from plume.mechanisms.mechanism import Mechanism
from plume.output.text_table import show
from plume.privacy.budget import LEAST_EPSILON, Budget
from plume.query import LARGEST_BOUND, Query
from plume.root import Holds, smallest, within
from plume.selection.chances import chance_of_users
from plume.settings import AUTO
from plume.tuning.expectation import LEVEL, refuse_bad_number, refuse_open_numbers

MOST_EPSILON = 100.0
"""Beyond it a guarantee says nothing, so no larger one is looked for."""
MOST_CHANCE = 0.999999
_MOST_USERS = 10**12
# How near the smallest epsilon the search ends, before it is rounded up to four digits.
_NEAR = 5e-4
# With another kind of noise a smaller epsilon can do where a larger one does not; so far down, in such steps, they are all looked at.
_FARTHEST, _STEP = 1 / 3, 0.95
_ALL_ROWS = 10**6


@dataclass(frozen=True)
class NeededNumber:
    """What the budget gives one measure."""

    measure: str
    error: float
    """How far off it may be, in its own unit."""
    chance: float
    """How likely it is within that."""
    half_width: float
    """What noise stays within with the chance that was asked for: the half width of such an interval."""
    noise: str


@dataclass(frozen=True, repr=False)
class Need:
    """The smallest budget for an accuracy; `print` it, and run its `query`.

    Errors are those of noise. What bounding cuts away comes on top, and only the data says how much that is.
    """

    query: Query
    """The query with this budget, ready to run."""
    users: int
    """How many users the key has."""
    keys_of_user: int
    """In how many keys each of them is taken to be."""
    asked_chance: float
    chance: float
    """How likely the key is shown with all its numbers as near as asked: at least what was asked."""
    chance_shown: float
    """How likely it is shown."""
    selection: str
    """The name of the strategy."""
    numbers: tuple[NeededNumber, ...]

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
        """The query's limit; if it was left open, the smallest one that cuts none of these users."""
        return self.query.selection_limit

    def to_arrow(self) -> pa.Table:
        """Give one row for each measure with an error to keep; one row without a measure if there is none."""
        place = {name: value for name, value in self.record().items() if name != "numbers"}
        rows = [place | asdict(number) | {"chance_within": number.chance} for number in self.numbers] or [place]
        return pa.Table.from_pylist([row | {"chance": self.chance} for row in rows])

    def record(self) -> dict[str, Any]:
        """Give everything as plain values."""
        names = ("epsilon", "delta", "max_keys_per_user", "users", "keys_of_user", "asked_chance", "chance")
        facts = {name: getattr(self, name) for name in (*names, "chance_shown", "selection")}
        return facts | {"numbers": [asdict(number) for number in self.numbers]}

    def to_json(self) -> str:
        """Give the record as JSON."""
        return json.dumps(self.record(), indent=2)

    def __str__(self) -> str:
        lines = [_HEAD, "", *(f"{name:<18} {value}" for name, value in self._facts().items())]
        if self.numbers:
            lines += ["", show(pa.Table.from_pylist(list(self._lines())), _ALL_ROWS)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        from plume.report.rendering import render  # noqa: PLC0415 - for notebooks only

        return render("need.html", head=_HEAD, facts=self._facts(), lines=list(self._lines()))

    def _facts(self) -> dict[str, str]:
        shows = _ALWAYS.get(self.selection, f"{self.chance_shown:.2%} ({self.selection})")
        return {
            "epsilon": f"{self.epsilon:g}",
            "delta": f"{self.delta:g}",
            "max_keys_per_user": f"{self.max_keys_per_user:,}",
            "for a key of": f"{_many(self.users, 'user')}, each in {_many(self.keys_of_user, 'key')}",
            "is shown": shows,
            "all of it as asked": f"{self.chance:.2%} (asked for: {self.asked_chance:.6g})",
        }

    def _lines(self) -> Iterator[dict[str, str]]:
        for number in self.numbers:
            yield {
                "number": printable(number.measure),
                "off by at most": f"{number.error:.6g}",
                "chance": f"{number.chance:.2%}",
                "noise": number.noise,
            }


_HEAD = "the smallest epsilon for what is asked; no data was read, nothing is spent"
_PUBLIC, _TOTAL = "public keys", "no keys"
_ALWAYS = {_PUBLIC: "always: keys are public", _TOTAL: "always: there are no keys"}
Targets = Mapping[str, Fraction]
"""How far off each measure may be; one that may be off by anything is not there."""


@dataclass(frozen=True)
class _Goal:
    users: int
    keys_of_user: int
    chance: float
    targets: Targets


@call_checked()
def need(  # noqa: PLR0913 - what may be asked
    query: Query,
    *,
    users: int,
    error: float | None = None,
    absolute: Mapping[str, float] | None = None,
    totals: Mapping[str, float] | None = None,
    chance: float = LEVEL,
    keys_of_user: int | None = None,
) -> Need:
    """Find the smallest epsilon with which a key of `users` users is shown and its numbers are off by at most `error`. Reads no data.

    Both together hold with a probability of `chance`. `error` is relative: to `users` for measures that count, to what a key has in total
    for those in `totals`. `absolute` holds errors of measures in their own units instead; `math.inf` if any will do. The query's own
    epsilon does not matter. Each user is in as many keys as count, or in `keys_of_user`; a limit that is "auto" becomes that number.
    """
    if not isinstance(query, Query):
        raise UsageError(f"the query is a {type(query).__name__}; it must be a plume.Query.")
    refuse_bad_number("users", users, _MOST_USERS)
    if keys_of_user is not None:
        refuse_bad_number("keys_of_user", keys_of_user, LARGEST_BOUND)
    if not _is_number(chance) or not 0 < chance <= MOST_CHANCE:
        raise BudgetError(f"chance is {shown(chance)}; it must be above 0 and at most {MOST_CHANCE}, such as 0.95.")
    limited = _with_limit(query, keys_of_user)
    refuse_open_numbers(limited)
    targets = _targets(limited, users, error, absolute or {}, totals or {})
    keys = min(keys_of_user or limited.selection_limit, limited.selection_limit)
    goal = _Goal(users, keys, chance, targets)
    _refuse_pointless(limited, goal)
    return _need(_with_epsilon(limited, _smallest_epsilon(limited, goal)), goal)


def _with_limit(query: Query, keys_of_user: int | None) -> Query:
    if not query.chooses_limit:
        return query
    if keys_of_user is None:
        raise BoundError(
            f"max_keys_per_user is {AUTO!r}; give keys_of_user, the number of keys that a typical user has, which becomes the limit, "
            "or give a number."
        )
    return replace(query, max_keys_per_user=keys_of_user)


def _with_epsilon(query: Query, epsilon: float) -> Query:
    return replace(query, budget=Budget(epsilon, query.budget.delta))


def _targets(
    query: Query, users: int, error: float | None, absolute: Mapping[str, float], totals: Mapping[str, float]
) -> Targets:
    names = [measure.name for measure in query.measures]
    if error is not None:
        _refuse_bad_error("error", error)
    for what, given in (("absolute", absolute), ("totals", totals)):
        if not isinstance(given, Mapping):
            raise MeasureError(f"{what} is {shown(given)}; it must be a mapping, such as {{{names[0]!r}: 100}}.")
        for name, number in given.items():
            if name not in names:
                raise MeasureError(f"{what} names {shown(name)}; the measures are {', '.join(names)}.")
            _refuse_bad_error(f"{what} of {name}", number)
            if what == "totals" and number == math.inf:
                raise BoundError(f"totals of {name} is inf; it must be a finite number above 0.")
    if both := [name for name in absolute if name in totals]:
        raise MeasureError(f"absolute and totals both name {both[0]!r}; name each measure in one of them.")
    found = {measure.name: _target(measure, users, error, absolute, totals) for measure in query.measures}
    return {name: target for name, target in found.items() if target is not None}


def _target(
    measure: Mechanism, users: int, error: float | None, absolute: Mapping[str, float], totals: Mapping[str, float]
) -> Fraction | None:
    """How far off a measure may be, None if by anything; decimals are taken as they are written, so that 0.29 of 100 is 29."""
    name = measure.name
    if absolute.get(name, error) == math.inf:
        return None
    _refuse_computed(measure)
    if name in absolute:
        return Fraction(str(float(absolute[name])))
    if error is None:
        raise MeasureError(f"no error is given for {name}; give error=, or absolute={{{name!r}: ...}} in its own unit.")
    if name in totals or measure.counts:
        return Fraction(str(float(error))) * Fraction(str(float(totals.get(name, users))))
    raise MeasureError(
        f"{name} is not a number of users or records, so it is not known what error = {error:g} is relative to; "
        f"give absolute={{{name!r}: ...}} in its own unit, or totals={{{name!r}: ...}}, what it is in such a key."
    )


def _refuse_computed(measure: Mechanism) -> None:
    """Refuse an error of what is computed from several noised numbers: how likely it is kept is not known without values."""
    if None in measure.columns.values():
        raise MeasureError(
            f"how far noise moves {measure.name} depends on values, and none are read here; give absolute={{{measure.name!r}: math.inf}} "
            "to leave it aside, or ask for a sum and a count, whose errors are known."
        )


def _refuse_bad_error(what: str, number: Any) -> None:
    if not _is_number(number) or not number > 0:
        raise BoundError(f"{what} is {shown(number)}; it must be a number above 0, such as 0.05.")


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse_pointless(query: Query, goal: _Goal) -> None:
    """Refuse what every budget reaches, and what none does."""
    if query.has_public_keys and not goal.targets:
        raise MeasureError("keys are public and any error will do, so every epsilon is enough; give an error.")
    if query.min_users > goal.users:
        raise BoundError(
            f"min_users is {query.min_users}, so a key of {_many(goal.users, 'user')} is never shown; "
            f"ask for at least {query.min_users} users, or lower min_users."
        )
    if not _holds(query, goal, MOST_EPSILON):
        found = _need(_with_epsilon(query, MOST_EPSILON), goal)
        raise BudgetError(
            f"no epsilon up to {MOST_EPSILON:g} is enough: at {MOST_EPSILON:g} and delta = {found.delta:g}, "
            f"a key of {_many(goal.users, 'user')} is shown with a probability of {found.chance_shown:.6g}, "
            f"and with numbers as near as asked with {found.chance:.6g}; "
            "ask for more users, a larger error or a smaller chance, or lower max_keys_per_user."
        )


def _holds(query: Query, goal: _Goal, epsilon: float) -> bool:
    if epsilon < LEAST_EPSILON:
        return False
    try:
        calibrated = calibrate(_with_epsilon(query, epsilon))
    except RangeError:  # noise that is too wide to be drawn
        return False
    return _chance(calibrated, goal) >= goal.chance


def _smallest_epsilon(query: Query, goal: _Goal) -> float:
    """Search where epsilon is enough; then further down, since the default kind of noise can change between (docs/choosing.md)."""

    def holds(epsilon: float) -> bool:
        return _holds(query, goal, min(epsilon, MOST_EPSILON))

    found = smallest(holds, start=1.0, close=within(_NEAR))
    lower = [found * _STEP**step for step in range(1, math.ceil(math.log(_FARTHEST, _STEP)))]
    if query.noise == AUTO and (enough := [epsilon for epsilon in lower if holds(epsilon)]):
        found = _between(holds, enough[-1] * _STEP, enough[-1])
    rounded = _rounded_up(min(found, MOST_EPSILON))
    return rounded if holds(rounded) else min(found, MOST_EPSILON)


def _between(holds: Holds[float], low: float, high: float) -> float:
    """Search above `low`, where it does not hold, up to `high`, where it does."""
    return low + smallest(lambda above: holds(low + above), start=high - low, close=within(_NEAR))


def _rounded_up(number: float) -> float:
    digits = 3 - math.floor(math.log10(number))
    return float(math.ceil(Fraction(number) * Fraction(10) ** digits) / Fraction(10) ** digits)


def _chance_shown(calibrated: CalibratedQuery, goal: _Goal) -> float:
    users = np.array([goal.users], np.int64)
    return float(chance_of_users(calibrated.rounds, users, keys_of_user=goal.keys_of_user)[0])


def _chance(calibrated: CalibratedQuery, goal: _Goal) -> float:
    """How likely a key is shown with all numbers as near as asked: the noise of selection and of every number is independent."""
    of_parts: dict[tuple[str, ...], float] = {}
    for measure in calibrated.measures:
        if measure.mechanism.name in goal.targets:
            (part,) = calibrated.parts_of(measure)
            alone = part.chance_within(goal.targets[measure.mechanism.name])
            together = alone ** len(measure.mechanism.columns)
            # Measures that are made of the same part have the same noise.
            of_parts[part.columns] = min(together, of_parts.get(part.columns, 1.0))
    return _chance_shown(calibrated, goal) * math.prod(of_parts.values())


def _need(query: Query, goal: _Goal) -> Need:
    calibrated = calibrate(query)
    return Need(
        query=query,
        users=goal.users,
        keys_of_user=goal.keys_of_user,
        asked_chance=goal.chance,
        chance=_chance(calibrated, goal),
        chance_shown=_chance_shown(calibrated, goal),
        selection=calibrated.rounds[-1].name if calibrated.rounds else _PUBLIC if query.keys else _TOTAL,
        numbers=tuple(_numbers(calibrated, goal)),
    )


def _numbers(calibrated: CalibratedQuery, goal: _Goal) -> Iterator[NeededNumber]:
    for measure in calibrated.measures:
        name = measure.mechanism.name
        if name in goal.targets:
            (part,) = calibrated.parts_of(measure)
            error, width = goal.targets[name], float(part.half_width(goal.chance))
            yield NeededNumber(name, float(error), part.chance_within(error), width, part.noise.kind)
