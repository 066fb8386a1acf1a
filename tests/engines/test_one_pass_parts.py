"""A pass over more rows than memory holds goes over the users in parts, and makes what SQL makes, row for row with the same salt."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from exact import exact_steps
from passes import SELECTIONS, in_small_pieces, made, passing, people, query, table
from plume.engines import duckdb_parts, duckdb_pass
from plume.engines.duckdb import DuckDB
from plume.engines.duckdb_parts import divided, fit
from plume.engines.duckdb_session import DuckDBSession
from plume.errors import InputError


class Session:
    """What dividing users needs of a run."""

    def __init__(self, rows: pa.Table) -> None:
        self.connection = duckdb.connect()
        self.connection.register("rows", rows)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many rows each pass went over; None for one that was left to SQL."""
    found: list[int | None] = []
    whole = passing.pass_over

    def noted(recipe: Any, given: Any, *others: Any) -> Any:
        rows = sum(map(len, given.batches))
        made_of_them = whole(recipe, given, *others)
        found.append(None if made_of_them is None else rows)
        return made_of_them

    monkeypatch.setattr(passing, "pass_over", noted)
    in_small_pieces(monkeypatch)
    return found


def at_most(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_pass, "_most_rows", lambda *_: rows)
    monkeypatch.setattr(duckdb_pass, "_MOST_PARTS", 100)


