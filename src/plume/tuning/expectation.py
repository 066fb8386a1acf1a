"""What to expect of a query before any data is read: how far noise moves its numbers, and how many users a key needs to be shown.

Made from the query alone, so it costs nothing and may be shown to anybody.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.calibration.columns import MeasureColumns
from plume.errors import BoundError, printable
from plume.explanation import number_of
from plume.output.files import write_text
from plume.output.text_table import four_digits, show
from plume.planning import refuse_other_than_query
from plume.privacy.budget import Budget
from plume.query import Query
from plume.selection.chances import KeysOfUser, chance_of_users, users_for_chance
from plume.tuning.people import MOST_USERS, described_keys, refuse_bad_number, refuse_no_list, shares_of_users

LEVEL = 0.95
"""How often noise stays within the half widths, and how likely a key is shown that is said to be."""
USUAL_USERS = (10, 20, 50, 100, 200, 500, 1_000, 10_000)
CHANCE = "chance"
HEAD = "expected from the query alone: no data was read, nothing is spent"
_EVEN = 0.5
_ALL_ROWS = 10**6

Line = dict[str, Any]


@dataclass(frozen=True)
class ExpectedNoise:
    """How far noise moves a measure, or one part of it if it is computed from several."""

    measure: str
    part: str | None
    kind: str
    standard_deviation: float
    half_width: float
    """What noise stays within with a probability of 95 %."""
    counts: bool
    """Whether it is a number of users or records, so that an error can be told relative to it."""

    @property
    def column(self) -> str:
        """What its figures are called."""
        return self.measure if self.part is None else f"{self.measure}_{self.part}"

    def relative_error(self, users: int) -> float:
        """The standard deviation relative to a count to which each of the users adds one."""
        return self.standard_deviation / users


@dataclass(frozen=True)
class Prospect:
    """What to expect with one limit and one epsilon."""

    max_keys_per_user: int
    epsilon: float
    selection: str
    """The name of the strategy."""
    users_for_even_chance: int
    """The fewest users with which a key is shown at least half the time."""
    users_for_95_percent: int
    """The fewest users with which a key is shown at least 95 % of the time."""
    noise: tuple[ExpectedNoise, ...]
    chances: tuple[tuple[int, float], ...]
    """For each number of users a key may have, the chance that it is shown."""


Lines = Callable[[Prospect], Iterator[Line]]


@dataclass(frozen=True, repr=False)
class Expectation:
    """What to expect of a query, for a grid of limits and epsilons; `print` it.

    Errors are those of noise. What bounding cuts away comes on top, and only the data says how much that is.
    """

    query: Query
    keys_of_user: KeysOfUser | None
    """In how many keys each user is, or which share of them in how many; None if in as many as the limit."""
    prospects: tuple[Prospect, ...]

    def to_arrow(self) -> pa.Table:
        """Give one row for each limit, epsilon and number of users."""
        return pa.Table.from_pylist([row for prospect in self.prospects for row in _rows(prospect)])

    def record(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return {
            "measures": [measure.name for measure in self.query.measures],
            "delta": self.query.budget.delta,
            "keys_of_user": self.keys_of_user,
            "level": LEVEL,
            "prospects": [_plain(prospect) for prospect in self.prospects],
        }

    def to_json(self) -> str:
        """Give the record as JSON."""
        return json.dumps(self.record(), indent=2)

    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a page of curves, in one file that needs nothing else. Needs the extra `report`.

        A file that is there is replaced only with `overwrite=True`.
        """
        from plume.tuning.curves import draw_expectation  # noqa: PLC0415 - slow to import, and an extra

        write_text(Path(path), draw_expectation(self), overwrite=overwrite)

    def __str__(self) -> str:
        drawn = (
            (printable(title), show(pa.Table.from_pylist(lines), _ALL_ROWS, leading=2)) for title, lines in tables(self)
        )
        return "\n".join([HEAD, *("\n".join(["", *texts]) for texts in drawn)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show itself in a notebook, with curves where they can be drawn."""
        from plume.tuning.notebook import show_expectation  # noqa: PLC0415 - for notebooks only

        return show_expectation(self)


def tables(expectation: Expectation) -> Iterator[tuple[str, list[Line]]]:
    """Give everything as tables for people, each with what it is about."""
    keys, prospects = expectation.keys_of_user, expectation.prospects
    each = "each in as many keys as the limit" if keys is None else described_keys(keys)
    counted = [noise.column for noise in prospects[0].noise if noise.counts]
    sections: list[tuple[str, Lines]] = [
        ("noise on the numbers of each key:", partial(_noise_lines, expectation.query)),
        (f"how many users, {each}, a key needs to be shown:", _needed_lines),
        ("the chance to be shown, by the number of these users:", _chance_lines),
        *((f"noise on {name}, relative to one for each user:", partial(_relative_lines, name)) for name in counted),
    ]
    for title, lines in sections:
        yield title, [_place(prospect) | line for prospect in prospects for line in lines(prospect)]


@call_checked()
def expect(
    query: Query,
    *,
    limits: Sequence[int] = (),
    epsilons: Sequence[float] = (),
    users: Sequence[int] = USUAL_USERS,
    keys_of_user: KeysOfUser | None = None,
) -> Expectation:
    """Say what error to expect of a query and how many users a key needs to be shown. No data is touched, so it is free.

    Beside the query's own `max_keys_per_user` and epsilon, all further `limits` and `epsilons` are tried, each with each. Chances are told
    for keys with `users` users who count in them. Each is in as many keys as the limit, or in `keys_of_user`, or a share of them in each
    number, as in `{5: 0.9, 100: 0.1}`. If measures leave the rest of a user's budget to selection, rows are taken to be as large as can be.
    """
    refuse_other_than_query(query)
    refuse_open_numbers(query)
    refuse_no_list("[4, 16]", limits=limits, users=users)
    refuse_no_list("[0.5, 2]", epsilons=epsilons)
    for number in users:
        refuse_bad_number("users", number, MOST_USERS)
    if keys_of_user is not None:
        keys_of_user = _sorted_shares(keys_of_user)
    prospects = tuple(
        _prospect(calibrate(one), sorted(set(users)), keys_of_user) for one in _grid(query, limits, epsilons)
    )
    return Expectation(query, keys_of_user, prospects)


def refuse_open_numbers(query: Query) -> None:
    """Refuse a query that leaves a number to the data."""
    for choice in query.choices:
        raise BoundError(
            f"{choice} is 'auto'; what to expect depends on it, so give a number here, and others beside it."
        )


def _grid(query: Query, limits: Sequence[int], epsilons: Sequence[float]) -> Iterator[Query]:
    # Limits and budgets are checked first: what is not a number cannot be sorted.
    of_limits = {limit: replace(query, max_keys_per_user=limit) for limit in (query.selection_limit, *limits)}
    for one in of_limits.values():
        refuse_open_numbers(one)
    budgets = {
        epsilon: Budget(epsilon=epsilon, delta=query.budget.delta) for epsilon in (query.budget.epsilon, *epsilons)
    }
    for limit, epsilon in product(sorted(of_limits), sorted(budgets)):
        yield replace(of_limits[limit], budget=budgets[epsilon])


def _sorted_shares(keys_of_user: Any) -> KeysOfUser:
    shares = shares_of_users(keys_of_user)
    return dict(shares) if len(shares) > 1 else shares[0][0]


def _prospect(calibrated: CalibratedQuery, users: Sequence[int], keys_of_user: KeysOfUser | None) -> Prospect:
    limit, rounds = calibrated.max_keys_per_user, calibrated.rounds
    keys = limit if keys_of_user is None else keys_of_user  # of more than count, strategies know how many do
    chances = chance_of_users(rounds, np.array(users, np.int64), keys_of_user=keys).tolist()
    return Prospect(
        max_keys_per_user=limit,
        epsilon=calibrated.query.budget.epsilon,
        selection=rounds[-1].name if rounds else "public keys" if calibrated.query.keys else "no keys",
        users_for_even_chance=users_for_chance(rounds, _EVEN, keys_of_user=keys),
        users_for_95_percent=users_for_chance(rounds, LEVEL, keys_of_user=keys),
        noise=tuple(noise for measure in calibrated.measures for noise in _noise_of(calibrated, measure)),
        chances=tuple(zip(users, chances, strict=True)),
    )


def _noise_of(calibrated: CalibratedQuery, measure: MeasureColumns) -> Iterator[ExpectedNoise]:
    parts = calibrated.parts_of(measure)
    counts = measure.mechanism.counts
    for part in parts:
        name = part.part.name if len(parts) > 1 else None
        width = float(part.half_width(LEVEL))
        yield ExpectedNoise(
            measure.mechanism.name, name, part.noise.kind, part.standard_deviation, width, counts=counts
        )


def _rows(prospect: Prospect) -> Iterator[Line]:
    widths = {}
    for noise in prospect.noise:
        widths[f"{noise.column}_standard_deviation"] = noise.standard_deviation
        widths[f"{noise.column}_half_width"] = noise.half_width
    for users, chance in prospect.chances:
        relative = {
            f"{noise.column}_relative_error": noise.relative_error(users) for noise in prospect.noise if noise.counts
        }
        yield _place(prospect) | {"users": users, CHANCE: chance} | widths | relative


def _plain(prospect: Prospect) -> dict[str, Any]:
    return asdict(prospect) | {
        "noise": [asdict(noise) for noise in prospect.noise],
        "chances": [{"users": users, "chance": chance} for users, chance in prospect.chances],
    }


def _place(prospect: Prospect) -> Line:
    return {"max_keys_per_user": prospect.max_keys_per_user, "epsilon": prospect.epsilon}


def _noise_lines(query: Query, prospect: Prospect) -> Iterator[Line]:
    for noise in prospect.noise:
        yield {
            "number": number_of(noise.measure, noise.part, query),
            "noise": noise.kind,
            "standard deviation": noise.standard_deviation,
            "95 % within": four_digits(noise.half_width),
        }


def _needed_lines(prospect: Prospect) -> Iterator[Line]:
    needed = {"half the time": prospect.users_for_even_chance, "95 % of the time": prospect.users_for_95_percent}
    yield {"selection": prospect.selection} | needed


def _chance_lines(prospect: Prospect) -> Iterator[Line]:
    yield {f"{users:,}": f"{chance:.1%}" for users, chance in prospect.chances}


def _relative_lines(name: str, prospect: Prospect) -> Iterator[Line]:
    for noise in prospect.noise:
        if noise.column == name:
            yield {f"{users:,}": f"{noise.relative_error(users):.1%}" for users, _ in prospect.chances}
