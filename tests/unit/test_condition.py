"""Conditions: what is accepted means what DuckDB means by it, what is not is refused before any data, and no row makes one fail."""

import itertools
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

import plume
from plume.condition import parse_condition
from plume.engines.engine import Table
from plume.errors import ColumnNotFound, ColumnTypeError, ConditionError
from plume.mechanisms.count import count
from plume.mechanisms.users import users
from plume.pipelines.steps import INPUT
from plume.plan.expressions import AllOf, Column, Comparator, Compare, IsNull, Like, Literal, Not
from plume.plan.printing.plan_sql import print_plan
from plume.plan.types import Kind
from plume.planning import make_plan
from plume.schema import check_schema
from questions import ENGINE, answer, asking, people

NAN, INF = float("nan"), float("inf")
ROWS = pa.table(
    {
        "u": list("abcdefghij"),
        "k": ["x"] * 10,
        "n": [1, 2, 3, None, -1, 0, 2**53 + 1, 2**63 - 1, -(2**63), 7],
        "x": [1.0, 2.5, NAN, None, INF, -INF, -0.0, 5e-324, 1e308, 7.0],
        "t": ["a", "B", "", None, "a%b", "it's", "a_b", "é", "\\", "a\nb"],
        "b": [True, False, None, True, True, False, None, False, True, True],
        "d": pa.array([date(2026, 1, day) for day in range(1, 9)] + [None, date(1, 1, 1)]),
        "s": pa.array([datetime(2026, 1, day, 12) for day in range(1, 9)] + [None, datetime(1, 1, 1)]),  # noqa: DTZ001
        "m": pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, None], pa.decimal128(10, 2)),
        "small": pa.array([1, 2, 3, None, -1, 0, 100, 127, -128, 7], pa.int8()),
    }
)
ACCEPTED = [
    "n = 1",
    "n <> 1",
    "n != 1",
    "n < 2",
    "n <= 2",
    "n > 2",
    "n >= 2",
    "2 < n",
    "n = 9007199254740993",
    "n = -9223372036854775808",
    "n > -1.5",
    "small < 1000",
    "small > -1000",
    "n BETWEEN 1 AND 3",
    "n NOT BETWEEN 1 AND 3",
    "n IN (1, 2, 9)",
    "n NOT IN (1, 2, 9)",
    "n IS NULL",
    "n IS NOT NULL",
    "NOT n IS NULL",
    "n = small",
    "n < small",
    "n <= x",
    "x > 1.5",
    "x < 0",
    "x >= 0.0",
    "x = 1e308",
    "x IS NOT NULL AND x > 2",
    "t = 'a'",
    "t <> 'a'",
    "t = 'it''s'",
    "t = ''",
    "t = '\\'",
    "t < 'b'",
    "t IN ('a', 'é', 'it''s')",
    "t LIKE 'a%'",
    "t NOT LIKE 'a%'",
    "NOT t LIKE 'a%'",
    "t LIKE '_'",
    "t LIKE '%'",
    "t LIKE '%''%'",
    "t LIKE ''",
    "b",
    "NOT b",
    "b = TRUE",
    "b <> FALSE",
    "b AND n > 1",
    "b OR n > 1",
    "NOT (b AND n > 1)",
    "NOT (b OR n > 1)",
    "NOT (n > 1 OR t IS NULL)",
    "n = 1 OR n = 2 AND b",
    "(n = 1 OR n = 2) AND b",
    "NOT n = 1 AND NOT n = 2",
    "NOT NOT n = 1",
    "d = DATE '2026-01-03'",
    "d >= DATE '2026-01-03' AND d < DATE '2026-01-06'",
    "d BETWEEN DATE '2026-01-02' AND DATE '2026-01-04'",
    "s > TIMESTAMP '2026-01-03 12:00:00'",
    "s IN (TIMESTAMP '2026-01-03 12:00:00', TIMESTAMP '2026-01-04 12:00:00')",
    "m > 3",
    "m = 2.0",
    '"n" = 1',
    "(((n = 1)))",
    "n = 1 -- a remark",
    "n = 1 /* a remark */",
    "n = 1;",
    "n = 1_000 OR n = +7",
    " AND ".join(["n < 100"] * 500),
]


