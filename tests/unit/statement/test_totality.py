"""No row makes an expression fail: made-up expressions over poisoned rows, of every type and every function on the list."""

# ruff: noqa: DTZ001 - moments of no zone

import math
from contextlib import suppress
from datetime import date, datetime

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Relation, Table
from plume.errors import EngineError
from plume.plan.types import Kind
from plume.statement.answering import ask

FLOATS = [0.0, -0.0, 1.5, -1e308, 1e308, 5e-324, math.nan, math.inf, -math.inf, None]
WHOLES = [0, 1, -1, 2**63 - 1, -(2**63), 2**31, 7, None, -7, 10]
TEXTS = ["", "abc", "7", "-1e999", "2026-02-30", "2026-01-31", "é\u0301", "a\0b", None, "%_\\"]
DAYS = [date(1, 1, 1), date(9999, 12, 31), date(2026, 1, 31), date(1970, 1, 1), None] * 2
MOMENTS = [
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 1, 31, 1, 2, 3),
    None,
    datetime(1970, 1, 1),
] * 2
ROWS = pa.table({
    "u": list(range(10)), "f": FLOATS, "w": pa.array(WHOLES, pa.int64()), "s": pa.array([1, -128, 127, 0, None] * 2, pa.int8()), "t": TEXTS,
    "d": DAYS, "m": pa.array(MOMENTS, pa.timestamp("us")), "b": [True, False, None, True, False] * 2,
})  # fmt: skip

numbers = st.deferred(lambda: st.one_of(
    st.sampled_from(["f", "w", "s", "0", "1.5", "9223372036854775807", "1e308", "-1"]),
    st.tuples(numbers, st.sampled_from("+-*/%"), numbers).map(lambda m: f"({m[0]} {m[1]} {m[2]})"),
    st.tuples(st.sampled_from(["ABS", "FLOOR", "CEIL", "SQRT", "LN", "EXP", "-", "ROUND"]), numbers).map(lambda m: f"{m[0]}({m[1]})"),
    st.tuples(numbers, st.integers(-30, 30)).map(lambda m: f"ROUND({m[0]}, {m[1]})"),
    st.tuples(st.one_of(numbers, texts), st.sampled_from(["INT", "TINYINT", "BIGINT", "DOUBLE", "DECIMAL(4, 2)", "DECIMAL(38, 10)"])).map(
        lambda m: f"CAST({m[0]} AS {m[1]})"),
    st.tuples(st.sampled_from(["COALESCE", "NULLIF", "GREATEST", "LEAST"]), numbers, numbers).map(lambda m: f"{m[0]}({m[1]}, {m[2]})"),
    st.tuples(conditions, numbers, numbers).map(lambda m: f"CASE WHEN {m[0]} THEN {m[1]} ELSE {m[2]} END"),
    texts.map(lambda text: f"LENGTH({text})"),
    st.tuples(st.sampled_from(["YEAR", "MONTH", "DAY", "DOW", "EPOCH"]), moments).map(lambda m: f"EXTRACT({m[0]} FROM {m[1]})"),
))  # fmt: skip
texts = st.deferred(lambda: st.one_of(
    st.sampled_from(["t", "'x'", "'7'"]),
    st.tuples(st.sampled_from(["LOWER", "UPPER", "TRIM"]), texts).map(lambda m: f"{m[0]}({m[1]})"),
    st.tuples(texts, st.integers(-9, 9), st.integers(-9, 9)).map(lambda m: f"SUBSTR({m[0]}, {m[1]}, {m[2]})"),
    st.tuples(conditions, texts, texts).map(lambda m: f"IF({m[0]}, {m[1]}, {m[2]})"),
))  # fmt: skip
moments = st.deferred(lambda: st.one_of(
    st.sampled_from(["d", "m", "DATE '2026-01-31'", "TIMESTAMP '2026-01-31 12:00:00'"]),
    texts.map(lambda text: f"CAST(LOWER({text}) AS TIMESTAMP)"),
    st.tuples(st.sampled_from(["year", "month", "week", "hour", "millennium"]), moments).map(lambda m: f"DATE_TRUNC('{m[0]}', {m[1]})"),
))  # fmt: skip
conditions = st.deferred(lambda: st.one_of(
    st.sampled_from(["b", "TRUE", "f IS NULL", "t LIKE '%a_'", "STARTS_WITH(t, 'a')", "w IN (1, 2, 3)", "d > DATE '2026-01-01'"]),
    st.tuples(numbers, st.sampled_from(["<", "<=", "=", "<>", ">"]), numbers).map(lambda m: f"({m[0]} {m[1]} {m[2]})"),
    st.tuples(moments, moments).map(lambda m: f"({m[0]} < {m[1]})"),
    st.tuples(conditions, st.sampled_from(["AND", "OR"]), conditions).map(lambda m: f"({m[0]} {m[1]} {m[2]})"),
    conditions.map(lambda condition: f"NOT ({condition})"),
    st.tuples(numbers, numbers, numbers).map(lambda m: f"{m[0]} BETWEEN {m[1]} AND {m[2]}"),
))  # fmt: skip


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(numbers, min_size=4, max_size=4), texts, moments, conditions)
def test_no_row_makes_an_expression_fail(listed: list[str], text: str, moment: str, condition: str) -> None:
    columns = ", ".join(f"{expression} AS e{place}" for place, expression in enumerate([*listed, text, moment]))
    inner = f"SELECT u, {columns} FROM rows WHERE {condition} OR u >= 0"
    calls = "u, LENGTH(e4) AS k, SUM(e0) AS e0, AVG(e1) AS e1, MIN(e2) AS e2, MAX(e3) AS e3, COUNT(e5) AS e5"
    asked = ask(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 2, privacy_unit_column = u) "
        f"k, SUM(e0 + e1 + e2 + e3, contribution_bounds_per_group => (0, 1)) FROM (SELECT {calls} FROM ({inner}) GROUP BY 1, 2) GROUP BY k",
        engine=DuckDB(threads=1),
        tables={"rows": ROWS},
    ).data
    assert isinstance(asked, Relation)
    fitting: list[bool] = []
    with DuckDB(threads=1).open(asked.tables) as session:
        with suppress(EngineError):  # the types of its parts do not fit, whatever the rows
            session.define_relation("input", asked.select)
            fitting.append(True)
        if fitting:
            session.keep("kept", 'SELECT * FROM "input"')


def test_what_expressions_share_is_not_computed_outside_of_try() -> None:
    """DuckDB's optimizer would compute ABS(s) once, below both, where the smallest integer of eight bits makes it fail."""
    with DuckDB(threads=1).open({"rows": Table(ROWS, {"s": Kind.INTEGER}, stated=True)}) as session:
        session.define_relation("tried", "SELECT TRY(ABS(s)) AS one, TRY(ABS(s) + 1) AS other FROM rows")
        assert session.fetch("tried", ("one",))["other"].null_count == 6
