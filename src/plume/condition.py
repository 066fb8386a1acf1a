"""`where=` as text becomes a condition on single rows: a closed grammar that no row can make fail.

Columns and constants are compared, tested for NULL, membership or a pattern, and joined by AND, OR and NOT. No arithmetic, no casts, no
functions: each of them can raise on some row, and an error that depends on data is a leak.
"""

import math
import re
from contextlib import suppress
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from sqlglot import exp, parse_one

from plume.errors import ConditionError, shortened
from plume.missing_column import in_single_quotes
from plume.plan.expressions import (
    MOST_WILDCARDS,
    AllOf,
    AnyOf,
    Column,
    Comparator,
    Compare,
    Expression,
    IsIn,
    IsNull,
    Like,
    Literal,
    Not,
    has_too_many_wildcards,
)
from plume.redaction import redacting

_COMPARATORS = {
    exp.EQ: Comparator.EQUAL,
    exp.NEQ: Comparator.UNEQUAL,
    exp.LT: Comparator.LESS,
    exp.LTE: Comparator.AT_MOST,
    exp.GT: Comparator.GREATER,
    exp.GTE: Comparator.AT_LEAST,
}
_MOMENTS = {
    exp.DataType.Type.DATE: date,
    exp.DataType.Type.TIMESTAMP: datetime,
    exp.DataType.Type.TIMESTAMPNTZ: datetime,
}
# All that the parser may note about a part of a condition; `negate` is its way to say NOT LIKE.
_PARTS = frozenset({"this", "expression", "expressions", "low", "high", "to", "negate", "quoted", "is_string"})
_DEEPEST = 50
# What a date without quotes is read as.
_DATE = re.compile(r"\d{4} - \d+ - \d+")
_A_DATE = "A date is written DATE '2026-01-31'"
_ALLOWED = (
    "a condition compares columns with constants (=, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL), joined by AND, OR and NOT, "
    "such as \"seconds > 3 AND country IN ('DE', 'FR')\""
)


def parse_condition(text: str) -> Expression:
    """Read a condition, or raise ConditionError saying which part is not one.

    >>> parse_condition("seconds > 3")
    Compare(left=Column(name='seconds'), comparator=<Comparator.GREATER: '>'>, right=Literal(value=3))
    """
    if not isinstance(text, str):
        raise ConditionError(f"where is {text!r}; it must be text: {_ALLOWED}.")
    return _parse(text)


@lru_cache
def _parse(text: str) -> Expression:
    """Parse a text once: queries and measures are copied again and again, and a tree never changes."""
    refusal = ConditionError(f"where = {shortened(repr(text))} cannot be read as a condition; {_ALLOWED}.")
    with redacting(Exception, to=refusal):  # sqlglot also fails with errors of Python's own on texts that are not SQL
        text.encode()
        tree: Any = parse_one(text, dialect="duckdb", into=exp.Condition)
    with redacting(RecursionError, to=refusal):
        _refuse_unknown_parts(tree)
        condition = _condition(tree)
    if _depth(condition) > _DEEPEST:
        raise refusal
    return condition


def _refuse_unknown_parts(tree: Any) -> None:
    """Refuse what a parser notes beside the parts we read, since leaving it out would change the meaning."""
    for part in tree.walk():
        if any(value and name not in _PARTS for name, value in part.args.items()):
            raise _refusal(part)


def _condition(tree: Any) -> Expression:  # noqa: C901 - one case per form of the grammar
    match tree:
        case exp.Paren():
            return _condition(tree.this)
        case exp.And():
            return AllOf(tuple(_condition(part) for part in tree.flatten()))
        case exp.Or():
            return AnyOf(tuple(_condition(part) for part in tree.flatten()))
        case exp.Not():
            return Not(_condition(tree.this))
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return IsNull(_column(tree.this))
        case exp.In() if tree.expressions:
            return IsIn(_column(tree.this), tuple(_literal(item) for item in tree.expressions))
        case exp.Between():
            value = _column(tree.this)
            low, high = _literal(tree.args["low"]), _literal(tree.args["high"])
            return AllOf((Compare(value, Comparator.AT_LEAST, low), Compare(value, Comparator.AT_MOST, high)))
        case exp.Like() if tree.expression.is_string:
            like = Like(_column(tree.this), _pattern(tree.expression))
            return Not(like) if tree.args.get("negate") else like
        case exp.Column():
            return Compare(_column(tree), Comparator.EQUAL, Literal(value=True))
        case _ if type(tree) in _COMPARATORS:
            return _comparison(tree)
        case _:
            raise _refusal(tree)


