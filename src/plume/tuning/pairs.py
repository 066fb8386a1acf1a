"""The data as whoever may look at it sees it: exact contributions of users to keys. NOT PRIVATE, and for estimates only.

Its own file so that tuning reads exact rows in one place. Estimates are made of sums over these rows, and no row is shown.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.calibration.columns import MeasureColumns
from plume.engines.duckdb import DuckDB
from plume.engines.duckdb_session import DuckDBSession
from plume.engines.execute import run_step
from plume.mechanisms.count import LARGEST_COUNT, CountRecords
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.sum import SumOfTotals
from plume.mechanisms.users import CountUsers
from plume.missing_column import pointing_to_names
from plume.pipelines.steps import INPUT, by_user, rows
from plume.plan.analysis import steps
from plume.plan.dialect import identifier
from plume.plan.nodes import USER, Size
from plume.plan.printing.account_sql import print_squares
from plume.plan.printing.duckdb import DUCKDB
from plume.plan.printing.plan_sql import print_plan
from plume.plan.printing.printer import SALT_UNKNOWN
from plume.query import Query, written_texts
from plume.running import read_rows, relation_for
from plume.schema import described, table_for

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Additive = CountUsers | CountRecords | SumOfTotals
"""The measures that are sums of contributions, so that what limits do to them can be added up."""

_PAIRS, _USERS, _KEYS, _NUMBERED = "tuning_pairs", "tuning_users", "tuning_keys", "tuning_numbered"
_SIZES, _TOTAL = "tuning_sizes", "total"
_USER_NUMBER, _KEY_NUMBER = "user_number", "key_number"
# Arrays of this many places stay in a processor's own memory.
_PLACES_AT_ONCE = 2**17


@dataclass(frozen=True)
class Pairs:
    """One place in each array for each user and key. The places of a user are neighbours; users with most keys come first."""

    key: Places
    values: Mapping[str, Floats]
    """The contributions of users to each measure that adds up, before any limit."""
    starts: NDArray[np.int64]
    """Where each user's places begin, and at last where they end."""
    keys_of_user: NDArray[np.int64]
    """How many keys each user has in the data."""
    keys: int
    """How many keys there are places of."""
    everything: Mapping[str, float]
    """How much users contribute to each measure in all keys of the data, signs aside."""
    squares: Mapping[Size, Floats] = field(default_factory=dict)
    """How large all rows of each user are together, before any limit: what accounts are charged by."""

    def above(self, limit: int) -> int:
        """How many users, from the first on, have more keys than the limit."""
        return int(np.searchsorted(-self.keys_of_user, -limit, side="left"))

    @cached_property
    def _ones(self) -> Floats:
        return np.ones(len(self.key))

    @cached_property
    def size(self) -> Mapping[str, Floats]:
        """How much users contribute to each measure in each key, signs aside."""
        return {name: self.by_key(np.abs(contributions)) for name, contributions in self.values.items()}

    @cached_property
    def user(self) -> NDArray[np.intp]:
        """Whose each place is."""
        return np.repeat(np.arange(len(self.keys_of_user)), np.diff(self.starts))

    def by_key(self, values: Floats) -> Floats:
        """Add up by key what is given for each place."""
        return self._spread(values, np.ones(len(self.keys_of_user)))

    def given_by_user(self, given: Floats) -> Floats:
        """Add up by key what each user gives to every one of their keys; quicker if only users with many keys give anything."""
        givers = np.flatnonzero(given)
        return self._spread(self._ones, given[: givers[-1] + 1] if len(givers) else given[:0])

    def _spread(self, places: Floats, users: Floats) -> Floats:
        """Add up by key what is given for each place times what is given for its user, the first ones."""
        end = self.starts[len(users)]
        rows = sparse.csr_array((places[:end], self.key[:end], self.starts[: len(users) + 1]), (len(users), self.keys))
        return np.asarray(rows.T @ users, np.float64)

    def by_user(self, values: Floats) -> Floats:
        """Add up by user what is given for each place, and tell each place the sum of its user."""
        return np.add.reduceat(values, self.starts[:-1])[self.user] if len(values) else values

    def pieces(self, users: int) -> Iterator["Piece"]:
        """Cut the places of the first users into pieces of whole users, each small, but not much smaller than the number of keys."""
        size, first = max(_PLACES_AT_ONCE, self.keys), 0
        while first < users:
            last = int(np.searchsorted(self.starts, self.starts[first] + size, side="right")) - 1
            last = min(max(last, first + 1), users)
            places = slice(int(self.starts[first]), int(self.starts[last]))
            user = self.user[places] - first
            yield Piece(
                places, user, self.key[places].astype(np.intp), self.starts[first:last] - places.start, self.keys
            )
            first = last

    def of_keys(self, wanted: NDArray[np.bool_]) -> "Pairs":
        """Leave all other keys out, and users who have no others; how many keys the rest had stays known."""
        kept = wanted[self.key]
        left = np.add.reduceat(kept, self.starts[:-1], dtype=np.int64) if len(kept) else self.keys_of_user
        there = left > 0
        return replace(
            self,
            key=_numbers(wanted)[self.key[kept]],
            values={name: contributions[kept] for name, contributions in self.values.items()},
            starts=_starts(left[there]),
            keys_of_user=self.keys_of_user[there],
            squares={size: squares[there] for size, squares in self.squares.items()},
            keys=int(wanted.sum()),
        )


