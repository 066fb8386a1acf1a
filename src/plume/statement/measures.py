"""The aggregates of the private SELECT become measures, with the meaning that BigQuery gives them or not at all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlglot import exp

from plume.mechanisms.count import count
from plume.mechanisms.forms import FORMS
from plume.mechanisms.mean import mean
from plume.mechanisms.measure import PER_GROUP, PER_ROW
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.quantiles import Quantiles, quantiles
from plume.mechanisms.users import users
from plume.plan.dialect import identifier
from plume.plan.printing.duckdb import DUCKDB
from plume.relation.text import Text, Tree, start_of
from plume.settings import AUTO
from plume.statement.elsewhere import ENDS
from plume.statement.settings import is_auto, number

_FORMS = {form.sql.function: (form.make, form.sql.bounds) for form in FORMS.values() if form.sql is not None}
# What bounds are where none are given: chosen within the budget, as in BigQuery (docs/decisions/0035-bounds-that-are-left-out.md).
_LEFT_OUT: dict[str, tuple[str, tuple[Any, Any]]] = {
    "COUNT": (PER_GROUP, (0, AUTO)),
    "SUM": (PER_GROUP, (AUTO, AUTO)),
    "AVG": (PER_GROUP, (AUTO, AUTO)),
}
_EXAMPLES = {PER_GROUP: f"{PER_GROUP} => (0, 60)", PER_ROW: f"{PER_ROW} => (0, 60)"}


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of the private SELECT, as it was written."""

    tree: Tree
    name: str | None
    """What the result is called, if the statement says so."""

    @property
    def function(self) -> str:
        """Its name."""
        return str(self.tree.name.upper())

    @property
    def arguments(self) -> list[Any]:
        """What it is of."""
        return [part for part in self.tree.expressions if not isinstance(part, exp.Kwarg)]


@dataclass(frozen=True)
class Columns:
    """How arguments of aggregates become columns of the relation: the caller knows."""

    value: Callable[[Tree], str]
    """Names the column of an expression."""
    mean_of_user: Callable[[Tree], str]
    """Names the column that holds the mean of an expression over the rows of one user in one group."""
    is_unit: Callable[[Tree], bool]
    unit: str
    """The privacy unit as the statement writes it."""


def make_measure(text: Text, aggregate: Aggregate, columns: Columns) -> Mechanism:
    """Make the measure that an aggregate asks for."""
    tree = aggregate.tree
    if aggregate.function in ENDS:
        told = f"{aggregate.function} is not supported in a private SELECT; write {ENDS[aggregate.function]}."
        raise text.refusal(tree, told)
    if aggregate.function not in _FORMS:
        raise text.refusal(tree, f"{aggregate.function} is not supported in a private SELECT; {', '.join(_FORMS)} are.")
    with text.placing(tree):
        return _make(text, aggregate, columns)


def _make(text: Text, aggregate: Aggregate, columns: Columns) -> Mechanism:
    arguments, name = aggregate.arguments, aggregate.name
    wanted = 2 if aggregate.function == "PERCENTILE_CONT" else 1
    if len(arguments) != wanted:
        raise text.refusal(
            aggregate.tree, f"{aggregate.function} takes {wanted} argument{'s'[: wanted - 1]} and its bounds."
        )
    if aggregate.function == "COUNT":
        return _count(text, aggregate, columns)
    which, (low, high) = _bounds(text, aggregate)
    if aggregate.function == "AVG" and which == PER_GROUP:
        mean_of_user = columns.mean_of_user(arguments[0])
        return mean(mean_of_user, low, high, name=name or f"{_called(arguments[0], mean_of_user)}_mean")
    column, (make, _) = columns.value(arguments[0]), _FORMS[aggregate.function]
    if aggregate.function != "PERCENTILE_CONT":
        return make(column, low, high, name=name)
    measure = quantiles(column, [number(arguments[1])], low, high)
    return replace(measure, name=name, names=(name,)) if name and isinstance(measure, Quantiles) else measure


def _called(tree: Tree, otherwise: str) -> str:
    return str(tree.name) if isinstance(tree, exp.Column) else otherwise


def _count(text: Text, aggregate: Aggregate, columns: Columns) -> Mechanism:
    argument, name = aggregate.arguments[0], aggregate.name
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1 or not columns.is_unit(argument.expressions[0]):
            raise text.refusal(
                aggregate.tree,
                f"COUNT(DISTINCT ...) can count the privacy unit only; write COUNT(DISTINCT {columns.unit}).",
            )
        return users(name=name or "users")
    _, (low, high) = _bounds(text, aggregate)
    if low != 0 or not (isinstance(high, int) or high == AUTO):
        raise text.refusal(
            aggregate.tree, f"the bounds of COUNT are 0 and a whole number or AUTO, as in {PER_GROUP} => (0, 5)."
        )
    if isinstance(argument, exp.Star):
        return count(high, name=name or "count")
    column = columns.value(argument)
    return count(high, name=name or f"{column}_count", where=f"{identifier(column, DUCKDB)} IS NOT NULL")


def _bounds(text: Text, aggregate: Aggregate) -> tuple[str, tuple[Any, Any]]:
    """Read the bounds of an aggregate; those of counts, sums and means are AUTO where they are left out."""
    (_, takes), tree = _FORMS[aggregate.function], aggregate.tree
    given = [part for part in tree.expressions if isinstance(part, exp.Kwarg)]
    if not given and aggregate.function in _LEFT_OUT:
        return _LEFT_OUT[aggregate.function]
    if not given:
        # A quantile has a second argument, which the statement may show.
        written = ", ".join(text.quote(part) for part in aggregate.arguments)
        raise text.refusal(
            tree,
            f"{aggregate.function} needs the range of its values, which cannot be chosen from the data; "
            f"write {aggregate.function}({written}, {_EXAMPLES[takes[0]]}) with a range that you know.",
        )
    name = given[0].name.lower()
    if len(given) > 1 or name not in takes:
        raise text.refusal(_start(text, given[-1]), f"{aggregate.function} takes {' or '.join(takes)}, once.")
    values = given[0].expression.expressions if isinstance(given[0].expression, exp.Tuple) else []
    bounds = [_bound(value) for value in values]
    if len(bounds) != 2 or None in bounds:  # noqa: PLR2004 - a low and a high one
        raise text.refusal(_start(text, given[0]), f"{name} must be two constants, as in {name} => (0, 60), or AUTO.")
    return name, (bounds[0], bounds[1])


def leaves_out_bounds(aggregate: Aggregate) -> bool:
    """Return whether an aggregate has no bounds where it could have some."""
    is_distinct = any(isinstance(argument, exp.Distinct) for argument in aggregate.arguments)
    return not is_distinct and len(aggregate.arguments) == len(aggregate.tree.expressions)


def _start(text: Text, argument: Tree) -> int:
    """Find where a named argument begins, of which sqlglot notes the value only."""
    return max(text.text.rfind(argument.name, 0, start_of(argument)), 0)


def _bound(tree: Tree) -> Any:
    if is_auto(tree):
        return AUTO
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal) and tree.to.this is exp.DataType.Type.DATE:
        try:
            return date.fromisoformat(tree.this.this)
        except ValueError:
            return None
    return number(tree)
