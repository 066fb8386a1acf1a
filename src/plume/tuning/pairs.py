"""The data as whoever may look at it sees it: exact contributions of users to keys. NOT PRIVATE, and for estimates only.

Separate from the estimates so that there is one place where exact rows enter Python. They go no further than sums over them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Table
from plume.engines.execute import run_step
from plume.errors import InputError
from plume.mechanisms.count import LARGEST_COUNT, CountRecords
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.sum import SumOfTotals
from plume.mechanisms.users import CountUsers
from plume.pipelines.calibrated import CalibratedQuery, calibrate
from plume.pipelines.columns import MeasureColumns
from plume.pipelines.steps import INPUT, by_user, rows
from plume.plan.analysis import steps
from plume.plan.nodes import USER
from plume.plan.sql import print_plan
from plume.query import Query
from plume.schema import check_schema, described, kinds_expected

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Additive = CountUsers | CountRecords | SumOfTotals
"""The measures that are sums of what users say, so that what limits do to them can be added up."""


@dataclass(frozen=True)
class Pairs:
    """One place in each array for each user and key, those of users with most keys first."""

    user: Places
    key: Places
    keys_of_user: Floats
    values: Mapping[str, Floats]
    """What users say to each measure that adds up, before any limit."""
    keys: int
    """How many there are."""

    def above(self, limit: int) -> int:
        """How many places, from the first on, are of users with more keys than the limit."""
        return int(np.searchsorted(-self.keys_of_user, -limit, side="left"))

    def by_key(self, values: Floats) -> Floats:
        """Add up by key what is given for the first places."""
        return np.asarray(np.bincount(self.key[: len(values)], weights=values, minlength=self.keys), np.float64)

    def by_user(self, values: Floats) -> Floats:
        """Add up by user what is given for the first places, and tell each place the sum of its user."""
        users = self.user[: len(values)]
        return np.asarray(np.bincount(users, weights=values)[users] if len(values) else values, np.float64)


def read_pairs(query: Query, data: Any, engine: DuckDB) -> Pairs:
    """Read the data once, and combine it by user and key."""
    asked = calibrate(replace(query, measures=tuple(_unbounded(measure) for measure in query.measures)))
    combined = by_user(asked, rows(asked)).source
    with engine.open({INPUT: Table(data, kinds_expected(query))}) as session:
        check_schema(query, session.schema(INPUT), source=described(data))
        printed = print_plan(combined, session.dialect)
        for step in steps(combined):
            run_step(step, session, printed)
        found = session.fetch(combined.name, (USER,))
    return _pairs(found, asked)


def _unbounded(measure: Mechanism) -> Mechanism:
    """Count all records; totals are bounded after they are read anyway."""
    return replace(measure, max_per_key=LARGEST_COUNT) if isinstance(measure, CountRecords) else measure


def _pairs(found: pa.Table, asked: CalibratedQuery) -> Pairs:
    user, users = _numbered([found.column(USER)])
    key, keys = _numbered([found.column(name) for name in asked.keys])
    keys_of_user = np.bincount(user, minlength=users)[user].astype(np.float64)
    order = np.argsort(-keys_of_user, kind="stable")
    values = {
        measure.mechanism.name: _said(found, measure)[order]
        for measure in asked.measures
        if isinstance(measure.mechanism, Additive)
    }
    return Pairs(user[order], key[order], keys_of_user[order], values, keys)


def _numbered(columns: list[pa.ChunkedArray]) -> tuple[Places, int]:
    """Give equal rows equal numbers, from 0 on, and say how many there are."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = _codes(column)
        combined = numbers * (int(codes.max(initial=0)) + 1) + codes
        numbers = np.unique(combined, return_inverse=True)[1] if len(columns) > 1 else codes
    return numbers, int(numbers.max(initial=-1)) + 1


def _codes(column: pa.ChunkedArray) -> Places:
    codes: Places | None = None
    with suppress(pa.ArrowException):
        codes = pc.dictionary_encode(column).combine_chunks().indices.to_numpy().astype(np.int64)
    if codes is None:
        raise InputError("a user or key column is of a type that cannot be looked at here; cast it to text first.")
    return codes


def _said(found: pa.Table, measure: MeasureColumns) -> Floats:
    """What users say to a measure, in its own units; a user without values says nothing."""
    mechanism = measure.mechanism
    if not measure.raw:
        return np.ones(found.num_rows)
    (raw,) = measure.raw.values()
    said: Floats = pc.fill_null(pc.cast(found.column(raw), pa.float64()), 0.0).to_numpy()
    if isinstance(mechanism, CountUsers):
        return np.minimum(said, 1)
    return said * float(mechanism.parts()[0].unit)


def bounded(measure: Additive, said: Floats) -> Floats:
    """What is left of it after the measure's own bounds."""
    match measure:
        case CountUsers():
            return said
        case CountRecords():
            return np.minimum(said, measure.max_per_key)
        case SumOfTotals():
            # A user without values says nothing, whatever the bounds; a total of 0 is taken for that.
            return np.where(said == 0, 0, np.clip(said, measure.low_total, measure.high_total))
