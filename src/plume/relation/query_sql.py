"""Queries as SQL of an engine, clause by clause. Expressions in them are printed by `scalar_sql`."""

from collections.abc import Iterable

from sqlglot import exp

from plume.errors import PlumeBug
from plume.plan.dialect import Dialect, identifier
from plume.relation.scalar_sql import bare_sql, scalar_sql
from plume.relation.text import Tree

_SIDES = (None, "LEFT", "RIGHT", "FULL")
WORDS = frozenset(
    (
        *("SELECT", "DISTINCT", "AS", "FROM", "WHERE", "GROUP", "BY", "UNION", "ALL"),
        *("JOIN", "LEFT", "RIGHT", "FULL", "CROSS", "ON"),
    )
)
"""All that stands outside of quotes in what is printed here, apart from expressions."""


def query_sql(tree: Tree, dialect: Dialect) -> str:
    """Print the final tree of a query."""
    match tree:
        case exp.Union() if not tree.args.get("distinct"):
            return f"{query_sql(tree.this, dialect)}\nUNION ALL\n{query_sql(tree.expression, dialect)}"
        case exp.Select():
            return _select_sql(tree, dialect)
        case _:
            raise PlumeBug("a query holds a form that was not checked")


def _select_sql(select: Tree, dialect: Dialect) -> str:
    args = select.args
    listed = ", ".join(_output_sql(output, dialect) for output in select.expressions)
    read = "\n".join(
        [_source_sql(args["from_"].this, dialect), *(_join_sql(join, dialect) for join in args.get("joins") or ())]
    )
    where = f"\nWHERE {bare_sql(args['where'].this, dialect)}" if args.get("where") else ""
    grouped = args["group"].expressions if args.get("group") else ()
    group = f"\nGROUP BY {_list_sql(grouped, dialect)}" if grouped else ""
    return f"SELECT {'DISTINCT ' if args.get('distinct') else ''}{listed}\nFROM {read}{where}{group}"


def _output_sql(output: Tree, dialect: Dialect) -> str:
    match output:
        case exp.Star():
            return "*"
        case exp.Column(this=exp.Star()):
            return f"{identifier(output.table, dialect)}.*"
        case exp.Alias():
            return f"{scalar_sql(output.this, dialect)} AS {identifier(output.alias, dialect)}"
        case _:
            raise PlumeBug("a query lists something that was not checked")


def _source_sql(source: Tree, dialect: Dialect) -> str:
    label = f" AS {identifier(source.alias, dialect)}" if source.alias else ""
    match source:
        case exp.Table():
            return f"{identifier(source.name, dialect)}{label}"
        case exp.Subquery():
            return f"({query_sql(source.this, dialect)}){label}"
        case _:
            raise PlumeBug("a query reads something that was not checked")


def _join_sql(join: Tree, dialect: Dialect) -> str:
    read, side = _source_sql(join.this, dialect), join.args.get("side")
    if join.args.get("kind") == "CROSS":
        return f"CROSS JOIN {read}"
    if side not in _SIDES:
        raise PlumeBug("a query joins in a way that was not checked")
    return f"{f'{side or str()} JOIN'.strip()} {read} ON {bare_sql(join.args['on'], dialect)}"


def _list_sql(trees: Iterable[Tree], dialect: Dialect) -> str:
    return ", ".join(scalar_sql(tree, dialect) for tree in trees)
