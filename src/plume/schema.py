"""Whether a table fits a query: every column is checked by name and type before a row is read.

Separate from engines, which only say what columns there are.
"""

import difflib
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from plume.errors import ColumnNotFound, ColumnTypeError
from plume.plan.expressions import Column, Compare, Expression, IsIn, Like, Literal, Value, walk
from plume.plan.types import ColumnType, Kind, Schema
from plume.query import Query

NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT})
_IDENTIFIERS = frozenset({Kind.TEXT, Kind.INTEGER, Kind.UUID})
_VALUES = NUMBERS | {Kind.BOOLEAN}


def check_schema(query: Query, schema: Schema, *, source: str) -> None:
    """Refuse a table that lacks a column of the query or has it in a type that does not fit."""
    for name in columns_used(query):
        _refuse_missing(name, schema, source=source)
    _check_user(query.user, schema[query.user])
    for key in query.keys:
        _check_key(key, schema[key])
    for value in query.value_columns:
        if schema[value].kind not in _VALUES:
            raise ColumnTypeError(f"column {value!r} is {_described(schema[value])}; a value must be a number.")
    if query.condition is not None:
        _check_condition(query.condition, schema)


def described(data: Any) -> str:
    """Name data in a message: a file by its name, anything else by its type."""
    if isinstance(data, list | tuple):
        return described(data[0]) if len(data) == 1 else f"these {len(data)} files"
    return Path(data).name if isinstance(data, str | Path) else f"this {type(data).__name__}"


def columns_used(query: Query) -> tuple[str, ...]:
    """List the columns of the table a query reads, each once."""
    condition = () if query.condition is None else _columns_in(query.condition)
    return tuple(dict.fromkeys((query.user, *query.keys, *query.value_columns, *condition)))


def kinds_expected(query: Query) -> dict[str, Kind]:
    """Say how to read columns from files without types: users and keys as text, values and constants as what they are."""
    expected: dict[str, Kind] = {}
    if query.condition is not None:
        expected |= {column.name: kind for column, kind in _compared(query.condition)}
    expected |= dict.fromkeys(query.value_columns, Kind.FLOAT)
    return expected | dict.fromkeys((query.user, *query.keys), Kind.TEXT)


def _refuse_missing(name: str, columns: Iterable[str], *, source: str) -> None:
    """Refuse a name that is not exactly one of the columns."""
    there = tuple(columns)
    if name in there:
        return
    near = difflib.get_close_matches(name.casefold(), [column.casefold() for column in there], n=1)
    hint = next((f"; did you mean {c!r}?" for c in there if near and c.casefold() == near[0]), ".")
    raise ColumnNotFound(f"no column {name!r} in {source}{hint} Columns: {', '.join(there)}.")


def _check_user(name: str, found: ColumnType) -> None:
    if found.kind not in _IDENTIFIERS:
        raise ColumnTypeError(
            f"user column {name!r} is {_described(found)}; an identifier must be text, integer or uuid. "
            "Cast it yourself, so that equal users stay equal and different ones different."
        )


def _check_key(name: str, found: ColumnType) -> None:
    if found.has_floats:
        raise ColumnTypeError(
            f"key column {name!r} is {_described(found)}; floating-point numbers are no keys. Cast or bin it first."
        )


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
    """Refuse comparisons that an engine could only make by casting the column, since a cast can fail on some row."""
    for column, kind in _compared(condition):
        _refuse_mixed(column.name, schema[column.name], kind.value, _family(kind))
    for part in walk(condition):
        match part:
            case Compare(Column(left), _, Column(right)):
                found = schema[right]
                _refuse_mixed(left, schema[left], f"column {right!r} ({_described(found)})", _family(found.kind))


def _refuse_mixed(name: str, found: ColumnType, other: str, family: object) -> None:
    if found.kind is Kind.OTHER or _family(found.kind) != family:
        raise ColumnTypeError(
            f"where compares column {name!r}, which is {_described(found)}, with {other}; both must be of one kind "
            "(dates are written DATE '2026-01-31')."
        )


def _family(kind: Kind) -> object:
    return NUMBERS if kind in NUMBERS else kind


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
