"""Statements and the queries that ask the same: the same plan, to the letter."""

# ruff: noqa: E501 - a statement and what is expected of it stand in one line

from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Relation
from plume.ledger.publishing import price_for
from plume.statement.answering import ask

SEARCHES = pa.table({
    "user_id": [1], "recipe": ["lasagna"], "country": ["DE"], "seconds": [1.0], "rating": [5], "day": [date(2026, 1, 31)],
})  # fmt: skip
PEOPLE = pa.table({"id": [1], "age": [30]})
RECIPES = pa.table({"recipe": ["lasagna", "tiramisu"], "kind": ["main", "dessert"]})
LISTED = pa.table({"recipe": ["lasagna", "tiramisu"]})
NOT_NULL = {name: f'"{name}" IS NOT NULL' for name in ("seconds", "recipe", "value_1")}

OPTIONS = "epsilon = 1.5, delta = 1e-5, max_groups_contributed = 8, privacy_unit_column = user_id"
PRIVATE = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS}) "
COUNT = "COUNT(*, contribution_bounds_per_group => (0, 3))"
FROM = " FROM searches GROUP BY recipe"


def options(**changed: str) -> str:
    """The head of a statement with some options changed."""
    known = dict(part.split(" = ") for part in OPTIONS.split(", ")) | changed
    return (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({', '.join(f'{name} = {value}' for name, value in known.items())}) "
    )


def quantile(name: str, rank: float) -> Any:
    """One quantile under a name of its own."""
    return replace(plume.quantiles("seconds", [rank], 0, 9), name=name, names=(name,))