def _comparison(tree: Any) -> Compare:
    left, right = _operand(tree.left), _operand(tree.right)
    if isinstance(left, Literal) and isinstance(right, Literal):
        raise _refusal(tree)
    return Compare(left, _COMPARATORS[type(tree)], right)


def _operand(tree: Any) -> Column | Literal:
    return _column(tree) if isinstance(tree, exp.Column) else _literal(tree)


def _column(tree: Any) -> Column:
    if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier):
        return Column(tree.name)
    raise _refusal(tree)


def _pattern(tree: Any) -> Literal:
    if has_too_many_wildcards(tree.this):
        raise ConditionError(
            f"where holds a pattern of LIKE with more than {MOST_WILDCARDS} wildcards, % and _, which is not allowed; write fewer."
        )
    return _literal(tree)


def _literal(tree: Any) -> Literal:
    match tree:
        case exp.Boolean():
            return Literal(bool(tree.this))
        case exp.Literal(is_string=True) if "\0" not in tree.this:
            return Literal(str(tree.this))
        case exp.Literal(is_string=False):
            return Literal(_number(tree, str(tree.this)))
        case exp.Neg(this=exp.Literal(is_string=False)):
            return Literal(_number(tree, "-" + str(tree.this.this)))
        case exp.Cast(this=exp.Literal(is_string=True)):
            return Literal(_timestamp(tree))
        case _:
            raise _refusal(tree)


def _number(tree: Any, text: str) -> int | float:
    """Read a number that engines hold as 64-bit integer or finite double."""
    with suppress(ValueError):
        whole = int(text)
        if -(2**63) <= whole < 2**63:
            return whole
        raise _refusal(tree)
    if not math.isfinite(float(text)):
        raise _refusal(tree)
    return float(text)


def _timestamp(tree: Any) -> date:
    """Read DATE '...' and TIMESTAMP '...' here, so that a wrong one is refused before any row is seen."""
    reader = _MOMENTS.get(tree.to.this)
    timestamp: date | None = None
    with suppress(ValueError):
        timestamp = reader.fromisoformat(tree.this.this) if reader else None
    if timestamp is None or getattr(timestamp, "tzinfo", None):
        raise _refusal(tree)
    return timestamp


def _depth(condition: Expression) -> int:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return 1 + max(map(_depth, parts))
        case Not(of):
            return 1 + _depth(of)
        case _:
            return 1


def quotes_hint(column: Any) -> str:
    """Point to single quotes beside a column in double ones that cannot be one."""
    is_quoted = isinstance(column, exp.Column) and bool(column.this.args.get("quoted"))
    return in_single_quotes(column.name) if is_quoted else ""


def _slip(tree: Any) -> str:
    """Say what is written here in the place of what others write."""
    if isinstance(tree, exp.Null):
        return " What is missing is found by IS NULL."
    if tree.find(exp.ArrayOverlaps):
        return " Conditions are joined by AND, and not by &&."
    is_bad_date = isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal)
    return f" {_A_DATE}." if is_bad_date or _DATE.fullmatch(tree.sql(dialect="duckdb")) else ""


def _refusal(tree: Any) -> ConditionError:
    return ConditionError(
        f"where holds {shortened(repr(tree.sql(dialect='duckdb')))}, which is not allowed; {_ALLOWED}."
        f"{quotes_hint(tree)}{_slip(tree)}"
    )
