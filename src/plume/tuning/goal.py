"""What accuracy is asked for, and of which keys: arguments in, a goal out; what cannot be asked is refused here.

Its own file because `need` searches and `nearness` computes, and neither has to doubt what it is given.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from plume.errors import BoundError, BudgetError, MeasureError, shown
from plume.mechanisms.mean import Mean
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.quantiles import Quantiles
from plume.plan.types import Kind
from plume.query import LARGEST_BOUND, Query
from plume.selection.chances import KeysOfUser
from plume.tuning.people import MOST_USERS, is_number, refuse_bad_number, shares_of_users

MOST_CHANCE = 0.999999
# Dates and timestamps are in microseconds; people ask in days.
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Target:
    """How near a measure must be."""

    error: Fraction
    """How far off it may be, in its own unit; of dates and timestamps, in days."""
    truth: float | None
    """What it is in such a key, if that is known."""


Targets = Mapping[str, Target]
"""One for each measure; one that may be off by anything is not there."""


@dataclass(frozen=True)
class Goal:
    """Keys that must be shown, and how near their numbers must be."""

    users: int
    """How many users such a key has."""
    keys_of_users: tuple[tuple[int, float], ...]
    """Numbers of keys that users are in, from small to large, and the shares of the users who are in as many."""
    values_of_user: int
    """How many values each of them has in the key, of those that means, variances and quantiles are of."""
    chance: float
    targets: Targets

    @property
    def most_keys(self) -> int:
        """In how many keys a user is at most."""
        return self.keys_of_users[-1][0]


@dataclass(frozen=True)
class Wanted:
    """Errors as they were asked for."""

    error: float | None
    absolute: Mapping[str, float]
    totals: Mapping[str, float]


def goal_of(
    query: Query, wanted: Wanted, *, users: int, keys_of_user: KeysOfUser, values_of_user: int, chance: float
) -> Goal:
    """Put together what must hold; errors are taken as they are written, so that 0.29 of 100 is 29."""
    _refuse_bad_people(users=users, values_of_user=values_of_user, chance=chance)
    of_users = shares_of_users(keys_of_user)
    _refuse_bad_wishes(query, wanted)
    by_measure = {measure.name: _target(measure, users, wanted) for measure in query.measures}
    targets = {name: target for name, target in by_measure.items() if target is not None}
    return Goal(users, of_users, values_of_user, chance, targets)


def _refuse_bad_people(*, users: Any, values_of_user: Any, chance: Any) -> None:
    refuse_bad_number("users", users, MOST_USERS)
    refuse_bad_number("values_of_user", values_of_user, LARGEST_BOUND)
    if not is_number(chance) or not 0 < chance <= MOST_CHANCE:
        raise BudgetError(f"chance is {shown(chance)}; it must be above 0 and at most {MOST_CHANCE}, such as 0.95.")


def is_computed(measure: Mechanism) -> bool:
    """Return whether what is released is computed from several noised numbers."""
    return None in measure.columns.values()


def error_unit(measure: Mechanism) -> int:
    """Say how many of its own steps an error of 1 is: a day has many microseconds."""
    return _DAY if isinstance(measure, Mean | Quantiles) and measure.scale.kind is not Kind.FLOAT else 1


def _refuse_bad_wishes(query: Query, wanted: Wanted) -> None:
    names = [measure.name for measure in query.measures]
    if wanted.error is not None:
        _refuse_bad_error("error", wanted.error)
    for what, given in (("absolute", wanted.absolute), ("totals", wanted.totals)):
        if not isinstance(given, Mapping):
            raise MeasureError(f"{what} is {shown(given)}; it must be a mapping, such as {{{names[0]!r}: 100}}.")
        for name, number in given.items():
            if name not in names:
                raise MeasureError(f"{what} names {shown(name)}; the measures are {', '.join(names)}.")
            _refuse_bad_error(f"{what} of {name}", number)
            if what == "totals" and number == math.inf:
                raise BoundError(f"totals of {name} is inf; it must be a finite number above 0.")


def _target(measure: Mechanism, users: int, wanted: Wanted) -> Target | None:
    """How near a measure must be, None if any error will do."""
    name, error = measure.name, wanted.absolute.get(measure.name, wanted.error)
    if error == math.inf:
        return None
    if error is None:
        raise MeasureError(f"no error is given for {name}; give error=, or absolute={{{name!r}: ...}} in its own unit.")
    truth = _truth(measure, users, wanted.totals)
    if name in wanted.absolute:
        return Target(_as_written(error), truth)
    if truth is None:
        raise MeasureError(
            f"{name} is not a number of users or records, so it is not known what error = {error:g} is relative to; "
            f"give absolute={{{name!r}: ...}} in its own unit, or totals={{{name!r}: ...}}, its value in such a key."
        )
    return Target(_as_written(error) * _as_written(truth), truth)


def _truth(measure: Mechanism, users: int, totals: Mapping[str, float]) -> float | None:
    if measure.name not in totals:
        return users if measure.counts else None
    truth = float(totals[measure.name])
    if is_computed(measure):
        low, high = _possible(measure)
        if not low <= truth <= high:
            raise BoundError(
                f"totals of {measure.name} is {truth:g}; by its bounds it is from {low:g} to {high:g} in every key."
            )
    return truth


def _possible(measure: Mechanism) -> tuple[float, float]:
    match measure:
        case Quantiles(names=names) if len(names) > 1:
            raise MeasureError(
                f"{measure.name} is several numbers, so one total says nothing about them; give absolute={{{measure.name!r}: ...}} alone."
            )
        case Mean(scale=scale) | Quantiles(scale=scale) if scale.kind is Kind.FLOAT:
            return scale.low, scale.high
        case Mean() | Quantiles():
            raise MeasureError(
                f"{measure.name} is a date, so its error cannot be a share of it; give absolute={{{measure.name!r}: ...}} in days."
            )
        case _:
            return 0.0, measure.extent


def _as_written(number: float) -> Fraction:
    return Fraction(str(float(number)))


def _refuse_bad_error(what: str, number: Any) -> None:
    if not is_number(number) or not number > 0:
        raise BoundError(f"{what} is {shown(number)}; it must be a number above 0, such as 0.05.")