@pytest.mark.parametrize("where", ACCEPTED)
def test_a_condition_keeps_the_rows_that_duckdb_keeps(where: str) -> None:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    expected = {user for (user,) in connection.sql(f"SELECT u FROM rows WHERE {where.rstrip(';')}\n").fetchall()}
    keys = list("abcdefghij")
    by_user = ROWS.set_column(1, "k", ROWS["u"])
    found = answer(asking(where=where, public_keys=keys), by_user)
    assert {key for key, count in zip(found["k"], found["count"], strict=True) if count} == expected


REFUSED = {
    "arithmetic": "n + 1 > 2",
    "division": "n / 0 > 1",
    "a remainder": "n % 2 = 0",
    "a function": "abs(n) > 1",
    "text put together": "t || 'x' = 'ax'",
    "a cast": "CAST(t AS INTEGER) = 1",
    "a short cast": "t::INTEGER = 1",
    "a harmless cast": "TRY_CAST(t AS INTEGER) = 1",
    "a cast of a constant": "n = CAST('5' AS INTEGER)",
    "a subquery": "n > (SELECT 1)",
    "membership in a subquery": "n IN (SELECT 1)",
    "existence": "EXISTS (SELECT 1)",
    "another statement": "n = 1; DROP TABLE input",
    "only another statement": "DROP TABLE input",
    "a whole query": "SELECT 1",
    "a union": "n = 1 UNION SELECT 2",
    "chance": "random() > 0.5",
    "the time": "s < now()",
    "the day": "d = current_date",
    "the user of the session": "current_user = 'root'",
    "a table": "input.n = 1",
    "all columns": "COLUMNS(*) = 1",
    "a star": "* = 1",
    "an element": "n[1] = 1",
    "a field": "t->>'x' = 'y'",
    "a case": "CASE WHEN b THEN n > 1 END",
    "a regular expression": "t ~ 'a+'",
    "a similar text": "t SIMILAR TO 'a+'",
    "a glob": "t GLOB 'a*'",
    "letters of any case": "t ILIKE 'a%'",
    "a pattern with an escape": "t LIKE 'a!%' ESCAPE '!'",
    "a pattern that is a number": "t LIKE 5",
    "a pattern that is a column": "t LIKE t",
    "a collation": "t COLLATE NOCASE = 'a'",
    "null as a constant": "n = NULL",
    "null in a list": "n IN (1, NULL)",
    "an empty list": "n IN ()",
    "a column in a list": "n IN (small, 1)",
    "columns as bounds": "n BETWEEN small AND x",
    "symmetric bounds": "n BETWEEN SYMMETRIC 3 AND 1",
    "truth values": "b IS TRUE",
    "distinctness": "n IS DISTINCT FROM 1",
    "constants alone": "1 = 1",
    "one constant": "TRUE",
    "one number": "1",
    "tuples": "(n, small) = (1, 1)",
    "a parameter": "n = ?",
    "a numbered parameter": "n = $1",
    "any of a list": "n = ANY([1, 2])",
    "chained comparisons": "n = 1 = TRUE",
    "too large an integer": "n = 9223372036854775808",
    "too large a number": "x > 1e400",
    "a number of 5000 digits": "n = " + "1" * 5000,
    "a hexadecimal number": "n = 0x10",
    "an interval": "s > INTERVAL 1 DAY",
    "a day that is none": "d = DATE '2026-02-30'",
    "a day in words": "d = DATE 'today'",
    "a moment that is none": "s = TIMESTAMP '2026-01-31 25:00:00'",
    "a moment with a zone": "s = TIMESTAMP '2026-01-31 12:00:00+02:00'",
    "a moment of a zone": "s = TIMESTAMPTZ '2026-01-31 12:00:00+02'",
    "an escape string": "t = E'a'",
    "a byte of zero": "t = 'a\0'",
    "half a letter": "t = '\ud800'",
    "nothing": "",
    "only spaces": "   ",
    "half a condition": "n = 1 AND",
    "an open parenthesis": "(n = 1",
    "an open quote": "t = 'a",
    "gibberish": "]]] ???",
    "a limit": "n = 1 LIMIT 1",
    "an alias": "n = 1 AS x",
    "a window": "n OVER ()",
    "an aggregate": "count(*) > 1",
    "depth": "(" * 3000 + "n = 1" + ")" * 3000,
    "many negations": "NOT " * 3000 + "b",
    "alternating depth": "b AND (b OR (" * 40 + "b" + "))" * 40,
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_condition_on_single_rows_is_refused_when_the_query_is_made(kind: str) -> None:
    with pytest.raises(
        ConditionError, match=r"^where (= .* cannot be read as a condition|holds .* not allowed); a condition "
    ):
        asking(where=REFUSED[kind])


@pytest.mark.parametrize("wildcards", ["_" * 101, "a_%" * 51])
def test_a_pattern_with_more_wildcards_than_every_engine_follows_is_refused(wildcards: str) -> None:
    """Spark descends once for each: ten thousand ended a run as soon as one text was long."""
    with pytest.raises(
        ConditionError, match=r"^where holds a pattern of LIKE with more than 100 wildcards, % and _, which"
    ):
        asking(where=f"t LIKE '{wildcards}'")
    assert asking(where=f"t LIKE '{wildcards[:100]}'").where is not None


@pytest.mark.parametrize("where", [5, True, b"n = 1", ["n = 1"], {"n": 1}])
def test_a_condition_that_is_no_text_is_refused(where: Any) -> None:
    with pytest.raises(ConditionError, match=r"^where is .*; it must be text"):
        asking(where=where)


def test_a_refusal_quotes_only_the_beginning_of_a_long_condition() -> None:
    with pytest.raises(ConditionError, match="cannot be read") as caught:
        parse_condition("n = 1 AND " * 10_000)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("t = 1", "column 't', which is text, with integer"),
        ("n = '1'", "column 'n', which is integer, with text"),
        ("n = TRUE", "column 'n', which is integer, with boolean"),
        ("n", "column 'n', which is integer, with boolean"),
        ("b = 1", "column 'b', which is boolean, with integer"),
        ("d = '2026-01-31'", "column 'd', which is date, with text"),
        ("d > TIMESTAMP '2026-01-31 00:00:00'", "column 'd', which is date, with timestamp"),
        ("s > DATE '2026-01-31'", "column 's', which is timestamp, with date"),
        ("n LIKE '1'", "column 'n', which is integer, with text"),
        ("n IN (1, 'a')", "column 'n', which is integer, with text"),
        ("n = t", "column 'n', which is integer, with column 't', which is text"),
        ("d = s", "column 'd', which is date, with column 's', which is timestamp"),
        ("m = n", "column 'm', which is decimal, with column 'n', which is integer"),
        ("n < m", "column 'n', which is integer, with column 'm', which is decimal"),
        ("b = n", "column 'b', which is boolean, with column 'n', which is integer"),
    ],
)
def test_comparisons_that_need_a_cast_that_can_fail_are_refused_before_a_row_is_read(where: str, match: str) -> None:
    with pytest.raises(ColumnTypeError, match=match):
        answer(asking(where=where), ROWS)


