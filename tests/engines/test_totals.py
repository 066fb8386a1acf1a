"""Totals: a query without keys releases one row, of all rows that have a user, and spends nothing on selecting keys."""

import json
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from exact import exact_release
from plume.engines import duckdb as duckdb_engine
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.tuning.curves import draw_expectation
from questions import asking

# Some users have many rows, some rows have no user, and some no key.
ROWS = pa.table(
    {
        "u": [None if row % 11 == 0 else f"user {row % 7}" for row in range(60)],
        "k": [None if row % 5 == 0 else row % 3 for row in range(60)],
        "v": [row - 20 for row in range(60)],
    }
)
MEASURES = [plume.users(), plume.count(max_per_key=4), plume.sum("v", low_total=-30, high_total=50)]
PIPELINES = ["plume", "naive", "runtime_optimized"]


def total(**changes: object) -> plume.Query:
    settings = {"user": "u", "keys": [], "measures": MEASURES, "budget": plume.Budget(epsilon=200, delta=0.5)} | changes
    return plume.Query(**settings)  # type: ignore[arg-type]


def expected() -> dict[str, list[int]]:
    values = defaultdict(list)
    for row in ROWS.to_pylist():
        if row["u"] is not None:
            values[row["u"]].append(row["v"])
    return {
        "users": [len(values)],
        "count": [sum(min(len(own), 4) for own in values.values())],
        "v_sum": [sum(min(max(sum(own), -30), 50) for own in values.values())],
    }


@pytest.mark.quick_on("spark", "spark-connect")
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_total_is_the_exact_answer_before_noise(pipeline: str, engine: Engine) -> None:
    assert exact_release(total(), ROWS, engine=engine, pipeline=pipeline).to_pydict() == expected()


def test_the_paper_s_query_has_totals_too(engine: Engine) -> None:
    assert exact_release(asking(keys=[], measures=MEASURES), ROWS, engine=engine).to_pydict() == expected()


def test_a_total_of_nobody_is_a_row_too(engine: Engine) -> None:
    nobody = ROWS.slice(0, 1)
    assert exact_release(total(), nobody, engine=engine).to_pylist() == [{"users": 0, "count": 0, "v_sum": 0}]


@pytest.mark.parametrize("where", [None, "k = 1"])
def test_a_statement_without_group_by_is_the_same_total(where: str | None, engine: Engine) -> None:
    asked = exact_release(total(measures=[plume.users(), plume.count(4)], where=where), ROWS, engine=engine)
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 200, delta = 0.5, privacy_unit_column = u) "
        "COUNT(DISTINCT u) AS users, COUNT(*, contribution_bounds_per_group => (0, 4)) AS count FROM rows"
        + (f" WHERE {where}" if where else "")
    )
    released = plume.sql(text, tables={"rows": ROWS}, engine=engine)
    assert released.rows.column_names == asked.column_names
    assert released.explanation.query.keys == ()


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_total_of_a_large_file_that_is_read_again_is_the_same(
    pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_engine, "_LARGE_FILES_BYTES", 0)
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    found = exact_release(total(), tmp_path / "rows.parquet", engine=DuckDB(), pipeline=pipeline)
    assert found.to_pydict() == expected()


def test_bounds_of_a_total_may_be_chosen(engine: Engine) -> None:
    release = plume.run(total(measures=[plume.count("auto")]), ROWS, engine=engine)
    assert (set(release.chosen), len(release)) == ({"count: max_per_key"}, 1)


def test_a_total_spends_its_whole_budget_on_measures() -> None:
    explanation = plume.explain(total(budget=plume.Budget(1), measures=[plume.users()]))
    assert [part["part"] for part in explanation.facts()["spent"]] == ["users"]
    assert explanation.facts()["spent"][0]["epsilon"] == 1


def test_what_is_told_of_a_total_has_no_key() -> None:
    release = plume.run(total(), ROWS)
    assert release.rows.column_names == ["users", "count", "v_sum"]
    assert "no keys: one row is released, whoever is in it" in str(release.explanation)
    assert "all records of a u count together" in str(release.explanation)
    assert json.loads(release.to_json())["query"]["keys"] == []
    assert list(release.to_pandas().columns) == list(release.intervals().rows.column_names[:3])
    assert set(release.intervals().rows.column_names[3:]) >= {"users_low", "v_sum_high"}


def test_a_total_is_cut_off_by_no_limit_of_keys() -> None:
    assert "bounds of count, v_sum" in plume.run(total(), ROWS).cut_off
    assert "max_keys_per_user" not in plume.run(total(), ROWS).cut_off
    assert plume.run(total(measures=[plume.users()]), ROWS).cut_off == ""


def test_a_total_is_charged_once_and_given_again(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l", datasets={"d": plume.Budget(1000, 0.9)})
    asked = {"ledger": ledger.dataset("d"), "release_id": "total"}
    first, again = plume.run(total(), ROWS, **asked), plume.run(total(), ROWS, **asked)
    assert first.rows.equals(again.rows)
    assert again.released_before is not None
    assert ledger.question("total") == "users, count, v_sum in total, of every u"


def test_expect_and_need_know_totals() -> None:
    query = total(budget=plume.Budget(1), measures=[plume.users()])
    assert "no keys" in str(plume.expect(query))
    assert "<h1>users in total</h1>" in draw_expectation(plume.expect(query))
    assert "always: there are no keys" in str(plume.need(query, error=0.05, users=500))


def test_a_report_of_a_total_is_made(tmp_path: Path) -> None:
    plume.run(total(), ROWS).report(tmp_path / "total.html")
    page = (tmp_path / "total.html").read_text()
    assert "<title>users, count, v_sum in total</title>" in page
    assert "keys released" not in page
    assert "Find a key" not in page
    assert "In this release all records of a u count together, within the bounds of each measure." in page
    assert "<th>key" not in page
