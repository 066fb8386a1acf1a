"""The forms that an expression below the private SELECT may have, as closed lists: nodes and their parts, notes, units, types.

Whatever reaches an engine is built from a word on one of these lists, a quoted name, a quoted text, or digits.
"""

import re

from sqlglot import exp

from plume.plan.printing.registry import PRINTERS
from plume.plan.types import Kind
from plume.relation.text import Text, Tree

Types = exp.DataType.Type

_TWO, _SEVERAL, _ROUNDED = ("this", "expression"), ("this", "expressions"), ("this", "decimals")
PARTS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is), _TWO),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Nullif, exp.StartsWith), _TWO),
    **dict.fromkeys((exp.Like, exp.ILike, exp.Trim), _TWO),
    **dict.fromkeys((exp.Not, exp.Neg, exp.Paren, exp.Abs, exp.Sqrt, exp.Ln, exp.Exp), ("this",)),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length), ("this",)),
    **dict.fromkeys((exp.Round, exp.Floor, exp.Ceil), _ROUNDED),
    **dict.fromkeys((exp.In, exp.Coalesce, exp.Greatest, exp.Least), _SEVERAL),
    exp.Between: ("this", "low", "high"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Substring: ("this", "start", "length"),
    exp.Extract: ("expression",),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), ("this",)),
    **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null), ()),
}
"""The forms that an expression may have, each with the parts that are expressions themselves."""
NOTES: dict[type, dict[str, tuple[object, ...]]] = {
    # How a dialect divides by zero, and which of several values are NULL: the same in all of ours, after `_safe`.
    exp.Div: {"typed": (False,), "safe": (True, False)},
    exp.Greatest: {"ignore_nulls": (True,)},
    exp.Least: {"ignore_nulls": (True,)},
    exp.Like: {"negate": (True,)},
    exp.ILike: {"negate": (True,)},
    exp.Trim: {"position": ("LEADING", "TRAILING", "BOTH")},
    exp.Boolean: {"this": (True, False)},
}
"""What else the parser may note about a form, with all the values that this may have."""
_LISTED = ("expressions",)
CLAUSES: dict[type, tuple[str, ...]] = {
    exp.Select: (
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "qualify",
        "distinct",
        "with_",
        "order",
        "limit",
        "offset",
    ),
    exp.Union: ("this", "expression", "distinct", "with_"),
    exp.Subquery: ("this", "alias", "with_"),
    exp.With: _LISTED,
    exp.CTE: ("this", "alias"),
    **dict.fromkeys((exp.From, exp.Where, exp.Having, exp.Qualify, exp.TableAlias, exp.Var), ("this",)),
    exp.Table: ("this", "db", "catalog", "alias"),
    exp.Join: ("this", "kind", "side", "on", "using"),
    **dict.fromkeys((exp.Group, exp.Order, exp.Distinct, exp.Tuple), _LISTED),
    exp.Ordered: ("this", "desc", "nulls_first"),
    **dict.fromkeys((exp.Limit, exp.Offset), ("expression",)),
    exp.Alias: ("this", "alias"),
    exp.Column: ("this", "table"),
    exp.Identifier: ("this", "quoted"),
    exp.Star: (),
    exp.Anonymous: ("this", "expressions"),
    exp.Kwarg: ("this", "expression"),
    exp.Window: ("this", "partition_by", "order", "over"),
    **dict.fromkeys((exp.Cast, exp.TryCast), ("this", "to", "safe")),
    exp.DataType: ("this", "expressions"),
    exp.DataTypeParam: ("this",),
}
"""Everything else that a statement is made of, each with all that is read of it."""
_TRUNCATED = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_EXTRACTED = ("SECOND", "MINUTE", "HOUR", "DAY", "DOW", "DOY", "WEEK", "MONTH", "QUARTER", "YEAR")
_UNITS = {
    name: (
        (*_EXTRACTED, *printer.dialect.statements.extracted_units),
        (*_TRUNCATED, *printer.dialect.statements.truncated_units),
    )
    for name, printer in PRINTERS.items()
}
"""The units of EXTRACT and of DATE_TRUNC, by dialect."""
UNITS = frozenset(unit for both in _UNITS.values() for units in both for unit in units)
NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_MOST_DIGITS = 38
KINDS = {
    **dict.fromkeys((Types.TINYINT, Types.SMALLINT, Types.INT, Types.BIGINT), Kind.INTEGER),
    **dict.fromkeys((Types.FLOAT, Types.DOUBLE), Kind.FLOAT),
    Types.DECIMAL: Kind.DECIMAL,
    Types.BOOLEAN: Kind.BOOLEAN,
    Types.DATE: Kind.DATE,
    **dict.fromkeys((Types.TIMESTAMP, Types.TIMESTAMPNTZ), Kind.TIMESTAMP),
}


