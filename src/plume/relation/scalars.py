"""Which expressions a statement may hold below the private SELECT: functions of one row alone that no row can make fail.

A closed list. What is not on it could look at other rows, draw at random, reach a file, or raise on some row, which would tell of it.
"""

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from sqlglot import exp

from plume.errors import StatementError
from plume.plan.expressions import MOST_WILDCARDS, has_too_many_wildcards
from plume.plan.printing.registry import PRINTERS
from plume.plan.types import Kind
from plume.redaction import redacting
from plume.relation.forms import KINDS, NOTES, NUMBER, PARTS, read_type, read_unit, refuse_notes
from plume.relation.functions import written_instead
from plume.relation.parsing import CALLS, OF_A_UNIT
from plume.relation.text import Text, Tree

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
_NUMERIC = (*_ARITHMETIC, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln, exp.Exp)
_DEEPEST = 150
# Spark rounds up and down in decimals of 38 digits, and fails on rows that need more.
_MOST_PLACES = 30
_VOLATILE = (exp.Rand, exp.Randn, exp.Uuid, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser)

OnPart = Callable[[Tree], Tree]


def rewrite(text: Text, tree: Tree, *, column: OnPart, call: OnPart) -> Tree:
    """Check an expression and make it total; columns, and calls over many rows, are replaced by what the caller makes of them.

    Guarantee: what comes back is a deterministic function of the columns in it, built anew from forms, units and types on closed lists.
    What fails on a row is NULL there: casts here, the rest where the expression is printed.
    """
    if _depth(tree) > _DEEPEST:
        raise text.refusal(tree, f"this is nested more than {_DEEPEST} levels deep.")

    def rewritten(part: Tree) -> Tree:
        if isinstance(part, exp.Column):
            return column(part)
        if is_call(part):
            return call(part)
        if isinstance(part, exp.Cast):
            return _cast(text, part, rewritten)
        _refuse_unknown(text, part)
        return _safe(_mapped(text, part, rewritten))

    return rewritten(tree)


