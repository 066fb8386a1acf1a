"""The one step that adds tallies, as SQL: rows of keys and rows of leaves are grouped together, then the leaves of a key become a list.

In two groupings, since no engine adds lists of pairs by itself. Both are by key, so rows are brought together once.
"""

from typing import TypeGuard

from plume.plan.aggregates import AddTallies, Aggregate, Max, Sum, SumButLargest
from plume.plan.dialect import DUCKDB, Target, identifier
from plume.plan.expression_sql import print_aggregate
from plume.plan.expressions import Column
from plume.plan.nodes import Combine, Node


def adds_tallies(step: Node) -> TypeGuard[Combine]:
    """Tell whether a step adds tallies; then it reads its rows once for their numbers, and once for each tally."""
    return isinstance(step, Combine) and any(isinstance(aggregate, AddTallies) for _, aggregate in step.aggregates)


def print_adding_tallies(step: Combine, target: Target) -> str:
    """Print a step of which some aggregates add tallies, and the others are sums and the largest mark."""
    quoted = {name: identifier(name, target.dialect) for name in step.columns}
    keys = ", ".join(quoted[key] for key in step.by)
    numbers = {name: aggregate for name, aggregate in step.aggregates if not isinstance(aggregate, AddTallies)}
    tallies = [name for name, aggregate in step.aggregates if isinstance(aggregate, AddTallies)]
    by_leaf = [f"{print_aggregate(_again(name, a), target)} AS {quoted[name]}" for name, a in numbers.items()]
    inner = ", ".join([keys, "tally", "leaf", "sum(leaf_weight) AS leaf_weight", *by_leaf])
    outer = [f"{print_aggregate(_again(name, a), target)} AS {quoted[name]}" for name, a in numbers.items()]
    lists = [f"{_list(number, target)} AS {quoted[name]}" for number, name in enumerate(tallies, start=1)]
    grouped = f"SELECT {inner}\n      FROM {_rows(step, tallies, target)}\n      GROUP BY {keys}, tally, leaf"
    columns = dict(zip([*numbers, *tallies], [*outer, *lists], strict=True))
    ordered = ",\n       ".join([keys, *(columns[name] for name, _ in step.aggregates)])
    return f"SELECT {ordered}\nFROM ({grouped})\nGROUP BY {keys}"


def _print_number(step: Combine, name: str, target: Target) -> str:
    """Print a number of a row; where the largest of a key are left out, they count nothing."""
    named, aggregate = identifier(name, target.dialect), dict(step.aggregates).get(name)
    if not isinstance(aggregate, SumButLargest):
        return named
    keys = ", ".join(identifier(key, target.dialect) for key in step.by)
    rank = f"row_number() OVER (PARTITION BY {keys} ORDER BY {named} DESC)"
    return f"CASE WHEN {rank} > {aggregate.number} THEN {named} ELSE 0 END AS {named}"


def _again(name: str, aggregate: Aggregate) -> Aggregate:
    return Max(Column(name)) if isinstance(aggregate, Max) else Sum(Column(name))


def _list(number: int, target: Target) -> str:
    if target.dialect is DUCKDB:
        pair = "{'leaf': leaf, 'weight': CAST(leaf_weight AS BIGINT)}"
        return f"list({pair}) FILTER (WHERE tally = {number})"
    pair = "named_struct('leaf', leaf, 'weight', CAST(leaf_weight AS BIGINT))"
    return f"collect_list(CASE WHEN tally = {number} THEN {pair} END)"


def _rows(step: Combine, tallies: list[str], target: Target) -> str:
    """Rows of keys, as tally 0, and under them one row for each leaf of each tally."""
    dialect = target.dialect
    keys = ", ".join(identifier(key, dialect) for key in step.by)
    source = identifier(step.source.name, dialect)
    others = [name for name in step.source.columns if name not in (*step.by, *tallies)]
    named = "".join(f", {_print_number(step, name, target)}" for name in others)
    nothing = "".join(f", 0 AS {identifier(name, dialect)}" for name in others)
    selects = [f"SELECT {keys}, 0 AS tally, 0 AS leaf, CAST(0 AS BIGINT) AS leaf_weight{named} FROM {source}"]
    unfold = "unnest" if dialect is DUCKDB else "explode"
    for number, name in enumerate(tallies, start=1):
        found = f"SELECT {keys}, {unfold}({identifier(name, dialect)}) AS found FROM {source}"
        selects.append(f"SELECT {keys}, {number} AS tally, found.leaf, found.weight{nothing} FROM ({found})")
    rows = "\n            UNION ALL ".join(selects)
    hint = "" if dialect is DUCKDB else f"/*+ REPARTITION({keys}) */ "
    return f"(SELECT {hint}*\n      FROM ({rows}))"
