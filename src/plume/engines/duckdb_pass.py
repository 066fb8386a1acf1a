"""Where DuckDB hands its rows over to a pass in this process, and takes what comes of them back.

It does so where that is quicker: not for few rows, for which loading the loops takes longer than all SQL, nor for more than memory holds.
Which it is depends on the table alone, and only time tells of it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from plume.engines import compiled, duckdb_parts
from plume.engines.duckdb_parts import add_up, append, divided, largest_of
from plume.engines.duckdb_silence import withheld
from plume.engines.packed_rows import PackedRows, Range, fit, range_of, shifts_of
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

# Below it SQL is done before the loops are loaded; where they are compiled anew, they take that much longer. docs/performance.md.
_FEWEST_ROWS = 5 * 10**6
_FEWEST_ROWS_TO_COMPILE_FOR = 5 * 10**7
# For sums at the places of keys, in each thread.
_SUMS_BYTES = 2**27
# Each part of the users is read by itself, and more readings take longer than SQL does.
_MOST_PARTS = 8
_INTEGER, _TEXT = "BIGINT", "VARCHAR"
_BYTES_OF_TYPES = {"UTINYINT": 1, "INTEGER": 4, "BIGINT": 8}
# Integers that DuckDB hands over as 64 bits with a sign.
_INTEGERS = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"})
# What DuckDB hands over as text: values are equal if their texts are, and texts become the values that they were of.
_AS_TEXTS = frozenset({
    "varchar", "boolean", "date", "timestamp", "timestamp with time zone", "decimal", "uuid", "hugeint", "ubigint",
})  # fmt: skip


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

    def stream(self, name: str, select: str) -> Iterator[pa.RecordBatch]:
        """Give them as they are found."""

    def write(self, name: str, rows: pa.Table, *, types: Schema) -> None:
        """Write rows down as a step; columns named in `types` get these types."""

    def keep(self, name: str, select: str) -> None:
        """Compute a step once."""

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""

    def refuse_changed_files(self) -> None:
        """End the run if a file of the table is not what it was."""


def with_passes(session: HandsOver, plan: tuple[Noise, ...], room: int) -> tuple[Noise, ...]:
    """Rewrite a plan for passes, if each of them is quicker than SQL and takes no more bytes than `room`."""
    if not room or not compiled.is_there():
        return plan
    rewritten = in_one_pass(plan)
    passes = [step for step in steps(rewritten) if isinstance(step, OnePass)]
    return rewritten if passes and all(_is_worthwhile(session, one, room) for one in passes) else plan


def _is_worthwhile(session: HandsOver, one: OnePass, room: int) -> bool:
    recipe = recipe_of(one)
    casts = None if recipe is None else _casts(session, recipe)
    if recipe is None or casts is None:
        return False
    rows = _number_of_rows(session, recipe)
    fewest = _FEWEST_ROWS if compiled.private_folder() else _FEWEST_ROWS_TO_COMPILE_FOR
    return fewest <= rows <= _MOST_PARTS * _most_rows(recipe, casts, _threads(session), room)


def _threads(session: HandsOver) -> int:
    """Give the threads that loops take: as many as processors, since loops never wait, and each thread has sums of its own."""
    [(wanted,)] = session.ask("SELECT current_setting('threads')")
    return min(int(wanted), os.cpu_count() or 1)


def _most_rows(recipe: Recipe, casts: list[str], threads: int, room: int) -> int:
    """Say over how many rows a pass can go at a time. As much memory as their numbers take is left for texts."""
    left = (room // 2 if _TEXT in casts else room) - threads * _SUMS_BYTES
    return max(left, 0) // _bytes_of_row(recipe, casts)


def _bytes_of_row(recipe: Recipe, casts: list[str]) -> int:
    """Say how many bytes a row takes: first as numbers, if some are of texts; then packed, moved and, of some users, listed.

    What rows carry is there as it was handed over, and packed in no more bytes and some bits.
    """
    carried = sum(_BYTES_OF_TYPES[_type_of(one)] for _, one in recipe.added)
    numbers = len(recipe.keys) if _TEXT in casts else 0
    return 8 * (numbers + 3) + (2 * (carried + 8) if recipe.added else 0)


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


def _number_of_rows(session: HandsOver, recipe: Recipe) -> int:
    """Count the rows of the table, of which some may be left out."""
    [(rows,)] = session.ask(f"SELECT count(*) FROM {identifier(_table(recipe).name, DUCKDB)}")
    return int(rows)


def _table(recipe: Recipe) -> Scan:
    """Give the table that rows are made of."""
    match recipe.rows:
        case Map(source=Scan() as table):
            return table
        case _:
            raise PlumeBug("a pass reads something else than a table")


def _casts(session: HandsOver, recipe: Recipe) -> list[str] | None:
    """Say as what users and keys are handed over, if all are columns of the table, of types that a pass takes."""
    table = _table(recipe)
    types, made = session.types(table.name), dict(recipe.rows.expressions) if isinstance(recipe.rows, Map) else {}
    columns = [made.get(name) for name in (USER, *recipe.keys)]
    found = [_cast(types[one.name]) if isinstance(one, Column) and one.name in types else None for one in columns]
    casts = [one for one in found if one is not None]
    return casts if len(casts) == len(found) else None


def _cast(kind: Any) -> str | None:
    if kind.id in _INTEGERS:
        return _INTEGER
    # JSON is text by its id, and not every text becomes JSON again.
    return _TEXT if kind.id in _AS_TEXTS and str(kind) != "JSON" else None


def make_pass(session: HandsOver, one: OnePass, salt: str, room: int) -> bool:
    """Make the steps of a pass; False if rows do not fit it, or it fails for whatever reason, and SQL must make them.

    Guarantee: no error tells that a pass was tried, which the number of rows decides. docs/guarantees/bounding.md.
    """
    recipe = recipe_of(one)
    casts = None if recipe is None else _casts(session, recipe)
    if recipe is None or casts is None:
        return False
    try:
        most, rows = _most_rows(recipe, casts, _threads(session), room), recipe.rows.name
        parts = ["TRUE"] if _number_of_rows(session, recipe) <= most else divided(session, rows, most)
        packs = None if parts is None else _packing(session, recipe, casts, salt, room)
        if parts is None or packs is None:
            return False
        return _is_written(
            session, one, recipe, (_passed(session, recipe, packs(where), salt, room) for where in parts)
        )
    except EngineError:
        return False


def _is_written(session: HandsOver, one: OnePass, recipe: Recipe, passes: "Iterable[Passed | None]") -> bool:
    """Write down what passes over parts of the users found; False if one of them found nothing, or sums of all leave 64 bits."""
    schema = session.schema(recipe.rows.name)
    types = {name: schema[name] for name in (USER, *recipe.keys)}
    types_above = {**types, **_types_of_totals(recipe)}
    keyed, above = one.makes
    written: list[tuple[str, str]] = []
    largest: list[list[int]] = []
    for found in passes:
        if found is None:
            return False
        written.append((f"{keyed.name}_part_{len(written)}", f"{above.name}_part_{len(written)}"))
        largest.append(largest_of(found.keyed, recipe.keys))
        session.write(written[-1][0], found.keyed, types={key: types[key] for key in recipe.keys})
        session.write(written[-1][1], found.above, types=types_above)
    if len(written) > 1:
        session.refuse_changed_files()
    if not duckdb_parts.fit(largest):
        return False
    sums_of_parts, rows_of_parts = zip(*written, strict=True)
    add_up(session, keyed.name, sums_of_parts, recipe.keys, recipe.keyed[len(recipe.keys) :])
    append(session, above.name, rows_of_parts)
    return True


def _types_of_totals(recipe: Recipe) -> Schema:
    """Give totals that SQL adds up in 128 bits the type that it gives them."""
    wide = (name for name, one in recipe.added if isinstance(one, Sum) and not sum_fits(one))
    return dict.fromkeys(wide, ColumnType(Kind.INTEGER, "HUGEINT"))


def _packing(
    session: HandsOver, recipe: Recipe, casts: list[str], salt: str, room: int
) -> "Callable[[str], PackedRows | None] | None":
    """Say how the rows that meet a condition are packed: by DuckDB, if they are integers; None, if these do not fit 64 bits."""
    if _TEXT in casts:
        return partial(_numbered, session, recipe, casts, salt, room)
    ranges = _ranges(session, recipe)
    return partial(_handed_over, session, recipe, ranges) if fit(ranges) else None


def _numbered(
    session: HandsOver, recipe: Recipe, casts: list[str], salt: str, room: int, where: str
) -> PackedRows | None:
    name, numbering = recipe.rows.name, withheld(recipe.rows.name, _load_numbering)
    columns = zip((USER, *recipe.keys), casts, strict=True)
    rows = session.stream(
        name, _select(recipe, [f"CAST({identifier(one, DUCKDB)} AS {cast})" for one, cast in columns], where)
    )
    are_texts = [cast == _TEXT for cast in casts]
    found: PackedRows | None = withheld(
        name, lambda: numbering.numbered(rows, are_texts, salt, _threads(session), room // 2)
    )
    return found


def _handed_over(session: HandsOver, recipe: Recipe, ranges: Sequence[Range], where: str) -> PackedRows:
    name, numbering = recipe.rows.name, withheld(recipe.rows.name, _load_numbering)
    batches = session.hand_over(name, _select(recipe, [_print_packed(recipe, ranges)], where))
    return PackedRows(batches, ranges, numbering.no_texts(len(ranges)))


def _ranges(session: HandsOver, recipe: Recipe) -> list[Range]:
    """Find the range of each column. DuckDB may take it from a file's statistics, so values are compared with it when they are packed."""
    names = [identifier(name, DUCKDB) for name in (USER, *recipe.keys)]
    ends = ", ".join(f"CAST({end}({name}) AS BIGINT)" for name in names for end in ("min", "max"))
    [found] = session.ask(f"SELECT {ends} FROM {identifier(recipe.rows.name, DUCKDB)}")
    return [range_of(low or 0, high or 0) for low, high in zip(found[::2], found[1::2], strict=True)]


