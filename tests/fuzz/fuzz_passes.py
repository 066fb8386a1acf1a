"""Passes over the rows of each user: they make what SQL makes, and what one user has changes neither the rows of others nor how a run ends.

A pass is for millions of rows. Here it is for any number and takes few at a time, so that small tables fill several partitions, pieces and
threads. What a pass leaves to SQL, such as a type that it does not know, is tried as well.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import plume
from exact import exact_steps
from outcomes import outcome
from plume.engines import duckdb_pass
from plume.engines.duckdb import DuckDB
from plume.plan.analysis import steps
from plume.plan.nodes import USER
from plume.planning import make_plan
from plume.selection import pooled_gaussian

ABOVE = "above_limit"
STEPS = ("keyed_weights", ABOVE, "exact")
BUDGET = plume.Budget(epsilon=20, delta=0.5)
SELECTIONS = ("pooled_gaussian", "pooled_gaussian", "weighted_gaussian", "laplace_threshold", "truncated_geometric")
KEYS = ("k", "l", "m")
INTEGERS = tuple(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64))
OTHERS = (pa.string(), pa.large_string(), pa.date32(), pa.decimal128(18, 0), pa.bool_())
TEXTS = ("", "a", "A", "a\0", "\u00e4", "a\u0308", "a" * 40, "a" * 40 + "b", "7", "07", "\U0010ffff")
VALUES = (0.0, -0.0, 1.5, -7.0, 1e308, float("nan"), float("inf"), 2.0**53, None)
NEVER = 10**18
FEWEST = ("_FEWEST_ROWS", "_FEWEST_ROWS_TO_COMPILE_FOR")
# Of rows and of places in memory: few, so that there are many pieces, and as many as in a run.
SIZES: Mapping[str, tuple[int, ...]] = {
    "_ROWS_OF_PART": (4, 64, 2**15), "_ROWS_OF_PIECE": (16, 2**20), "_MOST_SUMS": (1, 2**24), "_FIRST_PLACES": (2, 2**10),
}  # fmt: skip
# How many rows memory holds at a time, more than which are passed over in parts.
ROWS_AT_A_TIME = (20, 60, NEVER, NEVER)


@dataclass(frozen=True)
class Found:
    """What exact steps hold, or with which words the run was refused."""

    rows: Mapping[str, pa.Table]
    refused: str


def check(rng: random.Random, passed: list[bool] | None = None) -> str | None:
    """Make up a query and two tables, and say what is wrong; `passed` learns of each pass whether it took the rows."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        query = _query(rng)
        for name, sizes in SIZES.items():
            patch.setattr(f"plume.engines.passing.{name}", rng.choice(sizes))
        most = rng.choice(ROWS_AT_A_TIME)
        patch.setattr(duckdb_pass, "_most_rows", lambda *_: most)
        patch.setattr(duckdb_pass, "_MOST_PARTS", NEVER)
        patch.setattr(pooled_gaussian, "_KEYS_WHEN_SELECTING", rng.choice((2, 12, 64)))
        tables, her = _tables(rng)
        given = [_given(rng, rows, Path(folder)) for rows in tables]
        wrong = _wrong(query, given, her, passed if passed is not None else [])
        return f"{wrong}: {query} of {', '.join(map(str, tables[0].schema.types))}" if wrong else None


def _wrong(query: plume.Query, given: list[Any], her: Any, passed: list[bool]) -> str | None:
    engine, failed = DuckDB(threads=2), list[str]()
    names = {step.name for step in steps(make_plan(query).plan)}.intersection(STEPS)
    with _passes(0, passed, failed):
        by_pass = [_found(query, data, engine, names) for data in given]
        ends = [outcome(partial(plume.run, query, data, engine=engine)) for data in given]
    with _passes(NEVER, [], failed):
        by_sql = [_found(query, data, engine, names) for data in given]
    if failed:  # SQL made the steps, so that nobody else would know
        return f"a pass failed with {failed[0]}"
    if ends[0] != ends[1]:
        return f"without her {ends[0]!r}, with her {ends[1]!r}"
    if by_pass != by_sql:
        return "a pass makes other rows than SQL"
    without, with_her = (_of_others(found, her) for found in by_pass)
    return None if without == with_her else "the rows of others differ"


def _found(query: plume.Query, data: Any, engine: DuckDB, names: set[str]) -> Found:
    rows: dict[str, pa.Table] = {}

    def look() -> None:
        rows.update(exact_steps(query, data, list(names), engine=engine))

    refused = outcome(look)
    return Found({name: _in_order(found) for name, found in rows.items()}, refused)


def _in_order(rows: pa.Table) -> pa.Table:
    """Sort rows by what identifies them, and the lists in them, whose order engines leave open."""
    known = [name for name in rows.column_names if name == USER or (name.startswith("key_") and name[4:].isdigit())]
    found = rows.sort_by([(name, "ascending") for name in known]).combine_chunks()
    for place, field in enumerate(found.schema):
        if pa.types.is_list(field.type):
            lists = [None if one is None else sorted(one, key=repr) for one in found.column(place).to_pylist()]
            found = found.set_column(place, field, pa.array(lists, field.type))
    return found


def _of_others(found: Found, her: Any) -> pa.Table | None:
    """Take the rows of users above the limit, which go by user."""
    if ABOVE not in found.rows:
        return None
    rows = found.rows[ABOVE]
    return rows.filter(pc.not_equal(rows[USER], pa.scalar(her, rows[USER].type)))


