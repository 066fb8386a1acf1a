"""Expressions of one row as SQL of an engine: words of ours, quoted names, quoted texts and digits, and nothing else.

What a caller wrote is in the tree that is printed here. So each form is spelled out: a printer that passes on what it does not know, as
sqlglot's does, would pass on whatever a caller put into a name, a unit or a type.
"""

import re

from sqlglot import exp

from plume.errors import PlumeBug
from plume.plan.dialect import DUCKDB, Dialect, constant, identifier
from plume.statement.forms import NUMBER
from plume.statement.text import Tree

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
}
_TRIMS = {None: "TRIM", "BOTH": "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}
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
    _Types.TIMESTAMP: "TIMESTAMP",
    _Types.TIMESTAMPNTZ: "TIMESTAMP",
}


def scalar_sql(tree: Tree, dialect: Dialect) -> str:  # noqa: C901 - one case per form
    """Print an expression that was checked."""

    def printed(part: Tree) -> str:
        return scalar_sql(part, dialect)

    match tree:
        case exp.Column():
            return ".".join(identifier(part.name, dialect) for part in tree.parts)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return _constant(tree, dialect)
        case exp.Paren():
            return printed(tree.this)
        case exp.Not() | exp.Neg():
            return f"({'NOT' if isinstance(tree, exp.Not) else '-'} {printed(tree.this)})"
        case exp.Between():
            return f"({printed(tree.this)} BETWEEN {printed(tree.args['low'])} AND {printed(tree.args['high'])})"
        case exp.In():
            return f"({printed(tree.this)} IN ({', '.join(map(printed, tree.expressions))}))"
        case exp.Like() | exp.ILike():
            word = f"{'NOT ' if tree.args.get('negate') else ''}{'LIKE' if isinstance(tree, exp.Like) else 'ILIKE'}"
            return f"({printed(tree.this)} {word} {printed(tree.expression)})"
        case exp.Case() | exp.If():
            return _case(tree, dialect)
        case exp.Cast():
            return f"{'TRY_CAST' if dialect == DUCKDB else 'CAST'}({printed(tree.this)} AS {_type(tree.to, dialect)})"
        case exp.Extract():
            return f"EXTRACT({_word(tree.this)} FROM {printed(tree.expression)})"
        case exp.TimestampTrunc() | exp.DateTrunc():
            truncated = f"DATE_TRUNC('{_word(tree.args['unit'])}', {printed(tree.this)})"
            # What DuckDB truncates keeps its type; what Spark truncates becomes a timestamp.
            return (
                truncated if dialect == DUCKDB or isinstance(tree, exp.TimestampTrunc) else f"CAST({truncated} AS DATE)"
            )
        case _:
            return _operation(tree, dialect)


def _operation(tree: Tree, dialect: Dialect) -> str:
    """Print an operator between two parts, or a call of a function."""
    parts = [scalar_sql(part, dialect) for part in tree.iter_expressions()]
    listed = ", ".join(parts)
    match tree:
        case _ if type(tree) in _OPERATORS:
            return f"({parts[0]} {_OPERATORS[type(tree)]} {parts[1]})"
        case _ if type(tree) in _FUNCTIONS:
            return f"{_FUNCTIONS[type(tree)]}({listed})"
        case exp.StartsWith():
            return f"{'STARTS_WITH' if dialect == DUCKDB else 'STARTSWITH'}({listed})"
        case exp.Trim():
            return _trim(tree, parts, dialect)
        case exp.Floor() | exp.Ceil():
            return _rounded("FLOOR" if isinstance(tree, exp.Floor) else "CEIL", parts, dialect)
        case _:
            raise PlumeBug("an expression holds a form that was not checked")


def _constant(tree: Tree, dialect: Dialect) -> str:
    match tree:
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
    """Print CASE, and IF as CASE."""
    cases, otherwise = (
        ([tree], tree.args.get("false")) if isinstance(tree, exp.If) else (tree.args["ifs"], tree.args.get("default"))
    )
    of = f" {scalar_sql(tree.this, dialect)}" if isinstance(tree, exp.Case) and tree.this is not None else ""
    whens = "".join(
        f" WHEN {scalar_sql(case.this, dialect)} THEN {scalar_sql(case.args['true'], dialect)}" for case in cases
    )
    ending = "" if otherwise is None else f" ELSE {scalar_sql(otherwise, dialect)}"
    return f"CASE{of}{whens}{ending} END"


def _trim(tree: Tree, parts: list[str], dialect: Dialect) -> str:
    position = tree.args.get("position")
    if dialect == DUCKDB or len(parts) == 1:
        return f"{_TRIMS[position]}({', '.join(parts)})"
    return f"TRIM({position or 'BOTH'} {parts[1]} FROM {parts[0]})"


def _rounded(function: str, parts: list[str], dialect: Dialect) -> str:
    """Print FLOOR or CEIL, with places by which DuckDB knows neither."""
    if len(parts) == 1 or dialect != DUCKDB:
        return f"{function}({', '.join(parts)})"
    value, places = parts
    return f"ROUND({function}({value} * POWER(10, {places})) / POWER(10, {places}), {places})"


def _type(tree: Tree, dialect: Dialect) -> str:
    name = "TIMESTAMP_NTZ" if dialect != DUCKDB and _TYPES[tree.this] == "TIMESTAMP" else _TYPES[tree.this]
    sizes = ", ".join(str(int(param.name)) for param in tree.expressions)
    return f"{name}({sizes})" if sizes else name


def _word(tree: Tree) -> str:
    """Print a unit, which is a word of the list of units."""
    if not isinstance(tree, exp.Var | exp.Literal) or not re.fullmatch("[A-Z_]+", tree.name):
        raise PlumeBug("a unit of time was not checked")
    return str(tree.name)