def _depth(tree: Tree) -> int:
    """Count the levels of a tree without descending into it by recursion, which its depth could exhaust."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [part for above in level for part in above.iter_expressions()]
    return depth


def _refuse_unknown(text: Text, part: Tree) -> None:
    """Refuse a part that is not on the list, or not in the form in which it is known to be total."""
    if type(part) not in PARTS or (isinstance(part, exp.In) and not part.expressions):
        raise _refusal(text, part)
    refuse_notes(text, part)
    if isinstance(part, exp.Literal) and not part.is_string and not NUMBER.fullmatch(str(part.this)):
        raise text.refusal(part, "this number cannot be read; write digits, as in 1.5 or 1e6.")
    if isinstance(part, exp.Like | exp.ILike):
        _refuse_bad_pattern(text, part)
    if isinstance(part, exp.Round | exp.Floor | exp.Ceil) and not _is_whole(part.args.get("decimals")):
        raise text.refusal(
            part, f"the places of {part.key.upper()} must be a whole number from -{_MOST_PLACES} to {_MOST_PLACES}."
        )


def _refuse_bad_pattern(text: Text, like: Tree) -> None:
    """Refuse a pattern that an engine could fail on at some row."""
    if not like.expression.is_string:
        raise text.refusal(like, "the pattern of LIKE must be a constant.")
    pattern = like.expression.this
    if has_too_many_wildcards(pattern):
        raise text.refusal(like, f"the pattern of LIKE may hold up to {MOST_WILDCARDS} wildcards, % and _.")
    # Before most characters a backslash is an error there, which may wait for a row.
    if PRINTERS[text.language].dialect.statements.escapes_in_patterns and "\\" in pattern:
        raise text.refusal(
            like, "the pattern of LIKE must have no backslash, which is an escape on Spark; _ is any character."
        )


def is_call(tree: Tree) -> bool:
    """Return whether an expression is a function of many rows: an aggregate, or a window."""
    return isinstance(tree, exp.Window) or (isinstance(tree, exp.Anonymous) and tree.name.upper() in CALLS)


def hint(column: Tree) -> Kind | None:
    """Guess how to read a column from a file that does not say its types, by what a statement does to it."""
    parent = column.parent
    if isinstance(parent, exp.Cast):
        return Kind.TEXT
    if isinstance(parent, _NUMERIC) or (isinstance(parent, exp.Anonymous) and parent.name.upper() in ("SUM", "AVG")):
        return Kind.FLOAT
    if isinstance(parent, OF_A_UNIT):
        return Kind.TIMESTAMP
    if isinstance(parent, _COMPARISONS):
        others = [part for part in parent.iter_expressions() if part is not column]
        return next((kind for kind in map(_kind, others) if kind is not None), None)
    return None


def _kind(tree: Tree) -> Kind | None:
    match tree:
        case exp.Literal():
            return Kind.TEXT if tree.is_string else Kind.FLOAT
        case exp.Neg(this=exp.Literal()):
            return Kind.FLOAT
        case exp.Boolean():
            return Kind.BOOLEAN
        case exp.Cast():
            return KINDS.get(tree.to.this)
        case _:
            return None


def _is_whole(tree: Tree | None) -> bool:
    literal = tree.this if isinstance(tree, exp.Neg) else tree
    if literal is None:
        return True
    plain = isinstance(literal, exp.Literal) and not literal.is_string and re.fullmatch("[0-9]{1,2}", str(literal.this))
    return bool(plain) and int(literal.this) <= _MOST_PLACES


def _mapped(text: Text, tree: Tree, rewritten: OnPart) -> Tree:
    """Build a node anew from rewritten parts and known notes, without comments or anything else that the parser left in it."""

    def part(value: Any) -> Any:
        return [rewritten(item) for item in value] if isinstance(value, list) else rewritten(value)

    given = {name: tree.args.get(name) for name in PARTS[type(tree)]}
    parts = {name: part(value) for name, value in given.items() if value is not None and value != []}
    notes = {name: tree.args[name] for name in NOTES.get(type(tree), {}) if name in tree.args}
    match tree:
        case exp.Literal():
            notes = {"this": str(tree.this), "is_string": tree.is_string}
        case exp.Extract():
            notes = {"this": read_unit(text, tree, tree.this)}
        case exp.TimestampTrunc() | exp.DateTrunc():
            notes = {"unit": read_unit(text, tree, tree.args["unit"])}
    return type(tree)(**parts, **notes)


def _safe(tree: Tree) -> Tree:
    """Make arithmetic total: on doubles it never overflows, and what is divided by zero is NULL.

    0.0 and -0.0 are equal, so what is divided by them must be too.
    """
    if not isinstance(tree, _NUMERIC):
        return tree
    parts = {name: _double(part) for name, part in tree.args.items() if name in ("this", "expression")}
    if isinstance(tree, exp.Div | exp.Mod):
        parts["expression"] = exp.Nullif(this=parts["expression"], expression=exp.Literal.number(0))
    return type(tree)(**(tree.args | parts))


def _double(tree: Tree) -> Tree:
    """Read a number as a double, unless it is a constant or one already."""
    inner = tree.this if isinstance(tree, exp.Paren) else tree
    known = isinstance(inner, _NUMERIC) or (isinstance(inner, exp.Literal) and not inner.is_string)
    return tree if known else exp.TryCast(this=tree, to=exp.DataType.build("DOUBLE"))


def _cast(text: Text, tree: Tree, rewritten: OnPart) -> Tree:
    """Make a cast give NULL where it fails."""
    kind = KINDS.get(tree.to.this)
    if kind is None:
        raise text.refusal(
            tree,
            f"there is no CAST to {tree.to.sql()} here; integers, DOUBLE, DECIMAL, BOOLEAN, DATE and TIMESTAMP are known. "
            "Text of equal numbers can differ, and with it keys.",
        )
    for name, value in tree.args.items():
        if value and name not in ("this", "to", "safe"):
            raise text.refusal(tree, f"{name.upper()} is not supported in CAST.")
    if isinstance(tree.this, exp.Literal) and tree.this.is_string and kind in (Kind.DATE, Kind.TIMESTAMP):
        _refuse_bad_date(text, tree, kind)
    return exp.TryCast(this=rewritten(tree.this), to=read_type(text, tree))


def _refuse_bad_date(text: Text, tree: Tree, kind: Kind) -> None:
    read = date.fromisoformat if kind is Kind.DATE else datetime.fromisoformat
    refusal = text.refusal(tree, f"{tree.this.this!r} is not a valid {kind.value}; write it as in DATE '2026-01-31'.")
    with redacting(ValueError, to=refusal):
        read(tree.this.this)


def _refusal(text: Text, tree: Tree) -> StatementError:
    if isinstance(tree, exp.Query | exp.Exists | exp.In):
        return text.refusal(
            tree, "a subquery in an expression could look at the rows of other users; join it by the privacy unit."
        )
    if isinstance(tree, _VOLATILE):
        return text.refusal(
            tree,
            f"{text.quote(tree)!r} changes from call to call, so that rows would not depend on data alone; "
            "write a constant, such as DATE '2026-01-31'.",
        )
    if isinstance(tree, exp.Star):
        return text.refusal(tree, "* must stand alone, in a SELECT from one table; name the columns.")
    quoted = text.quote(tree)
    return text.refusal(
        tree, f"{quoted!r} is not known to be a function of one row that never fails; {written_instead(quoted)}."
    )
