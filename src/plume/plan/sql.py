"""A step of a plan as one SQL text in an engine's dialect.

The only place where SQL is written. Names pass `identifier`, constants pass `constant`, and nothing else of a caller gets in.
"""

from dataclasses import dataclass
from datetime import date, datetime
from functools import singledispatch

from plume.errors import PlumeBug
from plume.plan import expressions as e
from plume.plan.nodes import Append, Combine, CountKeys, KeepFew, KeepSelected, Lookup, Map, Node

# Public guard of algorithms 3.1: no value of one record counts for more than this many grid units.
GUARD_BITS = 62
_LARGEST_DOUBLE = "1.7976931348623157e308"


@dataclass(frozen=True)
class Dialect:
    """What differs between engines that print the same plan."""

    name: str
    quote: str
    text_type: str
    summable_type: str
    """The integer type whose sum cannot overflow, however many rows one user has."""
    escapes: tuple[tuple[str, str], ...]
    """What must be replaced inside a text constant, in this order."""


DUCKDB = Dialect("duckdb", quote='"', text_type="VARCHAR", summable_type="BIGINT", escapes=(("'", "''"),))
SPARK = Dialect(
    "spark",
    quote="`",
    text_type="STRING",
    summable_type="DECIMAL(28, 0)",
    escapes=(("\\", "\\\\"), ("'", "\\'")),
)

SALT_UNKNOWN = "{salt}"


def print_step(step: Node, dialect: Dialect, *, salt: str = SALT_UNKNOWN) -> str:
    """Print a step as a SELECT over the steps it reads."""
    match step:
        case Map():
            return _print_map(step, dialect)
        case Combine():
            return _print_combine(step, dialect)
        case CountKeys():
            return _print_count_keys(step, dialect)
        case KeepFew():
            return _print_keep_few(step, dialect, salt)
        case KeepSelected():
            return _print_keep_selected(step, dialect)
        case Append():
            selects = (f"SELECT {_names(step.columns, dialect)}\nFROM {_name(s, dialect)}" for s in step.sources)
            return "\nUNION ALL\n".join(selects)
        case _:
            raise PlumeBug(f"step {step.name} has no SQL")


def identifier(name: str, dialect: Dialect) -> str:
    """Quote a name so that it can only be a name."""
    return dialect.quote + name.replace(dialect.quote, dialect.quote * 2) + dialect.quote


