"""A measure as text, `sum(seconds, 0, 60) AS time`, becomes a measure. It is read, never evaluated."""

import ast
import inspect
import re
import warnings
from contextlib import suppress
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

from plume.errors import ArgumentError, MeasureError
from plume.mechanisms.forms import ALIASES, FORMS, nearest
from plume.mechanisms.measure import Form
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.sum import NO_LOW
from plume.redaction import redacting

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# Bounds may be dates, which are written as text.
_BOUNDS = ("low", "high")
_RENAMED = re.compile(r"""(?P<call>.*\S)\s+AS\s+(?P<name>\w+|"[^"]+"|'[^']+')\s*""", re.IGNORECASE | re.DOTALL)
_ARGUMENTS = (
    "arguments are numbers, names of columns, dates in quotes and where='seconds > 3'; "
    "other than plain names are quoted: sum('my column', 0, 60)"
)


_SLIPS = (
    (re.compile(r"\bdistinct\b", re.IGNORECASE), "users() counts users, and nothing else is counted once;"),
    (re.compile(r"\(\s*\*\s*\)"), "count(3) counts rows, at most 3 of one user per key;"),
    (
        re.compile(r"(?<!['\"])\b(\d{4}-\d\d?-\d\d?|\d\d?\.\d\d?\.\d{4})\b"),
        "a date is written '2026-01-31', with the quotes;",
    ),
)
"""What others write, and what it is here."""


def parse_measure(text: str) -> Mechanism:
    """Read one measure, or raise MeasureError saying what would be right.

    >>> parse_measure("count(3) AS searches")
    CountRecords(max_per_key=3, column=None, name='searches', where=None)
    """
    renamed = _RENAMED.fullmatch(text)
    call = (renamed["call"] if renamed else text).strip()
    tree = _parse(call, text)
    function, given = _function(tree, text), _given(tree, call, text)
    if renamed:
        given.append(("name", renamed["name"].strip("'\"")))
    return _make(function, given, text)


def _parse(call: str, text: str) -> ast.expr:
    meant = next((f"{sentence} " for slip, sentence in _SLIPS if slip.search(text)), "")
    refusal = MeasureError(f"measure {text!r} cannot be read; {meant}write it as in sum(seconds, 0, 60); {_ARGUMENTS}.")
    # A backslash in a column name is nobody's concern.
    with warnings.catch_warnings(action="ignore"), redacting(*_UNREADABLE, to=refusal):
        return ast.parse(call, mode="eval").body


def _function(tree: ast.expr, text: str) -> str:
    match tree:
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in FORMS or name in ALIASES:
            return ALIASES.get(name, name)
        case _:
            raise MeasureError(f"unknown measure {text!r}; {_advice(tree)}")


def _advice(tree: ast.expr) -> str:
    """Say what to write, and before that the measure whose name is nearest, if any is near."""
    known = "; ".join(form.example for form in FORMS.values())
    match tree:
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            other = nearest(name.casefold())
            near = [other] if other else get_close_matches(name.casefold(), [*FORMS, *ALIASES], n=1)
        case _:
            near = []
    return (
        f"did you mean {ALIASES.get(near[0], near[0])}? Write one of: {known}." if near else f"write one of: {known}."
    )


def _given(tree: ast.expr, call: str, text: str) -> list[tuple[str | None, Any]]:
    if not isinstance(tree, ast.Call):
        return []
    nodes = [(None, node) for node in tree.args] + [(keyword.arg or "**", keyword.value) for keyword in tree.keywords]
    return [(name, _value(node, call, text)) for name, node in nodes]


def _value(node: ast.expr, call: str, text: str) -> Any:
    match node:
        case ast.List():
            return [_value(item, call, text) for item in node.elts]
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name():
            # Not node.id, where Python has normalised letters: a column is called exactly what it is called.
            return ast.get_source_segment(call, node) or node.id
        case _:
            written = ast.get_source_segment(call, node)
            raise MeasureError(f"measure {text!r} holds {written!r}; {_ARGUMENTS}.")


def _make(function: str, given: list[tuple[str | None, Any]], text: str) -> Mechanism:
    form = FORMS[function]
    positional = [value for name, value in given if name is None]
    named = {name: value for name, value in given if name is not None}
    signature = inspect.signature(form.make)
    refusal = MeasureError(
        f"measure {text!r} does not fit {function}({', '.join(signature.parameters)}); write {form.example}."
    )
    if len(positional) + len(named) != len(given):
        raise refusal
    if function == "sum" and {"low", "high"} & set(named):
        raise MeasureError(f"measure {text!r} is not known; {NO_LOW}; write {form.example}.")
    misfit = _misfit(form, positional, named)
    if misfit is not None:
        raise MeasureError(f"measure {text!r} does not fit; {misfit} Write {form.example}.")
    bound = signature.bind(*positional, **named)
    bound.arguments |= {name: _bound(bound.arguments[name]) for name in _BOUNDS if name in bound.arguments}
    return form.make(*bound.args, **bound.kwargs)


def _misfit(form: Form, positional: list[Any], named: dict[str, Any]) -> str | None:
    """Say what a call lacks, as Python would be told; nothing, if it fits."""
    try:
        inspect.signature(form.make).bind(*positional, **named)
    except TypeError:
        pass
    else:
        return None
    try:
        form.make(*positional, **named)
    except ArgumentError as misfit:
        return str(misfit).removeprefix("plume.")
    return None


def _bound(value: Any) -> Any:
    """Read a bound: text that is a date or a timestamp becomes one."""
    for kind in (date, datetime) if isinstance(value, str) else ():
        with suppress(ValueError):
            return kind.fromisoformat(value)
    return value