def refuse_notes(text: Text, part: Tree) -> None:
    """Refuse what the parser notes beside the parts of a form, unless it is known what it may say."""
    known = (*PARTS[type(part)], *_own(part))
    notes = NOTES.get(type(part), {})
    for name, value in part.args.items():
        if name in known or value is None or value is False or value == []:
            continue
        if name not in notes or value not in notes[name]:
            raise text.refusal(part, f"{name.upper()} is not supported in {text.quote(part)!r}.")


def refuse_unread(text: Text, statement: Tree) -> None:
    """Refuse a statement that holds anything on none of the lists: what nobody reads would be left out, and mean something else."""
    for part in statement.walk():
        if type(part) in PARTS:
            refuse_notes(text, part)
            continue
        read = CLAUSES.get(type(part))
        if read is None:
            raise text.refusal(part, f"{type(part).__name__.upper()} is not supported here.")
        for name, value in part.args.items():
            if name not in read and value is not None and value is not False and value != []:
                raise text.refusal(part, f"{name.strip('_').upper()} is not supported in {text.quote(part)!r}.")


def _own(tree: Tree) -> tuple[str, ...]:
    """Name what a form holds that is not an expression: the text of a constant, the unit of a timestamp."""
    match tree:
        case exp.Literal():
            return "this", "is_string"
        case exp.Extract():
            return ("this",)
        case exp.TimestampTrunc() | exp.DateTrunc():
            return ("unit",)
        case _:
            return ()


def read_unit(text: Text, tree: Tree, unit: Tree) -> Tree:
    """Find the unit of a timestamp on the list; what is printed is the word from the list."""
    known = _UNITS[text.language][0 if isinstance(tree, exp.Extract) else 1]
    written = unit.name.upper() if isinstance(unit, exp.Var | exp.Literal) else ""
    known_unit = next((word for word in known if written in (word, f"{word}S")), None)
    if known_unit is None:
        function = "EXTRACT" if isinstance(tree, exp.Extract) else "DATE_TRUNC"
        raise text.refusal(tree, f"the unit of {function} must be one of {', '.join(known)}.")
    return exp.Var(this=known_unit)


def read_type(text: Text, tree: Tree) -> Tree:
    """Build the type of a cast anew: a word from the list and, for decimals, digits."""
    written = tree.to
    others = any(value for name, value in written.args.items() if name not in ("this", "expressions"))
    sizes = [_size(param) for param in written.expressions]
    most = 2 if written.this is Types.DECIMAL else 0
    if others or len(sizes) > most or None in sizes or not _is_decimal([size for size in sizes if size is not None]):
        raise text.refusal(
            tree, "the type of a CAST has no parameters here, except in DECIMAL(digits, places) with up to 38 digits."
        )
    params = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in sizes]
    return exp.DataType(this=written.this, expressions=params)


def _size(param: Tree) -> int | None:
    """Read a parameter of a type; None if it is anything but one or two digits."""
    if not isinstance(param, exp.DataTypeParam) or param.args.get("expression"):
        return None
    number = param.this
    plain = isinstance(number, exp.Literal) and not number.is_string and re.fullmatch("[0-9]{1,2}", str(number.this))
    return int(number.this) if plain else None


def _is_decimal(sizes: list[int]) -> bool:
    digits, places = (*sizes, *(_MOST_DIGITS, 0)[len(sizes) :])
    return 1 <= digits <= _MOST_DIGITS and places <= digits
