"""Whatever relation a statement may have below its private SELECT, each of its rows is one user's: without a user, the others' rows stay.

Relations are made up, sound ones and others; those that Plume accepts are run on neighbouring tables. Nothing is random but the examples,
so there are no false alarms.
"""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Relation
from plume.errors import StatementError
from plume.statement.answering import ask

HEAD = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 2, privacy_unit_column = r.u) "
    "LOWER(r.k) AS k, SUM(r.x, contribution_bounds_per_group => (0, 1)) FROM "
)
ENGINE = DuckDB(threads=1)
USERS = (1, 2, 3, 4, None)
EXPRESSIONS = (
    "x", "x + 1", "1 / x", "x % 2", "CAST(x AS INT)", "CAST(k AS INT)", "LN(x)", "SQRT(x)", "COALESCE(x, w)", "x * 1e300 * 1e300",
    "CASE WHEN x > 1 THEN w ELSE x END", "LENGTH(k) / w", "NULLIF(x, 0)", "ROUND(x)", "random()", "(SELECT MAX(x) FROM a)", "LEAST(x, w)",
)  # fmt: skip
CONDITIONS = (
    "x > 1", "1 / w > 0.4", "k LIKE 'a%'", "CAST(k AS INT) > 1", "w IS NULL", "u <> 2", "u IN (1, 3)", "x < w OR k = 'b'", "NOT (x > 1)",
    "x > (SELECT AVG(x) FROM a)",
)  # fmt: skip
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
UNIT_JOINS = (
    "s.u = t.u", "t.u = s.u AND s.k = t.k", "s.u = t.u AND s.x < t.x", "s.u = t.u AND s.w = t.w", "s.k = t.k AND t.u = s.u",
    "s.k = t.k", "s.u < t.u", "s.u = t.u OR s.k = t.k", "s.u = t.w",
)  # fmt: skip
CALLS = (
    "SUM(x)", "AVG(x)", "COUNT(*)", "COUNT(DISTINCT k)", "MAX(w)", "MIN(x) + 1", "SUM(x) / COUNT(*)", "ANY_VALUE(x)", "MAX(u)",
)  # fmt: skip
WINDOWS = (
    "COUNT(x) OVER (PARTITION BY k, u)", "MIN(x) OVER (PARTITION BY u ORDER BY k, x DESC)", "RANK() OVER (PARTITION BY u ORDER BY w)",
    "SUM(x) OVER (PARTITION BY u ORDER BY x)", "RANK() OVER (PARTITION BY u, k ORDER BY x DESC)", "AVG(x) OVER (PARTITION BY u)",
    "COUNT(*) OVER (PARTITION BY k)", "MAX(x) OVER ()", "ROW_NUMBER() OVER (PARTITION BY u ORDER BY k)",
    "DENSE_RANK() OVER (PARTITION BY u ORDER BY k)",
)  # fmt: skip


def plain() -> st.SearchStrategy[str]:
    """A selection from one table; w, another user, stands in for u at times."""
    unit = st.sampled_from(["u", "u", "u", "u", "u", "u", "u", "w AS u", "COALESCE(u, 1) AS u"])
    made = st.tuples(
        unit, st.sampled_from(EXPRESSIONS), st.sampled_from(CONDITIONS), st.sampled_from("aab"), st.booleans()
    )
    return made.map(lambda m: f"SELECT {m[0]}, k, {m[1]} AS x, w FROM {m[3]}" + (f" WHERE {m[2]}" if m[4] else ""))


def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def wrapped(form: str, *choices: Any) -> st.SearchStrategy[str]:
        return st.tuples(inner, inner, *map(st.sampled_from, choices)).map(lambda m: form.format(*m))

    return st.one_of(
        wrapped(
            "SELECT {3}.u AS u, t.k AS k, s.x AS x, t.w AS w FROM ({0}) s {2} ({1}) t ON {4}", JOINS, "st", UNIT_JOINS
        ),
        wrapped("SELECT s.u AS u, {3}.k AS k, s.x AS x, p.z AS w FROM ({0}) s {2} p ON p.k = s.k", JOINS, "sp"),
        wrapped("SELECT s.u AS u, p.k AS k, s.x AS x, s.w AS w FROM p CROSS JOIN ({0}) s"),
        wrapped(
            "SELECT u, s.k AS k, s.x AS x, t.w AS w FROM ({0}) s {2} ({1}) t USING ({3})", JOINS[:3], ("u", "u", "k")
        ),
        wrapped(
            "SELECT u, k, x, w FROM ({0}) UNION ALL SELECT {2} FROM ({1})", ("u, k, x, w", "u, k, w, x", "w, k, x, u")
        ),
        wrapped("SELECT u, k, {2} AS x, MAX(w) AS w FROM ({0}) GROUP BY {3}", CALLS, ("u, k", "1, 2", "k, u")),
        wrapped("SELECT {3} AS u, k, {2} AS x, COUNT(*) AS w FROM ({0}) GROUP BY k", CALLS, ("MAX(u)", "MIN(u)")),
        wrapped("SELECT u, k, {2} AS x, w FROM ({0}) QUALIFY {3} >= 1", WINDOWS, WINDOWS),
        wrapped("SELECT DISTINCT u, k, x, w FROM ({0})"),
        wrapped("SELECT u, k, x, w FROM ({0}) ORDER BY x LIMIT 3"),
        wrapped("SELECT * FROM ({0}) WHERE {2}", CONDITIONS),
    )


relations = st.recursive(plain(), more, max_leaves=4)
values = st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1.0, 1.5, 2.0, -3.0, 1e300, float("inf"), float("nan"), None])
rows = st.lists(
    st.tuples(st.sampled_from(USERS), st.sampled_from(USERS), st.sampled_from(["a", "b", "7", "A"]), values),
    max_size=14,
)


