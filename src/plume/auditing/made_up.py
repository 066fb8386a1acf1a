"""Made-up tables in the shape of a query: neighbours that differ in one user, many pairs of them in one table.

Users of one cell are in no other, and neither are keys, so that one release holds as many independent trials as there are cells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from plume.noise.gaussian import RoundedGaussian
from plume.pipelines.calibrated import calibrate
from plume.privacy.budget import Budget
from plume.query import Query

Row = tuple[str | None, str, float | None]
"""A user, a key, and the value of every value column."""


def table(query: Query, rows: Iterable[Row]) -> pa.Table:
    """Write rows down with the columns a query names; of several key columns the first one differs."""
    users, keys, values = zip(*rows, strict=True) if (rows := list(rows)) else ((), (), ())
    texts = pa.array(keys, pa.string())
    columns = {query.user: pa.array(users, pa.string()), query.keys[0]: texts}
    columns |= {key: pa.array(["-"] * len(texts), pa.string()) for key in query.keys[1:]}
    numbers = pa.array(values, pa.float64())
    columns |= {name: numbers for name in query.value_columns if name not in columns}
    return pa.table(columns)


def with_public(query: Query, keys: Sequence[str]) -> Query:
    """Ask the same about keys that are known."""
    listed = [(key, *["-"] * (len(query.keys) - 1)) for key in keys]
    drawn = {type(part.noise) for part in calibrate(query).parts}
    noise = "gaussian" if drawn == {RoundedGaussian} else "laplace"
    return replace(query, public_keys=listed, where=None, min_users=1, selection="auto", noise=noise)


def with_private(query: Query, *, budget: Budget, max_keys_per_user: int) -> Query:
    """Ask the same about keys that are chosen."""
    return replace(query, public_keys=None, where=None, budget=budget, max_keys_per_user=max_keys_per_user)


def records(user: str, keys: Iterable[str], value: float | None, *, times: int = 1) -> Iterable[Row]:
    """One user, with so many records in each of some keys."""
    return ((user, key, value) for key in keys for _ in range(times))


def crowd(key: str, users: int) -> Iterable[Row]:
    """Users who have this key and nothing else."""
    return ((f"{key}/{number}", key, 1.0) for number in range(users))
