"""Expressions as SQL of an engine: words of ours, quoted names, quoted texts and digits, and nothing else.

What a caller wrote is in the tree that is printed here. So each form is spelled out: a printer that passes on what it does not know, as
sqlglot's does, would pass on whatever a caller put into a name, a unit or a type.
"""

import re

from sqlglot import exp

from plume.errors import PlumeBug
from plume.plan.dialect import Dialect, constant, identifier
from plume.plan.printing.registry import PRINTERS
from plume.relation.forms import NUMBER, UNITS
from plume.relation.text import Tree

_OPERATORS: dict[type, str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Is: "IS",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_CHAINS: tuple[tuple[type, ...], ...] = ((exp.And,), (exp.Or,), (exp.Add, exp.Sub), (exp.Mul, exp.Div, exp.Mod))
"""Operators that are read from the left to the right: a chain of them needs no brackets, in which its depth would grow with its length."""
_FUNCTIONS: dict[type, str] = {
    exp.Abs: "ABS",
    exp.Sqrt: "SQRT",
    exp.Ln: "LN",
    exp.Exp: "EXP",
    exp.Round: "ROUND",
    exp.Lower: "LOWER",
    exp.Upper: "UPPER",
    exp.Length: "LENGTH",
    exp.Substring: "SUBSTRING",
    exp.Coalesce: "COALESCE",
    exp.Nullif: "NULLIF",
    exp.Greatest: "GREATEST",
    exp.Least: "LEAST",
    exp.Floor: "FLOOR",
    exp.Ceil: "CEIL",
    exp.Pow: "POWER",
    exp.Try: "TRY",
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
    exp.Rank: "RANK",
    exp.DenseRank: "DENSE_RANK",
}
_TRIMS = {None: "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}
_Types = exp.DataType.Type
_TYPES = {
    _Types.TINYINT: "TINYINT",
    _Types.SMALLINT: "SMALLINT",
    _Types.INT: "INT",
    _Types.BIGINT: "BIGINT",
    _Types.FLOAT: "FLOAT",
    _Types.DOUBLE: "DOUBLE",
    _Types.DECIMAL: "DECIMAL",
    _Types.BOOLEAN: "BOOLEAN",
    _Types.DATE: "DATE",
}

_OTHERS = "NOT BETWEEN IN LIKE ILIKE CASE WHEN THEN ELSE END CAST TRY_CAST EXTRACT FROM DATE_TRUNC NULL TRUE FALSE"
_OF_CALLS = "TRIM LTRIM RTRIM BOTH LEADING TRAILING DISTINCT OVER PARTITION ORDER BY DESC NULLS FIRST LAST AS"
_FORMS = [printer.dialect.statements for printer in PRINTERS.values()]
WORDS = frozenset(
    (
        *_OPERATORS.values(),
        *_FUNCTIONS.values(),
        *_TYPES.values(),
        *UNITS,
        *_OTHERS.split(),
        *_OF_CALLS.split(),
        *(word for forms in _FORMS for word in (forms.starts_with, forms.timestamp_type)),
        "(",
        ")",
        ",",
        ".",
        "*",
    )
)
"""All that stands outside of quotes in what is printed here, apart from digits."""


def scalar_sql(tree: Tree, dialect: Dialect) -> str:  # noqa: C901 - one case per form
    """Print the final tree of an expression."""

    def printed(part: Tree) -> str:
        return scalar_sql(part, dialect)

    match tree:
        case exp.Column():
            return ".".join(identifier(part.name, dialect) for part in tree.parts)
        case exp.Literal() | exp.Boolean() | exp.Null() | exp.Star():
            return _constant(tree, dialect)
        case exp.Not() | exp.Neg():
            return f"({'NOT' if isinstance(tree, exp.Not) else '-'} {printed(tree.this)})"
        case exp.Between():
            return f"({printed(tree.this)} BETWEEN {printed(tree.args['low'])} AND {printed(tree.args['high'])})"
        case exp.In():
            return f"({printed(tree.this)} IN ({', '.join(map(printed, tree.expressions))}))"
        case exp.Like() | exp.ILike():
            word = f"{'NOT ' if tree.args.get('negate') else ''}{'LIKE' if isinstance(tree, exp.Like) else 'ILIKE'}"
            return f"({printed(tree.this)} {word} {printed(tree.expression)})"
        case exp.Case():
            return _case(tree, dialect)
        case exp.Cast():
            return (
                f"{'TRY_CAST' if tree.args.get('safe') else 'CAST'}({printed(tree.this)} AS {_type(tree.to, dialect)})"
            )
        case exp.Extract():
            return f"EXTRACT({_word(tree.this)} FROM {printed(tree.expression)})"
        case exp.TimestampTrunc() | exp.DateTrunc():
            return f"DATE_TRUNC('{_word(tree.args['unit'])}', {printed(tree.this)})"
        case _ if type(tree) in _OPERATORS:
            return f"({bare_sql(tree, dialect)})"
        case _:
            return _function(tree, dialect)


def bare_sql(tree: Tree, dialect: Dialect) -> str:
    """Print an expression without the brackets around a chain of operators."""
    if type(tree) not in _OPERATORS:
        return scalar_sql(tree, dialect)
    chained = any(type(tree) in chain and type(tree.left) in chain for chain in _CHAINS)
    left = bare_sql(tree.left, dialect) if chained else scalar_sql(tree.left, dialect)
    return f"{left} {_OPERATORS[type(tree)]} {scalar_sql(tree.right, dialect)}"


def _function(tree: Tree, dialect: Dialect) -> str:
    """Print a call of a function, of one row or of many."""
    parts = [] if isinstance(tree, exp.Window) else [scalar_sql(part, dialect) for part in tree.iter_expressions()]
    match tree:
        case _ if type(tree) in _FUNCTIONS:
            return f"{_FUNCTIONS[type(tree)]}({', '.join(parts)})"
        case exp.Distinct():
            return f"DISTINCT {', '.join(parts)}"
        case exp.Window():
            return f"{scalar_sql(tree.this, dialect)} OVER ({_window(tree, dialect)})"
        case exp.StartsWith():
            return f"{dialect.statements.starts_with}({', '.join(parts)})"
        case exp.Trim() if not dialect.statements.trims_in_words or len(parts) == 1:
            return f"{_TRIMS[tree.args.get('position')]}({', '.join(parts)})"
        case exp.Trim(args={"position": "BOTH" | "LEADING" | "TRAILING" as position}):
            return f"TRIM({position} {parts[1]} FROM {parts[0]})"
        case _:
            raise PlumeBug("an expression holds a form that was not checked")


def _constant(tree: Tree, dialect: Dialect) -> str:
    match tree:
        case exp.Star():
            return "*"
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return constant(bool(tree.this), dialect)
        case exp.Literal(is_string=True):
            return constant(str(tree.this), dialect)
        case exp.Literal() if NUMBER.fullmatch(str(tree.this)):
            return str(tree.this)
        case _:
            raise PlumeBug("an expression holds a constant that was not checked")


def _case(tree: Tree, dialect: Dialect) -> str:
    of = f" {scalar_sql(tree.this, dialect)}" if tree.this is not None else ""
    whens = "".join(
        f" WHEN {scalar_sql(branch.this, dialect)} THEN {scalar_sql(branch.args['true'], dialect)}"
        for branch in tree.args["ifs"]
    )
    otherwise = tree.args.get("default")
    ending = "" if otherwise is None else f" ELSE {scalar_sql(otherwise, dialect)}"
    return f"CASE{of}{whens}{ending} END"


def _window(tree: Tree, dialect: Dialect) -> str:
    partition = ", ".join(scalar_sql(part, dialect) for part in tree.args.get("partition_by") or ())
    order = ", ".join(
        f"{scalar_sql(item.this, dialect)}{' DESC' if item.args.get('desc') else ''} "
        f"NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"
        for item in (tree.args["order"].expressions if tree.args.get("order") else ())
    )
    by = [f"PARTITION BY {partition}" if partition else "", f"ORDER BY {order}" if order else ""]
    return " ".join(filter(None, by))


def _type(tree: Tree, dialect: Dialect) -> str:
    name = dialect.statements.timestamp_type if tree.this is _Types.TIMESTAMPNTZ else _TYPES[tree.this]
    sizes = ", ".join(str(int(param.name)) for param in tree.expressions)
    return f"{name}({sizes})" if sizes else name


def _word(tree: Tree) -> str:
    """Print a unit, which is a word of the list of units."""
    if not isinstance(tree, exp.Var | exp.Literal) or not re.fullmatch("[A-Z_]+", tree.name):
        raise PlumeBug("a unit of time was not checked")
    return str(tree.name)
