"""The one step that adds tallies, as SQL. In two groupings, since no engine adds lists of pairs by itself: by key and leaf, then by key.

Where bringing rows together is what costs, as on Spark, rows of keys and rows of leaves are grouped together, so that this happens once.
DuckDB adds each tally by itself, which is less work, and joins what it found.
"""

from typing import TypeGuard

from plume.plan.aggregate_sql import print_aggregate
from plume.plan.aggregates import AddTallies, Aggregate, Max, Sum, SumButLargest
from plume.plan.dialect import DUCKDB, Target, identifier
from plume.plan.expressions import Column
from plume.plan.nodes import Combine, Node


def adds_tallies(step: Node) -> TypeGuard[Combine]:
    """Tell whether a step adds tallies; then it reads its rows once for their numbers, and once for each tally."""
    return isinstance(step, Combine) and any(isinstance(aggregate, AddTallies) for _, aggregate in step.aggregates)


def print_adding_tallies(step: Combine, target: Target) -> str:
    """Print a step of which some aggregates add tallies, and the others are sums and the largest mark."""
    return _print_joined(step, target) if target.dialect == DUCKDB else _print_together(step, target)


def _tallies(step: Combine) -> list[str]:
    return [name for name, aggregate in step.aggregates if isinstance(aggregate, AddTallies)]


def _print_numbers(step: Combine, target: Target) -> dict[str, str]:
    numbers = {name: aggregate for name, aggregate in step.aggregates if not isinstance(aggregate, AddTallies)}
    return {
        name: f"{print_aggregate(_again(name, a), target)} AS {identifier(name, target.dialect)}"
        for name, a in numbers.items()
    }


def _again(name: str, aggregate: Aggregate) -> Aggregate:
    return Max(Column(name)) if isinstance(aggregate, Max) else Sum(Column(name))


def _print_number(step: Combine, name: str, target: Target) -> str:
    """Print a number of a row; where the largest of a key are left out, they count nothing."""
    named, aggregate = identifier(name, target.dialect), dict(step.aggregates).get(name)
    if not isinstance(aggregate, SumButLargest):
        return named
    rank = f"row_number() OVER (PARTITION BY {_keys(step, target)} ORDER BY {named} DESC)"
    return f"CASE WHEN {rank} > {aggregate.number} THEN {named} ELSE 0 END AS {named}"


def _keys(step: Combine, target: Target) -> str:
    return ", ".join(identifier(key, target.dialect) for key in step.by)


def _print_joined(step: Combine, target: Target) -> str:
    keys, source = _keys(step, target), identifier(step.source.name, target.dialect)
    numbers = _print_numbers(step, target)
    of_rows = ", ".join(_print_number(step, name, target) for name in numbers)
    grouped = f"SELECT {keys}, {', '.join(numbers.values())}\n      FROM (SELECT {keys}, {of_rows} FROM {source})\n      GROUP BY {keys}"
    joined = "".join(
        f"\nLEFT JOIN ({_print_tally(name, keys, source, target)}) USING ({keys})" for name in _tallies(step)
    )
    columns = ", ".join(identifier(name, target.dialect) for name in step.columns)
    return f"SELECT {columns}\nFROM ({grouped}){joined}"


def _print_tally(name: str, keys: str, source: str, target: Target) -> str:
    """Print the tallies of each key as one; a key without any is not there."""
    named = identifier(name, target.dialect)
    unfolded = f"SELECT {keys}, unnest({named}) AS found FROM {source}"
    weights = f"SELECT {keys}, found.leaf AS leaf, sum(found.weight) AS leaf_weight"
    by_leaf = f"{weights}\n            FROM ({unfolded})\n            GROUP BY {keys}, found.leaf"
    pair = "{'leaf': leaf, 'weight': CAST(leaf_weight AS BIGINT)}"
    return f"SELECT {keys}, list({pair}) AS {named}\n      FROM ({by_leaf})\n      GROUP BY {keys}"


def _print_together(step: Combine, target: Target) -> str:
    keys, tallies, numbers = _keys(step, target), _tallies(step), _print_numbers(step, target)
    inner = ", ".join([keys, "tally", "leaf", "sum(leaf_weight) AS leaf_weight", *numbers.values()])
    pair = "named_struct('leaf', leaf, 'weight', CAST(leaf_weight AS BIGINT))"
    lists = {
        name: f"collect_list(CASE WHEN tally = {number} THEN {pair} END) AS {identifier(name, target.dialect)}"
        for number, name in enumerate(tallies, start=1)
    }
    grouped = f"SELECT {inner}\n      FROM {_rows(step, tallies, target)}\n      GROUP BY {keys}, tally, leaf"
    ordered = ",\n       ".join([keys, *((numbers | lists)[name] for name, _ in step.aggregates)])
    return f"SELECT {ordered}\nFROM ({grouped})\nGROUP BY {keys}"


def _rows(step: Combine, tallies: list[str], target: Target) -> str:
    """Rows of keys, as tally 0, and under them one row for each leaf of each tally."""
    dialect, keys = target.dialect, _keys(step, target)
    source = identifier(step.source.name, dialect)
    others = [name for name in step.source.columns if name not in (*step.by, *tallies)]
    named = "".join(f", {_print_number(step, name, target)}" for name in others)
    nothing = "".join(f", 0 AS {identifier(name, dialect)}" for name in others)
    selects = [f"SELECT {keys}, 0 AS tally, 0 AS leaf, CAST(0 AS BIGINT) AS leaf_weight{named} FROM {source}"]
    for number, name in enumerate(tallies, start=1):
        found = f"SELECT {keys}, explode({identifier(name, dialect)}) AS found FROM {source}"
        selects.append(f"SELECT {keys}, {number} AS tally, found.leaf, found.weight{nothing} FROM ({found})")
    rows = "\n            UNION ALL ".join(selects)
    return f"(SELECT /*+ REPARTITION({keys}) */ *\n      FROM ({rows}))"
