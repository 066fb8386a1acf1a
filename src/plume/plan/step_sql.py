"""Each kind of step as a SELECT in an engine's dialect.

Names pass `identifier`, constants pass `constant`, and nothing else of a caller gets in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from plume.errors import PlumeBug
from plume.plan.aggregate_sql import print_aggregate
from plume.plan.analysis import shuffled_by
from plume.plan.dialect import DUCKDB, SPARK, Dialect, Target, identifier
from plume.plan.expression_sql import WHOLE, print_expression
from plume.plan.expressions import AnyOf, Column, Comparator, Compare, Expression, IsNull, Literal
from plume.plan.magnitude import fits, magnitude
from plume.plan.nodes import (
    Append,
    Clip,
    Combine,
    CountKeys,
    DropSelected,
    KeepFew,
    KeepSelected,
    Lookup,
    Map,
    Node,
    Size,
)
from plume.plan.tally_sql import adds_tallies, print_adding_tallies
from plume.plan.trees import columns_of
from plume.plan.trimmed_sql import leaves_largest_out, print_leaving_out

# The function that asks the store whether it holds a key; engines that have a store define it.
ASK_STORE = "is_selected"


@dataclass(frozen=True)
class Statement:
    """A SELECT and the name its rows go by; kept if it is read more than once."""

    name: str
    select: str
    kept: bool


Printed = Mapping[str, tuple[Statement, ...]]
"""The statements of each step, by its name."""


def print_step(step: Node, target: Target, *, kept: bool) -> tuple[Statement, ...]:
    """Print the statements that make the rows of a step."""
    printed = Statement(step.name, _print_select(step, target), kept)
    if isinstance(step, CountKeys) and target.dialect == DUCKDB:
        return Statement(_users(step), _print_users(step, target.dialect), kept=True), printed
    return (printed,)


def _print_select(step: Node, target: Target) -> str:  # noqa: C901 - one case per kind of node
    dialect = target.dialect
    match step:
        case Map():
            return _print_map(step, target)
        case Combine():
            return _print_combine(step, target)
        case CountKeys():
            return _print_count_keys(step, dialect)
        case KeepFew():
            return _print_keep_few(step, dialect)
        case Clip():
            return _print_clip(step, target)
        case KeepSelected():
            return print_keep_selected(step, dialect)
        case DropSelected():
            return _print_looked_up(step, "ANTI", dialect)
        case Append():
            selects = (f"SELECT {_names(step.columns, dialect)}\nFROM {_name(s, dialect)}" for s in step.sources)
            return "\nUNION ALL\n".join(selects)
        case _:
            raise PlumeBug(f"step {step.name} has no SQL")


def _name(node: Node, dialect: Dialect) -> str:
    return identifier(node.name, dialect)


def _names(names: tuple[str, ...], dialect: Dialect) -> str:
    return ", ".join(identifier(name, dialect) for name in names)


def _print_map(step: Map, target: Target) -> str:
    dialect = target.dialect
    if dialect == DUCKDB and isinstance(step.source, CountKeys):
        limit = limit_of_uncounted(step, step.source)
        if limit is not None:
            return _print_uncounted(step, step.source, limit, target)
    columns = ",\n       ".join(
        f"{print_expression(expression, target)} AS {identifier(name, dialect)}"
        for name, expression in step.expressions
    )
    where = f"\nWHERE {print_expression(step.where, target)}" if step.where else ""
    return f"SELECT {columns}\nFROM {_name(step.source, dialect)}{where}"


def limit_of_uncounted(step: Map, counted: CountKeys) -> int | None:
    """Give the limit within which a step keeps users, if it need not know how many keys they have."""
    uncounted, column = IsNull(Column(counted.column)), Column(counted.column)
    match step.where:
        case AnyOf((first, Compare(left, Comparator.AT_MOST, Literal(int(limit))))):
            read = any(counted.column in columns_of(expression) for _, expression in step.expressions)
            unread = limit <= counted.above or not read
            return limit if first == uncounted and left == column and unread else None
        case _:
            return None


def _print_uncounted(step: Map, counted: CountKeys, limit: int, target: Target) -> str:
    """Leave the few users out that are above a limit, which DuckDB does faster than looking everybody up."""
    dialect = target.dialect
    user, users, keys = (identifier(name, dialect) for name in (counted.user, _users(counted), counted.column))
    above = users if limit <= counted.above else f"(SELECT {user} FROM {users} WHERE {keys} > {limit})"
    columns = print_uncounted_columns(step, counted, target)
    return f"SELECT {columns}\nFROM {_name(counted.source, dialect)} ANTI JOIN {above} USING ({user})"


def print_uncounted_columns(step: Map, counted: CountKeys, target: Target) -> str:
    """Print the columns of a step that keeps users whose keys are not counted."""
    nothing = {counted.column: f"NULL AS {identifier(counted.column, target.dialect)}"}
    return ", ".join(nothing.get(name) or _print_column(name, e, target) for name, e in step.expressions)


def _print_column(name: str, expression: Expression, target: Target) -> str:
    printed, named = print_expression(expression, target), identifier(name, target.dialect)
    return printed if printed == named else f"{printed} AS {named}"


def _print_combine(step: Combine, target: Target) -> str:
    if adds_tallies(step):
        return print_adding_tallies(step, target)
    if leaves_largest_out(step):
        return print_leaving_out(step, target)
    dialect = target.dialect
    aggregates = [f"{print_aggregate(a, target)} AS {identifier(name, dialect)}" for name, a in step.aggregates]
    columns = ",\n       ".join([_names(step.by, dialect), *aggregates])
    return f"SELECT {columns}\nFROM {_gathered(step, dialect)}\nGROUP BY {_names(step.by, dialect)}"


def _gathered(step: Combine, dialect: Dialect) -> str:
    source = _name(step.source, dialect)
    hint = _hint(step, dialect) if dialect == SPARK else None
    # Beside the GROUP BY the hint would add an exchange instead of replacing one.
    return f"(SELECT /*+ {hint} */ * FROM {source})" if hint else source


def _hint(step: Combine, dialect: Dialect) -> str | None:
    """Gather rows, or take as many pieces as are worked on at a time together: the larger a piece, the fewer keys it leaves to shuffle."""
    if step.gather != step.by:
        return f"REPARTITION({_names(step.gather, dialect)})"
    return f"COALESCE({dialect.tasks})" if dialect.tasks and shuffled_by(step) else None


def _print_count_keys(step: CountKeys, dialect: Dialect) -> str:
    source, user, column = (identifier(name, dialect) for name in (step.source.name, step.user, step.column))
    if dialect == SPARK:
        counted = f"SELECT *, count(*) OVER (PARTITION BY {user}) AS keys_counted FROM {source}"
        kept = _names(step.source.columns, dialect)
        return (
            f"SELECT {kept}, CASE WHEN keys_counted > {step.above} THEN keys_counted END AS {column}\nFROM ({counted})"
        )
    # DuckDB groups and joins in half the time its window takes.
    columns = _names(step.columns, dialect)
    return f"SELECT {columns}\nFROM {source} LEFT JOIN {identifier(_users(step), dialect)} USING ({user})"


def _users(step: CountKeys) -> str:
    return f"{step.name}_users"


def _print_users(step: CountKeys, dialect: Dialect) -> str:
    user, column = identifier(step.user, dialect), identifier(step.column, dialect)
    counted = f"SELECT {user}, count(*) AS {column}\nFROM {_name(step.source, dialect)}\nGROUP BY {user}"
    return f"{counted}\nHAVING count(*) > {step.above}"


def _print_keep_few(step: KeepFew, dialect: Dialect) -> str:
    user, order = identifier(step.user, dialect), _names(step.order, dialect)
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {user} ORDER BY {order}) AS key_rank\n"
        f"      FROM {_name(step.source, dialect)}"
    )
    return f"SELECT {_names(step.columns, dialect)}\nFROM ({ranked})\nWHERE key_rank <= {step.limit}"


def _print_clip(step: Clip, target: Target) -> str:
    dialect = target.dialect
    user, source, columns = (
        identifier(step.user, dialect),
        _name(step.source, dialect),
        _names(step.source.columns, dialect),
    )
    sizes = "".join(
        f",\n             {_print_size(size, target)} OVER (PARTITION BY {user}) AS size_{number}"
        for number, (_, size) in enumerate(step.factors, start=1)
    )
    factors = "".join(
        f",\n       {_print_factor(f'size_{number}', step.limit * size.squared)} AS {identifier(name, dialect)}"
        for number, (name, size) in enumerate(step.factors, start=1)
    )
    return f"SELECT {columns}{factors}\nFROM (SELECT *{sizes}\n      FROM {source})"


def _print_size(size: Size, target: Target) -> str:
    return f"sum({' + '.join(_print_square(of, target) for of in size.of)})"


def _print_square(of: Expression, target: Target) -> str:
    printed = print_expression(of, target)
    if fits(of, times=magnitude(of) or 1):
        return f"CAST({printed} * {printed} AS {target.dialect.summable_type})"
    return f"CAST({printed} AS {target.dialect.wide_type}) * {printed}"


def _print_factor(size: str, most: int) -> str:
    # One less than the quotient in floating point, which is off by far less than one: never too large.
    root = f"sqrt(CAST({most} AS DOUBLE) / CAST({size} AS DOUBLE))"
    return f"CASE WHEN {size} <= {most} THEN {WHOLE} ELSE CAST(floor({WHOLE}e0 * {root}) AS BIGINT) - 1 END"


def _print_looked_up(step: KeepSelected | DropSelected, join: str, dialect: Dialect) -> str:
    """Look the key of each row up among the selected ones, wherever the row is."""
    columns, keys = _names(step.columns, dialect), _names(step.keys, dialect)
    source, selected = _name(step.source, dialect), _name(step.selected, dialect)
    if dialect == SPARK:
        hint = f"/*+ BROADCAST({selected}) */"
        return f"SELECT {hint} {columns}\nFROM {source} LEFT {join} JOIN {selected} USING ({keys})"
    return f"SELECT {columns}\nFROM {source} {join} JOIN {selected} USING ({keys})"


def print_keep_selected(step: KeepSelected, dialect: Dialect) -> str:
    """Print the step that keeps rows of selected keys, in the way its lookup says."""
    if dialect != SPARK or step.lookup is Lookup.BROADCAST:
        return _print_looked_up(step, "SEMI", dialect)
    if step.lookup is Lookup.STORE:
        columns, keys = _names(step.columns, dialect), _names(step.keys, dialect)
        return f"SELECT {columns}\nFROM {_name(step.source, dialect)}\nWHERE {ASK_STORE}(struct({keys}))"
    return _print_reduce_side_join(step, dialect)


def _print_reduce_side_join(step: KeepSelected, dialect: Dialect) -> str:
    """Let rows and marks meet at their key, as the paper draws it."""
    columns, keys = _names(step.columns, dialect), _names(step.keys, dialect)
    nothing = ", ".join(
        identifier(column, dialect) if column in step.keys else f"NULL AS {identifier(column, dialect)}"
        for column in step.columns
    )
    return (
        f"SELECT {columns}\n"
        f"FROM (SELECT *, max(mark) OVER (PARTITION BY {keys}) AS selected\n"
        f"      FROM (SELECT {columns}, 0 AS mark FROM {_name(step.source, dialect)}\n"
        f"            UNION ALL SELECT {nothing}, 1 AS mark FROM {_name(step.selected, dialect)}))\n"
        f"WHERE selected = 1 AND mark = 0"
    )
