"""The final tree of a relation in the dialect of an engine: what is printed, and what the printed text must parse to again.

What fails on a row becomes NULL here: an error that depends on data is a leak.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Parsing

from plume.plan.dialect import Dialect
from plume.relation.names import qualified
from plume.relation.relations import PARTS, BaseTable, Call, Relation, Select, Source, Union, names_of
from plume.relation.text import Tree

_MEMBER = "u"
"""What a part of a union is called."""
_PLAIN = (exp.Column, exp.Literal, exp.Boolean, exp.Null)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_CONDITIONS = (
    *_COMPARISONS,
    *(exp.Like, exp.ILike, exp.Is, exp.StartsWith, exp.And, exp.Or, exp.Not, exp.Boolean),
)


def final_query(relation: Relation, dialect: Dialect) -> Tree:
    """Make the query that gives a relation."""
    match relation:
        case BaseTable():
            return exp.Select(expressions=[exp.Star()], from_=exp.From(this=_table(relation)))
        case Union(members):
            names = names_of(relation) or ()
            parts = [_member(member, names, dialect) for member in members]
            return reduce(lambda above, part: exp.Union(this=above, expression=part, distinct=False), parts)
        case Select():
            return _select(relation, dialect)


def is_equality(tree: Tree) -> bool:
    """Return whether a condition is the equality of two columns."""
    return isinstance(tree, exp.EQ) and isinstance(tree.left, exp.Column) and isinstance(tree.right, exp.Column)


def _name(name: str) -> Tree:
    return exp.to_identifier(name, quoted=True)


def _labelled(name: str) -> Tree:
    return exp.TableAlias(this=_name(name))


def _table(table: BaseTable, label: str | None = None) -> Tree:
    return exp.Table(this=_name(table.name), alias=_labelled(label) if label else None)


def _below(query: Tree, label: str) -> Tree:
    return exp.Subquery(this=query, alias=_labelled(label))


def _as(tree: Tree, name: str) -> Tree:
    return exp.Alias(this=tree, alias=_name(name))


def _member(member: Select, names: tuple[str, ...], dialect: Dialect) -> Tree:
    """Give a part of a union the names of the first."""
    own = [_as(qualified(_MEMBER, name), common) for name, common in zip(names_of(member) or (), names, strict=True)]
    return exp.Select(expressions=own, from_=exp.From(this=_below(_select(member, dialect), _MEMBER)))


def _select(select: Select, dialect: Dialect) -> Tree:
    first, *others = (_source(source, dialect) for source in select.sources)
    body: dict[str, Any] = {
        "from_": exp.From(this=first.this),
        "joins": others,
        "where": _clause(select.where, dialect),
    }
    if select.parts or select.groups is not None:
        parts = {name: _part(part, dialect) for name, part in select.parts}
        listed = [_as(part, name) for name, part in parts.items()]
        grouped = exp.Group(expressions=[parts[group].copy() for group in select.groups]) if select.groups else None
        inner = exp.Select(expressions=listed, **body, group=grouped)
        body = {"from_": exp.From(this=_below(inner, PARTS)), "where": _clause(select.having, dialect)}
    if select.outputs is None:
        return exp.Select(expressions=[exp.Column(this=exp.Star(), table=_name(select.sources[0].label))], **body)
    outputs = [_as(_total(tree, dialect), name) for name, tree in select.outputs]
    return exp.Select(expressions=outputs, distinct=exp.Distinct() if select.distinct else None, **body)


def _source(source: Source, dialect: Dialect) -> Tree:
    """Make the join of a source; the first is joined to nothing."""
    relation = source.relation
    read = (
        _table(relation, source.label)
        if isinstance(relation, BaseTable)
        else _below(final_query(relation, dialect), source.label)
    )
    if source.side == "CROSS":
        return exp.Join(this=read, kind="CROSS")
    on = _all_of(_condition(part, dialect) for part in source.on)
    return exp.Join(this=read, side=source.side or None, on=on)


def _condition(tree: Tree, dialect: Dialect) -> Tree:
    """Leave the equality of two columns as it is, by which engines join; their types are checked before a row is read."""
    return final_scalar(tree, dialect) if is_equality(tree) else _total(_truth(tree), dialect)


def _clause(conditions: Iterable[Tree], dialect: Dialect) -> Tree | None:
    joined = _all_of(_total(_truth(condition), dialect) for condition in conditions)
    return None if joined is None else exp.Where(this=joined)


def _all_of(conditions: Iterable[Tree]) -> Tree | None:
    listed = list(conditions)
    return reduce(lambda left, right: exp.And(this=left, expression=right), listed) if listed else None


def _truth(tree: Tree) -> Tree:
    """Say that a condition is one, so that the cast to it is tried as well: text as a condition would fail outside of TRY."""
    return tree if isinstance(tree.unnest(), _CONDITIONS) else exp.TryCast(this=tree, to=exp.DataType.build("BOOLEAN"))


def _total(tree: Tree, dialect: Dialect) -> Tree:
    """Make an expression NULL where it fails.

    Where there is no TRY for this, sessions read relations so that nothing on the list of `scalars` fails.
    """
    made = final_scalar(tree, dialect)
    return exp.Try(this=made) if dialect.statements.tries and not isinstance(tree, _PLAIN) else made


def _part(part: Tree | Call, dialect: Dialect) -> Tree:
    return _call(part, dialect) if isinstance(part, Call) else _total(part, dialect)


def _call(call: Call, dialect: Dialect) -> Tree:
    argument = exp.Star() if call.argument is None else _total(call.argument, dialect)
    match call.function:
        case "SUM" | "AVG":
            # The sum of doubles depends on the order of rows, and that on other users.
            exact = exp.TryCast(this=argument, to=exp.DataType.build("DECIMAL(28, 9)"), safe=True)
            total = _over(call, "SUM", [exact], dialect)
            if call.function == "SUM":
                return total
            counted = _over(call, "COUNT", [exact.copy()], dialect)
            safe = Parsing.get_or_raise(dialect.name).SAFE_DIVISION
            return exp.Div(this=_plain_cast(total, "DOUBLE", dialect), expression=counted, safe=safe)
        case "RANK" | "DENSE_RANK":
            return _over(call, call.function, [], dialect)
        case _:
            counted = exp.Distinct(expressions=[argument]) if call.distinct else argument
            return _over(call, call.function, [counted], dialect)


def _over(call: Call, function: str, arguments: list[Tree], dialect: Dialect) -> Tree:
    called = exp.func(function, *arguments, dialect=dialect.name)
    if call.partition is None:
        return called
    ordered = [
        exp.Ordered(this=_total(part, dialect), desc=downwards, nulls_first=nulls_first)
        for part, downwards, nulls_first in call.order
    ]
    return exp.Window(
        this=called,
        partition_by=[_total(part, dialect) for part in call.partition],
        order=exp.Order(expressions=ordered) if ordered else None,
        over="OVER",
    )


def _plain_cast(tree: Tree, to: str, dialect: Dialect) -> Tree:
    """Make CAST, which to the parser is TRY_CAST in a dialect where it gives NULL where it fails."""
    strict = Parsing.get_or_raise(dialect.name).parser_class.STRICT_CAST
    return (exp.Cast if strict else exp.TryCast)(this=tree, to=exp.DataType.build(to))


def final_scalar(tree: Tree, dialect: Dialect) -> Tree:
    """Bring an expression of one row that was checked to the forms that the engine has."""
    parts = {name: _final_argument(value, dialect) for name, value in tree.args.items() if value is not None}
    match tree:
        case exp.Paren():
            return parts["this"]
        case exp.If():
            branch = exp.If(this=parts["this"], true=parts["true"])
            return exp.Case(ifs=[branch], default=parts.get("false"))
        case exp.Cast():
            return exp.TryCast(this=parts["this"], to=_type(tree.to), safe=dialect.statements.tries)
        case exp.DateTrunc() | exp.TimestampTrunc():
            unit = exp.Literal.string(parts["unit"].name)
            truncated = exp.func("DATE_TRUNC", unit, parts["this"], dialect=dialect.name)
            became_timestamp = isinstance(tree, exp.DateTrunc) and not dialect.statements.truncates_dates_to_dates
            return _plain_cast(truncated, "DATE", dialect) if became_timestamp else truncated
        case exp.Trim():
            position = parts.get("position")
            if not dialect.statements.trims_in_words or "expression" not in parts:
                return exp.Trim(**(parts | {"position": None if position == "BOTH" else position}))
            return exp.Trim(**(parts | {"position": position or "BOTH"}))
        case exp.Floor() | exp.Ceil() if "decimals" in parts and not dialect.statements.rounds_to_places:
            return _rounded(type(tree), parts["this"], parts["decimals"])
        case _:
            return type(tree)(**(parts | _notes(tree, dialect)))


def _notes(tree: Tree, dialect: Dialect) -> dict[str, bool]:
    """Note what the engine's parser notes of a division: what its dialect makes of zero, by which nothing is divided any more."""
    return {"safe": Parsing.get_or_raise(dialect.name).SAFE_DIVISION} if isinstance(tree, exp.Div) else {}


def _final_argument(value: Any, dialect: Dialect) -> Any:
    if isinstance(value, list):
        return [_final_argument(part, dialect) for part in value]
    if isinstance(value, exp.If) and value.arg_key == "ifs":
        # A branch of CASE, to the parser, is an IF.
        return exp.If(**{name: _final_argument(part, dialect) for name, part in value.args.items() if part is not None})
    inner = isinstance(value, exp.Expression) and not isinstance(value, exp.Identifier | exp.Var | exp.DataType)
    return final_scalar(value, dialect) if inner else value


def _rounded(function: Any, value: Tree, places: Tree) -> Tree:
    """Round down or up to places, where functions that round down and up take none."""
    ten = exp.Pow(this=exp.Literal.number(10), expression=places)
    whole = function(this=exp.Mul(this=value, expression=ten))
    return exp.Round(this=exp.Div(this=whole, expression=ten.copy()), decimals=places.copy())


def _type(tree: Tree) -> Tree:
    """Engines have one type of timestamp without a zone, under different names."""
    types = exp.DataType.Type
    kind = types.TIMESTAMPNTZ if tree.this is types.TIMESTAMP else tree.this
    return exp.DataType(this=kind, expressions=tree.expressions)
