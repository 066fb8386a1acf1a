"""Statements that are refused: what is wrong, and in which line and column."""

# ruff: noqa: E501 - a statement and what is expected of it stand in one line

from contextlib import suppress
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

import plume
from plume.engines.spark import Spark
from plume.errors import InputError, PlumeError, StatementError
from plume.statement.answering import ask
from plume.statement.clauses import conjuncts
from plume.statement.reading import read

HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 8, privacy_unit_column = user_id)\n"
COUNT = "COUNT(*, contribution_bounds_per_group => (0, 3))"
MANY_DIGITS = "9" * 5000
"""More than Python reads as a number."""
TABLES = {
    "searches": pa.table({"user_id": [1], "recipe": ["x"], "seconds": [1.0], "friend": [2]}),
    "people": pa.table({"user_id": [1], "age": [3]}),
}
PUBLIC = {"recipes": pa.table({"recipe": ["x"], "kind": ["main"]})}


def below(inner: str) -> str:
    """A statement with something below its private SELECT, which begins in line 3, column 1."""
    return f"{HEAD}recipe, {COUNT} FROM (\n{inner}) AS r GROUP BY recipe"


def options(listed: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({listed}) recipe, {COUNT} FROM searches GROUP BY recipe"


def outer(listed: str, rest: str = "FROM searches GROUP BY recipe") -> str:
    """A private SELECT whose list begins in line 2, column 1."""
    return f"{HEAD}{listed}\n{rest}"


WRONG: list[tuple[str, int, int, str]] = [
    # Not a private SELECT.
    ("", 1, 1, "the statement is empty"),
    ("SELECT recipe FROM searches", 1, 1, "there is no private SELECT"),
    ("SELECT 'open", 1, 1, "check that every quote and comment is closed"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY recipe FROM searches", 1, 13, "OPTIONS (...) must follow"),
    (f"SELECT recipe FROM ({outer(f'recipe, {COUNT}')})", 1, 28, "it must be the outermost"),
    (outer(f"recipe, {COUNT}") + "; SELECT 1", 3, 30, "there are several statements"),
    (outer(f"recipe, {COUNT}") + " UNION ALL SELECT 1", 1, 8, "must be the whole statement"),
    (outer("recipe recipe recipe"), 2, 15, "cannot be read as SQL near 'recipe'"),
    # Options.
    (options("delta = 1e-5, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 8, "OPTIONS needs epsilon"),
    (options("epsilon = 1, delta = 1e-5"), 1, 8, "OPTIONS needs privacy_unit_column"),
    (options("epsilon = 1, kappa = 1"), 1, 56, "there is no option kappa; did you mean max_groups_contributed? There are: epsilon,"),
    (options("epsilon = 1, k_threshold = 1"), 1, 56, "did you mean min_privacy_units_per_group?"),
    (options("epsilon = 1, max_keys_per_user = 8"), 1, 56, "did you mean max_groups_contributed?"),
    (options("epsilon = 1, user = user_id"), 1, 56, "did you mean privacy_unit_column?"),
    (options("epsilon = 1, size = 1"), 1, 56, "there is no option size. There are: epsilon,"),
    (options("epsilon = -1, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 43, "epsilon is -1"),
    (options("epsilon = 1, epsilon = 1"), 1, 56, "option epsilon is given twice"),
    (options("epsilom = 1"), 1, 43, "did you mean epsilon?"),
    (options("epsilon = 1, max_groups_contributed = 1.5, privacy_unit_column = user_id"), 1, 56, "must be a positive whole number"),
    (options("epsilon = 1, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 8, "delta is 0"),
    (options("epsilon = 1, delta = 1, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 56, "delta is 1"),
    (options("epsilon = 1, delta = 1e-5, max_groups_contributed = 8, privacy_unit_column = 'user_id'"), 1, 98, "must be the name of a column"),
    (options("epsilon = 1, delta = 1e-5, max_groups_contributed = 8, privacy_unit_column = user_id, group_selection_strategy = BEST"),
     1, 129, "must be one of PUBLIC_GROUPS, LAPLACE_THRESHOLD"),
    (options(f"epsilon = {MANY_DIGITS}"), 1, 8, "OPTIONS needs privacy_unit_column"),
    (options(f"epsilon = {MANY_DIGITS}, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 43, "epsilon must be a number"),
    (options("epsilon = 1e, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 43, "epsilon must be a number"),
    (options(f"epsilon = 1{'0' * 400}, max_groups_contributed = 8, privacy_unit_column = user_id"), 1, 43, "it must be a finite number"),
    (options(f"epsilon = 1, max_groups_contributed = {MANY_DIGITS}, privacy_unit_column = user_id"), 1, 56, "must be a positive whole number"),
    (options("t.epsilon = 1"), 1, 43, "'t.epsilon = 1' is not an option"),
    # Aggregates.
    (outer("recipe, PERCENTILE_CONT(seconds, 0.5)"), 2, 9, "write PERCENTILE_CONT(seconds, 0.5, contribution_bounds_per_row => (0, 60)) with"),
    (outer("recipe, VAR_POP(seconds)"), 2, 9, "needs the range of its values, which cannot be chosen from the data; write VAR_POP(seconds, contri"),
    (outer("recipe, STDDEV_POP(seconds)"), 2, 9, "write STDDEV_POP(seconds, contribution_bounds_per_row => (0, 60)) with a range that you know"),
    (outer("recipe, SUM(seconds, contribution_bounds_per_row => (0, 5))"), 2, 22, "SUM takes contribution_bounds_per_group"),
    (outer("recipe, SUM(seconds, contribution_bounds_per_group => (5, 0))"), 2, 9, "low_total is 5"),
    (outer(f"recipe, SUM(seconds, contribution_bounds_per_group => (0, {MANY_DIGITS}))"), 2, 22, "must be two constants"),
    (outer(f"recipe, {COUNT}", f"FROM searches GROUP BY {MANY_DIGITS}"), 3, 24, "there is no column 999"),
    (outer(f"recipe, {COUNT}", f"FROM searches GROUP BY recipe LIMIT {MANY_DIGITS}"), 3, 37, "LIMIT must be a whole number"),
    (outer("recipe, SUM(seconds, contribution_bounds_per_group => (5, AUTO))"), 2, 9, "beside high_total = 'auto', low_total is 0"),
    (outer("recipe, SUM(seconds, contribution_bounds_per_group => (0, s.auto))"), 2, 22, "must be two constants"),
    (outer("recipe, VAR_POP(seconds, contribution_bounds_per_row => (0, AUTO))"), 2, 9, "auto"),
    (outer("recipe, COUNT(*, contribution_bounds_per_group => (1, 5))"), 2, 9, "the bounds of COUNT are 0 and a whole number"),
    (outer("recipe, COUNT(DISTINCT recipe)"), 2, 9, "can count the privacy unit only; write COUNT(DISTINCT user_id)"),
    (outer("recipe, MAX(seconds)"), 2, 9, "MAX is not supported in a private SELECT; write PERCENTILE_CONT(x, 0.99, contribution_bounds_per_row"),
    (outer("recipe, MIN(seconds)"), 2, 9, "MIN is not supported in a private SELECT; write PERCENTILE_CONT(x, 0.01, contribution_bounds_per_row"),
    (outer("recipe, AVG(seconds, contribution_bounds_per_group => (0, seconds))"), 2, 22, "must be two constants"),
    (outer(f"recipe, 1 + {COUNT}"), 2, 9, "stands alone"),
    (outer("recipe, COUNT(*) FILTER (WHERE seconds > 1)"), 2, 9, "in the place of FILTER write COUNT(IF(condition, 1, NULL)"),
    (outer("recipe, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY seconds)"), 2, 9, "in the place of WITHIN GROUP write PERCENTILE_CONT(x, 0.5,"),
    (outer("recipe, STRING_AGG(kind)"), 2, 9, "in the private SELECT write the column into GROUP BY"),
    (outer("recipe"), 2, 1, "there is no aggregate"),
    (outer(f"seconds, {COUNT}"), 2, 1, "'seconds' is neither grouped by nor an aggregate"),
    (outer(f"*, {COUNT}"), 2, 1, "* is neither"),
    # Clauses of the private SELECT.
    (outer(f"recipe, {COUNT}", "FROM searches"), 2, 1, "'recipe' is neither grouped by nor an aggregate"),
    (outer(f"recipe, {COUNT} AS n", "FROM searches GROUP BY recipe HAVING n > 3"), 3, 38, "HAVING is not supported"),
    (outer(f"recipe, {COUNT}", "FROM searches GROUP BY recipe ORDER BY seconds"), 3, 40, "ORDER BY must name a column of the result"),
    (outer(f"recipe, {COUNT}", "FROM searches GROUP BY 7"), 3, 24, "there is no column 7"),
    (outer(f"recipe, {COUNT}", "FROM searches GROUP BY ROLLUP(recipe)"), 3, 31, "ROLLUP is not known in a private SELECT; write one statement for each"),
    (outer(f"recipe, {COUNT}", "FROM searches GROUP BY GROUPING SETS ((recipe), ())"), 3, 40, "GROUPING SETS is not known in a private SELECT; write one"),
    (outer(f"recipe, {COUNT}", "FROM data/rows.parquet GROUP BY recipe"), 3, 10, "cannot be read as SQL near '/'"),
    (outer(f"recipe, {COUNT}", "FROM /data/rows.parquet GROUP BY recipe"), 3, 6, "near '/': expected table name."),
    (outer(f"recipe, {COUNT}", "FROM nowhere GROUP BY recipe"), 3, 6, "there is no table 'nowhere'"),
    # Tables and names.
    (below("SELECT user_id, recipe FROM read_csv('/etc/passwd')"), 3, 29, "functions that make tables"),
    (below("SELECT user_id, recipe FROM searches, people"), 3, 8, "may be a column of several tables"),
    (below("SELECT t.user_id, recipe FROM searches AS s"), 3, 8, "no table is called 't' here"),
    (below("SELECT user_id, recipe, recipe FROM searches"), 3, 25, "two columns are called 'recipe'"),
    (below("SELECT user_id, recipe FROM (SELECT user_id, seconds FROM searches)"), 3, 17, "there is no column 'recipe' here"),
    # What would let one user change the rows of others.
    (below("SELECT user_id, recipe FROM searches LIMIT 10"), 3, 44, "LIMIT keeps some rows and drops others"),
    (below("SELECT user_id, recipe FROM searches WHERE RANDOM() < 0.1"), 3, 44, "changes from call to call"),
    (below("SELECT user_id, recipe FROM searches WHERE seconds > (SELECT AVG(seconds) FROM searches)"), 3, 62, "a subquery in an expression"),
    (below("SELECT user_id, recipe FROM searches WHERE recipe IN (SELECT recipe FROM recipes)"), 3, 44, "a subquery in an expression"),
    (below("SELECT s.user_id, s.recipe FROM searches AS s JOIN people AS p ON s.seconds = p.age"), 3, 52, "two private tables meet here"),
    (below("SELECT s.user_id, s.recipe FROM searches AS s CROSS JOIN people"), 3, 58, "two private tables meet here"),
    (below("SELECT s.user_id, t.recipe FROM searches AS s JOIN searches AS t ON s.user_id = t.friend"),
     1, 120, "would belong to the user in 'user_id' and to the one in 'friend'"),
    (below("SELECT MAX(user_id) AS user_id, recipe FROM searches GROUP BY recipe"), 3, 8, "the privacy unit 'user_id' is computed here"),
    (below("SELECT COALESCE(user_id, 0) AS user_id, recipe FROM searches"), 3, 8, "the privacy unit 'user_id' is computed here"),
    (below("SELECT user_id, recipe FROM searches UNION ALL SELECT user_id + 1, recipe FROM searches"), 3, 55, "is computed here"),
    (below("SELECT user_id, recipe FROM searches UNION SELECT user_id, recipe FROM searches"), 3, 51, "only UNION ALL is supported"),
    (below("SELECT * FROM searches UNION ALL SELECT * FROM searches"), 3, 8, "name them instead of *"),
    (below("SELECT user_id, recipe, COUNT(*) OVER (PARTITION BY recipe) AS n FROM searches"), 3, 25, "PARTITION BY must contain the privacy unit"),
    (below("SELECT user_id, recipe FROM searches QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY seconds) = 1"),
     3, 46, "depends on the order of rows that are equal"),
    (below("SELECT DISTINCT ON (recipe) user_id, recipe FROM searches"), 3, 21, "DISTINCT ON keeps some rows"),
    (below("SELECT user_id, recipe FROM searches TABLESAMPLE (10 PERCENT)"), 3, 51, "a sample is drawn at random"),
    (below("SELECT kind AS user_id, recipe FROM recipes"), 1, 120, "comes from a public table"),
    (below("SELECT user_id, recipe FROM searches NATURAL JOIN people"), 3, 51, "NATURAL JOIN is not supported"),
    (below("SELECT user_id, COUNTT(*) AS recipe FROM searches"), 3, 17, "'COUNTT(*)' is not known to be a function of one row that never fails; did you mean COUNT?"),
    (below("SELECT user_id, WEEKDAY(day) AS recipe FROM searches"), 3, 17, "write EXTRACT(DAYOFWEEK FROM x)"),
    (below("SELECT user_id, recipe || kind AS recipe FROM searches"), 3, 17, "write each of them as a key of its own"),
    (below("SELECT user_id, recipe FROM searches WHERE REGEXP_CONTAINS(recipe, 'soup')"), 3, 44, "write x LIKE '%word%'"),
    (below("SELECT user_id, recipe FROM searches WHERE day > CURRENT_DATE"), 3, 44, "'CURRENT_DATE' changes from call to call, so that rows would not depend on data alone; write a constant, such as DATE '2026-01-31'"),
    (below("SELECT user_id, list_sum([1]) AS recipe FROM searches"), 3, 17, "is not known to be a function of one row"),
    (below("SELECT user_id, CAST(seconds AS TEXT) AS recipe FROM searches"), 3, 22, "there is no CAST to TEXT here"),
    (below("SELECT user_id, ANY_VALUE(recipe) AS recipe FROM searches GROUP BY user_id"), 3, 17, "is not known to be a function of one row"),
    (below("SELECT user_id, recipe, SUM(seconds) AS s FROM searches GROUP BY user_id"), 3, 17, "neither in GROUP BY nor inside an aggregate"),
    (below("SELECT s.user_id, s.recipe FROM searches AS s JOIN people JOIN people AS q ON people.user_id = q.user_id ON s.user_id = people.user_id"),
     3, 52, "joins inside of joins are not supported here"),
    (below("SELECT user_id, recipe FROM searches FETCH FIRST 3 ROWS ONLY"), 3, 50, "LIMIT keeps some rows and drops others"),
    (below("SELECT s.user_id, s.recipe FROM searches AS s, LATERAL (SELECT 1) AS x"), 3, 64, "only named tables, files and subqueries"),
    (below("SELECT user_id, ROUND(seconds, seconds) AS recipe FROM searches"), 3, 17, "the places of ROUND must be a whole number"),
    # Public groups.
    (HEAD.replace("privacy_unit", "group_selection_strategy = PUBLIC_GROUPS, privacy_unit") + f"recipe, {COUNT}\nFROM searches GROUP BY recipe",
     2, 1, "PUBLIC_GROUPS needs FROM"),
    (HEAD.replace("privacy_unit", "group_selection_strategy = PUBLIC_GROUPS, privacy_unit")
     + f"recipe, {COUNT}\nFROM searches JOIN (SELECT DISTINCT recipe FROM recipes) USING (recipe) GROUP BY recipe", 3, 37, "PUBLIC_GROUPS needs FROM"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "the statement is a NoneType; it must be text"),
        (b"SELECT", "the statement is a bytes; it must be text"),
        (" ", "the statement is empty"),
        ("searches.sql", "the statement is 'searches.sql'; give the text of the file"),
    ],
)
def test_what_is_no_statement_at_all_is_told_from_one(text: Any, said: str) -> None:
    with pytest.raises(StatementError, match=said):
        plume.sql(text, tables=TABLES)


def test_there_are_forty_wrong_statements() -> None:
    assert len(WRONG) >= 40


TOO_MANY_ARGUMENTS = {
    "duckdb": ["LTRIM(recipe, 'a', 'b')", "RTRIM(recipe, 'a', 'b')", "DATE_TRUNC('day', day, 'UTC')", "MOD(seconds, 2, 3, 4)"],
    "spark": [
        "FLOAT(DATE_TRUNC('day', day), 2)",
        "FLOAT(recipe, 2)", "INT(recipe, recipe)", "DATE(day, 'x')", "TIMESTAMP(day, 'UTC')", "LTRIM(recipe, 'a', 'b')",
        "DATE_TRUNC('day', day, 'UTC')", "TRUNC(day, 'month', 1)", "FLOOR(seconds, 1, 2)", "CEIL(seconds, 1, 2)", "MOD(seconds, 2, 3, 4)",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "call"), [(name, call) for name, calls in TOO_MANY_ARGUMENTS.items() for call in calls]
)
def test_an_argument_that_the_parser_would_drop_is_refused(dialect: str, call: str) -> None:
    text = f"{HEAD}{call} AS k, {COUNT} FROM searches GROUP BY k"
    rows = {"searches": TABLES["searches"].append_column("day", pa.array([0], pa.timestamp("us")))}
    with pytest.raises(StatementError):
        ask(text, engine=Spark() if dialect == "spark" else plume.DuckDB(), tables=rows)


@pytest.mark.parametrize("kind", ["FLOAT('a')", "FLOAT(a)", "DOUBLE('a')", "DECIMAL('a', 2)", "TIMESTAMP('a')"])
@pytest.mark.parametrize("engine", [Spark(), plume.DuckDB()], ids=["spark", "duckdb"])
def test_a_type_with_a_text_for_a_number_is_refused(engine: Spark | plume.DuckDB, kind: str) -> None:
    text = f"{HEAD}CAST(seconds AS {kind}) AS k, {COUNT} FROM searches GROUP BY k"
    with pytest.raises(StatementError):
        ask(text, engine=engine, tables=TABLES)


ELSEWHERE = [
    ("MEDIAN(seconds)", "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 60))"),
    (
        "MEDIAN(seconds, contribution_bounds_per_row => (0, 60))",
        "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 60))",
    ),
    ("PERCENTILE_DISC(seconds, 0.5)", "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 60))"),
    ("QUANTILE_CONT(seconds, 0.5)", "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 60))"),
    (
        "APPROX_QUANTILES(seconds, 4)",
        "one PERCENTILE_CONT(x, 0.25, contribution_bounds_per_row => (0, 60)) for each quantile",
    ),
    (
        "APPROX_QUANTILES(seconds, 4)[OFFSET(2)]",
        "one PERCENTILE_CONT(x, 0.25, contribution_bounds_per_row => (0, 60)) for each",
    ),
    (
        "ANON_QUANTILES(seconds, 4)",
        "one PERCENTILE_CONT(x, 0.25, contribution_bounds_per_row => (0, 60)) for each quantile",
    ),
    ("ANON_PERCENTILE_CONT(seconds, 0.5)", "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 60))"),
    ("ANON_COUNT(*)", "COUNT(*, contribution_bounds_per_group => (0, 5))"),
    ("ANON_COUNT(* CLAMPED BETWEEN 0 AND 5)", "COUNT(*, contribution_bounds_per_group => (0, 5))"),
    ("ANON_SUM(seconds CLAMPED BETWEEN 0 AND 5)", "SUM(x, contribution_bounds_per_group => (0, 60))"),
    ("anon_avg(seconds)", "AVG(x, contribution_bounds_per_group => (0, 60))"),
    ("ANON_VAR_POP(seconds)", "VAR_POP(x, contribution_bounds_per_row => (0, 60))"),
    ("ANON_STDDEV_POP(seconds)", "STDDEV_POP(x, contribution_bounds_per_row => (0, 60))"),
    ("VARIANCE(seconds)", "VAR_POP(x, contribution_bounds_per_row => (0, 60))"),
    ("STDDEV_SAMP(seconds)", "STDDEV_POP(x, contribution_bounds_per_row => (0, 60))"),
    ("MEAN(seconds)", "AVG(x, contribution_bounds_per_group => (0, 60))"),
    ("APPROX_COUNT_DISTINCT(user_id)", "COUNT(DISTINCT user_id), where user_id is the privacy unit"),
    ("COUNTIF(seconds > 1)", "COUNT(IF(condition, 1, NULL), contribution_bounds_per_group => (0, 5))"),
]


@pytest.mark.parametrize("engine", [plume.DuckDB(), Spark()], ids=["duckdb", "spark"])
@pytest.mark.parametrize(("aggregate", "written"), ELSEWHERE)
def test_an_aggregate_that_others_have_is_answered_with_the_one_to_write(
    aggregate: str, written: str, engine: Any
) -> None:
    with pytest.raises(StatementError) as refused:
        plume.explain_sql(outer(f"recipe, {aggregate}"), tables=TABLES, engine=engine)
    assert f"is not supported here; in the private SELECT write {written}" in str(refused.value)
    assert (refused.value.line, refused.value.column) == (2, 9)


@pytest.mark.parametrize("written", sorted({written.split("), where")[0] for _, written in ELSEWHERE}))
def test_what_a_refusal_says_to_write_is_answered(written: str) -> None:
    words = (
        written.removeprefix("one ").split(" for each")[0].replace("condition", "seconds > 1").replace("x,", "seconds,")
    )
    whole = words if words.endswith(")") else f"{words})"
    assert plume.explain_sql(outer(f"recipe, {whole}"), tables=TABLES).query.keys == ("recipe",)


def test_quoted_names_of_aggregates_that_others_have_are_names() -> None:
    text = outer('"median", COUNT(DISTINCT user_id) AS mean', 'FROM searches GROUP BY "median"')
    assert plume.explain_sql(text, tables=TABLES).query.keys == ("median",)


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        (
            "ANONYMIZATION",
            "WITH ANONYMIZATION is an earlier name of this clause; write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon",
        ),
        (
            "AGGREGATION_THRESHOLD",
            "WITH AGGREGATION_THRESHOLD adds no noise, so it is not differential privacy; write SELECT WITH DIFF",
        ),
    ],
)
def test_another_clause_is_answered_with_the_one_to_write(clause: str, said: str) -> None:
    with pytest.raises(StatementError, match=r"line 1, column 13") as refused:
        plume.sql(outer("recipe, ANON_COUNT(*)").replace("DIFFERENTIAL_PRIVACY", clause), tables=TABLES)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        outer("COUNT(*) AS n", "FROM searches").replace("delta = 1e-5, ", ""),
        outer("recipe, COUNT(*) AS n").replace(
            "privacy_unit", "group_selection_strategy = LAPLACE_THRESHOLD, privacy_unit"
        ),
    ],
)
def test_where_nothing_can_be_chosen_it_is_said_that_bounds_are_left_out(text: str) -> None:
    with pytest.raises(StatementError, match=r"Bounds that are left out are AUTO; give them, as in"):
        plume.sql(text, tables=TABLES)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
@pytest.mark.parametrize(
    "statement",
    [
        HEAD + "recipe, COUNT(*) FROM searches WHERE GET_JSON_OBJECT(recipe, '$[\x1b[31m') = 1 GROUP BY recipe",
        HEAD + "recipe, COUNT(*) FROM searches WHERE recipe -> '\x1b[31m /*' = 1 GROUP BY recipe",
        "GRANT \x1b[31m " + HEAD + "recipe FROM searches",
    ],
)
def test_no_text_of_a_statement_reaches_a_log(statement: str, dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    """A log is read in a terminal, which does what it is told."""
    with suppress(StatementError):
        read(statement, dialect)
    assert caplog.records == []


@pytest.mark.parametrize(("statement", "line", "column", "said"), WRONG)
def test_a_wrong_statement_is_refused_where_it_is_wrong(statement: str, line: int, column: int, said: str) -> None:
    with pytest.raises(StatementError) as refused:
        plume.sql(statement, tables=TABLES, public_tables=PUBLIC)
    assert said in str(refused.value)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert str(refused.value).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("tables", "public", "said"),
    [
        ({"searches": TABLES["searches"]}, {"SEARCHES": TABLES["searches"]}, "a table is private or public"),
        ({"searches": TABLES["searches"]}, {"copy": TABLES["searches"]}, "the same data, once private and once public"),
        ([1], {}, "must be a mapping of names to data"),
        ({1: "a.parquet"}, {}, "must be a mapping of names to data"),
    ],
)
def test_wrong_tables_are_refused(tables: object, public: object, said: str) -> None:
    text = outer(
        f"recipe, {COUNT}", "FROM (SELECT s.user_id, s.recipe FROM searches AS s CROSS JOIN copy) GROUP BY recipe"
    )
    with pytest.raises(InputError, match=said):
        plume.sql(text, tables=tables, public_tables=public)


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("SELECT user_id, recipe FROM searches WHERE recipe > 3", "does not fit the types"),
        ("SELECT user_id, recipe FROM searches WHERE IF('abc', seconds, 1) > 0", "does not fit the types"),
        ("SELECT user_id, recipe FROM searches WHERE CASE WHEN DATE '2026-01-31' THEN seconds ELSE 1 END > 0", "does not fit the types"),
        ("SELECT user_id, recipie AS recipe FROM searches", "did you mean 'recipe'"),
        ('SELECT user_id, recipe FROM searches WHERE recipe = "borscht"', "text is written in single quotes: 'borscht'"),
        ("SELECT seconds AS user_id, recipe FROM searches", "user column 'seconds' is floating-point"),
        ("SELECT s.user_id, s.recipe FROM searches AS s JOIN people AS p ON s.recipe = p.user_id AND s.user_id = p.user_id", "both must be of one type"),
        ("SELECT user_id, recipe FROM searches UNION ALL SELECT name, name AS n FROM named", "of several types in several tables"),
        ("SELECT user_id, recipe, MAX(span) AS s FROM spans GROUP BY 1, 2", "which a statement cannot read"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused(inner: str, said: str) -> None:
    canary = "alice-7f3a"
    spans = TABLES["searches"].append_column("span", pa.array([(1, 2, 3)], pa.month_day_nano_interval()))
    searches = TABLES["searches"].set_column(1, "recipe", pa.array([canary]))
    tables = TABLES | {"searches": searches, "named": pa.table({"name": [canary]}), "spans": spans}
    with pytest.raises(PlumeError, match=said) as refused:
        plume.sql(below(inner), tables=tables)
    assert canary not in str(refused.value)
    assert (refused.value.__cause__, refused.value.__context__) == (None, None)


def test_a_condition_of_thousands_of_parts_is_split() -> None:
    parts = [exp.column(f"c{number}") for number in range(3000)]
    assert conjuncts(reduce(lambda left, right: exp.And(this=left, expression=exp.Paren(this=right)), parts)) == parts


@pytest.mark.parametrize("places", ["31", "-31", "-300", "9" * 5000, "1.5"])
@pytest.mark.parametrize("function", ["ROUND", "FLOOR", "CEIL"])
def test_the_places_of_a_number_are_few(function: str, places: str) -> None:
    """Spark fails on rows that are not 0 where there are more than its decimals have."""
    with pytest.raises(StatementError, match=f"the places of {function} must be a whole number from -30 to 30"):
        plume.sql(below(f"SELECT user_id, recipe FROM searches WHERE {function}(seconds, {places}) > 0"), tables=TABLES)


@pytest.mark.parametrize("pattern", [r"\\a", r"a\\", r"a\\_b"])
def test_on_spark_a_pattern_has_no_backslash(pattern: str) -> None:
    """Spark fails on most of them, and on rows in this process only where a row comes so far."""
    text = below(f"SELECT user_id, recipe FROM searches WHERE recipe LIKE '{pattern}'")
    with pytest.raises(StatementError, match="must have no backslash"):
        ask(text, engine=Spark(), tables=TABLES)