STATEMENTS: list[tuple[str, dict[str, Any]]] = [
    # Aggregates.
    (PRIVATE + "recipe, " + COUNT + FROM, {"measures": plume.count(3)}),
    (PRIVATE + "recipe, " + COUNT + " AS n" + FROM, {"measures": plume.count(3, name="n")}),
    (PRIVATE + "recipe, COUNT(seconds, contribution_bounds_per_group => (0, 2)) AS n" + FROM,
     {"measures": plume.count(2, name="n", where=NOT_NULL["seconds"])}),
    (PRIVATE + "recipe, COUNT(DISTINCT user_id) AS people" + FROM, {"measures": plume.users(name="people")}),
    (PRIVATE + "recipe, SUM(seconds, contribution_bounds_per_group => (0, 60))" + FROM, {"measures": plume.sum("seconds", 0, 60)}),
    (PRIVATE + "recipe, SUM(seconds, contribution_bounds_per_group => (-1.5, 2.5)) AS s" + FROM,
     {"measures": plume.sum("seconds", -1.5, 2.5, name="s")}),
    (PRIVATE + "recipe, AVG(seconds, contribution_bounds_per_row => (0, 60)) AS s" + FROM,
     {"measures": plume.mean("seconds", 0, 60, name="s")}),
    (PRIVATE + "recipe, AVG(seconds, contribution_bounds_per_group => (0, 60)) AS s" + FROM,
     {"measures": plume.mean("mean_of_user_1", 0, 60, name="s")}),
    (PRIVATE + "recipe, VAR_POP(seconds, contribution_bounds_per_row => (0, 60))" + FROM, {"measures": plume.variance("seconds", 0, 60)}),
    (PRIVATE + "recipe, STDDEV_POP(seconds, contribution_bounds_per_row => (0, 60))" + FROM, {"measures": plume.stddev("seconds", 0, 60)}),
    (PRIVATE + "recipe, PERCENTILE_CONT(seconds, 0.5, contribution_bounds_per_row => (0, 60))" + FROM,
     {"measures": plume.quantiles("seconds", [0.5], 0, 60)}),
    (PRIVATE + "recipe, PERCENTILE_CONT(seconds, 0.5, contribution_bounds_per_row => (0, 60)) AS seconds_median" + FROM,
     {"measures": plume.median("seconds", 0, 60)}),
    (PRIVATE + "recipe, AVG(day, contribution_bounds_per_row => (DATE '2026-01-01', DATE '2026-12-31')) AS d" + FROM,
     {"measures": plume.mean("day", date(2026, 1, 1), date(2026, 12, 31), name="d")}),
    (PRIVATE + "recipe, COUNT(DISTINCT user_id), " + COUNT + ", SUM(seconds, contribution_bounds_per_group => (0, 60))" + FROM,
     {"measures": [plume.users(), plume.count(3), plume.sum("seconds", 0, 60)]}),
    (PRIVATE + "recipe, PERCENTILE_CONT(seconds, 0.1, contribution_bounds_per_row => (0, 9)) AS low, "
     "PERCENTILE_CONT(seconds, 0.9, contribution_bounds_per_row => (0, 9)) AS high" + FROM,
     {"measures": [quantile("low", 0.1), quantile("high", 0.9)]}),
    # Numbers left open.
    (PRIVATE + "recipe, COUNT(*, contribution_bounds_per_group => (0, AUTO))" + FROM, {"measures": plume.count("auto")}),
    (PRIVATE + "recipe, SUM(seconds, contribution_bounds_per_group => (0, auto))" + FROM, {"measures": plume.sum("seconds", 0, "auto")}),
    (PRIVATE + "recipe, SUM(seconds, contribution_bounds_per_group => (AUTO, AUTO)) AS s" + FROM,
     {"measures": plume.sum("seconds", "auto", "auto", name="s")}),
    (PRIVATE + "recipe, AVG(seconds, contribution_bounds_per_row => (0, AUTO)) AS s" + FROM,
     {"measures": plume.mean("seconds", 0, "auto", name="s")}),
    (PRIVATE + "recipe, AVG(seconds, contribution_bounds_per_group => (0, AUTO)) AS s" + FROM,
     {"measures": plume.mean("mean_of_user_1", 0, "auto", name="s")}),
    # Bounds left out.
    (PRIVATE + "recipe, COUNT(*)" + FROM, {"measures": plume.count("auto")}),
    (PRIVATE + "recipe, COUNT(seconds) AS n" + FROM, {"measures": plume.count("auto", name="n", where=NOT_NULL["seconds"])}),
    (PRIVATE + "recipe, SUM(seconds)" + FROM, {"measures": plume.sum("seconds", "auto", "auto")}),
    (PRIVATE + "recipe, AVG(seconds) AS s" + FROM, {"measures": plume.mean("mean_of_user_1", "auto", "auto", name="s")}),
    (PRIVATE.replace("max_groups_contributed = 8, ", "") + "recipe, " + COUNT + FROM, {"measures": plume.count(3), "max_keys_per_user": 1}),
    # Options.
    (options(epsilon="2", delta="0.001") + "recipe, " + COUNT + FROM, {"measures": plume.count(3), "budget": plume.Budget(2, 0.001)}),
    (options(max_groups_contributed="1") + "recipe, " + COUNT + FROM, {"measures": plume.count(3), "max_keys_per_user": 1}),
    (options(max_groups_contributed="AUTO") + "recipe, " + COUNT + FROM, {"measures": plume.count(3), "max_keys_per_user": "auto"}),
    (options(min_privacy_units_per_group="20") + "recipe, " + COUNT + FROM, {"measures": plume.count(3), "min_users": 20}),
    (options(group_selection_strategy="LAPLACE_THRESHOLD") + "recipe, " + COUNT + FROM,
     {"measures": plume.count(3), "selection": "laplace_threshold"}),
    (options(group_selection_strategy="weighted_gaussian") + "recipe, " + COUNT + FROM,
     {"measures": plume.count(3), "selection": "weighted_gaussian"}),
    (options(privacy_unit_column="s.user_id") + "s.recipe, " + COUNT + " FROM searches AS s GROUP BY s.recipe", {"measures": plume.count(3)}),
    # Groups.
    (PRIVATE + "recipe, country, " + COUNT + " FROM searches GROUP BY recipe, country",
     {"measures": plume.count(3), "keys": ["recipe", "country"]}),
    (PRIVATE + "country, recipe, " + COUNT + " FROM searches GROUP BY 2, 1", {"measures": plume.count(3), "keys": ["recipe", "country"]}),
    (PRIVATE + COUNT + " FROM searches GROUP BY recipe", {"measures": plume.count(3)}),
    (PRIVATE + "LOWER(recipe) AS dish, " + COUNT + " FROM searches GROUP BY dish", {"measures": plume.count(3), "keys": "dish"}),
    (PRIVATE + "EXTRACT(YEAR FROM day) AS year, " + COUNT + " FROM searches GROUP BY EXTRACT(YEAR FROM day)",
     {"measures": plume.count(3), "keys": "year"}),
    (PRIVATE + COUNT + ", COUNT(DISTINCT user_id) FROM searches",
     {"measures": [plume.count(3), plume.users()], "keys": []}),
    # What is released afterwards.
    (PRIVATE + "recipe, " + COUNT + " AS n" + FROM + " ORDER BY n DESC, recipe LIMIT 10 OFFSET 5;", {"measures": plume.count(3, name="n")}),
    # Rows.
    (PRIVATE + "recipe, " + COUNT + " FROM searches WHERE seconds > 3 AND country IN ('DE', 'FR') GROUP BY recipe",
     {"measures": plume.count(3), "where": "\"seconds\" > 3 AND \"country\" IN ('DE', 'FR')"}),
    (PRIVATE + "recipe, " + COUNT + " FROM searches WHERE day >= DATE '2026-01-01' AND NOT recipe LIKE 'a%' GROUP BY recipe",
     {"measures": plume.count(3), "where": "day >= DATE '2026-01-01' AND NOT recipe LIKE 'a%'"}),
    (PRIVATE + "recipe, " + COUNT + " FROM searches WHERE seconds / 2 > 3 GROUP BY recipe", {"measures": plume.count(3)}),
    (PRIVATE + "recipe, SUM(seconds * 2, contribution_bounds_per_group => (0, 9)) AS s" + FROM, {"measures": plume.sum("value_1", 0, 9, name="s")}),
    (PRIVATE + "recipe, " + COUNT + " FROM (SELECT user_id, recipe FROM searches WHERE rating = 5) GROUP BY recipe", {"measures": plume.count(3)}),
    (PRIVATE + "recipe, " + COUNT + " FROM (SELECT * FROM searches) AS s GROUP BY recipe", {"measures": plume.count(3)}),
    ("WITH good AS (SELECT user_id, recipe FROM searches WHERE rating > 3) " + PRIVATE + "recipe, " + COUNT + " FROM good GROUP BY recipe",
     {"measures": plume.count(3)}),
    (PRIVATE + "recipe, " + COUNT + " FROM (SELECT user_id, recipe FROM searches UNION ALL SELECT user_id, recipe FROM older) GROUP BY recipe",
     {"measures": plume.count(3)}),
    (options(privacy_unit_column="s.user_id") + "p.age, " + COUNT + " FROM searches AS s JOIN people AS p ON s.user_id = p.id GROUP BY 1",
     {"measures": plume.count(3), "keys": "age"}),
    (options(privacy_unit_column="s.user_id") + "r.kind, " + COUNT + " FROM searches AS s LEFT JOIN recipes AS r USING (recipe) GROUP BY r.kind",
     {"measures": plume.count(3), "keys": "kind"}),
    (PRIVATE + "n, COUNT(DISTINCT user_id) AS people FROM (SELECT user_id, COUNT(*) AS n FROM searches GROUP BY user_id) GROUP BY n",
     {"measures": plume.users(name="people"), "keys": "n"}),
    (PRIVATE + "recipe, " + COUNT + " FROM (SELECT DISTINCT user_id, recipe FROM searches) GROUP BY recipe", {"measures": plume.count(3)}),
    (PRIVATE + "recipe, " + COUNT + " FROM (SELECT user_id, recipe FROM searches QUALIFY RANK() OVER (PARTITION BY user_id ORDER BY day) = 1) "
     "GROUP BY recipe", {"measures": plume.count(3)}),
    # Public groups.
    (options(group_selection_strategy="PUBLIC_GROUPS") + "recipe, " + COUNT
     + " FROM searches RIGHT OUTER JOIN (SELECT DISTINCT recipe FROM recipes) USING (recipe) GROUP BY recipe",
     {"measures": plume.count(3), "public_keys": LISTED}),
    (options(group_selection_strategy="PUBLIC_GROUPS", privacy_unit_column="s.user_id") + "l.recipe, " + COUNT
     + " FROM (SELECT DISTINCT recipe FROM recipes) AS l LEFT JOIN searches AS s ON l.recipe = s.recipe WHERE s.rating = 5 GROUP BY l.recipe",
     {"measures": plume.count(3), "public_keys": LISTED, "where": "rating = 5"}),
]  # fmt: skip


