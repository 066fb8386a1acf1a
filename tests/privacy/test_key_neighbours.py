"""Whatever computes a key, each row is one user's: without a user, the rows that a query makes of all others stay, whatever their order.

Nothing is random but the examples, so there are no false alarms.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plume
from exact import exact_release
from plume.computed_keys import rows_of_query
from plume.engines.duckdb import DuckDB
from plume.errors import UsageError
from questions import asking

ENGINE = DuckDB(threads=1)
ACCEPTED = (
    "CAST(x AS INT)", "CAST(1 / x AS INT)", "x % 2 = 1", "CAST(k AS INT)", "LOWER(k)", "UPPER(k)", "COALESCE(k, 'none')", "NULLIF(k, 'a')",
    "CASE WHEN x > 1 THEN k ELSE 'low' END", "LENGTH(k)", "SUBSTR(k, 1, 1)", "k LIKE 'a%'", "x IS NULL", "CAST(LN(x) AS INT)", "d",
    "DATE_TRUNC(d, MONTH)", "EXTRACT(YEAR FROM d)", "CAST(d AS DATE)", "GREATEST(k, 'b')", "CAST(x * 1e300 * 1e300 AS BIGINT)",
)  # fmt: skip
REFUSED = ("SUM(x)", "(SELECT MAX(x) FROM rows)", "RANDOM()", "COUNT(*) OVER (PARTITION BY k)")
SCHEMA = pa.schema([("u", pa.int64()), ("x", pa.float64()), ("k", pa.string()), ("d", pa.timestamp("us"))])
values = st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, 1e308, float("nan"), float("inf"), None])
words = st.sampled_from(["a", "A", "b", "", "7", "1e9", "é", None])
moments = st.sampled_from([0, 1_700_000_000_000_000, -(2**62), 2**62, 253_402_300_799_000_000, None])
rows = st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), values, words, moments), max_size=8)


def table(content: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*content, strict=True) if content else ([], [], [], [])
    made = [
        pa.array(column, pa.int64() if field.name == "d" else field.type)
        for field, column in zip(SCHEMA, columns, strict=True)
    ]
    return pa.table(
        [column.view(field.type) if field.name == "d" else column for field, column in zip(SCHEMA, made, strict=True)],
        SCHEMA,
    )


def numbered(expressions: Iterable[str]) -> dict[str, str]:
    return {f"e{number}": expression for number, expression in enumerate(expressions)}


def made_of(asked: plume.Query, content: list[tuple[Any, ...]]) -> Counter[str]:
    relation = rows_of_query(asked, table(content), ENGINE.dialect)
    with ENGINE.open(relation.tables) as session:
        session.define_relation("input", relation.select)
        found = session._connection.sql('SELECT columns(*)::VARCHAR FROM "input" WHERE u IS NOT NULL').fetchall()
    return Counter(map(repr, found))


def refuse_changed_rows_of_others(asked: plume.Query, content: list[tuple[Any, ...]], user: int) -> None:
    everybody = made_of(asked, content)
    others = Counter({row: times for row, times in everybody.items() if not row.startswith(f"('{user}', ")})
    assert made_of(asked, [row for row in content if row[0] != user]) == others
    assert made_of(asked, content[::-1]) == everybody


@given(content=rows, user=st.sampled_from([1, 2, 3]))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_without_a_user_the_rows_of_others_stay(content: list[tuple[Any, ...]], user: int) -> None:
    """All expressions beside each other; `make test-engines` tries each alone."""
    refuse_changed_rows_of_others(asking(keys={"k": "k", **numbered(ACCEPTED)}), content, user)


@pytest.mark.engines
@pytest.mark.parametrize("expression", ACCEPTED)
@given(content=rows, user=st.sampled_from([1, 2, 3]))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_without_a_user_the_rows_of_others_stay_by_one_expression(
    expression: str, content: list[tuple[Any, ...]], user: int
) -> None:
    refuse_changed_rows_of_others(asking(keys={"e": expression, "k": "k"}), content, user)


def test_keys_that_are_none_of_a_row_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests themselves have teeth: an expression that looked at other rows would be seen beside all others."""
    rows_of = rows_of_query

    def counting(*given: Any) -> Any:
        relation = rows_of(*given)
        return replace(relation, select=f"SELECT *, count(*) OVER () AS others FROM ({relation.select})")

    monkeypatch.setitem(globals(), "rows_of_query", counting)
    with pytest.raises(AssertionError):
        refuse_changed_rows_of_others(
            asking(keys={"k": "k", **numbered(ACCEPTED)}), [(1, 1.0, "a", 0), (2, 2.5, "b", 0)], 2
        )


@pytest.mark.parametrize("text", REFUSED)
def test_what_could_look_at_others_is_no_key(text: str) -> None:
    with pytest.raises(UsageError):
        asking(keys={"e": text})


@given(content=rows, user=st.sampled_from([1, 2, 3]))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_user_changes_a_total_by_no_more_than_noise_pays_for(content: list[tuple[Any, ...]], user: int) -> None:
    asked = asking(keys=[], measures=[plume.users(), plume.count(2)])
    one, other = (
        exact_release(asked, table(some), engine=ENGINE).to_pylist()
        for some in (content, [row for row in content if row[0] != user])
    )
    assert len(one) == len(other) == 1
    assert 0 <= one[0]["users"] - other[0]["users"] <= 1
    assert 0 <= one[0]["count"] - other[0]["count"] <= 2
