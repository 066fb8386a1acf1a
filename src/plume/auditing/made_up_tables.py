"""Made-up tables in the shape of a query: neighbours that differ in one user, many pairs of them in one table.

Users of one cell are in no other, and neither are keys, so that one release holds as many independent trials as there are cells.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from plume.noise.gaussian import RoundedGaussian
from plume.plan.types import Kind
from plume.planning import make_plan
from plume.privacy.budget import Budget
from plume.query import SELECTION, Query

Row = tuple[str | None, str, float | None]
"""A user, a key, and the value of every value column."""

_FIRST_DAY, _LAST_DAY = -700_000, 2_900_000
"""Of dates that engines know, counted from 1970: the years 53 and 9909."""


def without_conditions(query: Query) -> Query:
    """Ask the same about all rows, by keys as they are: made-up ones have nothing to tell them by, nor to compute keys from."""
    # Every measure is a dataclass with a condition of its own, which is more than a plan needs to know of them.
    measures: tuple[Any, ...] = query.measures
    return replace(
        query, where=None, key_expressions=(), measures=tuple(replace(measure, where=None) for measure in measures)
    )


def table(query: Query, rows: Iterable[Row]) -> pa.Table:
    """Write rows down with the columns a query names; of several key columns the first one differs."""
    users, keys, values = list[str | None](), list[str](), list[float | None]()
    # Row by row, since hundreds of thousands of tuples kept at once are what the garbage collector would be busy with.
    for user, key, value in rows:
        users.append(user)
        keys.append(key)
        values.append(value)
    texts = pa.array(keys, pa.string())
    columns = {query.user: pa.array(users, pa.string()), query.keys[0]: texts}
    columns |= {key: pa.array(["-"] * len(texts), pa.string()) for key in query.keys[1:]}
    kinds = {name: allowed for measure in query.measures for name, allowed in measure.value_columns.items()}
    for name, allowed in kinds.items():
        if name not in columns:
            columns[name] = pa.array(values, pa.float64()) if Kind.FLOAT in allowed else _days(values)
    return pa.table(columns)


def _days(values: Sequence[float | None]) -> pa.Array:
    """Write values down as dates; what is not a number is missing."""
    known = (None if value is None or math.isnan(value) else value for value in values)
    days = [None if value is None else round(min(max(value, _FIRST_DAY), _LAST_DAY)) for value in known]
    return pa.array(days, pa.int32()).cast(pa.date32())


def with_public(query: Query, keys: Sequence[str]) -> Query:
    """Ask the same about keys that are known."""
    listed = [(key, *["-"] * (len(query.keys) - 1)) for key in keys]
    drawn = {type(part.noise) for part in make_plan(query).calibrated.parts}
    noise = "gaussian" if drawn == {RoundedGaussian} else "laplace"
    # Where nothing is selected, selection has no share.
    shares = tuple(share for share in query.shares if share[0] != SELECTION)
    return replace(query, public_keys=listed, min_users=1, selection="auto", noise=noise, shares=shares)


def with_private(query: Query, *, budget: Budget, max_keys_per_user: int) -> Query:
    """Ask the same about keys that are selected."""
    return replace(query, public_keys=None, budget=budget, max_keys_per_user=max_keys_per_user)


def records(user: str, keys: Iterable[str], value: float | None, *, times: int = 1) -> Iterable[Row]:
    """One user, with `times` records in each of some keys."""
    return ((user, key, value) for key in keys for _ in range(times))


def crowd(key: str, users: int) -> Iterable[Row]:
    """Users who have this key and nothing else."""
    return ((f"{key}/{number}", key, 1.0) for number in range(users))
