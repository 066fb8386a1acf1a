"""What rows are grouped by, in all the ways in which it may be given: brought into one form, and refused where it does not fit.

Apart from queries, which have one form of it only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plume.errors import ColumnNotFound, ExpressionError, shown
from plume.redaction import Redaction

if TYPE_CHECKING:
    from plume.relation.key_expression import KeyExpression


@dataclass(frozen=True)
class Keys:
    """The names of keys, and the expressions of those that are not columns as they are."""

    names: tuple[str, ...]
    expressions: tuple[tuple[str, str], ...]


def read_keys(keys: Any, expressions: Any, *, user: str) -> Keys:
    """Read keys: columns first, unless a mapping or the names themselves say otherwise. A column under its own name needs no expression."""
    given = _expressions(keys, expressions)
    names = _names(keys, given)
    for name, text in given.items():
        _refuse_bad_expression(name, text, user)
    return Keys(names, tuple((name, text) for name, text in given.items() if not _is_itself(name, text)))


def _names(given: Any, expressions: Mapping[str, str]) -> tuple[str, ...]:
    if not isinstance(given, str | list | tuple) and not (isinstance(given, Mapping) and given):
        raise ColumnNotFound(
            f"keys is {given!r}; it must be the name of a column, a list of names, or a mapping of names to expressions; "
            "[] asks for a total."
        )
    listed = (given,) if isinstance(given, str) else tuple(given)
    names = (*listed, *(name for name in expressions if name not in listed))
    for name in names:
        refuse_bad_name("a key", name)
    return names


def _expressions(keys: Any, expressions: Any) -> dict[str, str]:
    refusal = (
        f"key_expressions is {expressions!r}; it must be a mapping, such as {{'month': 'DATE_TRUNC(day, MONTH)'}}."
    )
    with Redaction((TypeError, ValueError), lambda _: ExpressionError(refusal)):
        given: dict[str, str] = dict(expressions)
    if isinstance(keys, Mapping) and given:
        raise ExpressionError(
            "keys is a mapping, and key_expressions is given too; give all expressions in one of them."
        )
    return dict(keys) if isinstance(keys, Mapping) else given


def _is_itself(name: str, text: str) -> bool:
    """Return whether an expression is nothing but the column of its name."""
    key = _read(name, text)
    return key.is_column and [*key.columns] == [name]


def _read(name: str, text: Any) -> "KeyExpression":
    from plume.relation.key_expression import read_key  # noqa: PLC0415 - a parser takes long to load, and most keys are columns

    return read_key(name, text)


def _refuse_bad_expression(name: str, text: Any, user: str) -> None:
    key = _read(name, text)
    if not key.columns:
        raise ExpressionError(f"key {name!r} is {shown(text)}, which reads no column; keys=[] asks for a total.")
    for column in key.columns:
        refuse_bad_name(f"a column in the expression of key {name!r}", column)
        # Some engines ignore the case of names.
        if column.casefold() == user.casefold():
            raise ExpressionError(
                f"key {name!r} is {shown(text)}, which reads {column!r}, the user; a key must not be made of the user itself."
            )


def refuse_bad_name(what: str, name: Any) -> None:
    """Refuse what cannot be the name of a column."""
    if not is_name(name):
        raise ColumnNotFound(f"{what} is {name!r}; it must be the name of a column.")


def is_name(name: Any) -> bool:
    """Return whether every engine and file can hold a text as a name."""
    return (
        isinstance(name, str) and name != "" and not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in name)
    )