def asked(statement: str) -> Any:
    tables = {"searches": SEARCHES, "older": SEARCHES.slice(0), "people": PEOPLE}
    return ask(statement, engine=DuckDB(threads=1), tables=tables, public_tables={"recipes": RECIPES})


def test_there_are_forty_statements() -> None:
    assert len(STATEMENTS) >= 40


@pytest.mark.parametrize(("statement", "settings"), STATEMENTS)
def test_a_statement_has_the_plan_of_its_query(statement: str, settings: dict[str, Any]) -> None:
    default = {"user": "user_id", "keys": "recipe", "max_keys_per_user": 8, "budget": plume.Budget(1.5, 1e-5)}
    expected, found = plume.Query(**default | settings), asked(statement).query
    if found.where is None and expected.where is None:
        assert plume.explain(found).facts() == plume.explain(expected).facts()
    assert plume.explain(found).sql() == plume.explain(expected).sql()
    assert found.keys == expected.keys
    assert [list(measure.columns) for measure in found.measures] == [
        list(measure.columns) for measure in expected.measures
    ]
    assert (found.public_keys is None) == (expected.public_keys is None)
    assert found.public_keys is None or found.public_keys.equals(expected.public_keys)


def test_a_plain_statement_needs_no_relation() -> None:
    assert asked(STATEMENTS[0][0]).data is SEARCHES