def constant(value: e.Value, dialect: Dialect) -> str:
    """Print a constant so that it can only be a constant."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            for plain, escaped in dialect.escapes:
                value = value.replace(plain, escaped)
            return f"'{value}'"
        case float():
            return f"CAST({value!r} AS DOUBLE)"
        case int():
            return str(value)


def _name(node: Node, dialect: Dialect) -> str:
    return identifier(node.name, dialect)


def _names(names: tuple[str, ...], dialect: Dialect) -> str:
    return ", ".join(identifier(name, dialect) for name in names)


def _print_map(step: Map, dialect: Dialect) -> str:
    columns = ",\n       ".join(
        f"{_print(expression, dialect)} AS {identifier(name, dialect)}" for name, expression in step.expressions
    )
    where = f"\nWHERE {_print(step.where, dialect)}" if step.where else ""
    return f"SELECT {columns}\nFROM {_name(step.source, dialect)}{where}"


def _print_combine(step: Combine, dialect: Dialect) -> str:
    aggregates = [f"{_print_aggregate(a, dialect)} AS {identifier(name, dialect)}" for name, a in step.aggregates]
    columns = ",\n       ".join([_names(step.by, dialect), *aggregates])
    return f"SELECT {columns}\nFROM {_gathered(step, dialect)}\nGROUP BY {_names(step.by, dialect)}"


def _gathered(step: Combine, dialect: Dialect) -> str:
    source = _name(step.source, dialect)
    if dialect is not SPARK or step.gather == step.by:
        return source
    # Beside the GROUP BY the hint would add an exchange instead of replacing one.
    return f"(SELECT /*+ REPARTITION({_names(step.gather, dialect)}) */ * FROM {source})"


def _print_count_keys(step: CountKeys, dialect: Dialect) -> str:
    source, user, column = (
        _name(step.source, dialect),
        identifier(step.user, dialect),
        identifier(step.column, dialect),
    )
    if dialect is SPARK:
        return f"SELECT *, count(*) OVER (PARTITION BY {user}) AS {column}\nFROM {source}"
    # DuckDB groups and joins in half the time its window takes; the grouping below must not run twice for it.
    return (
        f'WITH "rows" AS MATERIALIZED (SELECT * FROM {source})\n'
        f'SELECT "rows".*, {column}\nFROM "rows"\n'
        f'JOIN (SELECT {user}, count(*) AS {column} FROM "rows" GROUP BY {user}) USING ({user})'
    )


def _print_keep_few(step: KeepFew, dialect: Dialect, salt: str) -> str:
    user, keys = identifier(step.user, dialect), _names(step.keys, dialect)
    order = _print_order((step.user, *step.keys), dialect, salt)
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {user} ORDER BY {order}, {keys}) AS key_rank\n"
        f"      FROM {_name(step.source, dialect)}"
    )
    return f"SELECT {_names(step.columns, dialect)}\nFROM ({ranked})\nWHERE key_rank <= {step.limit}"


def _print_order(columns: tuple[str, ...], dialect: Dialect, salt: str) -> str:
    """Print the secret order: a hash of the salt and of each column as its length, a colon and its text, which is injective."""
    texts = [f"CAST({identifier(column, dialect)} AS {dialect.text_type})" for column in columns]
    encoded = ", ".join(f"CAST(length({text}) AS {dialect.text_type}), ':', {text}" for text in texts)
    return f"md5(concat({constant(salt, dialect)}, {encoded}))"


def _print_keep_selected(step: KeepSelected, dialect: Dialect) -> str:
    columns, source, selected = (
        _names(step.columns, dialect),
        _name(step.source, dialect),
        _name(step.selected, dialect),
    )
    keys = _names(step.keys, dialect)
    if dialect is not SPARK:
        return f"SELECT {columns}\nFROM {source} SEMI JOIN {selected} USING ({keys})"
    if step.lookup is Lookup.BROADCAST:
        return f"SELECT /*+ BROADCAST({selected}) */ {columns}\nFROM {source} LEFT SEMI JOIN {selected} USING ({keys})"
    # A reduce-side join as the paper draws it: rows and marks meet at their key.
    nothing = ", ".join(
        identifier(column, dialect) if column in step.keys else f"NULL AS {identifier(column, dialect)}"
        for column in step.columns
    )
    return (
        f"SELECT {columns}\n"
        f"FROM (SELECT *, max(mark) OVER (PARTITION BY {keys}) AS selected\n"
        f"      FROM (SELECT {columns}, 0 AS mark FROM {source}\n"
        f"            UNION ALL SELECT {nothing}, 1 AS mark FROM {selected}))\n"
        f"WHERE selected = 1 AND mark = 0"
    )


def _print_aggregate(aggregate: e.Aggregate, dialect: Dialect) -> str:
    match aggregate:
        case e.Count():
            return "count(*)"
        case e.Sum(of):
            return f"sum({_print(of, dialect)})"
        case e.Max(of):
            return f"max({_print(of, dialect)})"


@singledispatch
def _print(expression: e.Expression, dialect: Dialect) -> str:
    raise PlumeBug(f"no SQL for {type(expression).__name__} in {dialect.name}")


@_print.register
def _(expression: e.Column, dialect: Dialect) -> str:
    return identifier(expression.name, dialect)


@_print.register
def _(expression: e.Literal, dialect: Dialect) -> str:
    return constant(expression.value, dialect)


@_print.register
def _(expression: e.Quantise, dialect: Dialect) -> str:
    value = f"CAST({_print(expression.of, dialect)} AS DOUBLE)"
    guard = _double(2.0 ** (GUARD_BITS + expression.exponent))
    scaled = f"greatest(least({value}, {guard}), -{guard}) * {_double(2.0**-expression.exponent)}"
    rounded = f"CAST(floor({scaled} + 0.5e0) AS {dialect.summable_type})"
    # NaN sorts above every number in both engines, so the comparison drops NULL, NaN and infinities alike.
    return f"CASE WHEN {value} BETWEEN -{_LARGEST_DOUBLE} AND {_LARGEST_DOUBLE} THEN {rounded} END"


@_print.register
def _(expression: e.Clamp, dialect: Dialect) -> str:
    value = _print(expression.of, dialect)
    # least() and greatest() skip NULL, which would turn it into a bound.
    clamped = f"CAST(greatest(least({value}, {expression.high}), {expression.low}) AS BIGINT)"
    return f"CASE WHEN {value} IS NULL THEN 0 ELSE {clamped} END"


@_print.register
def _(expression: e.Integer, dialect: Dialect) -> str:
    return f"CAST({_print(expression.of, dialect)} AS BIGINT)"


@_print.register
def _(expression: e.Compare, dialect: Dialect) -> str:
    return f"{_print(expression.left, dialect)} {expression.comparator.value} {_print(expression.right, dialect)}"


@_print.register
def _(expression: e.AllOf, dialect: Dialect) -> str:
    return "(" + " AND ".join(_print(condition, dialect) for condition in expression.conditions) + ")"


@_print.register
def _(expression: e.AnyOf, dialect: Dialect) -> str:
    return "(" + " OR ".join(_print(condition, dialect) for condition in expression.conditions) + ")"


@_print.register
def _(expression: e.Not, dialect: Dialect) -> str:
    return f"(NOT {_print(expression.of, dialect)})"


@_print.register
def _(expression: e.IsNull, dialect: Dialect) -> str:
    return f"({_print(expression.of, dialect)} IS NULL)"


@_print.register
def _(expression: e.IsIn, dialect: Dialect) -> str:
    among = ", ".join(_print(literal, dialect) for literal in expression.among)
    return f"({_print(expression.of, dialect)} IN ({among}))"


@_print.register
def _(expression: e.Like, dialect: Dialect) -> str:
    return f"({_print(expression.of, dialect)} LIKE {_print(expression.pattern, dialect)})"


def _double(value: float) -> str:
    # An exponent makes it a double in both dialects; 0.5 alone is a decimal.
    return f"{value:.17e}"