@pytest.mark.parametrize(
    "where", ["absent = 1", "user = 'root'", "U = 'a'", "rowid = 1", "absent IS NULL", "n = absent"]
)
def test_columns_of_a_condition_must_be_there(where: str) -> None:
    with pytest.raises(ColumnNotFound, match=r"no column '(absent|user|U|rowid)' in this Table"):
        answer(asking(where=where), ROWS)


def test_conditions_are_read_as_trees() -> None:
    condition = parse_condition("n >= 1 AND t NOT LIKE 'a%' AND NOT b IS NULL")
    assert condition == AllOf(
        (
            Compare(Column("n"), Comparator.AT_LEAST, Literal(1)),
            Not(Like(Column("t"), Literal("a%"))),
            Not(IsNull(Column("b"))),
        )
    )


def test_columns_of_csv_files_are_compared_as_what_the_constant_is(tmp_path: Any) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("u,k,n,t,d,b\na,x,10,10,2026-01-31,true\nb,x,9,9,2026-02-01,false\nc,x,oops,oops,oops,oops\n")
    where = "n > 9 AND t < '9' AND d = DATE '2026-01-31' AND b"
    assert answer(asking(where=where, public_keys=["x"]), path)["count"] == [1]


def test_a_column_of_a_csv_file_that_is_only_tested_for_null_is_text(tmp_path: Any) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("u,k,n\na,x,1\nb,x,\nc,x,oops\n")
    assert answer(asking(where="n IS NOT NULL", public_keys=["x"]), path)["count"] == [2]


