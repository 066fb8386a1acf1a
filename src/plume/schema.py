"""Whether a table fits a query: every column is checked by name and type before a row is read.

Separate from engines, which only say what columns there are.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from plume.engines.engine import Relation
from plume.errors import ColumnNotFound, ColumnTypeError, printable
from plume.plan.expressions import Column, Compare, Expression, IsIn, Like, Literal, Value
from plume.plan.trees import walk
from plume.plan.types import ColumnType, Kind, Schema
from plume.query import Query

NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT})
_IDENTIFIERS = frozenset({Kind.TEXT, Kind.INTEGER, Kind.UUID})
_SHOWN_COLUMNS = 20


def check_schema(query: Query, schema: Schema, *, source: str) -> None:
    """Refuse a table that lacks a column of the query or has it in a type that does not fit."""
    for name in columns_used(query):
        _refuse_missing(name, tuple(schema), source=source)
    _check_user(query.user, schema[query.user])
    for key in query.keys:
        _check_key(key, schema[key])
    for measure in query.measures:
        for name, kinds in measure.value_columns.items():
            _check_value(name, schema[name], kinds)
    for condition in query.conditions:
        _check_condition(condition, schema)


def check_relation(relation: Relation, schemas: Mapping[str, Schema]) -> None:
    """Refuse tables that lack a column of a relation, or have it in a type that does not fit.

    All columns that say whose a row is must be identifiers of one kind, and columns that joins compare must be comparable on every row.
    """
    for name, table in relation.tables.items():
        for column in table.kinds:
            _refuse_missing(column, tuple(schemas[name]), source=relation.written[name])
            _check_described(column, schemas[name][column])
    for name, column in relation.units:
        _check_user(column, schemas[name][column])
    if len({schemas[name][column].kind for name, column in relation.units}) > 1:
        raise ColumnTypeError(
            "the privacy unit is of several types in several tables; cast it before, so that equal users stay equal."
        )
    for (one, left), (other, right) in relation.equal:
        if not _is_comparable(schemas[one][left], schemas[other][right]):
            raise ColumnTypeError(
                f"a join compares column {left!r}, which is {_described(schemas[one][left])}, with {right!r}, "
                f"which is {_described(schemas[other][right])}; both must be of one type."
            )


def _check_described(name: str, found: ColumnType) -> None:
    """Refuse types of which equal values can differ in ways that SQL shows, as intervals do; which of them a group shows is chance."""
    if found.kind is Kind.OTHER and not found.exact:
        raise ColumnTypeError(f"column {name!r} is {_described(found)}, which a statement cannot read.")


def described(data: Any) -> str:
    """Name data in a message: a file by its name, anything else by its type."""
    if isinstance(data, Relation):
        return "what the statement selects"
    if isinstance(data, list | tuple):
        return described(data[0]) if len(data) == 1 else f"these {len(data)} files"
    return printable(Path(data).name) if isinstance(data, str | Path) else f"this {type(data).__name__}"


def columns_used(query: Query) -> tuple[str, ...]:
    """List the columns of the table a query reads, each once."""
    conditional = (name for condition in query.conditions for name in _columns_in(condition))
    return tuple(dict.fromkeys((query.user, *query.keys, *query.value_columns, *conditional)))


def kinds_expected(query: Query) -> dict[str, Kind]:
    """Name the columns a query reads, and say how to read them from files without types.

    Users and keys are text, values are numbers, and what is compared with a constant is of its kind.
    """
    expected = dict.fromkeys(columns_used(query), Kind.TEXT)
    for condition in query.conditions:
        expected |= {column.name: kind for column, kind in _compared(condition)}
    for measure in query.measures:
        expected |= {name: _read_as(kinds) for name, kinds in measure.value_columns.items()}
    return expected | dict.fromkeys((query.user, *query.keys), Kind.TEXT)


def _refuse_missing(name: str, columns: Sequence[str], *, source: str) -> None:
    """Refuse a name that is not exactly one of the columns, and help to find the right one."""
    if name in columns:
        return
    near = difflib.get_close_matches(name.casefold(), [column.casefold() for column in columns], n=1)
    hint = next((f"; did you mean {c!r}?" for c in columns if near and c.casefold() == near[0]), ".")
    listed = ", ".join(printable(column) for column in columns[:_SHOWN_COLUMNS])
    more = f" and {len(columns) - _SHOWN_COLUMNS} more" if len(columns) > _SHOWN_COLUMNS else ""
    raise ColumnNotFound(f"no column {name!r} in {source}{hint} Columns: {listed}{more}.")


def _check_user(name: str, found: ColumnType) -> None:
    if found.kind not in _IDENTIFIERS:
        raise ColumnTypeError(
            f"user column {name!r} is {_described(found)}; an identifier must be text, integer or uuid. "
            "Cast it yourself, so that equal users stay equal and different ones different."
        )


def _check_key(name: str, found: ColumnType) -> None:
    if not found.exact:
        raise ColumnTypeError(
            f"key column {name!r} is {_described(found)}, and equal values of this type can differ, as 0.0 and -0.0 do. "
            "Cast or bin it first."
        )


def _check_value(name: str, found: ColumnType, kinds: frozenset[Kind]) -> None:
    if found.kind not in kinds:
        wanted = "a number" if Kind.FLOAT in kinds else "a date or a timestamp, as its bounds are"
        raise ColumnTypeError(f"column {name!r} is {_described(found)}; a value must be {wanted}.")


def _read_as(kinds: frozenset[Kind]) -> Kind:
    return Kind.FLOAT if Kind.FLOAT in kinds else Kind.TIMESTAMP


def _described(found: ColumnType) -> str:
    return found.kind.value if found.kind is not Kind.OTHER else found.engine_name


def _columns_in(condition: Expression) -> tuple[str, ...]:
    return tuple(part.name for part in walk(condition) if isinstance(part, Column))


def _compared(condition: Expression) -> Iterable[tuple[Column, Kind]]:
    """Pair every column of a condition with the kind of each constant it meets."""
    for part in walk(condition):
        match part:
            case Compare(Column() as column, _, Literal(value)) | Compare(Literal(value), _, Column() as column):
                yield column, kind_of(value)
            case IsIn(Column() as column, among):
                yield from ((column, kind_of(literal.value)) for literal in among)
            case Like(Column() as column, pattern):
                yield column, kind_of(pattern.value)


def _check_condition(condition: Expression, schema: Schema) -> None:
    """Refuse comparisons that an engine could only make by a cast that can fail on some row."""
    for column, kind in _compared(condition):
        if _family(schema[column.name].kind) != _family(kind):
            raise _uncomparable(column.name, schema, kind.value)
    for part in walk(condition):
        match part:
            case Compare(Column(left), _, Column(right)) if not _is_comparable(schema[left], schema[right]):
                raise _uncomparable(left, schema, f"column {right!r}, which is {_described(schema[right])}")


def _family(kind: Kind) -> object:
    return NUMBERS if kind in NUMBERS else kind


def _is_comparable(left: ColumnType, right: ColumnType) -> bool:
    """Tell whether no row can keep two columns from being compared: decimals and timestamps may be too large for each other."""
    kinds = {left.kind, right.kind}
    same = left.engine_name == right.engine_name and Kind.OTHER not in kinds
    return same or kinds == {Kind.TEXT} or kinds <= {Kind.INTEGER, Kind.FLOAT}


def _uncomparable(name: str, schema: Schema, other: str) -> ColumnTypeError:
    return ColumnTypeError(
        f"where compares column {name!r}, which is {_described(schema[name])}, with {other}; both must be of one type "
        "(dates are written DATE '2026-01-31')."
    )


def kind_of(value: Value) -> Kind:
    """Tell the kind of a constant."""
    match value:
        case bool():
            return Kind.BOOLEAN
        case datetime():
            return Kind.TIMESTAMP
        case date():
            return Kind.DATE
        case int():
            return Kind.INTEGER
        case float():
            return Kind.FLOAT
        case str():
            return Kind.TEXT
