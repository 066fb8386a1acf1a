"""What a query should make its reader careful about, each with a next step: settings that protect little or show little.

Everything is worked out from the query, its noise and the numbers that were chosen within its budget, never from rows, so that cautions
cost nothing and may be shown to anybody.
"""

import inspect
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import CalibratedQuery
from plume.calibration.columns import MeasureColumns
from plume.errors import PlumeWarning, printable
from plume.mechanisms.mechanism import Mechanism
from plume.privacy.cost import Spent
from plume.query import LIMIT, Query
from plume.selection.chances import users_for_chance

LARGEST_DELTA = 1e-5
LARGEST_EPSILON = 10
# How likely a key is shown that has as many users as a key needs.
_EVEN = 0.5
# A key whose users are in no other key needs the fewest of them; noise this many times as wide says nothing about it.
_FAR_WIDER = 10
# From here on a part of a user says nothing to anybody.
_WHOLE = 10


@dataclass(frozen=True)
class Caution:
    """One thing to be careful about."""

    what: str
    """The setting or the measure."""
    found: str
    """What is so, and what it means."""
    next_step: str
    """What would be better."""

    def __str__(self) -> str:
        return printable(f"caution: {self.found}. {self.next_step}.")


def warn(cautions: Iterable[Caution]) -> None:
    """Give cautions to Python's own warnings, as said by the line that called Plume."""
    level = _frames_of_plume()
    for caution in cautions:
        warnings.warn(printable(f"{caution.found}. {caution.next_step}."), PlumeWarning, stacklevel=level)


def _frames_of_plume() -> int:
    """Count the functions between the caller and here: a statement passes through more of them than a query."""
    frame, count = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "plume":
        frame, count = frame.f_back, count + 1
    return count


def largest_delta(query: Query) -> float:
    """The largest delta that is not cautioned against."""
    return LARGEST_DELTA if query.population is None else min(LARGEST_DELTA, 1 / query.population)


def rounded_down(number: float, digits: int) -> float:
    """Leave a few digits of a number, so that what is advised is not above what is cautioned against."""
    return float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(number)))


def budget_cautions(query: Query, spent: Spent) -> Iterator[Caution]:
    """Look at what the budget allows; a delta of which nothing is spent, as with public keys and Laplace noise, does no harm."""
    epsilon, delta, population = query.budget.epsilon, query.budget.delta, query.population
    if epsilon > LARGEST_EPSILON:
        yield Caution(
            "epsilon",
            f"epsilon is {epsilon:g}, which hides hardly anything about one {query.user}",
            f"Set epsilon to {LARGEST_EPSILON} or less; 1 is usual",
        )
    if spent.delta == 0:
        return
    if population is not None and delta > largest_delta(query) and population * LARGEST_DELTA >= 1:
        yield Caution(
            "delta",
            f"delta is {delta:g}, above one over the population of {population:,}: the guarantee may fail for one {query.user}",
            f"Set delta to {rounded_down(1 / population, 2):g} or less",
        )
    elif delta > LARGEST_DELTA:
        alone = "" if query.public_keys is not None else f", and a key that only one {query.user} has may be shown"
        yield Caution(
            "delta",
            f"delta is {delta:g}: with up to this probability the guarantee may fail{alone}",
            f"Set delta to {LARGEST_DELTA:g} or less",
        )


def noise_cautions(calibrated: CalibratedQuery) -> Iterator[Caution]:
    """Compare the noise of measures with the smallest keys that are shown; public keys are shown whatever their size."""
    if not calibrated.rounds:
        return
    limit = calibrated.max_keys_per_user
    needed, alone = (users_for_chance(calibrated.rounds, _EVEN, keys_of_user=keys) for keys in (limit, 1))
    widest = max(part.standard_deviation / _most(part) for part in calibrated.parts)
    wide = f"{LIMIT} is {limit:,}, and noise is as wide as what {_rounded(widest)} users add"
    smaller = f"Set {LIMIT} below {limit:,} or raise epsilon" if limit > 1 else "Raise epsilon"
    if widest > _FAR_WIDER * alone:
        yield Caution(LIMIT, f"{wide}; keys with only {alone:,} users may be shown", smaller)
        return
    if widest > needed / 2:
        yield Caution(
            LIMIT,
            f"{wide}; that is more than half of the {needed:,} users that a key needs to be shown",
            f"{smaller}{', or ask for fewer measures' if len(calibrated.measures) > 1 else ''}",
        )
    lost = [measure for measure in calibrated.measures if _is_lost(calibrated, measure, needed)]
    if lost:
        yield _lost([measure.mechanism for measure in lost], needed, limit)


def _most(part: CalibratedPart) -> float:
    """The most that one user adds to one number of a part; a value weighs 1 in a tally, on each level of its tree."""
    return 1.0 if part.part.leaves else math.sqrt(part.part.squared) * float(part.part.unit)


def _rounded(users: float) -> str:
    return f"{users:,.0f}" if users >= _WHOLE else f"{users:.2g}"


def _is_lost(calibrated: CalibratedQuery, measure: MeasureColumns, users: int) -> bool:
    """Return whether noise is wider than the range of a measure in a key of that many users.

    Means and the like are judged as if each user had one value. Quantiles are found by their ranks; a median has half of the users to
    either side.
    """
    computed = None in measure.mechanism.columns.values()
    for part in calibrated.parts_of(measure):
        tally = bool(part.part.leaves)
        values = _values_of_user(measure.mechanism) if computed and not tally else 1
        if part.standard_deviation > users * _most(part) / values * (0.5 if tally and computed else 1):
            return True
    return False


def _values_of_user(mechanism: Mechanism) -> int:
    """How many values of one user count in a key; sums have no such limit, and count what a user has as one."""
    return getattr(mechanism, "max_per_key", 1)


def _lost(lost: list[Mechanism], users: int, limit: int) -> Caution:
    names = ", ".join(mechanism.name for mechanism in lost)
    several = any(_values_of_user(mechanism) > 1 for mechanism in lost)
    lower = "max_per_key" if several else LIMIT if limit > 1 else ""
    smaller = f"Lower {lower} or raise epsilon" if lower else "Raise epsilon"
    return Caution(
        names,
        f"in a key of {users:,} users, as many as a key needs to be shown, noise is wider than the whole range of {names}",
        f"{smaller}, or rely on large keys only",
    )