@contextmanager
def _passes(fewest: int, passed: list[bool], failed: list[str]) -> Iterator[None]:
    """Pass over tables with at least this number of rows, and note which rows a pass took, and with which errors it failed."""
    from plume.engines import numbering, passing  # noqa: PLC0415 - loads numba

    def noted(whole: Callable[..., Any], found: list[bool]) -> Callable[..., Any]:
        def noting(*given: Any) -> Any:
            try:
                made = whole(*given)
            except Exception as error:
                failed.append(type(error).__name__)
                raise
            found.append(made is not None)
            return made

        return noting

    with pytest.MonkeyPatch.context() as patch:
        for name in FEWEST:
            patch.setattr(duckdb_pass, name, fewest)
        patch.setattr(passing, "pass_over", noted(passing.pass_over, passed))
        patch.setattr(numbering, "numbered", noted(numbering.numbered, []))
        patch.setattr(duckdb_pass, "_handed_over", noted(duckdb_pass._handed_over, []))
        yield


# Queries


def _query(rng: random.Random) -> plume.Query:
    selection = rng.choice(SELECTIONS)
    keys = list(KEYS[: rng.choice((1, 1, 2, 3))])
    return plume.Query(
        user="u",
        keys=rng.sample(keys, len(keys)),
        measures=[_measure(rng, number) for number in range(rng.choice((1, 1, 2, 3, 6)))],
        max_keys_per_user=rng.choice((1, 2, 3, 4, 6)),
        budget=BUDGET,
        selection=selection,
        noise="laplace" if selection == "truncated_geometric" else "auto",
        where=rng.choice((None, None, None, "v IS NOT NULL", "v > 1")),
    )


def _measure(rng: random.Random, number: int) -> Any:
    name, most = f"n{number}", rng.choice((1, 2, 3, 100))
    made = [
        lambda: plume.users(name=name), lambda: plume.count(most, name=name), lambda: plume.count(most, name=name),
        lambda: plume.count(most, column="v", name=name), lambda: plume.sum("v", low_total=-most, high_total=9, name=name),
        lambda: plume.mean("v", 0, most, max_per_key=2, name=name), lambda: plume.users(name=name, where="v > 1"),
        lambda: plume.stddev("v", -most, 9, max_per_key=3, name=name), lambda: plume.mean("v", 1, 7, where="v <> 1.5", name=name),
        lambda: plume.median("v", 0, most, name=name),
    ]  # fmt: skip
    # Most queries ask for what a pass adds up of any rows: not for medians, nor for sums, whose single values may be too large.
    return (rng.choice(made) if rng.random() < 0.4 else rng.choice(made[:3]))()


# Tables


def _tables(rng: random.Random) -> tuple[tuple[pa.Table, pa.Table], Any]:
    """Make a table, and the same with the rows of one more user, who is given too."""
    kinds = {name: rng.choice(INTEGERS if rng.random() < 0.8 else OTHERS) for name in ("u", *KEYS)}
    users, *pools = (_distinct(rng, kind, rng.choice((2, 5, 20))) for kind in kinds.values())
    her = users.pop()
    rows = [_row(rng, rng.choice(users), pools) for _ in range(rng.choice((0, 1, 30, 200)))] if users else []
    hers = [_row(rng, her, pools) for _ in range(rng.choice((1, 9, 60)))]
    # What nobody else has: values that may widen the range of a column.
    pools = [_distinct(rng, kind, rng.choice((1, 9))) for name, kind in kinds.items() if name != "u"]
    hers += [_row(rng, her, pools) for _ in range(rng.choice((0, 1, 30)))]
    place = rng.randint(0, len(rows))
    several = (rows, [*rows[:place], *hers, *rows[place:]])
    return (_table(several[0], kinds), _table(several[1], kinds)), her


def _row(rng: random.Random, user: Any, pools: list[list[Any]]) -> tuple[Any, ...]:
    keys = [None if rng.random() < 0.02 else pool[int(len(pool) * rng.random() ** 2)] for pool in pools]
    return (None if rng.random() < 0.01 else user, *keys, rng.choice(VALUES))


def _table(rows: list[tuple[Any, ...]], kinds: Mapping[str, pa.DataType]) -> pa.Table:
    columns = [*map(list, zip(*rows, strict=True))] or [[]] * (len(kinds) + 1)
    types = {**kinds, "v": pa.float64()}
    return pa.table({name: pa.array(values, kind) for (name, kind), values in zip(types.items(), columns, strict=True)})


def _distinct(rng: random.Random, kind: pa.DataType, number: int) -> list[Any]:
    """List different values of a type: close together or far apart, at its ends or around zero."""
    if pa.types.is_boolean(kind):
        return [False, True]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return rng.sample((*TEXTS, *(f"p{one}" for one in range(number))), number)
    bits = kind.bit_width if pa.types.is_integer(kind) else 20
    is_signed = not pa.types.is_unsigned_integer(kind)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    first, step = rng.choice((low, 0, high // 2, high - number + 1)), rng.choice((1, 1, 1, 3, 2 ** (bits // 2)))
    listed = [first + step * one for one in range(number)] if rng.random() < 0.8 else []
    listed += [rng.choice((low, high, 0, rng.randint(low, high))) for _ in range(rng.choice((0, 1, number)))]
    values = [*dict.fromkeys(one for one in listed if low <= one <= high)] or [0]
    rng.shuffle(values)
    return [Decimal(one) for one in values] if pa.types.is_decimal(kind) else values


def _given(rng: random.Random, rows: pa.Table, folder: Path) -> Any:
    """Give a table as it is, in pieces, or as a Parquet file with small groups of rows, with statistics or without."""
    match rng.randrange(3):
        case 0:
            return rows
        case 1:
            return pa.Table.from_batches(rows.to_batches(max_chunksize=7), rows.schema)
        case _:
            path = folder / f"{len(list(folder.iterdir()))}.parquet"
            pq.write_table(rows, path, row_group_size=50, write_statistics=rng.random() < 0.5)
            return path