def test_keys_with_only_rows_that_a_condition_drops_are_not_released() -> None:
    rows = pa.table({"u": list("abcd"), "k": list("xxyy"), "n": [1, 1, 2, 2]})
    assert answer(asking(where="n = 1"), rows) == {"k": ["x"], "count": [2]}


# Generated conditions: any grammar on any column, also of the wrong type.
POISON = ["canary", "'; --", "NaN", "1e999", "\x00", "", "9" * 400]
numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: format(number, ".16e")),
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0'"), max_size=5).map(
    lambda text: f"'{text}'"
)
days = st.dates().map(lambda day: f"DATE '{day.isoformat()}'")
moments = st.datetimes().map(lambda moment: f"TIMESTAMP '{moment.isoformat(sep=' ')}'")
columns_and_constants = st.one_of(
    st.tuples(st.sampled_from(["n", "x", "m", "small"]), numbers),
    st.tuples(st.just("t"), texts),
    st.tuples(st.just("b"), st.sampled_from(["TRUE", "FALSE"])),
    st.tuples(st.just("d"), days),
    st.tuples(st.just("s"), moments),
    st.sampled_from([("n", "x"), ("n", "small"), ("x", "small"), ("t", "t"), ("d", "d"), ("s", "s"), ("m", "m")]),
)
comparators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
simple = st.one_of(
    st.tuples(columns_and_constants, comparators).map(lambda parts: f"{parts[0][0]} {parts[1]} {parts[0][1]}"),
    st.sampled_from("nxtbdsm").map(lambda column: f"{column} IS NULL"),
    st.lists(numbers, min_size=1, max_size=4).map(lambda among: f"n NOT IN ({', '.join(among)})"),
    st.tuples(numbers, numbers).map(lambda bounds: f"x BETWEEN {bounds[0]} AND {bounds[1]}"),
    texts.map(lambda pattern: f"t LIKE {pattern}"),
)
conditions = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} AND {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=6,
)
POISONED = pa.concat_tables(
    [
        ROWS,
        pa.table(
            {
                "u": POISON,
                "k": POISON,
                "n": [2**63 - 1, -(2**63), 0, None, 1, -1, 2],
                "x": [NAN, INF, -INF, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, None],
                "t": POISON,
                "b": [None] * 7,
                "d": pa.array([2**31 - 2, -(2**31) + 2, 0, 1, -1, None, 5], pa.int32()).view(pa.date32()),
                "s": pa.array([2**63 - 2, -(2**63) + 2, 0, 1, -1, None, 5], pa.timestamp("us")),
                "m": pa.array([99999999, -99999999, 0, None, 1, 2, 3], pa.decimal128(10, 2)),
                "small": pa.array([127, -128, 0, None, 1, 2, 3], pa.int8()),
            },
            schema=ROWS.schema,
        ),
    ]
)


