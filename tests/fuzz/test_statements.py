"""Nothing that a caller writes is printed outside of quotes: every form of expression, a marker in every slot, on both dialects."""

from random import Random

import pytest

import plume
from fuzz.fuzz_statements import (
    ENGINES,
    EXPRESSIONS,
    HEAD,
    MARKER,
    PUBLIC,
    TABLES,
    every_slot,
    every_slot_of_keys,
    key_printed_raw,
    plain,
    printed_raw,
    unquoted,
)
from plume.errors import StatementError
from plume.statement.answering import ask

UNITS = ("YEAR FROM d)) + (SELECT MAX(f) FROM given_1) + (EXTRACT(YEAR", "year FROM d) + (SELECT 1", "x y", "")
SIZES = ("18, 2)) + (SELECT MAX(f) FROM given_1) + CAST(0 AS DECIMAL(18, 2", "18", "")


@pytest.mark.parametrize("dialect", ENGINES)
def test_no_marker_is_printed_outside_of_quotes(dialect: str) -> None:
    found = [(case.text, raw) for case in every_slot(dialect, Random(1)) if (raw := printed_raw(case)) is not None]
    assert found == []


@pytest.mark.parametrize("dialect", ENGINES)
def test_no_marker_in_the_expression_or_the_name_of_a_key_is_printed_outside_of_quotes(dialect: str) -> None:
    found = [
        (text, raw) for text in every_slot_of_keys(Random(1)) if (raw := key_printed_raw(text, dialect)) is not None
    ]
    assert found == []


@pytest.mark.parametrize("dialect", ENGINES)
def test_a_key_may_be_what_a_statement_may_compute(dialect: str) -> None:
    """One reading for all engines, which is DuckDB's: what it does not take, no key may be."""
    for expression in map(plain, EXPRESSIONS):
        assert key_printed_raw(expression, dialect) is None
        if _is_key(expression):
            assert _is_accepted(expression, "duckdb")


def _is_key(expression: str) -> bool:
    try:
        plume.Query(
            user="u", keys={"k": expression}, measures=plume.users(), max_keys_per_user=1, budget=plume.Budget(1, 1e-5)
        )
    except plume.PlumeError:
        return False
    return True


@pytest.mark.parametrize("dialect", ENGINES)
def test_half_of_the_expressions_are_accepted_as_they_are(dialect: str) -> None:
    """Otherwise the fuzzer would try refusals only."""
    accepted = [expression for expression in map(plain, EXPRESSIONS) if _is_accepted(expression, dialect)]
    assert len(accepted) > len(EXPRESSIONS) / 2