@dataclass(frozen=True)
class Piece:
    """The places of a few users, small enough to be worked on quickly."""

    places: slice
    """Where they are among all."""
    user: NDArray[np.intp]
    """Counted from the first one here."""
    key: NDArray[np.intp]
    starts: NDArray[np.int64]
    keys: int
    """How many there are everywhere."""

    def by_key(self, values: Floats) -> Floats:
        """Add up by key what is given for each place."""
        return np.asarray(np.bincount(self.key, weights=values, minlength=self.keys), np.float64)

    def by_user(self, values: Floats) -> Floats:
        """Add up by user what is given for each place, and tell each place the sum of its user."""
        return np.add.reduceat(values, self.starts)[self.user]


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts)))


def _numbers(wanted: NDArray[np.bool_]) -> Places:
    """Number what is wanted, from 0 on."""
    return np.cumsum(wanted, dtype=np.int32) - np.int32(1)


def read_pairs(query: Query, data: Any, engine: DuckDB, sizes: Collection[Size] = ()) -> Pairs:
    """Read the data once, and combine it by user and key; of each user, add up the squares of the sizes that are asked for."""
    calibrated = calibrate(replace(query, measures=tuple(_unbounded(measure) for measure in query.measures)))
    combined = by_user(calibrated, rows(calibrated)).source
    relation = relation_for(query, data, engine)
    tables = dict(relation.tables) if relation is not None else {INPUT: table_for(query, data)}
    with pointing_to_names(written_texts(query)), engine.open(tables) as session:
        read_rows(session, query, relation, source=described(data))
        printed = print_plan(combined, session.printer())
        for step in steps(combined):
            run_step(step, session, printed, SALT_UNKNOWN)
        numbered = _numbered(session, combined.name, calibrated)
        squares = {size: _squares(session, size) for size in sizes}
    return _pairs(numbered, calibrated, squares)


def _unbounded(measure: Mechanism) -> Mechanism:
    """Count all records; totals are bounded after they are read anyway."""
    return replace(measure, max_per_key=LARGEST_COUNT) if isinstance(measure, CountRecords) else measure


def _numbered(session: DuckDBSession, combined: str, calibrated: CalibratedQuery) -> pa.Table:
    """Give users and keys numbers, whatever their types, and fetch these in place of them."""
    session.keep(_PAIRS, f"SELECT * FROM {identifier(combined, DUCKDB)}")
    session.keep(_USERS, _numbering((USER,), _USER_NUMBER))
    session.keep(_KEYS, _numbering(calibrated.keys, _KEY_NUMBER))
    raw = dict.fromkeys(identifier(name, DUCKDB) for measure in _additive(calibrated) for name in measure.raw.values())
    numbers = [f"CAST(coalesce({name}, 0) AS DOUBLE) AS {name}" for name in raw]
    session.define(
        _NUMBERED,
        f"SELECT {', '.join((_USER_NUMBER, _KEY_NUMBER, *numbers))}\nFROM {_PAIRS}\n"
        f"JOIN {_USERS} USING ({_listed((USER,))})\nJOIN {_KEYS} USING ({_listed(calibrated.keys)})",
    )
    return session.look_at(_NUMBERED)


