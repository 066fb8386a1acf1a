"""The steps of a plan as SQL in an engine's dialect.

Names pass `identifier`, constants pass `constant`, and nothing else of a caller gets in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from plume.errors import PlumeBug
from plume.plan.analysis import read_twice, steps
from plume.plan.dialect import DUCKDB, SPARK, Dialect, Target, identifier
from plume.plan.expression_sql import print_aggregate, print_expression
from plume.plan.expressions import AnyOf, Column, Comparator, Compare, Expression, IsNull, Literal
from plume.plan.nodes import Append, Combine, CountKeys, KeepFew, KeepSelected, Lookup, Map, Node, Noise, Scan

SALT_UNKNOWN = "{salt}"
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


def print_plan(plan: Node, dialect: Dialect, *, salt: str = SALT_UNKNOWN) -> Printed:
    """Print every step that is SQL, by its name."""
    kept = _kept(plan, dialect)
    printed = [step for step in steps(plan) if not isinstance(step, Scan | Noise)]
    return {step.name: _statements(step, Target(dialect, salt), kept=step.name in kept) for step in printed}


def _kept(plan: Node, dialect: Dialect) -> frozenset[str]:
    """Name the steps that are read twice as they are printed."""
    kept = read_twice(plan)
    if dialect is not DUCKDB:
        return kept
    # There, users are counted from the rows below, and looked up whenever the step itself is read.
    counting = [step for step in steps(plan) if isinstance(step, CountKeys)]
    return (kept - {step.name for step in counting}) | {step.source.name for step in counting}


def _statements(step: Node, target: Target, *, kept: bool) -> tuple[Statement, ...]:
    printed = Statement(step.name, _print_step(step, target), kept)
    if isinstance(step, CountKeys) and target.dialect is DUCKDB:
        return Statement(_users(step), _print_users(step, target.dialect), kept=True), printed
    return (printed,)


def _print_step(step: Node, target: Target) -> str:
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
        case KeepSelected():
            return print_keep_selected(step, dialect)
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
    if dialect is DUCKDB and isinstance(step.source, CountKeys) and _keeps_uncounted(step, step.source):
        return _print_uncounted(step, step.source, target)
    columns = ",\n       ".join(
        f"{print_expression(expression, target)} AS {identifier(name, dialect)}"
        for name, expression in step.expressions
    )
    where = f"\nWHERE {print_expression(step.where, target)}" if step.where else ""
    return f"SELECT {columns}\nFROM {_name(step.source, dialect)}{where}"


def _keeps_uncounted(step: Map, counted: CountKeys) -> bool:
    """Tell whether a step keeps just the rows of users with so few keys that they were not counted."""
    uncounted, column = IsNull(Column(counted.column)), Column(counted.column)
    match step.where:
        case AnyOf((first, Compare(left, Comparator.AT_MOST, Literal(int(limit))))):
            return first == uncounted and left == column and limit <= counted.above
        case _:
            return False


def _print_uncounted(step: Map, counted: CountKeys, target: Target) -> str:
    """Leave the few users out that were counted, which DuckDB does faster than looking everybody up among them."""
    dialect = target.dialect
    nothing = {counted.column: f"NULL AS {identifier(counted.column, dialect)}"}
    columns = ", ".join(nothing.get(name) or _print_column(name, e, target) for name, e in step.expressions)
    user, users = identifier(counted.user, dialect), identifier(_users(counted), dialect)
    return f"SELECT {columns}\nFROM {_name(counted.source, dialect)} ANTI JOIN {users} USING ({user})"


def _print_column(name: str, expression: Expression, target: Target) -> str:
    printed, named = print_expression(expression, target), identifier(name, target.dialect)
    return printed if printed == named else f"{printed} AS {named}"


def _print_combine(step: Combine, target: Target) -> str:
    dialect = target.dialect
    aggregates = [f"{print_aggregate(a, target)} AS {identifier(name, dialect)}" for name, a in step.aggregates]
    columns = ",\n       ".join([_names(step.by, dialect), *aggregates])
    return f"SELECT {columns}\nFROM {_gathered(step, dialect)}\nGROUP BY {_names(step.by, dialect)}"


def _gathered(step: Combine, dialect: Dialect) -> str:
    source = _name(step.source, dialect)
    if dialect is not SPARK or step.gather == step.by:
        return source
    # Beside the GROUP BY the hint would add an exchange instead of replacing one.
    return f"(SELECT /*+ REPARTITION({_names(step.gather, dialect)}) */ * FROM {source})"


def _print_count_keys(step: CountKeys, dialect: Dialect) -> str:
    source, user, column = (identifier(name, dialect) for name in (step.source.name, step.user, step.column))
    if dialect is SPARK:
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


def print_keep_selected(step: KeepSelected, dialect: Dialect) -> str:
    """Print the step that keeps rows of selected keys, in the way its lookup says."""
    columns, source, selected = (
        _names(step.columns, dialect),
        _name(step.source, dialect),
        _name(step.selected, dialect),
    )
    keys = _names(step.keys, dialect)
    if dialect is not SPARK:
        return f"SELECT {columns}\nFROM {source} SEMI JOIN {selected} USING ({keys})"
    match step.lookup:
        case Lookup.BROADCAST:
            hint = f"/*+ BROADCAST({selected}) */"
            return f"SELECT {hint} {columns}\nFROM {source} LEFT SEMI JOIN {selected} USING ({keys})"
        case Lookup.STORE:
            return f"SELECT {columns}\nFROM {source}\nWHERE {ASK_STORE}(struct({keys}))"
        case Lookup.JOIN:
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