def _print_packed(recipe: Recipe, ranges: Sequence[Range]) -> str:
    """Print a row as one integer; NULL, if a value lies outside of its range.

    Guarantee: users and keys are told apart whatever statistics say. A difference is one-to-one modulo 2⁶⁴, also where DuckDB, which
    believes statistics, adds without looking for overflows; and of what bits are left by a shift it assumes nothing.
    """
    columns = zip((USER, *recipe.keys), ranges, shifts_of(ranges), strict=True)
    parts = [
        (f"(CAST({identifier(name, DUCKDB)} AS BIGINT) - CAST('{one.low}' AS BIGINT))", one.bits, shift)
        for name, one, shift in columns
    ]
    outside = " | ".join(f"({above} >> {bits})" for above, bits, _ in parts)
    packed = " + ".join(f"CAST({above} AS UBIGINT) * CAST('{2**shift}' AS UBIGINT)" for above, _, shift in parts)
    return f"CASE WHEN ({outside}) = 0 THEN {packed} END"


def _select(recipe: Recipe, identified: Sequence[str], where: str) -> str:
    listed = ", ".join((*identified, *(_print_added(one) for _, one in recipe.added)))
    return f"SELECT {listed} FROM {identifier(recipe.rows.name, DUCKDB)} WHERE {where}"


def _passed(session: HandsOver, recipe: Recipe, rows: PackedRows | None, salt: str, room: int) -> "Passed | None":
    """Hand packed rows over to the loops, which are loaded and compiled only here."""
    name, passing = recipe.rows.name, withheld(recipe.rows.name, _load)
    return (
        None if rows is None else withheld(name, lambda: passing.pass_over(recipe, rows, salt, _threads(session), room))
    )


def _load() -> ModuleType:
    """Load the loops, and numba, which may not work here, or find no room for what it compiles."""
    from plume.engines import passing  # noqa: PLC0415 - only a pass needs them

    return passing


def _load_numbering() -> ModuleType:
    from plume.engines import numbering  # noqa: PLC0415 - only a pass needs it

    return numbering
