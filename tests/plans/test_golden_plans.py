"""The plans people review like code: `pytest --update-plans` rewrites them, the diff is read."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import sqlglot

import plume
from plume.explanation import Explanation
from plume.plan.rereading import reread
from plume.planning import make_plan

HERE = Path(__file__).parent
QUERY = plume.Query(
    user="user_id",
    keys=["recipe", "country"],
    measures=[plume.count(max_per_key=3), plume.users(), plume.sum("seconds", low_total=0, high_total=60)],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
    where="seconds >= 0 AND country <> 'XX'",
)
PUBLIC = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=1)],
    max_keys_per_user=8,
    budget=plume.Budget(epsilon=1.0),
    public_keys=["lasagna", "ramen"],
)
PAPER = plume.Query.paper(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=1)],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
)
MANY = replace(
    PAPER,
    measures=[plume.sum("seconds", low_total=0, high_total=most, name=f"up_to_{most}") for most in (1, 2, 3, 4)],
)
STATISTICS = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[
        plume.variance("seconds", low=0, high=60, max_per_key=3),
        plume.median("day", low=date(2026, 1, 1), high=date(2026, 12, 31)),
        plume.histogram("seconds", [0, 10, 20, 60], max_per_key=3, where="country = 'DE'"),
        plume.vector_sum(["east", "north"], norm=3),
    ],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
)
CHOOSING = replace(QUERY, max_keys_per_user="auto")
OPEN = replace(
    QUERY,
    measures=[plume.count("auto"), plume.sum("seconds", "auto", "auto"), plume.mean("seconds", 0, "auto")],
    max_keys_per_user="auto",
)
PIPELINES = ["naive", "runtime_optimized", "plume"]


def check(name: str, text: str, request: pytest.FixtureRequest) -> None:
    golden = HERE / name
    if request.config.getoption("--update-plans"):
        golden.write_text(text)
    assert text == golden.read_text(), f"{name} changed; if that is meant: pytest --update-plans, and read the diff"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_explanation_is_as_reviewed(pipeline: str, request: pytest.FixtureRequest) -> None:
    check(f"{pipeline}.explain.txt", f"{plume.explain(QUERY, pipeline=pipeline)}\n", request)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_sql_is_as_reviewed(pipeline: str, dialect: str, request: pytest.FixtureRequest) -> None:
    check(f"{pipeline}.{dialect}.sql", plume.explain(QUERY, pipeline=pipeline).sql(dialect), request)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_sql_parses_in_its_dialect(pipeline: str, dialect: str) -> None:
    sql = plume.explain(QUERY, pipeline=pipeline).sql(dialect)
    statements = sqlglot.parse(sql, dialect=dialect)
    assert len(statements) == sql.count("-- ")
    assert all(isinstance(statement, sqlglot.exp.Query) for statement in statements)


def test_sql_of_the_papers_configuration_is_as_reviewed(request: pytest.FixtureRequest) -> None:
    """Here only users above the limit are counted, and the others are found by leaving these out."""
    check("paper.duckdb.sql", plume.explain(PAPER).sql(), request)


def test_sql_of_the_papers_configuration_for_large_files_is_as_reviewed(request: pytest.FixtureRequest) -> None:
    """Here rows are counted first, and only users with many of them are combined and kept."""
    check("paper.duckdb_rereading.sql", explained_for_large_files(PAPER).sql(), request)


def test_explanation_of_the_papers_configuration_for_large_files_is_as_reviewed(
    request: pytest.FixtureRequest,
) -> None:
    check("paper.duckdb_rereading.explain.txt", f"{explained_for_large_files(PAPER)}\n", request)


def explained_for_large_files(query: plume.Query) -> Explanation:
    planned = make_plan(query)
    return Explanation(replace(planned, plan=reread(planned.plan)))


@pytest.mark.parametrize(
    "query", [QUERY, STATISTICS, CHOOSING, OPEN, MANY], ids=["default", "statistics", "auto", "open", "many"]
)
def test_large_files_are_asked_as_small_ones_where_users_within_the_limit_are_read_twice_or_counted(
    query: plume.Query,
) -> None:
    plan = make_plan(query).plan
    assert reread(plan) == plan


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_sql_of_statistics_is_as_reviewed(dialect: str, request: pytest.FixtureRequest) -> None:
    sql = plume.explain(STATISTICS).sql(dialect)
    assert len(sqlglot.parse(sql, dialect=dialect)) == sql.count("-- ")
    check(f"statistics.{dialect}.sql", sql, request)


@pytest.mark.parametrize(("pipeline", "shuffles"), [("naive", 5), ("runtime_optimized", 2), ("plume", 3)])
def test_tallies_need_no_further_shuffle(pipeline: str, shuffles: int) -> None:
    assert plume.explain(STATISTICS, pipeline=pipeline).shuffles == shuffles


def test_explanation_of_public_keys_is_as_reviewed(request: pytest.FixtureRequest) -> None:
    check("public_keys.explain.txt", f"{plume.explain(PUBLIC)}\n", request)


@pytest.mark.parametrize(("pipeline", "shuffles"), [("naive", 5), ("runtime_optimized", 2), ("plume", 3)])
def test_shuffles_are_the_papers(pipeline: str, shuffles: int) -> None:
    assert plume.explain(QUERY, pipeline=pipeline).shuffles == shuffles


@pytest.mark.parametrize(("pipeline", "shuffles"), [("naive", 3), ("runtime_optimized", 2), ("plume", 2)])
def test_public_keys_save_the_shuffle_of_selection(pipeline: str, shuffles: int) -> None:
    assert plume.explain(PUBLIC, pipeline=pipeline).shuffles == shuffles


def test_explanation_of_a_limit_that_is_left_open_is_as_reviewed(request: pytest.FixtureRequest) -> None:
    check("auto.explain.txt", f"{plume.explain(CHOOSING)}\n", request)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_sql_of_a_limit_that_is_left_open_is_as_reviewed(dialect: str, request: pytest.FixtureRequest) -> None:
    sql = plume.explain(CHOOSING).sql(dialect)
    assert len(sqlglot.parse(sql, dialect=dialect)) == sql.count("-- ")
    check(f"auto.{dialect}.sql", sql, request)


def test_explanation_of_bounds_that_are_left_open_is_as_reviewed(request: pytest.FixtureRequest) -> None:
    check("auto_bounds.explain.txt", f"{plume.explain(OPEN)}\n", request)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_sql_of_bounds_that_are_left_open_is_as_reviewed(dialect: str, request: pytest.FixtureRequest) -> None:
    sql = plume.explain(OPEN).sql(dialect)
    assert len(sqlglot.parse(sql, dialect=dialect)) == sql.count("-- ")
    check(f"auto_bounds.{dialect}.sql", sql, request)
