"""Where DuckDB hands its rows over to a pass in this process, and takes what comes of them back.

It does so where that is quicker: not for few rows, for which loading the loops takes longer than all SQL, nor for more than memory holds.
Which it is depends on the table alone, and only time tells of it.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from plume.engines import compiled
from plume.engines.duckdb_silence import withheld
from plume.errors import EngineError, PlumeBug
from plume.plan.aggregates import CountValues, Sum
from plume.plan.analysis import steps
from plume.plan.dialect import identifier
from plume.plan.expressions import Column
from plume.plan.magnitude import magnitude, sum_fits
from plume.plan.nodes import USER, Map, Noise, OnePass, Scan
from plume.plan.one_pass import in_one_pass, recipe_of
from plume.plan.printing.duckdb import DUCKDB, DuckDBPrinter
from plume.plan.printing.expression_sql import print_expression
from plume.plan.recipe import Recipe
from plume.plan.types import ColumnType, Kind, Schema

if TYPE_CHECKING:
    from plume.engines.passing import Passed

PassOver = Callable[[Recipe, list[pa.RecordBatch], str, int], "Passed | None"]

# Below it SQL is done before the loops are loaded; where they are compiled anew, they take that much longer. docs/performance.md.
_FEWEST_ROWS = 5 * 10**6
_FEWEST_ROWS_TO_COMPILE_FOR = 5 * 10**7
# For sums at the places of keys, in each thread.
_SUMS_BYTES = 2**27
# Integers that DuckDB hands over as 64 bits with a sign.
_BYTES_OF_TYPES = {"UTINYINT": 1, "INTEGER": 4, "BIGINT": 8}
_INTEGERS = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"})


class HandsOver(Protocol):
    """What of a session is needed here."""

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer a statement about columns."""

    def types(self, name: str) -> dict[str, Any]:
        """Say of what types the columns of a table are, as DuckDB's Python package gives them."""

    def schema(self, name: str) -> Schema:
        """Say what columns a table or step has."""

    def hand_over(self, name: str, select: str) -> list[pa.RecordBatch]:
        """Give the rows of a SELECT to this process, for exact steps that are made here."""

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types."""


def with_passes(session: HandsOver, plan: tuple[Noise, ...], room: int) -> tuple[Noise, ...]:
    """Rewrite a plan for passes, if each of them is quicker than SQL and takes no more bytes than `room`."""
    if not room or not compiled.is_there():
        return plan
    rewritten = in_one_pass(plan)
    passes = [step for step in steps(rewritten) if isinstance(step, OnePass)]
    return rewritten if passes and all(_is_worthwhile(session, one, room) for one in passes) else plan


def _is_worthwhile(session: HandsOver, one: OnePass, room: int) -> bool:
    recipe = recipe_of(one)
    if recipe is None or not _are_integers(session, recipe):
        return False
    [(rows,)] = session.ask(f"SELECT count(*) FROM {identifier(_table(recipe).name, DUCKDB)}")
    fewest = _FEWEST_ROWS if compiled.private_folder() else _FEWEST_ROWS_TO_COMPILE_FOR
    return bool(rows >= fewest and _memory_needed(recipe, rows, _threads(session)) <= room)


def _threads(session: HandsOver) -> int:
    [(wanted,)] = session.ask("SELECT current_setting('threads')")
    # Loops never wait, so more threads than processors gain nothing, and each has sums of its own.
    return min(int(wanted), os.cpu_count() or 1)


def _memory_needed(recipe: Recipe, rows: int, threads: int) -> int:
    """Say how many bytes a pass may take: packed rows, and beside them all columns of users above the limit, if all users are.

    What rows carry is there as it was handed over, or packed twice in no more bytes and some bits, and as totals of 64 bits.
    """
    carried = sum(_BYTES_OF_TYPES[_type_of(one)] for _, one in recipe.added)
    payload = 2 * (carried + 8) + 8 * len(recipe.added) if recipe.added else 0
    return rows * (8 * (len(recipe.keys) + 7) + payload) + threads * _SUMS_BYTES


def _type_of(added: CountValues | Sum) -> str:
    """Name the narrowest type that what a row adds is handed over in."""
    if isinstance(added, CountValues):
        return "UTINYINT"
    largest = magnitude(added.of)
    return "INTEGER" if largest is not None and largest < 2**31 else "BIGINT"


def _print_added(added: CountValues | Sum) -> str:
    """Print what a row adds: the integer that SQL would add up, or 1 for a value; NULL adds nothing."""
    printed = print_expression(added.of, DuckDBPrinter())
    given = f"({printed}) IS NOT NULL" if isinstance(added, CountValues) else printed
    return f"CAST({given} AS {_type_of(added)})"


def _table(recipe: Recipe) -> Scan:
    """Give the table that rows are made of."""
    match recipe.rows:
        case Map(source=Scan() as table):
            return table
        case _:
            raise PlumeBug("a pass reads something else than a table")


def _are_integers(session: HandsOver, recipe: Recipe) -> bool:
    """Return whether users and keys are columns of integers, as the table has them."""
    table = _table(recipe)
    types, made = session.types(table.name), dict(recipe.rows.expressions) if isinstance(recipe.rows, Map) else {}
    columns = [made.get(name) for name in (USER, *recipe.keys)]
    return all(isinstance(one, Column) and one.name in types and types[one.name].id in _INTEGERS for one in columns)


def make_pass(session: HandsOver, one: OnePass, salt: str) -> bool:
    """Make the steps of a pass; False if rows do not fit it, or it fails for whatever reason, and SQL must make them.

    Guarantee: no error tells that a pass was tried, which the number of rows decides. docs/guarantees/bounding.md.
    """
    recipe = recipe_of(one)
    if recipe is None:
        return False
    try:
        found = _passed_over(session, one, recipe, salt)
    except EngineError:
        return False
    if found is None:
        return False
    schema = session.schema(recipe.rows.name)
    types = {name: schema[name] for name in (USER, *recipe.keys)}
    keyed, above = one.makes
    session.write(keyed.name, found.keyed, types={key: types[key] for key in recipe.keys})
    session.write(above.name, found.above, types={**types, **_types_of_totals(recipe)})
    return True


def _types_of_totals(recipe: Recipe) -> Schema:
    """Give totals that SQL adds up in 128 bits the type that it gives them."""
    wide = (name for name, one in recipe.added if isinstance(one, Sum) and not sum_fits(one))
    return dict.fromkeys(wide, ColumnType(Kind.INTEGER, "HUGEINT"))


def _passed_over(session: HandsOver, one: OnePass, recipe: Recipe, salt: str) -> "Passed | None":
    """Hand the rows of a pass over to the loops, which are loaded and compiled only here."""
    pass_over = withheld(one.name, _load)
    rows, threads = identifier(recipe.rows.name, DUCKDB), _threads(session)
    identified = [f"CAST({identifier(name, DUCKDB)} AS BIGINT)" for name in (USER, *recipe.keys)]
    columns = ", ".join((*identified, *(_print_added(one) for _, one in recipe.added)))
    batches = session.hand_over(one.name, f"SELECT {columns} FROM {rows}")
    return withheld(one.name, lambda: pass_over(recipe, batches, salt, threads))


def _load() -> "PassOver":
    """Load the loops, and numba, which may not work here, or find no room for what it compiles."""
    from plume.engines.passing import pass_over  # noqa: PLC0415 - only a pass needs it

    return pass_over
