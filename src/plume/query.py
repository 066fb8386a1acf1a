"""What is asked: a privacy unit, keys, measures, a bound and a budget, as immutable data that knows nothing of engines."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from plume.condition import parse_condition
from plume.errors import BoundError, BudgetError, ColumnNotFound, MeasureError, PublicKeysError
from plume.mechanisms.mechanism import Mechanism
from plume.plan.expressions import Expression
from plume.privacy.budget import Budget
from plume.privacy.calibration import share

# Far above any useful limit, far below where noise stops being drawable.
LARGEST_BOUND = 1_000_000

PublicKeys = Sequence[Any] | str | Path | Any


@dataclass(frozen=True, kw_only=True)
class Query:
    """A private GROUP BY.

    >>> from plume.mechanisms.count import count
    >>> query = Query(user="user_id", keys="recipe", measures=[count(max_per_key=3)], max_keys_per_user=64,
    ...               budget=Budget(epsilon=1.1, delta=1e-5))
    >>> query.keys
    ('recipe',)
    """

    user: str
    """The column that says whose a row is: the privacy unit."""
    keys: tuple[str, ...]
    """The columns to group by; one name or several."""
    measures: tuple[Mechanism, ...]
    """What to compute per key."""
    max_keys_per_user: int
    """The paper's L: how many keys one user may contribute to."""
    budget: Budget
    """The most the release may spend."""
    where: str | None = None
    """Which rows count at all, before anything else."""
    public_keys: PublicKeys | None = None
    """Keys known without looking at the data; then all of them and no others are released."""
    min_users: int = 1
    """Keys with fewer users are never released, whatever the noise says."""

    def __post_init__(self) -> None:
        _set(self, "keys", _names(self.keys, "keys"))
        _set(self, "measures", _measures(self.measures))
        _names(self.user, "user")
        _refuse_bad_bound("max_keys_per_user", self.max_keys_per_user)
        _refuse_bad_bound("min_users", self.min_users)
        _refuse_equal_names(self)
        if not isinstance(self.budget, Budget):
            raise BudgetError(f"budget is {self.budget!r}; it must be a plume.Budget(epsilon=..., delta=...).")
        _set(self, "public_keys", _public_keys(self))
        share(self.budget, measures=len(self.measures), selects_keys=self.public_keys is None)
        if self.where is not None:
            parse_condition(self.where)

    @classmethod
    def paper(cls, **settings: Any) -> Self:
        """Ask as the paper's experiments do: Laplace threshold, Laplace noise, epsilon split in half, costs added up.

        Takes what Query takes.
        """
        return cls(**settings)

    @property
    def condition(self) -> Expression | None:
        """The condition behind `where`."""
        return None if self.where is None else parse_condition(self.where)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns the measures read, each once."""
        return tuple(dict.fromkeys(column for measure in self.measures for column in measure.value_columns))


def _set(query: Query, name: str, value: Any) -> None:
    object.__setattr__(query, name, value)


def _names(given: Any, what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if not names or not all(isinstance(name, str) and name and "\0" not in name for name in names):
        raise ColumnNotFound(f"{what} is {given!r}; it must be the name of a column, or a list of names.")
    return names


def _measures(given: Any) -> tuple[Mechanism, ...]:
    measures = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not measures or not all(hasattr(measure, "combine_raw") and hasattr(measure, "name") for measure in measures):
        raise MeasureError(
            f"measures is {given!r}; it must be a list of measures, such as [plume.count(max_per_key=3), plume.users()]."
        )
    return measures


def _refuse_bad_bound(name: str, bound: Any) -> None:
    if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= LARGEST_BOUND:
        raise BoundError(f"{name} is {bound!r}; it must be a whole number from 1 to {LARGEST_BOUND}.")


def _refuse_equal_names(query: Query) -> None:
    """Engines ignore the case of names, so names that differ in case alone would be one column."""
    if query.user.casefold() in {key.casefold() for key in query.keys}:
        raise ColumnNotFound(f"user and keys both name {query.user!r}; a key must not be the user itself.")
    columns = [*query.keys, *(measure.name for measure in query.measures)]
    for name in columns:
        if not isinstance(name, str) or not name or "\0" in name:
            raise MeasureError(f"a measure is named {name!r}; a name must be text with at least one character.")
    seen: set[str] = set()
    for name in columns:
        if name.casefold() in seen:
            raise MeasureError(
                f"two columns of the result would be called {name!r}; give a measure another name with name=."
            )
        seen.add(name.casefold())


def _public_keys(query: Query) -> pa.Table | Path | None:
    """Bring public keys into one form: a table with the key columns, or the path of a file that holds one."""
    given = query.public_keys
    if given is None or isinstance(given, Path):
        keys: Any = given
    elif isinstance(given, str):
        keys = Path(given)
    elif hasattr(given, "__arrow_c_stream__"):
        keys = pa.table(given)
    else:
        keys = _table_of(given, query.keys)
    if keys is not None and query.min_users > 1:
        raise BoundError(
            f"min_users is {query.min_users} beside public_keys; public keys are released whoever has them."
        )
    return keys


def _table_of(given: Any, names: tuple[str, ...]) -> pa.Table:
    rows = [row if isinstance(row, tuple | list) else (row,) for row in given] if _is_listing(given) else []
    if not rows or any(len(row) != len(names) for row in rows):
        raise PublicKeysError(
            f"public_keys must be a list of values, of tuples with {len(names)} parts, a table or a file; "
            f"there must be at least one key."
        )
    try:
        return pa.table({name: pa.array([row[i] for row in rows]) for i, name in enumerate(names)})
    except (pa.ArrowException, TypeError):
        rows = []
    raise PublicKeysError("public_keys mixes types in one column; give each key column values of one type.")


def _is_listing(given: Any) -> bool:
    return isinstance(given, list | tuple | set | frozenset | range)