@pytest.mark.parametrize("examples", [100, pytest.param(300, marks=pytest.mark.engines)])
def test_no_row_makes_a_condition_fail(examples: int) -> None:
    tables = {INPUT: Table(POISONED, dict.fromkeys(POISONED.column_names, Kind.TEXT))}
    numbers_of_views = itertools.count()
    with ENGINE.open(tables) as session, duckdb.connect() as direct:
        direct.register("poisoned", POISONED)

        @settings(max_examples=examples, deadline=None)
        @given(where=conditions)
        def keeps_the_rows_that_duckdb_keeps(where: str) -> None:
            query = asking(where=where)
            check_schema(query, session.schema(INPUT), source="the poisoned rows")
            (printed,) = print_plan(make_plan(query).plan, session.printer())["rows"]
            name = f"rows {next(numbers_of_views)}"
            session.define(name, printed.select)
            expected = direct.execute(f"SELECT u FROM poisoned WHERE {where} ORDER BY u").fetchall()
            assert sorted(session.fetch(name, ("user_id",))["user_id"].to_pylist()) == [user for (user,) in expected]

        keeps_the_rows_that_duckdb_keeps()


SINGLE_QUOTES = r"Double quotes are for names of columns; text is written in single quotes: 'fix'\.$"


@pytest.mark.parametrize("where", ['k = "fix"', 'k <> "fix" AND k IS NOT NULL'])
@pytest.mark.parametrize("setting", ["of the query", "of a measure"])
def test_text_in_double_quotes_is_pointed_to_single_ones(setting: str, where: str) -> None:
    changes = {"where": where} if setting == "of the query" else {"measures": [users(where=where)]}
    with pytest.raises(ColumnNotFound, match=SINGLE_QUOTES):
        plume.run(asking(**changes), people(k=["fix"]))


def test_text_in_double_quotes_is_pointed_to_single_ones_beside_csv_files_too(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("u,k\n1,fix\n", encoding="utf-8")
    with pytest.raises(ColumnNotFound, match=SINGLE_QUOTES):
        plume.run(asking(where='k = "fix"'), tmp_path / "rows.csv")


def test_a_statement_is_pointed_to_single_quotes_once() -> None:
    text = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = u)
        k, COUNT(DISTINCT u) AS users FROM t WHERE k = "fix" GROUP BY k"""
    with pytest.raises(ColumnNotFound, match=SINGLE_QUOTES) as caught:
        plume.sql(text, tables={"t": people(k=["fix"])})
    assert str(caught.value).count("single quotes") == 1


@pytest.mark.parametrize("where", ['k IN ("fix")', 'k BETWEEN "fix" AND 3'])
def test_a_constant_in_double_quotes_is_pointed_to_single_ones(where: str) -> None:
    with pytest.raises(ConditionError, match=SINGLE_QUOTES):
        parse_condition(where)


@pytest.mark.parametrize("where", ["missing = 'fix'", 'missing = "k"'])
def test_a_missing_name_without_double_quotes_gets_no_hint_at_them(where: str) -> None:
    with pytest.raises(ColumnNotFound, match=r"no column 'missing' in this Table.* Columns: u, k\.$"):
        plume.run(asking(where=where), people(k=["fix"]))


def test_a_text_with_a_single_quote_is_written_as_it_must_be() -> None:
    with pytest.raises(ConditionError, match=r"single quotes: 'it''s'\.$"):
        parse_condition("""k IN ("it's")""")


def test_a_condition_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(
        "plume.condition.parse_one", lambda text, **form: (parsed.append(text), parse_one(text, **form))[1]
    )
    rows, long = "n > -4001", "n < 4001"  # nowhere else in the tests
    make_plan(asking(where=rows, measures=[users(where=long), count(2, where=long)]))
    assert parsed == [long, rows]