@pytest.mark.parametrize("quote", ['"', "`", "'"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", ["EXTRACT({} FROM d)", "DATE_TRUNC({}, d)"])
@pytest.mark.parametrize("dialect", ENGINES)
def test_a_unit_that_is_not_on_the_list_is_refused(form: str, unit: str, quote: str, dialect: str) -> None:
    with pytest.raises(StatementError):
        _ask(form.format(f"{quote}{unit}{quote}"), dialect)


@pytest.mark.parametrize("quote", ['"', "`", "'"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "form", ["CAST(f AS DECIMAL({}))", "CAST(f AS DECIMAL(18, {}))", "f :: DECIMAL({})", "CAST(f AS INT({}))"]
)
@pytest.mark.parametrize("dialect", ENGINES)
def test_a_parameter_of_a_type_that_is_quoted_is_refused(form: str, size: str, quote: str, dialect: str) -> None:
    with pytest.raises(StatementError):
        _ask(form.format(f"{quote}{size}{quote}"), dialect)


@pytest.mark.parametrize("size", ["0", "39", "18, 19", "4, 2, 1", "-1", "1.5", "1e1", "9" * 30])
@pytest.mark.parametrize("dialect", ENGINES)
def test_a_decimal_that_no_engine_has_is_refused(size: str, dialect: str) -> None:
    with pytest.raises(StatementError):
        _ask(f"CAST(f AS DECIMAL({size}))", dialect)


@pytest.mark.parametrize("dialect", ENGINES)
def test_comments_are_not_printed(dialect: str) -> None:
    printed = _ask(
        "/* one */ CAST(f /* two */ AS /* three */ INT /* four */) -- five\n + /*+ six */ EXTRACT(/* seven */ YEAR FROM d)",
        dialect,
    )
    assert "*" not in unquoted(printed, dialect).replace("SELECT *", "")
    assert "--" not in printed


@pytest.mark.parametrize("dialect", ENGINES)
def test_a_statement_with_a_null_character_is_refused(dialect: str) -> None:
    with pytest.raises(StatementError, match="the character with the number 0"):
        _ask("LOWER('a\0b')", dialect)


@pytest.mark.parametrize("dialect", ENGINES)
def test_an_expression_nested_too_deeply_is_refused_with_a_sentence(dialect: str) -> None:
    with pytest.raises(StatementError, match="150 levels deep"):
        _ask(" + ".join(["f"] * 2_000), dialect)


@pytest.mark.parametrize(
    "note",
    ["f BETWEEN SYMMETRIC 2 AND 1", "FLOOR(d TO DAY)", "CAST(t AS DATE FORMAT 'YYYY')", "CAST(d AS TIMESTAMP(3))"],
)
def test_what_the_parser_notes_and_nobody_reads_is_refused(note: str) -> None:
    with pytest.raises(StatementError):
        _ask(note, "duckdb")


UNREAD = (
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY t ORDER BY n WITH FILL",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY t LIMIT 5 PERCENT",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY t LIMIT 5 BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY t FETCH FIRST 5 ROWS WITH TIES",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY ALL",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY t WITH ROLLUP",
    f"{HEAD} t, COUNT(DISTINCT u) FILTER (WHERE f > 1) AS n FROM rows GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u ORDER BY f) AS n FROM rows GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) IGNORE NULLS AS n FROM rows GROUP BY t",
    f"{HEAD} t, SUM(f HAVING MAX d, contribution_bounds_per_group => (0, 1)) AS n FROM rows GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows TABLESAMPLE (10 PERCENT) GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows AS a (u, t) GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows FOR SYSTEM_TIME AS OF '2026-01-01' GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows GROUP BY t FOR UPDATE",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows LATERAL VIEW explode(f) x AS y GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM rows DISTRIBUTE BY t GROUP BY t",
    f"WITH RECURSIVE c AS (SELECT u, t FROM rows) {HEAD} t, COUNT(DISTINCT u) AS n FROM c GROUP BY t",
    f"WITH c AS MATERIALIZED (SELECT u, t FROM rows) {HEAD} t, COUNT(DISTINCT u) AS n FROM c GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM (SELECT u, t FROM rows ORDER BY f LIMIT 3) GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM (SELECT u, t FROM rows UNION ALL BY NAME SELECT t, u FROM rows) GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) AS n FROM (SELECT * EXCLUDE (f) FROM rows) GROUP BY t",
    f"{HEAD} /*+ BROADCAST(rows) */ t, COUNT(DISTINCT u) AS n FROM rows ASOF JOIN listed USING (t) GROUP BY t",
)


@pytest.mark.parametrize("text", UNREAD)
@pytest.mark.parametrize("dialect", ENGINES)
def test_a_clause_that_nobody_reads_is_refused(text: str, dialect: str) -> None:
    with pytest.raises(StatementError):
        ask(text, engine=ENGINES[dialect], tables=TABLES, public_tables=PUBLIC)


def test_a_salary_does_not_leave_as_a_key() -> None:
    """The injection of version 0.1.0: the unit of EXTRACT is a quoted name that closes the bracket and asks for more."""
    unit = f"YEAR FROM DATE '2020-01-01')) - 4040 + (SELECT MAX({MARKER}) FROM GIVEN_1) + TRY(EXTRACT(YEAR"
    with pytest.raises(StatementError, match="the unit of EXTRACT must be one of SECOND, MINUTE, HOUR, DAY"):
        plume.sql(f'{HEAD} EXTRACT("{unit}" FROM d) AS k, COUNT(DISTINCT u) AS n FROM rows GROUP BY 1', tables=TABLES)


def _ask(expression: str, dialect: str) -> str:
    text = f"{HEAD} COUNT(*, contribution_bounds_per_group => (0, 3)) FROM (SELECT u, {expression} AS x FROM rows) WHERE x IS NULL"
    return str(ask(text, engine=ENGINES[dialect], tables=TABLES, public_tables=PUBLIC).data.select)


def _is_accepted(expression: str, dialect: str) -> bool:
    try:
        _ask(expression, dialect)
    except StatementError:
        return False
    return True


@pytest.mark.parametrize(
    ("written", "printed"), [("NULLS FIRST", "NULLS FIRST"), ("DESC NULLS LAST", "DESC NULLS LAST")]
)
@pytest.mark.parametrize("dialect", ENGINES)
def test_where_null_comes_in_a_window_is_printed_as_it_is_written(written: str, printed: str, dialect: str) -> None:
    assert f"{printed})" in _ask(f"RANK() OVER (PARTITION BY u ORDER BY f {written})", dialect)


def test_where_null_comes_in_a_window_is_the_dialects_own_choice_otherwise() -> None:
    assert "NULLS LAST)" in _ask("RANK() OVER (PARTITION BY u ORDER BY f)", "duckdb")
    assert "NULLS FIRST)" in _ask("RANK() OVER (PARTITION BY u ORDER BY f)", "spark")
