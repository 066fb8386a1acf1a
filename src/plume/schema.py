"""Whether a table fits a query: every column is checked by name and type before a row is read.

Separate from engines, which only say what columns there are.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from plume.engines.engine import Meeting, Relation, Table
from plume.errors import ColumnNotFound, ColumnTypeError, printable, without_secrets
from plume.plan.comparisons import NUMBERS, can_meet, limits
from plume.plan.expressions import Column, Compare, Expression, IsIn, Like, Literal, Value
from plume.plan.trees import walk
from plume.plan.types import ColumnType, Kind, Schema
from plume.query import Query

_IDENTIFIERS = frozenset({Kind.TEXT, Kind.INTEGER, Kind.UUID})
_SHOWN_COLUMNS = 20

Columns = Callable[[str], Schema]
"""Says what columns a SELECT has."""


def check_schema(query: Query, schema: Schema, *, source: str) -> None:
    """Refuse a table that lacks a column of the query or has it in a type that does not fit."""
    for name in columns_used(query):
        refuse_missing(name, tuple(schema), source=source)
    _check_user(query.user, schema[query.user])
    for key, column in zip(query.keys, query.key_columns, strict=True):
        _check_key(key, schema[column], computed=key != column)
    for measure in query.measures:
        for name, kinds in measure.value_columns.items():
            _check_value(name, schema[name], kinds)
    for condition in query.conditions:
        _check_condition(condition, schema)


def check_relation(relation: Relation, schemas: Mapping[str, Schema]) -> None:
    """Refuse tables that lack a column of a relation, or have it in a type that does not fit.

    All columns that say whose a row is must be identifiers of one kind, and of types in which equal users are equal.
    """
    for name, table in relation.tables.items():
        for column in table.kinds:
            refuse_missing(column, tuple(schemas[name]), source=relation.written[name])
            _check_described(column, schemas[name][column])
    for name, column in relation.units:
        _check_user(column, schemas[name][column])
    units = [schemas[name][column] for name, column in relation.units]
    if len({unit.kind for unit in units}) > 1 or not all(can_meet(*pair) for pair in combinations(units, 2)):
        raise ColumnTypeError(
            "the privacy unit is of several types in several tables; cast it before, so that equal users stay equal."
        )


def check_meetings(meetings: Iterable[Meeting], columns: Columns) -> None:
    """Refuse joins and unions in which columns meet whose types an engine could bring together by an inexact or failing cast only.

    Types of computed columns are known to the engine alone: `columns` asks it, and no row is read.
    """
    for meeting in meetings:
        left, right = columns(meeting.left), columns(meeting.right)
        for one, other in meeting.pairs(tuple(left), tuple(right)):
            if not can_meet(left[one], right[other]):
                raise ColumnTypeError(
                    f"{meeting.what} column {one!r}, which is {left[one].engine_name}, with {other!r}, "
                    f"which is {right[other].engine_name}; both must be of one type. CAST one of them."
                )


def _check_described(name: str, column: ColumnType) -> None:
    """Refuse types of which equal values can differ in ways that SQL shows, as intervals do; which of them a group shows is chance."""
    if column.kind is Kind.OTHER and not column.exact:
        raise ColumnTypeError(f"column {name!r} is {_described(column)}, which a statement cannot read.")


def described(data: Any) -> str:
    """Name data in a message: a file by its name, anything else by its type."""
    if isinstance(data, Relation):
        return "what the statement selects"
    if isinstance(data, list | tuple):
        return described(data[0]) if len(data) == 1 else f"these {len(data)} files"
    return (
        printable(Path(without_secrets(str(data))).absolute().name)
        if isinstance(data, str | Path)
        else f"this {type(data).__name__}"
    )


def columns_used(query: Query) -> tuple[str, ...]:
    """List the columns of the table a query reads, each once."""
    conditional = (name for condition in query.conditions for name in _columns_in(condition))
    return tuple(dict.fromkeys((query.user, *query.key_columns, *query.value_columns, *conditional)))


def kinds_expected(query: Query) -> dict[str, Kind]:
    """Name the columns a query reads, and say how to read them from files without types.

    Users and keys are text, values are numbers, and what is compared with a constant is of its kind.
    """
    expected = dict.fromkeys(columns_used(query), Kind.TEXT)
    for condition in query.conditions:
        expected |= {column.name: kind_of(value) for column, value in _compared(condition)}
    for measure in query.measures:
        expected |= {name: _read_as(kinds) for name, kinds in measure.value_columns.items()}
    return expected | dict.fromkeys((query.user, *query.key_columns), Kind.TEXT)


def table_for(query: Query, data: Any) -> Table:
    """Say how an engine is to read the data of a query."""
    return Table(data, kinds_expected(query), grouped=frozenset((query.user, *query.key_columns)))


def refuse_missing(name: str, columns: Sequence[str], *, source: str) -> None:
    """Refuse a name that is not exactly one of the columns, and help to find the right one."""
    if name in columns:
        return
    near = difflib.get_close_matches(name.casefold(), [column.casefold() for column in columns], n=1)
    hint = next((f"; did you mean {c!r}?" for c in columns if near and c.casefold() == near[0]), ".")
    listed = ", ".join(printable(column) for column in columns[:_SHOWN_COLUMNS])
    more = f" and {len(columns) - _SHOWN_COLUMNS} more" if len(columns) > _SHOWN_COLUMNS else ""
    raise ColumnNotFound(f"no column {name!r} in {source}{hint} Columns: {listed}{more}.", name=name)


def _check_user(name: str, column: ColumnType) -> None:
    if column.kind not in _IDENTIFIERS:
        raise ColumnTypeError(
            f"user column {name!r} is {_described(column)}; an identifier must be text, integer or uuid. "
            "Cast it yourself, so that equal users stay equal and different ones different."
        )


def _check_key(name: str, column: ColumnType, *, computed: bool) -> None:
    if not column.exact and computed:
        raise ColumnTypeError(
            f"key {name!r} is computed as {_described(column)}, and equal values of this type can differ, as 0.0 and -0.0 do. "
            "CAST it, as in CAST(FLOOR(age / 10) AS INT)."
        )
    if not column.exact:
        raise ColumnTypeError(
            f"key column {name!r} is {_described(column)}, and equal values of this type can differ, as 0.0 and -0.0 do. "
            "Cast or bin it first."
        )


def _check_value(name: str, column: ColumnType, kinds: frozenset[Kind]) -> None:
    if column.kind not in kinds:
        wanted = "a number" if Kind.FLOAT in kinds else "a date or a timestamp, as its bounds are"
        raise ColumnTypeError(f"column {name!r} is {_described(column)}; a value must be {wanted}.")


def _read_as(kinds: frozenset[Kind]) -> Kind:
    return Kind.FLOAT if Kind.FLOAT in kinds else Kind.TIMESTAMP


def _described(column: ColumnType) -> str:
    return column.kind.value if column.kind is not Kind.OTHER else column.engine_name


def _columns_in(condition: Expression) -> tuple[str, ...]:
    return tuple(part.name for part in walk(condition) if isinstance(part, Column))


def _compared(condition: Expression) -> Iterable[tuple[Column, Value]]:
    """Pair every column of a condition with each constant it meets."""
    for part in walk(condition):
        match part:
            case Compare(Column() as column, _, Literal(value)) | Compare(Literal(value), _, Column() as column):
                yield column, value
            case IsIn(Column() as column, among):
                yield from ((column, literal.value) for literal in among)
            case Like(Column() as column, pattern):
                yield column, pattern.value


def _check_condition(condition: Expression, schema: Schema) -> None:
    """Refuse comparisons that an engine could only make by a cast that can fail on some row."""
    for column, value in _compared(condition):
        column_type = schema[column.name]
        if _family(column_type.kind) != _family(kind_of(value)):
            raise _uncomparable(column.name, schema, kind_of(value).value)
        if (held := limits(column_type, value)) is not None:
            raise ColumnTypeError(
                f"where compares column {column.name!r}, whose type {column_type.engine_name} holds {held}, with {value!s}; "
                "write a constant that the type holds."
            )
    for part in walk(condition):
        match part:
            case Compare(Column(left), _, Column(right)) if not _is_comparable(schema[left], schema[right]):
                raise _uncomparable(left, schema, f"column {right!r}, which is {_described(schema[right])}")


def _family(kind: Kind) -> object:
    return NUMBERS if kind in NUMBERS else kind


def _is_comparable(left: ColumnType, right: ColumnType) -> bool:
    """Return whether a condition may compare two columns: decimals with their like only, and only types that it has constants of."""
    kinds = {left.kind, right.kind}
    alike = left.engine_name == right.engine_name or Kind.DECIMAL not in kinds
    return alike and Kind.OTHER not in kinds and can_meet(left, right)


def _uncomparable(name: str, schema: Schema, other: str) -> ColumnTypeError:
    return ColumnTypeError(
        f"where compares column {name!r}, which is {_described(schema[name])}, with {other}; both must be of one type "
        "(dates are written DATE '2026-01-31')."
    )


def kind_of(value: Value) -> Kind:
    """Name the kind of a constant."""
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
