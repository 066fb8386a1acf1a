"""Relations as SQL of an engine. What fails on a row becomes NULL: an error that depends on data is a leak."""

from collections.abc import Iterable

from sqlglot import exp

from plume.plan.dialect import DUCKDB, Dialect, identifier
from plume.statement.relations import PARTS, Call, Given, Relation, Select, Source, Union, names_of
from plume.statement.scalar_sql import scalar_sql
from plume.statement.text import Tree

_EXACT_SUM = "DECIMAL(28, 9)"
"""What is summed below the private SELECT: the sum of doubles depends on the order of rows, and that on other users."""
_PLAIN = (exp.Column, exp.Literal, exp.Boolean, exp.Null)
_CONDITIONS = (
    *(
        exp.EQ,
        exp.NEQ,
        exp.LT,
        exp.LTE,
        exp.GT,
        exp.GTE,
        exp.Between,
        exp.In,
        exp.Like,
        exp.ILike,
        exp.Is,
        exp.StartsWith,
    ),
    *(exp.And, exp.Or, exp.Not, exp.Boolean),
)


def print_relation(relation: Relation, dialect: Dialect) -> str:
    """Print a relation as a query."""
    match relation:
        case Given(name=name):
            return f"SELECT * FROM {identifier(name, dialect)}"
        case Union(members):
            names = names_of(relation) or ()
            return "\nUNION ALL\n".join(_print_member(member, names, dialect) for member in members)
        case Select():
            return _print_select(relation, dialect)


def total(tree: Tree, dialect: Dialect) -> str:
    """Print an expression that is NULL where it fails.

    DuckDB has TRY for this. Spark analyses relations with ANSI mode off, where nothing on the list of `scalars` fails.
    """
    printed = scalar_sql(tree, dialect)
    return f"TRY({printed})" if dialect == DUCKDB and not isinstance(tree, _PLAIN) else printed


def _print_member(member: Select, names: tuple[str, ...], dialect: Dialect) -> str:
    """Print a part of a union under the names of the first."""
    own = ", ".join(
        f"u.{identifier(name, dialect)} AS {identifier(common, dialect)}"
        for name, common in zip(names_of(member) or (), names, strict=True)
    )
    return f"SELECT {own}\nFROM ({_print_select(member, dialect)}) AS u"


def _print_select(select: Select, dialect: Dialect) -> str:
    source = "\n".join(_print_source(source, dialect) for source in select.sources)
    body = f"\nFROM {source}{_clause('WHERE', select.where, dialect)}"
    if select.parts or select.groups is not None:
        parts = ", ".join(f"{_print_part(part, dialect)} AS {identifier(name, dialect)}" for name, part in select.parts)
        body = f"\nFROM (SELECT {parts}{body}{_group_by(select, dialect)}) AS {identifier(PARTS, dialect)}"
        body += _clause("WHERE", select.having, dialect)
    if select.outputs is None:
        return f"SELECT {identifier(select.sources[0].label, dialect)}.*{body}"
    outputs = ", ".join(f"{total(tree, dialect)} AS {identifier(name, dialect)}" for name, tree in select.outputs)
    return f"SELECT {'DISTINCT ' if select.distinct else ''}{outputs}{body}"


def _print_source(source: Source, dialect: Dialect) -> str:
    label = identifier(source.label, dialect)
    relation = source.relation
    read = (
        identifier(relation.name, dialect) if isinstance(relation, Given) else f"({print_relation(relation, dialect)})"
    )
    if source.side == "CROSS":
        return f"CROSS JOIN {read} AS {label}"
    if source.on:
        joined = f"{source.side} JOIN".strip()
        return f"{joined} {read} AS {label} ON {' AND '.join(_print_condition(part, dialect) for part in source.on)}"
    return f"{read} AS {label}"


def _print_condition(tree: Tree, dialect: Dialect) -> str:
    """Print the equality of two columns as it is, by which engines join; their types are checked before a row is read."""
    return scalar_sql(tree, dialect) if is_equality(tree) else total(_truth(tree), dialect)


def _truth(tree: Tree) -> Tree:
    """Say that a condition is one, so that the cast to it is tried as well: text as a condition would fail outside of TRY."""
    return tree if isinstance(tree.unnest(), _CONDITIONS) else exp.cast(tree, "BOOLEAN")


def is_equality(tree: Tree) -> bool:
    """Tell the equality of two columns."""
    return isinstance(tree, exp.EQ) and isinstance(tree.left, exp.Column) and isinstance(tree.right, exp.Column)


def _clause(word: str, conditions: Iterable[Tree], dialect: Dialect) -> str:
    printed = " AND ".join(total(_truth(condition), dialect) for condition in conditions)
    return f"\n{word} {printed}" if printed else ""


def _group_by(select: Select, dialect: Dialect) -> str:
    if not select.groups:
        return ""
    parts = dict(select.parts)
    return f"\nGROUP BY {', '.join(_print_part(parts[group], dialect) for group in select.groups)}"


def _print_part(part: Tree | Call, dialect: Dialect) -> str:
    return _print_call(part, dialect) if isinstance(part, Call) else total(part, dialect)


def _print_call(call: Call, dialect: Dialect) -> str:
    over = "" if call.partition is None else f" OVER ({_window(call, dialect)})"
    argument = "*" if call.argument is None else total(call.argument, dialect)
    match call.function:
        case "SUM" | "AVG":
            summed = f"TRY_CAST({argument} AS {_EXACT_SUM})"
            total_of = f"SUM({summed}){over}"
            return total_of if call.function == "SUM" else f"CAST({total_of} AS DOUBLE) / COUNT({summed}){over}"
        case "RANK" | "DENSE_RANK":
            return f"{call.function}(){over}"
        case _:
            return f"{call.function}({'DISTINCT ' if call.distinct else ''}{argument}){over}"


def _window(call: Call, dialect: Dialect) -> str:
    partition = ", ".join(total(part, dialect) for part in call.partition or ())
    order = ", ".join(
        f"{total(part, dialect)}{' DESC' if downwards else ''} NULLS {'FIRST' if nulls_first else 'LAST'}"
        for part, downwards, nulls_first in call.order
    )
    by = [f"PARTITION BY {partition}" if partition else "", f"ORDER BY {order}" if order else ""]
    return " ".join(filter(None, by))
