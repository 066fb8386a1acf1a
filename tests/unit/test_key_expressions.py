"""Keys that are computed: what an expression may be, what it is called, and how it is refused. No row is read here."""

from dataclasses import replace
from typing import Any

import pytest

import plume
from plume.computed_keys import rows_of_query
from plume.errors import ColumnNotFound, ExpressionError, MeasureError, UsageError
from plume.ledger.request import Request
from plume.plan.printing.registry import PRINTERS
from plume.plan.types import Kind
from plume.relation.key_expression import read_key
from plume.report.settings import query_call

DUCKDB, SPARK = (PRINTERS[name].dialect for name in ("duckdb", "spark"))


def asking(keys: Any, **changes: Any) -> plume.Query:
    settings = {"user": "u", "measures": plume.users(), "max_keys_per_user": 1, "budget": plume.Budget(1, 1e-6)}
    return plume.Query(keys=keys, **(settings | changes))


def printed(keys: Any, **changes: Any) -> str:
    return rows_of_query(asking(keys, **changes), None, DUCKDB).select


def test_keys_have_the_names_of_a_mapping_in_its_order() -> None:
    query = asking({"month": "DATE_TRUNC(day, MONTH)", "country": "country", "land": "country"})
    assert query.keys == ("month", "country", "land")
    assert query.key_expressions == (("month", "DATE_TRUNC(day, MONTH)"), ("land", "country"))
    assert query.released_columns == ("month", "country", "land", "users")


@pytest.mark.parametrize("text", ["country", '"country"', "`country`", " (country) -- as it is"])
def test_a_column_under_its_own_name_is_the_column(text: str) -> None:
    assert asking({"country": text}) == asking("country")


def test_names_in_a_list_are_names_and_never_expressions() -> None:
    query = asking(["a + b", "LOWER(k)", "DATE_TRUNC(day, MONTH)"])
    assert (query.keys, query.key_expressions) == (("a + b", "LOWER(k)", "DATE_TRUNC(day, MONTH)"), ())
    assert query.key_columns == query.keys


def test_a_column_with_an_odd_name_is_quoted_in_an_expression() -> None:
    assert '"rows"."a + b"' in printed({"sum": '"a + b"'})
    assert '"rows"."a"' in printed({"sum": "a + b"})


def test_expressions_beside_columns_come_behind_them() -> None:
    query = asking("country", key_expressions={"month": "EXTRACT(MONTH FROM day)"})
    assert query.keys == ("country", "month")
    assert replace(query) == query
    assert hash(replace(query)) == hash(query)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("DATE_TRUNC(day, MONTH)", 'TRY(DATE_TRUNC(\'MONTH\', "rows"."day"))'),
        ("DATE_TRUNC(visited, month)", 'TRY(DATE_TRUNC(\'MONTH\', "rows"."visited"))'),
        ("DATE_TRUNC('month', day)", 'TRY(DATE_TRUNC(\'MONTH\', "rows"."day"))'),
        ("DATE_TRUNC('day', month)", 'TRY(DATE_TRUNC(\'DAY\', "rows"."month"))'),
        ('DATE_TRUNC("day", MONTH)', 'TRY(DATE_TRUNC(\'MONTH\', "rows"."day"))'),
        ("DATE_TRUNC(MONTH, visited)", 'TRY(DATE_TRUNC(\'MONTH\', "rows"."visited"))'),
        ("EXTRACT(MONTH FROM day)", 'TRY(EXTRACT(MONTH FROM "rows"."day"))'),
        ("LOWER(country)", 'TRY(LOWER("rows"."country"))'),
        ("a % 2 = 0", 'TRY(((TRY_CAST("rows"."a" AS DOUBLE) % NULLIF(2, 0)) = 0))'),
    ],
)
def test_an_expression_is_printed_anew(text: str, made: str) -> None:
    assert f'{made} AS "computed_1"' in printed({"k": text})