def test_what_is_computed_is_a_relation() -> None:
    found = asked(PRIVATE + "LOWER(recipe) AS dish, " + COUNT + " FROM searches GROUP BY dish").data
    assert isinstance(found, Relation)
    assert found.units == (("given_1", "user_id"),)
    assert set(found.tables["given_1"].kinds) == {"user_id", "recipe"}


def test_a_key_called_like_the_unit_gets_the_name() -> None:
    query = asked(
        options(privacy_unit_column="s.user_id") + "recipe AS user_id, " + COUNT + " FROM searches AS s GROUP BY recipe"
    ).query
    assert (query.keys, query.user) == (("user_id",), "privacy_unit_1")


def test_explaining_reads_no_private_data() -> None:
    text = PRIVATE + "recipe, " + COUNT + " FROM 'there/is/none.parquet' GROUP BY recipe"
    assert plume.explain_sql(text).facts() == plume.explain(asked(STATEMENTS[0][0]).query).facts()


@pytest.mark.parametrize(
    ("left_out", "written"),
    [
        ("COUNT(*)", "COUNT(*, contribution_bounds_per_group => (0, AUTO))"),
        ("SUM(seconds)", "SUM(seconds, contribution_bounds_per_group => (AUTO, AUTO))"),
        ("AVG(seconds)", "AVG(seconds, contribution_bounds_per_group => (AUTO, AUTO))"),
    ],
)
def test_bounds_that_are_left_out_are_told_and_charged_as_auto(left_out: str, written: str) -> None:
    told = [
        plume.explain_sql(PRIVATE + f"recipe, {aggregate} AS n" + FROM, tables={"searches": SEARCHES})
        for aggregate in (left_out, written)
    ]
    assert str(told[0]) == str(told[1])
    assert told[0].record() == told[1].record()
    assert price_for(told[0]) == price_for(told[1])
