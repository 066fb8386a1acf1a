"""What is asked: a privacy unit, keys, measures, a limit and a budget, as immutable data that knows nothing of engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from plume.arguments import making_checked
from plume.correlated_noise import refuse_what_cannot_share_noise
from plume.errors import BoundError, BudgetError, ColumnNotFound, MeasureError, PublicKeysError, shown
from plume.grouping import is_name, read_keys, refuse_bad_name
from plume.mechanisms import rows
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.open_bound import open_bounds
from plume.other_names import OF_QUERIES, names_pointed_to
from plume.output.reliability import RELIABLE
from plume.plan.expressions import Expression
from plume.plan.trees import columns_of
from plume.privacy.budget import Budget, refuse_other_than_budget, refuse_too_small
from plume.released_number import parts_to_share, refuse_other_than_one_key, releases_users
from plume.selection.public_keys import check_public_keys, table_of_keys
from plume.selection.rule import rule_of
from plume.settings import AUTO, BASIC, CORRELATED, SETTINGS, TIGHT, SettingKind
from plume.weights import read_weights

SELECTION = "selection"
"""What selecting keys is called among the shares, beside the names of the measures."""
LIMIT = "max_keys_per_user"
"""What choosing the limit is called there, where it is chosen."""

# Far above any useful limit, far below where noise stops being drawable.
LARGEST_BOUND = 1_000_000
# More people than there are.
_LARGEST_SIZE = 10**12

# Weighted selection hardly depends on it: with 16 to 256 keys per user it keeps as many keys, within a few percent
# (docs/decisions/0045-chosen-limit.md).
_KEYS_WHEN_SELECTING = 64

_INSTEAD = dict.fromkeys(("epsilon", "delta"), "it belongs to the budget: budget=plume.Budget(epsilon=1, delta=1e-6)")

PublicKeys = Sequence[Any] | str | Path | Any


def _is_total(given: Mapping[str, Any]) -> bool:
    keys = given.get("keys")
    return isinstance(keys, list | tuple) and not keys and not given.get("key_expressions")


@making_checked(auto=(LIMIT,), instead=_INSTEAD, unless={"max_keys_per_user": _is_total})
@names_pointed_to("query", OF_QUERIES)
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
    """The column that identifies the user (the privacy unit)."""
    keys: tuple[str, ...]
    """The columns to group by; one name or several. None of them: one row for everything, which is known without looking at the data."""
    measures: tuple[Mechanism, ...]
    """What to compute per key."""
    max_keys_per_user: int | str = 1
    """The paper's L. The limit on keys per user: users above it are cut to it; with Gaussian noise, unless the pipeline
    runtime_optimized selects the keys, they count in all of their keys, shrunk together to the Euclidean norm of the limit. "auto"
    chooses it within the budget. It must be given, unless there are no keys."""
    budget: Budget
    """The most the release may spend."""
    where: str | None = None
    """Which rows count at all, before anything else."""
    public_keys: PublicKeys | None = None
    """Keys known without looking at the data; then all of them and no others are released."""
    min_users: int = 1
    """Keys with fewer users are never released, whatever the noise says."""
    selection: str = AUTO
    """How keys are selected: a strategy's name, or "auto", which is decided by the rest of the query."""
    noise: str = AUTO
    """Which noise is drawn, "laplace" or "gaussian"; "auto" takes that of the selection, or the one with the smaller error; "correlated" is
    for few public keys."""
    composition: str = TIGHT
    """How costs come together: "tight", or "basic", which only adds epsilons up as the paper does."""
    shares: tuple[tuple[str, Fraction], ...] = ()
    """What parts of the query weigh when the budget is shared out: "selection" and measures by name, as a mapping to numbers."""
    key_expressions: tuple[tuple[str, str], ...] = ()
    """What those keys are that are not columns as they are: name and expression. Given as a mapping of names to expressions, or by
    `keys` as such a mapping."""
    population: int | None = None
    """The number of people the users are drawn from, as the analyst knows it and not from the data. A delta above 1 divided by it is
    cautioned against. It changes nothing else."""

    if TYPE_CHECKING:
        # What may be written is wider than what is kept: one name for several, a list for a tuple, a mapping for pairs.
        def __init__(  # noqa: PLR0913 - the settings above
            self,
            *,
            user: str,
            keys: str | Sequence[str] | Mapping[str, str],
            measures: Mechanism | Sequence[Mechanism],
            max_keys_per_user: int | str = 1,
            budget: Budget,
            where: str | None = None,
            public_keys: PublicKeys | None = None,
            min_users: int = 1,
            selection: str = AUTO,
            noise: str = AUTO,
            composition: str = TIGHT,
            shares: Mapping[str, float | Fraction] | Sequence[tuple[str, float | Fraction]] = (),
            key_expressions: Mapping[str, str] | Sequence[tuple[str, str]] = (),
            population: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        refuse_bad_name("user", self.user)
        keys = read_keys(self.keys, self.key_expressions, user=self.user)
        _set(self, "keys", keys.names)
        _set(self, "key_expressions", keys.expressions)
        _set(self, "measures", _measures(self.measures))
        _refuse_bad_settings(self)
        if not self.keys:
            _set(self, LIMIT, 1)  # everybody is in the one row
        _refuse_equal_names(self)
        refuse_other_than_budget(self.budget)
        refuse_too_small(self.budget)
        _set(self, "public_keys", _public_keys(self))
        _set(self, "shares", _shares(self))
        _refuse_bad_noise(self)
        rows.condition(self.where)

    @classmethod
    def paper(cls, **settings: Any) -> Self:
        """Ask as the paper's experiments do: Laplace threshold, Laplace noise, epsilon split in half, costs added up.

        Takes what Query takes.
        """
        return cls(**settings, selection="laplace_threshold", noise="laplace", composition=BASIC)

    @property
    def has_public_keys(self) -> bool:
        """Whether it is known without looking at the data which keys there are; that of a query without keys there is one."""
        return self.public_keys is not None or not self.keys

    @property
    def known_keys(self) -> int | None:
        """How many public keys there are, if that is known before anything is read."""
        return self.public_keys.num_rows if isinstance(self.public_keys, pa.Table) else None

    @property
    def condition(self) -> Expression | None:
        """The condition behind `where`."""
        return rows.condition(self.where)

    @property
    def chooses_limit(self) -> bool:
        """Whether max_keys_per_user is chosen within the budget."""
        return self.max_keys_per_user == AUTO

    @property
    def choices(self) -> tuple[str, ...]:
        """What is chosen within the budget, in this order."""
        return (*((LIMIT,) if self.chooses_limit else ()), *open_bounds(self.measures))

    @property
    def selection_limit(self) -> int:
        """The limit; where it is still open, the number of keys per user that selection takes instead."""
        return self.max_keys_per_user if isinstance(self.max_keys_per_user, int) else _KEYS_WHEN_SELECTING

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the rows that are grouped by: of a key that is computed, one that no other has the name of."""
        computed = {name for name, _ in self.key_expressions}
        columns = {self.user, *self.measured_columns, *(key for key in self.keys if key not in computed)}
        columns |= columns_of(self.condition) if self.condition is not None else frozenset()
        taken = {column.casefold() for column in columns}
        free = (name for number in count(1) if (name := f"computed_{number}") not in taken)
        return tuple(next(free) if key in computed else key for key in self.keys)

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The columns of the result: keys first."""
        return (*self.keys, *(column for measure in self.measures for column in measure.columns))

    @property
    def computed_columns(self) -> tuple[str, ...]:
        """The measures' columns that are computed from several noised parts, so that their error differs from key to key."""
        columns = (column for measure in self.measures for column in measure.columns.items())
        return tuple(name for name, part in columns if part is None)

    @property
    def columns_with_reliability(self) -> tuple[str, ...]:
        """The columns of the result, and behind them those that say of computed columns where they are reliable."""
        return (*self.released_columns, *(f"{name}{RELIABLE}" for name in self.computed_columns))

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns whose values the measures read, each once."""
        return tuple(dict.fromkeys(column for measure in self.measures for column in measure.value_columns))

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """The columns the measures read, for values or for conditions, each once."""
        conditions = (measure.condition for measure in self.measures if measure.condition is not None)
        conditional = (name for condition in conditions for name in sorted(columns_of(condition)))
        return tuple(dict.fromkeys((*self.value_columns, *conditional)))

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """All conditions on rows: the query's own and those of measures."""
        found = (self.condition, *(measure.condition for measure in self.measures))
        return tuple(condition for condition in found if condition is not None)

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        from plume.report.rendering import render  # noqa: PLC0415 - for notebooks only
        from plume.report.settings import settings  # noqa: PLC0415 - the same

        return render("query.html", settings=settings(self))


def written_texts(query: Query) -> tuple[str | None, ...]:
    """Give all conditions and expressions as they were written."""
    expressions = (text for _, text in query.key_expressions)
    return (query.where, *expressions, *(getattr(measure, "where", None) for measure in query.measures))


def _set(query: Query, name: str, value: Any) -> None:
    object.__setattr__(query, name, value)


def _measures(given: Any) -> tuple[Mechanism, ...]:
    measures = tuple(given) if isinstance(given, list | tuple) else (given,)
    if any(map(callable, measures)):
        raise MeasureError(
            "measures holds a function that is not called; write it with parentheses, as in plume.users()."
        )
    if not measures or not all(_is_measure(measure) for measure in measures):
        raise MeasureError(
            f"measures is {given!r}; it must be a list of measures, such as [plume.count(max_per_key=3), plume.users()]."
        )
    for measure in measures:
        for column in measure.value_columns:
            refuse_bad_name("the column of a measure", column)
        for name in (measure.name, *measure.columns):
            if not is_name(name):
                raise MeasureError(f"a measure is named {name!r}; a name must be text with at least one character.")
    return measures


def _is_measure(given: Any) -> bool:
    return hasattr(given, "combine_raw") and not isinstance(given, type)


def _refuse_bad_settings(query: Query) -> None:
    """Refuse what the table of settings does not allow."""
    for setting in SETTINGS:
        value = getattr(query, setting.name, None)
        match setting.kind:
            case SettingKind.WHOLE:
                _refuse_bad_bound(setting.name, value)
            case SettingKind.SIZE if value is not None:
                _refuse_bad_size(setting.name, value)
            case SettingKind.LIMIT if value != AUTO:
                _refuse_bad_bound(setting.name, value, or_auto=f", or {AUTO!r}")
            case SettingKind.WORD if value not in setting.choices:
                raise MeasureError(f"{setting.name} is {value!r}; it must be one of {', '.join(setting.choices)}.")


def _refuse_bad_bound(name: str, bound: Any, *, or_auto: str = "") -> None:
    if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= LARGEST_BOUND:
        raise BoundError(f"{name} is {shown(bound)}; it must be a whole number from 1 to {LARGEST_BOUND}{or_auto}.")


def _refuse_bad_size(name: str, size: Any) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _LARGEST_SIZE:
        raise BoundError(f"{name} is {shown(size)}; it must be a whole number from 1 to {_LARGEST_SIZE}.")


def _refuse_bad_noise(query: Query) -> None:
    if releases_users(query.selection):
        refuse_other_than_one_key(query)
    if query.noise == CORRELATED:
        refuse_what_cannot_share_noise(query)
    _refuse_gaussian_noise_with_basic_composition(query)
    if not query.has_public_keys and query.budget.delta == 0:
        raise BudgetError(
            "delta is 0; selecting keys from data needs a delta above 0, such as 1e-6. With public_keys= it may be 0."
        )
    if query.noise == "gaussian" and query.budget.delta == 0:
        raise BudgetError("delta is 0; Gaussian noise needs a delta above 0, such as 1e-6.")
    for choice in query.choices:
        _refuse_choosing_without_gaussian_noise(query, choice)
    if query.selection != AUTO and query.public_keys is None and rule_of(query.selection).is_charged_to_accounts:
        _refuse_what_accounts_are_not_charged_for(query)


def _refuse_choosing_without_gaussian_noise(query: Query, choice: str) -> None:
    """Only there what is spent does not depend on the number that is chosen, at no loss (docs/guarantees/auto-limit.md)."""
    if query.noise == "laplace" or query.composition == BASIC or not (query.selection == AUTO or _is_gaussian(query)):
        raise BoundError(
            f"{choice} is {AUTO!r}, which needs Gaussian noise throughout; "
            "leave noise, selection and composition as they are, or give a number."
        )
    if query.budget.delta == 0:
        raise BudgetError(f"delta is 0; {choice} = {AUTO!r} needs a delta above 0, such as 1e-6.")


def _refuse_what_accounts_are_not_charged_for(query: Query) -> None:
    """Where accounts are charged for measures, these must be known when keys are selected (docs/guarantees/pooled-gaussian.md)."""
    if query.noise == "laplace":
        raise MeasureError(
            f"noise is 'laplace' beside selection = {query.selection!r}, which needs Gaussian noise throughout; leave noise out."
        )
    for choice in query.choices:
        raise BoundError(
            f"{choice} is {AUTO!r} beside selection = {query.selection!r}, which needs every number to be given; give one, or take "
            "selection = 'weighted_gaussian'."
        )


def _is_gaussian(query: Query) -> bool:
    """Return whether a strategy with Gaussian noise is asked for by its name."""
    return query.selection != AUTO and rule_of(query.selection).gaussian


def _refuse_gaussian_noise_with_basic_composition(query: Query) -> None:
    if query.composition == BASIC and (query.noise == "gaussian" or _is_gaussian(query)):
        raise MeasureError(
            f"composition is {BASIC!r}, which adds epsilons up, and Gaussian noise has none; "
            "take Laplace noise with selection = 'laplace_threshold' or 'truncated_geometric', or leave composition out."
        )


def _shares(query: Query) -> tuple[tuple[str, Fraction], ...]:
    selection = () if query.has_public_keys else (SELECTION,)
    return read_weights(query.shares, (*selection, *query.choices, *parts_to_share(query.selection, query.measures)))


def _refuse_equal_names(query: Query) -> None:
    """Some engines ignore the case of names, so names that differ in case alone would be one column there."""
    if query.user.casefold() in {key.casefold() for key in query.keys}:
        raise ColumnNotFound(f"user and keys both name {query.user!r}; a key must not be the user itself.")
    seen: set[str] = set()
    for name in query.keys:
        if name.casefold() in seen:
            raise ColumnNotFound(f"keys names {name!r} twice; engines ignore case.")
        seen.add(name.casefold())
    for name in query.released_columns[len(query.keys) :]:
        if name.casefold() in seen:
            raise MeasureError(
                f"two columns of the result would be called {name!r}; give a measure another name with name=."
            )
        seen.add(name.casefold())
    for name in query.computed_columns:
        if f"{name}{RELIABLE}".casefold() in seen:
            raise MeasureError(
                f"{name} comes with a column '{name}{RELIABLE}', and another column has that name; "
                "give one of them another name."
            )


def _public_keys(query: Query) -> pa.Table | Path | None:
    """Bring public keys into one form: a table with the key columns, or the path of a file that holds one."""
    given = query.public_keys
    if not query.keys:
        _refuse_beside_a_total(query)
    if given is None:
        return None
    if query.min_users > 1:
        raise BoundError(
            f"min_users is {query.min_users} beside public_keys; public keys are released whoever has them."
        )
    if isinstance(given, str | Path):
        return Path(given)
    keys = table_of_keys(given, query.keys)
    if keys is None:
        raise PublicKeysError(
            f"public_keys must be a list of values or of tuples with {len(query.keys)} parts, each part of one type, or a table with "
            f"the columns {', '.join(query.keys)}, or a file of one."
        )
    check_public_keys(keys)
    return keys


def _refuse_beside_a_total(query: Query) -> None:
    """Refuse what is about keys where there are none."""
    if query.public_keys is not None:
        raise PublicKeysError("public_keys is given, and keys is empty; a total has no keys, so leave public_keys out.")
    if query.min_users > 1:
        raise BoundError(f"min_users is {query.min_users}, and keys is empty; a total is released whoever is in it.")