def table(listed: list[tuple[Any, ...]]) -> pa.Table:
    kinds = {"u": pa.int64(), "w": pa.int64(), "k": pa.string(), "x": pa.float64()}
    columns = list(zip(*listed, strict=True)) or [()] * len(kinds)
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)})


PUBLIC = pa.table({"k": ["a", "a", "b", "c"], "z": [1, 2, 3, 4]})


def accepted(sql: str, data: dict[str, Any]) -> Relation | None:
    """Read a statement; None if it is refused."""
    try:
        asked = ask(f"{HEAD}({sql}) AS r GROUP BY 1", engine=ENGINE, tables=data, public_tables={"p": PUBLIC})
    except StatementError:
        return None
    assert isinstance(asked.data, Relation)
    return asked.data


def selected(relation: Relation) -> Counter[str]:
    """Count the rows that belong to somebody; 0.0 and -0.0 are one, as nothing in a statement tells them apart."""
    with ENGINE.open(relation.tables) as session:
        session.define_relation("input", relation.select)
        found = session._connection.table("input").to_arrow_table()
    listed = found.to_pylist()
    told = (
        [value + 0 if isinstance(value, float) else value for value in row.values()]
        for row in listed
        if row["u"] is not None
    )
    return Counter(map(repr, told))


def without(data: dict[str, pa.Table], relation: Relation, user: int) -> dict[str, pa.Table]:
    """Leave out all rows of a user."""
    units = {relation.written[name]: column for name, column in relation.units}
    return {
        name: pa.Table.from_pylist(
            [row for row in rows.to_pylist() if row[units.get(name, "u")] != user], schema=rows.schema
        )
        for name, rows in data.items()
    }


def differ(sql: str, data: dict[str, pa.Table], user: int) -> bool:
    """Tell whether one user more changes rows of others, or the order of rows changes anything."""
    relation = accepted(sql, data)
    if relation is None:
        return False
    everybody = selected(relation)
    reduced = accepted(sql, without(data, relation, user))
    backwards = accepted(
        sql, {name: rows.take(pa.array(range(len(rows))[::-1], pa.int64())) for name, rows in data.items()}
    )
    assert reduced is not None
    assert backwards is not None
    others = Counter({row: count for row, count in everybody.items() if not row.startswith(f"[{user}, ")})
    left = Counter({row: count for row, count in selected(reduced).items() if not row.startswith(f"[{user}, ")})
    return others != left or everybody != selected(backwards)


@pytest.mark.parametrize("examples", [50, pytest.param(150, marks=pytest.mark.engines)])
def test_without_a_user_the_rows_of_others_stay(examples: int) -> None:
    # Made anew for each number of examples: Hypothesis takes settings for one function once.
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(relations, rows, rows, st.sampled_from([1, 2, 3]))
    @example(
        "SELECT s.u AS u, t.k AS k, s.x AS x, t.w AS w FROM a AS s FULL JOIN (SELECT u, k, x, w FROM b) t ON s.u = t.u",
        [(1, 2, "a", 1.0), (2, 1, "b", 2.0)],
        [(1, 3, "a", 1.0), (3, 3, "b", 0.1)],
        1,
    )
    @example(
        "SELECT u, k, SUM(x) AS x, MAX(w) AS w FROM a GROUP BY u, k",
        [(1, 1, "a", 0.1), (2, 2, "a", 1e300), (1, 1, "a", 0.2), (1, 1, "a", 0.3)],
        [],
        2,
    )
    def rows_of_others_stay(sql: str, one: list[Any], other: list[Any], user: int) -> None:
        assert not differ(sql, {"a": table(one), "b": table(other)}, user)

    rows_of_others_stay()


UNSOUND = (
    "SELECT s.u AS u, t.k AS k, s.x AS x, t.w AS w FROM (SELECT u, k, x, w FROM a) s JOIN (SELECT u, k, x, w FROM b) t ON s.k = t.k",
    "SELECT u, k, x, w FROM (SELECT u, k, x, w FROM a) ORDER BY x LIMIT 1",
    "SELECT MAX(u) AS u, k, SUM(x) AS x, COUNT(*) AS w FROM a GROUP BY k",
    "SELECT u, k, COUNT(*) OVER (PARTITION BY k) AS x, w FROM a",
    "SELECT u, k, x, w FROM a WHERE x > (SELECT AVG(x) FROM a)",
    "SELECT u, k, x, w FROM a UNION ALL SELECT w, k, x, u FROM a",
    "SELECT COALESCE(u, 1) AS u, k, x, w FROM a",
    "SELECT s.u AS u, t.k AS k, s.x AS x, t.w AS w FROM a AS s JOIN a AS t ON s.u = t.w",
)


@pytest.mark.parametrize("sql", UNSOUND)
def test_what_would_mix_users_is_refused(sql: str) -> None:
    rows = table([(1, 2, "a", 1.0), (2, 1, "a", 2.0)])
    assert accepted(sql, {"a": rows, "b": rows.slice(0)}) is None


def test_a_relation_that_was_not_checked_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test itself has teeth: without the check, a join of users by key changes the rows of others."""
    monkeypatch.setattr("plume.relation.relations._joined_units", lambda select, unit, text: {unit[0]: unit[1]})  # noqa: ARG005
    rows = table([(1, 2, "a", 1.0), (2, 1, "a", 2.0)])
    assert differ(UNSOUND[0], {"a": rows, "b": table([(1, 3, "a", 5.0)])}, 1)
