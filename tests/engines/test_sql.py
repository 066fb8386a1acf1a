"""Statements on every engine: the rows below the private SELECT are those of the same SQL without privacy, and never an error."""

import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import plume
from exact import exact_release
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.errors import ColumnTypeError, InputError, PlumeError
from plume.statement.answering import ask

OPTIONS = "epsilon = 200, delta = 1e-5, max_groups_contributed = 8, privacy_unit_column"
USERS = 60
COUNT = "COUNT(*, contribution_bounds_per_group => (0, 3)) AS n"
SEARCHES = pa.table({
    "user_id": [user for user in range(USERS) for _ in range(3)],
    "recipe": ["lasagna", "tiramisu", "soup"] * USERS,
    "seconds": [float(user % 5) for user in range(USERS) for _ in range(3)],
})  # fmt: skip
PEOPLE = pa.table({"id": list(range(USERS)), "country": ["DE", "FR"] * (USERS // 2)})
RECIPES = pa.table({"recipe": ["lasagna", "soup", "tiramisu", "cake"], "kind": ["main", "main", "dessert", "dessert"]})


def private(unit: str = "user_id", **more: str) -> str:
    listed = "".join(f", {name} = {value}" for name, value in more.items())
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = {unit}{listed}) "


def exactly(text: str, engine: Engine, **settings: Any) -> list[dict[str, Any]]:
    """Answer a statement without noise."""
    asked = ask(text, engine=engine, **settings)
    rows = exact_release(asked.query, asked.data, engine=engine)
    ordering = asked.statement.ordering
    return rows.take(ordering.places(rows)).select(list(ordering.columns)).to_pylist()


@pytest.mark.quick_on("spark")
def test_a_join_of_two_parquet_files(engine: Engine, tmp_path: Path) -> None:
    for name, rows in {"searches": SEARCHES, "people": PEOPLE}.items():
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    files = {name: str(tmp_path / f"{name}.parquet") for name in ("searches", "people")}
    text = (
        private("s.user_id") + f"p.country, recipe AS dish, {COUNT} "
        "FROM (SELECT user_id, recipe FROM searches WHERE recipe <> 'soup') AS s JOIN people AS p ON s.user_id = p.id "
        "GROUP BY p.country, dish ORDER BY n DESC, 1, 2"
    )
    expected = [
        {"country": country, "dish": dish, "n": USERS // 2}
        for country in ("DE", "FR")
        for dish in ("lasagna", "tiramisu")
    ]
    assert exactly(text.replace("recipe AS dish", "s.recipe AS dish"), engine, tables=files) == expected


@pytest.mark.quick_on("spark")
def test_rows_that_would_fail_are_null(engine: Engine) -> None:
    """Casts, divisions, roots and overflows of hostile rows: no error tells that such a row is there."""
    hostile = pa.table({
        "user_id": list(range(6 * USERS)),
        "text": ["abc", "7", None, "1e999", "-9223372036854775809", ""] * USERS,
        "number": [0.0, -0.0, math.nan, math.inf, 1e308, None] * USERS,
        "whole": [0, 2**63 - 1, -(2**63), None, 1, -1] * USERS,
    })  # fmt: skip
    expressions = [
        "CAST(text AS INT)", "CAST(text AS DOUBLE)", "CAST(text AS DATE)", "1 / number", "whole % 0", "whole + whole", "whole * whole",
        "CAST(number AS INT)", "LN(number)", "SQRT(number - 1)", "EXP(number)", "CAST(text AS DECIMAL(4, 2))", "-whole",
        "CASE WHEN CAST(text AS INT) = 7 THEN 1 / whole ELSE whole END", "ABS(whole)", "ROUND(number, 30)",
    ]  # fmt: skip
    listed = ", ".join(f"{expression} AS e{place}" for place, expression in enumerate(expressions))
    counted = ", ".join(
        f"COUNT(e{place}, contribution_bounds_per_group => (0, 1)) AS n{place}" for place in range(len(expressions))
    )
    text = f"{private()} k, {counted} FROM (SELECT user_id, LENGTH('x') AS k, {listed} FROM hostile) GROUP BY k"
    (found,) = exactly(text, engine, tables={"hostile": hostile})
    assert found["n0"] == USERS
    assert all(0 <= found[f"n{place}"] <= 6 * USERS for place in range(len(expressions)))


def test_avg_is_the_mean_of_the_users_means_moved_into_the_bounds(engine: Engine) -> None:
    """One half of the users has a mean of 5 from values of 0 and 10, the other half a mean of 20, which is moved to 10."""
    rows = pa.table({
        "user_id": [user for user in range(100) for _ in range(2)],
        "k": ["x"] * 200,
        "v": [0.0, 10.0] * 50 + [0.0, 40.0] * 50,
    })  # fmt: skip
    per_group = exactly(
        private() + "k, AVG(v, contribution_bounds_per_group => (0, 10)) AS m FROM t GROUP BY k",
        engine,
        tables={"t": rows},
    )
    per_row = exactly(
        private() + "k, AVG(v, contribution_bounds_per_row => (0, 10)) AS m FROM t GROUP BY k",
        engine,
        tables={"t": rows},
    )
    assert per_group[0]["m"] == pytest.approx(7.5, abs=1e-3)
    assert per_row[0]["m"] == pytest.approx(5, abs=1e-3)


@pytest.mark.quick_on("spark")
def test_public_groups_are_all_there_and_no_others(engine: Engine) -> None:
    text = (
        private(group_selection_strategy="PUBLIC_GROUPS") + f"recipe, {COUNT} FROM searches RIGHT OUTER JOIN "
        "(SELECT DISTINCT recipe FROM recipes WHERE kind = 'dessert') USING (recipe) GROUP BY recipe ORDER BY recipe"
    )
    found = exactly(text, engine, tables={"searches": SEARCHES}, public_tables={"recipes": RECIPES})
    assert found == [{"recipe": "cake", "n": 0}, {"recipe": "tiramisu", "n": USERS}]


def test_without_groups_everything_is_one_group(engine: Engine) -> None:
    text = private() + f"{COUNT}, COUNT(DISTINCT user_id) AS people FROM searches WHERE seconds > 0"
    assert exactly(text, engine, tables={"searches": SEARCHES}) == [{"n": 3 * USERS * 4 // 5, "people": USERS * 4 // 5}]


def test_users_are_counted_by_how_much_they_do(engine: Engine) -> None:
    text = (
        private() + "n, COUNT(DISTINCT user_id) AS people FROM "
        "(SELECT user_id, COUNT(*) AS n, SUM(seconds) AS s FROM searches GROUP BY user_id HAVING s > 0) GROUP BY n"
    )
    assert exactly(text, engine, tables={"searches": SEARCHES}) == [{"n": 3, "people": USERS * 4 // 5}]


@pytest.mark.quick_on("spark")
def test_the_kind_of_recipe_comes_from_a_public_table(engine: Engine) -> None:
    text = (
        private("s.user_id")
        + f"r.kind, {COUNT} FROM searches AS s JOIN recipes AS r ON r.recipe = s.recipe GROUP BY 1 ORDER BY 1"
    )
    found = exactly(text, engine, tables={"searches": SEARCHES}, public_tables={"recipes": RECIPES})
    assert found == [{"kind": "dessert", "n": USERS}, {"kind": "main", "n": 2 * USERS}]


@pytest.mark.quick_on("spark", "spark-connect")
def test_a_table_of_the_catalogue(engine: Engine, session: Any) -> None:
    """Spark only: a table is read by its name."""
    from plume.engines.spark_rows import make_frame  # noqa: PLC0415 - the other engine does not need it

    make_frame(SEARCHES, session).createOrReplaceTempView("sql_searches")
    text = (
        private()
        + f"LOWER(recipe) AS dish, {COUNT} FROM sql_searches WHERE seconds / 2 >= 0 GROUP BY dish ORDER BY dish"
    )
    assert [row["n"] for row in exactly(text, engine)] == [USERS, USERS, USERS]
    frame = session.table("sql_searches")
    assert len(plume.sql(text.replace("sql_searches", "frame"), tables={"frame": frame})) == 3


def test_a_table_of_a_database_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("rows", SEARCHES)
        connection.execute("CREATE TABLE searches AS FROM rows; CREATE VIEW seen AS FROM searches")
    text = private() + f"recipe, {COUNT} FROM searches WHERE recipe <> 'soup' GROUP BY recipe"
    assert [row["recipe"] for row in exactly(text, DuckDB(), tables={"searches": path})] == ["lasagna", "tiramisu"]
    with duckdb.connect(path, read_only=True) as connection:
        found = exactly(text, DuckDB(), tables={"searches": connection.table("searches")})
    assert [row["n"] for row in found] == [USERS, USERS]
    with pytest.raises(InputError, match="has no table 'seen'"):
        exactly(text.replace("searches", "seen"), DuckDB(), tables={"seen": path})
    (tmp_path / "no.duckdb").write_text("no database", encoding="utf-8")
    with pytest.raises(InputError, match="could not be opened as a DuckDB database"):
        exactly(text, DuckDB(), tables={"searches": tmp_path / "no.duckdb"})


def test_a_computed_column_of_a_database_is_refused_whatever_the_rows(tmp_path: Path) -> None:
    """DuckDB computes it when it is read, and fails on a row that was changed to what it cannot be computed from."""
    text = private("u") + "k, COUNT(DISTINCT u) AS n FROM t GROUP BY k"
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute("CREATE TABLE t (u VARCHAR, x VARCHAR, k INTEGER GENERATED ALWAYS AS (CAST(x AS INTEGER)))")
        connection.execute(f"INSERT INTO t SELECT range, '1' FROM range({USERS})")
    for change in ("u = u", "x = 'no number'"):
        with duckdb.connect(tmp_path / "people.duckdb") as connection:
            connection.execute(f"UPDATE t SET {change} WHERE u = '1'")
        with pytest.raises(ColumnTypeError, match=r"column 'k' of people\.duckdb is GENERATED"):
            exactly(text, DuckDB(), tables={"t": tmp_path / "people.duckdb"})
    found = exactly(
        text.replace("k,", "x,").replace("BY k", "BY x"), DuckDB(), tables={"t": tmp_path / "people.duckdb"}
    )
    assert found == [{"x": "1", "n": USERS - 1}]


def test_text_of_a_database_compares_byte_by_byte(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute("CREATE TABLE t (u VARCHAR COLLATE NOCASE, k VARCHAR COLLATE NOCASE)")
        connection.execute(
            f"INSERT INTO t SELECT unnest(['bob ', 'Bob ']) || range, unnest(['a', 'A']) FROM range({USERS})"
        )
    text = private("u") + "k, COUNT(DISTINCT u) AS n FROM (SELECT DISTINCT u, k FROM t) GROUP BY k ORDER BY k"
    found = exactly(text, DuckDB(), tables={"t": tmp_path / "people.duckdb"})
    assert found == [{"k": "A", "n": USERS}, {"k": "a", "n": USERS}]


def test_files_without_types_are_read_as_they_are_used(tmp_path: Path) -> None:
    path = tmp_path / "searches.csv"
    pyarrow.csv.write_csv(SEARCHES, path)
    text = (
        private()
        + f"dish, {COUNT}, SUM(s, contribution_bounds_per_group => (0, 9)) AS s FROM "
        + (
            f"(SELECT user_id, recipe AS dish, seconds AS s FROM '{path}' WHERE seconds >= 1) GROUP BY dish ORDER BY dish"
        )
    )
    found = exactly(text, DuckDB())
    assert [row["dish"] for row in found] == ["lasagna", "soup", "tiramisu"]
    assert found[0]["n"] == USERS * 4 // 5
    assert found[0]["s"] == pytest.approx(2.0 * USERS, abs=1e-3)


def test_a_statement_is_charged_once_and_only_the_same_one_is_given_again(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "budget.ledger")
    charged = {
        "ledger": ledger.add_dataset("searches", plume.Budget(500, 1e-4)),
        "release_id": "one",
        "tables": {"searches": SEARCHES},
    }
    text = private() + f"recipe AS dish, {COUNT} FROM searches WHERE seconds / 2 < 9 GROUP BY dish ORDER BY dish DESC"
    first, again = plume.sql(text, **charged), plume.sql(text, **charged)
    assert first.rows.equals(again.rows)
    assert first.rows["dish"].to_pylist() == ["tiramisu", "soup", "lasagna"]
    with pytest.raises(PlumeError, match="one"):
        plume.sql(text.replace("< 9", "< 1"), **charged)


def test_only_the_columns_of_the_list_are_released() -> None:
    release = plume.sql(private() + f"{COUNT} FROM searches GROUP BY recipe LIMIT 2", tables={"searches": SEARCHES})
    assert (release.rows.column_names, len(release)) == (["n"], 2)


def test_numbers_that_are_left_open_are_chosen_and_told() -> None:
    """With an epsilon of 200 keys of 60 users are missed less than once in 10^9 runs."""
    text = (
        private().replace("max_groups_contributed = 8", "max_groups_contributed = AUTO")
        + "recipe, COUNT(*, contribution_bounds_per_group => (0, AUTO)) AS n FROM searches GROUP BY recipe ORDER BY 1"
    )
    release = plume.sql(text, tables={"searches": SEARCHES}, engine=DuckDB(threads=1))
    assert set(release.chosen) == {"max_keys_per_user", "n: max_per_key"}
    assert release.to_arrow()["recipe"].to_pylist() == ["lasagna", "soup", "tiramisu"]


def test_bounds_that_are_left_out_are_chosen_and_told(engine: Engine) -> None:
    """With an epsilon of 200 keys of 60 users are missed less than once in 10^9 runs."""
    text = (
        private().replace("max_groups_contributed = 8, ", "")
        + "recipe, COUNT(*) AS n, SUM(seconds) AS s, AVG(seconds) AS m FROM searches GROUP BY recipe ORDER BY 1"
    )
    release = plume.sql(text, tables={"searches": SEARCHES}, engine=engine)
    assert set(release.chosen) == {"n: max_per_key", "s: high_total", "m: high"}
    assert release.explanation.query.max_keys_per_user == 1


def test_the_order_of_equal_numbers_shows_in_nothing(engine: Engine) -> None:
    """Other users have a hand in the order of rows. Text of a number would tell 0.0 from -0.0."""
    text = (
        private("u")
        + "g, COUNT(DISTINCT u) AS n FROM (SELECT u, LENGTH(m) AS g FROM (SELECT u, MIN(x) AS m FROM rows GROUP BY u)) GROUP BY g"
    )
    ends = []
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        rows = pa.table({"u": [user for user in range(USERS) for _ in zeros], "x": zeros * USERS})
        try:
            ends.append(str(exactly(text, engine, tables={"rows": rows})))
        except PlumeError as error:
            ends.append(str(error))
    assert ends[0] == ends[1]
