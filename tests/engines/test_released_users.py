"""Keys that are selected by the number that is released: engines and pipelines equal plain Python before noise."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import plume
from engines.test_reference import are_equal, expected, found, system
from exact import exact_release, exact_step
from plume.engines import duckdb as duckdb_engine
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from random_tables import on_random_tables
from reference import measures as reference_measures
from reference import pipelines as reference
from strategies import Asked, Listed, records, table

NUMBERS = {"DuckDB": 40, "PostgreSQL": 20, "Spark": 20}
# Of users alone all pipelines have the same plan.
PIPELINES = [
    pytest.param("plume", marks=pytest.mark.quick_on("spark", "spark-connect")),
    *(pytest.param(name, marks=pytest.mark.engines) for name in ("naive", "runtime_optimized")),
]
OTHERS = ["naive", pytest.param("plume", marks=pytest.mark.quick_on("spark", "spark-connect"))]


def number(engine: Engine) -> int:
    return NUMBERS[type(engine).__name__]


def one_key(case: Asked, *, alone: bool) -> Asked:
    """The same question of users with one key each, and the number of users first."""
    given = [pair for pair in zip(case.query.measures, case.measures, strict=True) if not alone]
    ours, theirs = zip(
        (plume.users(name="first"), reference_measures.Users(reference_measures.anywhere)), *given, strict=True
    )
    query = replace(
        case.query, measures=ours, max_keys_per_user=1, selection="released_users", noise="auto", composition="tight"
    )
    return Asked(query, theirs)


def in_plain_python(case: Asked, pipeline: str, listed: Listed) -> list[tuple[object, ...]]:
    """What is released: of the number of users what selected the keys, of other measures what the reference says."""
    given, both = records(listed, composite=len(case.query.keys) > 1), system(case)
    answer = reference.PIPELINES[pipeline](both, given)
    compared = reference.key_occurrences(both, reference.selection_bound(both, given))
    counted = {key: ({"users": compared[key]}, *totals[1:]) for key, totals in answer.items()}
    return expected(case, counted)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_users_alone_equal_the_reference(engine: Engine, pipeline: str) -> None:
    def look(case: Asked, listed: Listed) -> None:
        asked = one_key(case, alone=True)
        release = exact_release(asked.query, table(listed), engine=engine, pipeline=pipeline)
        assert found(release) == in_plain_python(asked, pipeline, listed)

    on_random_tables(engine, number(engine), look)


@pytest.mark.parametrize("pipeline", OTHERS)
def test_users_beside_other_measures_equal_the_reference(engine: Engine, pipeline: str) -> None:
    """The number that was compared is released, although users who were cut may count in other keys by then."""
    differing = Counter[bool]()

    def look(case: Asked, listed: Listed) -> None:
        asked = one_key(case, alone=False)
        release = exact_release(asked.query, table(listed), engine=engine, pipeline=pipeline)
        rows = in_plain_python(asked, pipeline, listed)
        assert are_equal(found(release.select(asked.query.released_columns)), rows)
        again = reference.PIPELINES[pipeline](system(asked), records(listed, composite=len(asked.query.keys) > 1))
        differing[expected(asked, again) != rows] += 1

    on_random_tables(engine, number(engine), look, kinds=["sum", "mean", "histogram"])
    assert differing[True] >= 1


def test_users_alone_are_the_same_where_rows_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(case: Asked, listed: Listed) -> None:
        asked, content = one_key(case, alone=True), table(listed)
        once = exact_release(asked.query, content, engine=DuckDB())
        with monkeypatch.context() as patch:
            patch.setattr(duckdb_engine, "_LARGE_FILES_BYTES", 0)
            assert exact_release(asked.query, content, engine=DuckDB()).equals(once)

    on_random_tables(DuckDB(), 20, look)


def compared(engine: Engine, pipeline: str, listed: Listed, query: plume.Query) -> Counter[tuple[object, ...]]:
    rows = exact_step(query, table(listed), "keyed_weights", engine=engine, pipeline=pipeline).to_pylist()
    return Counter({tuple(row.values())[:-1]: row["weight"] for row in rows})


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_one_user_more_changes_one_compared_number_by_one(engine: Engine, pipeline: str) -> None:
    """However many keys they have, and however many rows of each."""
    several = Counter[bool]()

    def look(case: Asked, listed: Listed) -> None:
        asked = one_key(case, alone=True).query
        users = sorted({row[0] for row in listed if row[0] is not None and row[1] is not None})
        if not users:
            return
        gone = users[len(listed) % len(users)]
        without = [row for row in listed if row[0] != gone]
        more, less = (compared(engine, pipeline, rows, asked) for rows in (listed, without))
        assert more.total() - less.total() == 1
        assert (less - more).total() == 0
        several[len({row[1] for row in listed if row[0] == gone}) > 1] += 1

    on_random_tables(engine, number(engine), look)
    assert several[True] >= 2


def test_several_rows_of_a_key_count_once_and_several_keys_are_cut_to_one(engine: Engine) -> None:
    rows = [(f"u{user}", key) for user in range(20) for key in ("a", "b") for _ in range(3)]
    content = pa.table(list(zip(*rows, strict=True)), names=["person", "key"])
    query = plume.Query(
        user="person",
        keys="key",
        measures=[plume.users()],
        max_keys_per_user=1,
        budget=plume.Budget(20, 0.5),
        selection="released_users",
    )
    assert sum(row["users"] for row in exact_release(query, content, engine=engine).to_pylist()) == 20
