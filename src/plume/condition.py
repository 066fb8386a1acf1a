"""`where=` as text becomes a condition on single rows: a closed grammar that no row can make fail.

Columns and constants are compared, tested for NULL, membership or a pattern, and joined by AND, OR and NOT. No arithmetic, no casts, no
functions: each of them can raise on some row, and an error that depends on data is a leak.
"""

from datetime import date, datetime
from typing import Any

from sqlglot import errors as sqlglot_errors
from sqlglot import exp, parse_one

from plume.errors import ConditionError
from plume.plan.expressions import (
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
)

_COMPARATORS = {
    exp.EQ: Comparator.EQUAL,
    exp.NEQ: Comparator.UNEQUAL,
    exp.LT: Comparator.LESS,
    exp.LTE: Comparator.AT_MOST,
    exp.GT: Comparator.GREATER,
    exp.GTE: Comparator.AT_LEAST,
}
_ALLOWED = (
    "a condition compares columns with constants (=, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL), joined by AND, OR and NOT, "
    "such as \"seconds > 3 AND country IN ('DE', 'FR')\""
)


def parse_condition(text: str) -> Expression:
    """Read a condition, or raise ConditionError saying which part is not one.

    >>> parse_condition("seconds > 3")
    Compare(left=Column(name='seconds'), comparator=<Comparator.GREATER: '>'>, right=Literal(value=3))
    """
    try:
        tree = parse_one(text, dialect="duckdb")
    except (sqlglot_errors.SqlglotError, RecursionError):
        tree = None
    if tree is None:
        raise ConditionError(f"where = {text!r} cannot be read as a condition; {_ALLOWED}.")
    return _condition(tree)


def _condition(tree: Any) -> Expression:  # noqa: C901 - one case per form of the grammar
    match tree:
        case exp.Paren():
            return _condition(tree.this)
        case exp.And():
            return AllOf((_condition(tree.left), _condition(tree.right)))
        case exp.Or():
            return AnyOf((_condition(tree.left), _condition(tree.right)))
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
        case exp.Like() if not tree.args.get("escape"):
            return Like(_column(tree.this), _literal(tree.expression))
        case exp.Column():
            return Compare(_column(tree), Comparator.EQUAL, Literal(value=True))
        case _ if type(tree) in _COMPARATORS:
            return Compare(_operand(tree.left), _COMPARATORS[type(tree)], _operand(tree.right))
        case _:
            raise _refusal(tree)


def _operand(tree: Any) -> Column | Literal:
    return _column(tree) if isinstance(tree, exp.Column) else _literal(tree)


def _column(tree: Any) -> Column:
    if isinstance(tree, exp.Column) and not tree.table and isinstance(tree.this, exp.Identifier):
        return Column(tree.name)
    raise _refusal(tree)


def _literal(tree: Any) -> Literal:
    match tree:
        case exp.Boolean():
            return Literal(bool(tree.this))
        case exp.Literal(is_string=True):
            return Literal(str(tree.this))
        case exp.Literal():
            return Literal(_number(tree, str(tree.this)))
        case exp.Neg(this=exp.Literal(is_string=False)):
            return Literal(_number(tree, "-" + str(tree.this.this)))
        case exp.Cast(this=exp.Literal(is_string=True)):
            return Literal(_moment(tree))
        case _:
            raise _refusal(tree)


def _number(tree: Any, text: str) -> int | float:
    try:
        whole = int(text)
    except ValueError:
        return float(text)
    if abs(whole) >= 2**63:
        raise _refusal(tree)
    return whole


def _moment(tree: Any) -> date:
    """Read DATE '...' and TIMESTAMP '...' here, so that a wrong one is refused before any row is seen."""
    readers = {exp.DataType.Type.DATE: date, exp.DataType.Type.TIMESTAMP: datetime}
    reader = readers.get(tree.to.this)
    try:
        return reader.fromisoformat(tree.this.this) if reader else _refuse(tree)
    except ValueError:
        reader = None
    raise _refusal(tree)


def _refuse(tree: Any) -> date:
    raise _refusal(tree)


def _refusal(tree: Any) -> ConditionError:
    return ConditionError(f"where holds {tree.sql(dialect='duckdb')!r}, which is not allowed; {_ALLOWED}.")