def _squares(session: DuckDBSession, size: Size) -> Floats:
    """Add up how large the rows of each user are, squared; users are in the order of their numbers."""
    total = f"CAST({print_squares(size, session.printer())} AS DOUBLE)"
    session.define(
        _SIZES,
        f"SELECT {total} AS {_TOTAL}\nFROM {_PAIRS}\nJOIN {_USERS} USING ({_listed((USER,))})\n"
        f"GROUP BY {_USER_NUMBER}\nORDER BY {_USER_NUMBER}",
    )
    squares: Floats = session.look_at(_SIZES).column(_TOTAL).to_numpy()
    return squares


def _additive(calibrated: CalibratedQuery) -> list[MeasureColumns]:
    return [measure for measure in calibrated.measures if isinstance(measure.mechanism, Additive)]


def _numbering(columns: tuple[str, ...], number: str) -> str:
    listed = _listed(columns)
    return f"SELECT {listed}, CAST(row_number() OVER () - 1 AS INTEGER) AS {number}\nFROM (SELECT DISTINCT {listed} FROM {_PAIRS})"


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(identifier(column, DUCKDB) for column in columns)


def _pairs(table: pa.Table, calibrated: CalibratedQuery, squares: Mapping[Size, Floats]) -> Pairs:
    """Put the places of users who have most keys first."""
    user, key = table.column(_USER_NUMBER).to_numpy(), table.column(_KEY_NUMBER).to_numpy()
    keys_of_user = np.bincount(user)
    ranked = np.argsort(-keys_of_user, kind="stable")
    ranks = np.empty(len(ranked), np.int32)
    ranks[ranked] = np.arange(len(ranked))
    order, keys_of_user = _sorting(ranks[user], len(ranked)), keys_of_user[ranked]
    values = {measure.mechanism.name: _contributions(table, measure)[order] for measure in _additive(calibrated)}
    return Pairs(
        key[order],
        values,
        _starts(keys_of_user),
        keys_of_user,
        keys=int(key.max(initial=-1)) + 1,
        everything={name: float(np.abs(contributions).sum()) for name, contributions in values.items()},
        squares={size: of_users[ranked] for size, of_users in squares.items()},
    )


def _sorting(numbers: Places, different: int) -> Places:
    """Say where to take each place from to have numbers sorted; to count them is quicker than to compare them."""
    places = np.arange(len(numbers), dtype=np.int32)
    table = sparse.coo_array((places, (numbers, places)), (different, len(numbers)))
    table.has_canonical_format = True
    return np.asarray(table.tocsr().indices, np.int32)


def _contributions(table: pa.Table, measure: MeasureColumns) -> Floats:
    """What users contribute to a measure, in its own units; a user without values contributes nothing."""
    mechanism = measure.mechanism
    if not measure.raw:
        return np.ones(table.num_rows)
    (raw,) = measure.raw.values()
    contributions: Floats = table.column(raw).to_numpy()
    match mechanism:
        case CountUsers():
            return np.minimum(contributions, 1)
        case SumOfTotals():
            return contributions * float(mechanism.parts()[0].unit)
        case _:
            return contributions


def bounded(measure: Additive, contributions: Floats) -> Floats:
    """What is left of it after the measure's own bounds."""
    match measure:
        case CountUsers():
            return contributions
        case CountRecords():
            return np.minimum(contributions, measure.max_per_key)
        case SumOfTotals():
            # A user without values says nothing, whatever the bounds; a total of 0 is taken for that.
            return np.where(contributions == 0, 0, np.clip(contributions, measure.low_total, measure.high_total))