def words(rows: pa.Table) -> pa.Table:
    return pa.table(
        [pa.array([f"{value} or so" for value in column.to_pylist()]) for column in rows], rows.column_names
    )


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("rows", [table(people(1)), words(table(people(1)))], ids=["numbers", "texts"])
def test_parts_together_are_what_sql_makes(
    rows: pa.Table, selection: str, taken: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = query(4, ["key", "day"], selection)
    by_sql = made(asked, rows, monkeypatch, by_pass=False)
    for most in (100, 300):
        taken.clear()
        at_most(most, monkeypatch)
        assert made(asked, rows, monkeypatch, by_pass=True) == by_sql
        sizes = [size for size in taken if size is not None]
        assert len(sizes) == len(taken) > 2 * 2
        assert max(sizes) <= most
        assert sum(sizes) == 2 * len(rows)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("of", ["numbers", "texts"])
def test_what_measures_add_up_comes_together_from_parts(
    of: str, selection: str, taken: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With totals that SQL adds up in 128 bits, and some that are NULL in one part and not in another."""
    measures = [
        plume.count(2, column="day"),
        plume.sum("day", low_total=1, high_total=3),
        plume.mean("day", low=0, high=2, max_per_key=2),
        plume.variance("day", low=-1, high=2, name="spread"),
    ]
    rows = table([(user, key, (None, 2, -1)[day]) for user, key, day in people(1)])
    if of == "texts":
        rows = pa.table([*words(rows.select([0, 1])), rows["day"]], rows.column_names)
    asked = query(4, "key", selection, *measures)
    by_sql = made(asked, rows, monkeypatch, by_pass=False)
    at_most(200, monkeypatch)
    assert made(asked, rows, monkeypatch, by_pass=True) == by_sql
    sizes = [size for size in taken if size is not None]
    assert len(sizes) == len(taken) > 2 * 2
    assert sum(sizes) == 2 * len(rows)


def test_one_user_with_most_of_the_rows_is_left_to_sql(
    taken: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part holds them, and no pass begins."""
    asked, rows = query(4), table([*people(1), *[(5, key % 7, 0) for key in range(500)]])
    by_sql = made(asked, rows, monkeypatch, by_pass=False)
    at_most(400, monkeypatch)
    assert made(asked, rows, monkeypatch, by_pass=True) == by_sql
    assert taken == []


@pytest.mark.parametrize("size", ["_COPIES", "_LINES_OF_ROW"], ids=["rows above the limit", "lines of one user's rows"])
def test_what_memory_does_not_hold_is_left_to_sql(
    size: str, taken: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, rows = query(1), table(people(1))
    by_sql = made(asked, rows, monkeypatch, by_pass=False)
    monkeypatch.setattr(passing, size, 2**40)
    assert made(asked, rows, monkeypatch, by_pass=True) == by_sql
    assert taken == [None, None]


def test_a_small_memory_limit_makes_parts(
    taken: list[int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 10**6
    random = np.random.default_rng(1)
    rows = {"person": random.integers(0, 10**5, many), "key": random.zipf(1.5, many) % 1000}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(rows), path)
    asked = query(20)
    with monkeypatch.context() as patched:
        by_sql = made(asked, path, patched, by_pass=False)
    for fewest in ("_FEWEST_ROWS", "_FEWEST_ROWS_TO_COMPILE_FOR"):
        monkeypatch.setattr(duckdb_pass, fewest, 0)
    monkeypatch.setattr(duckdb_pass, "_SUMS_BYTES", 0)
    monkeypatch.setattr(passing, "_ROWS_OF_PART", 2**12)
    monkeypatch.setattr(passing, "_ROWS_OF_PIECE", 2**16)
    limited = DuckDB(threads=2, memory_limit="40MB")
    assert exact_steps(asked, path, ["keyed_weights"], engine=limited)["keyed_weights"] == by_sql["keyed_weights"]
    assert len(taken) > 1
    assert None not in taken


def test_a_file_that_changes_between_parts_ends_the_run(
    taken: list[int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(table(people(1)), path)
    at_most(300, monkeypatch)
    given = DuckDBSession.hand_over

    def touched(*asked: Any) -> Any:
        found = given(*asked)
        os.utime(path, (1, len(taken) + 1))
        return found

    monkeypatch.setattr(DuckDBSession, "hand_over", touched)
    with pytest.raises(InputError, match="changed while it was read"):
        made(query(4), path, monkeypatch, by_pass=True)
    assert len(taken) > 1


def test_every_user_is_in_one_part() -> None:
    rows = pa.table({"user_id": [user % 97 for user in range(2000)]})
    session = Session(rows)
    for most in (150, 500, 1999):
        conditions = divided(session, "rows", most)
        assert conditions is not None
        parts = [{user for (user,) in session.ask(f"SELECT user_id FROM rows WHERE {where}")} for where in conditions]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 97
    assert divided(session, "rows", 19) is None


def test_sums_of_parts_fit_together_or_not_at_all() -> None:
    assert fit([[2**62, 5], [2**62 - 1, 7]])
    assert not fit([[2**62, 5], [2**62, 7]])


MUTANTS = {
    "the last heap of a part is left out": ("AND {end - 1}", "AND {end - 2}"),
    "the first heap of a part is in two": ("AND {end - 1}", "AND {end}"),
    "a part is left out": ("zip(firsts, ends, strict=True)]", "zip(firsts[1:], ends[1:], strict=True)]"),
    "parts are larger than memory": ("if size > most:", "if size > 2 * most:"),
    "sums of parts are not added up": ("CAST(sum({one}) AS BIGINT)", "CAST(max({one}) AS BIGINT)"),
    "rows of the last part are forgotten": ('" UNION ALL ".join(f"SELECT * FROM {identifier(part, DUCKDB)}" for part in parts)',
        '" UNION ALL ".join(f"SELECT * FROM {identifier(part, DUCKDB)}" for part in parts[:-1])'),
}  # fmt: skip


def broken(change: tuple[str, str]) -> ModuleType:
    text = Path(duckdb_parts.__file__).read_text(encoding="utf-8")
    assert change[0] in text
    module = ModuleType("broken_parts")
    exec(compile(text.replace(*change), "broken_parts", "exec"), module.__dict__)  # noqa: S102 - our own text
    return module


@pytest.fixture(scope="module")
def of_sql() -> Iterator[dict[str, pa.Table]]:
    with pytest.MonkeyPatch.context() as patched:
        yield made(query(4), table(people(1)), patched, by_pass=False)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_parts_would_be_seen(
    mutant: str, of_sql: dict[str, pa.Table], taken: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = broken(MUTANTS[mutant])
    for name in ("divided", "add_up", "append"):
        monkeypatch.setattr(duckdb_pass, name, getattr(module, name))
    at_most(300, monkeypatch)
    is_same = made(query(4), table(people(1)), monkeypatch, by_pass=True) == of_sql
    assert not is_same or max(size or 0 for size in taken) > 300