def test_where_and_measures_read_the_column_and_not_the_key_of_its_name() -> None:
    query = asking({"day": "DATE_TRUNC(day, YEAR)"}, where="day > DATE '2024-01-01'")
    select = rows_of_query(query, None, DUCKDB).select
    assert '"rows"."day" AS "day"' in select
    assert 'DATE_TRUNC(\'YEAR\', "rows"."day")) AS "computed_1"' in select


def test_a_computed_key_has_a_column_of_a_free_name() -> None:
    query = asking({"k": "LOWER(x)", "computed_2": "computed_2"}, where="COMPUTED_1 > 3")
    assert query.key_columns == ("computed_3", "computed_2")


def test_what_an_expression_does_tells_how_a_file_without_types_is_read() -> None:
    query = asking(
        {"m": "DATE_TRUNC(day, MONTH)", "a": "CAST(age / 10 AS INT)", "c": "LOWER(country)"}, where="age > 3"
    )
    kinds = rows_of_query(query, None, DUCKDB).tables["given_1"].kinds
    assert kinds == {"u": Kind.TEXT, "day": Kind.TIMESTAMP, "age": Kind.INTEGER, "country": Kind.TEXT}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (3, "key 'k' is 3; write an expression, such as"),
        (None, "key 'k' is None; write an expression"),
        ("", "key 'k' is ''; write an expression"),
        ("  ", "write an expression"),
        ("-- nothing", "this is not one expression"),
        ("a, b", "this is not one expression"),
        ("a; b", "this is not one expression"),
        ("a FROM t", "this is not one expression"),
        ("DISTINCT a", "this is not one expression"),
        ("a LIMIT 3", "this is not one expression"),
        ("SELECT a", "this cannot be read as SQL near 'SELECT'"),
        ("a AS b", "AS is not supported here; the name of a key stands before its expression"),
        ("*", "[*] must stand alone"),
        ("1", "reads no column; keys=.. asks for a total"),
        ("DATE '2024-01-01'", "reads no column"),
        ("COUNT(*)", "is a function of many rows"),
        ("SUM(a)", "is a function of many rows"),
        ("COUNT(*) OVER (PARTITION BY a)", "is a function of many rows"),
        ("(SELECT a FROM t)", "a subquery in an expression could look at the rows of other users"),
        ("a IN (SELECT b FROM t)", "a subquery in an expression"),
        ("RANDOM()", "changes from call to call"),
        ("MONTH(a)", r"'MONTH\(a\)' is not known .*; write EXTRACT\(MONTH FROM x\), or DATE_TRUNC\(x, MONTH\) .*; supported are"),
        ("day(a)", r"; write EXTRACT\(DAY FROM x\), or DATE_TRUNC\(x, DAY\) for the beginning of each day; supported are arithmetic,"),
        ("STRFTIME(a, '%Y')", r"; write DATE_TRUNC\(x, MONTH\); supported are"),
        ("LOWR(TRIM( a ) )", r"'LOWR\(TRIM\( a \) \)' is not known .*; did you mean LOWER\? Supported are"),
        ("POWER(a, 2)", "that never fails; supported are arithmetic,"),
        ("list_sum(a)", "is not known to be a function of one row that never fails; supported are arithmetic,"),
        ("STRFTIME(day, '%Y')", "supported are arithmetic, .* EXTRACT and DATE_TRUNC"),
        ("MEDIAN(a)", "is not known to be a function of one row"),
        ("CAST(a AS TEXT)", "there is no CAST to TEXT here"),
        ("DATE_TRUNC(visited, FORTNIGHT)", "the unit of DATE_TRUNC must be one of"),
        ("t.a", "no table is called 't' here"),
        ("rows.a", "no table is called 'rows' here"),
        ("a.b.c", "is not a column"),
        ("a 'open", "cannot be read as SQL"),
        ("'open", "every quote and comment is closed"),
        ("a\0b", "the character with the number 0"),
        ("'\ud800' || a", "cannot be read"),
        ('"\ud800"', "cannot be read"),
        ("(" * 1000 + "a" + ")" * 1000, "nested"),
        ("NOT " * 1000 + "a", "nested"),
        ("a" + " + 1" * 1000, "nested"),
        ("LOWER(" * 1000 + "a" + ")" * 1000, "nested"),
        ("a" + " " * 100_000, "is longer than 100,000 characters"),
        ("u", "which reads 'u', the user; a key must not be made of the user itself"),
        ("LOWER(U)", "which reads 'U', the user"),
        ("CASE WHEN a = 1 THEN u ELSE 0 END", "which reads 'u', the user"),
    ],
)  # fmt: skip
def test_what_is_no_expression_of_a_key_is_refused(text: Any, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        asking({"k": text})


@pytest.mark.parametrize(
    ("keys", "changes", "error", "said"),
    [
        ({"a": "x", "A": "y"}, {}, ColumnNotFound, "keys names 'A' twice; engines ignore case"),
        ({"u": "x"}, {}, ColumnNotFound, "a key must not be the user itself"),
        ({"users": "x"}, {}, MeasureError, "two columns of the result would be called 'users'"),
        ({}, {}, ColumnNotFound, "keys is {}; it must be the name of a column, a list of names, or a mapping"),
        ({"": "x"}, {}, ColumnNotFound, "a key is ''"),
        ({3: "x"}, {}, ColumnNotFound, "a key is 3"),
        ({"a": "x"}, {"key_expressions": {"b": "y"}}, ExpressionError, "give all expressions in one of them"),
        ("a", {"key_expressions": 3}, ExpressionError, "key_expressions is 3; it must be a mapping"),
        ("a", {"key_expressions": ["b"]}, ExpressionError, "it must be a mapping"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: Any, changes: Any, error: type[UsageError], said: str) -> None:
    with pytest.raises(error, match=said):
        asking(keys, **changes)


def test_an_engine_may_know_fewer_units_than_another() -> None:
    query = asking({"k": "EXTRACT(EPOCH FROM day)"})
    assert "EPOCH" in rows_of_query(query, None, DUCKDB).select
    with pytest.raises(ExpressionError, match="the unit of EXTRACT must be one of"):
        rows_of_query(query, None, SPARK)


def test_another_expression_is_another_question_and_a_column_is_the_one_it_was() -> None:
    def digest(keys: Any) -> str:
        return Request(plume.explain(asking(keys)), "d").digest

    questions = ["month", {"month": "LOWER(month)"}, {"month": "UPPER(month)"}, {"other": "LOWER(month)"}]
    assert len({digest(keys) for keys in questions}) == len(questions)
    assert digest({"month": "month"}) == digest("month")


def test_what_is_told_of_a_query_has_its_expressions() -> None:
    query = asking({"month": "DATE_TRUNC(day, MONTH)", "country": "country"})
    explanation = plume.explain(query)
    assert "keys       month: DATE_TRUNC(day, MONTH)" in str(explanation)
    assert explanation.record()["query"]["key_expressions"] == {"month": "DATE_TRUNC(day, MONTH)"}
    assert eval(query_call(query), {"plume": plume}) == query  # noqa: S307 - our own text


def test_the_names_of_a_query_with_computed_keys_stay_out_of_its_plan() -> None:
    assert "month" not in plume.explain(asking({"month": "DATE_TRUNC(day, YEAR)"})).sql()


def test_reading_an_expression_twice_gives_the_same_tree() -> None:
    assert read_key("a", "LOWER(x)").tree is read_key("b", "LOWER(x)").tree


def test_an_audit_makes_up_keys_in_place_of_computed_ones() -> None:
    audit = plume.audit(asking({"month": "DATE_TRUNC(day, MONTH)"}), trials=4_000)
    assert audit.passed
