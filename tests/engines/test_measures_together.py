"""All measures in one question, of values of all types: what Spark is asked by default, where each question costs a second."""

from datetime import date, datetime

import pyarrow as pa
import pytest

import plume
from engines.test_statistics import MEASURES, MOMENTS, SPAN, TABLE, exact_answers
from exact import exact_release
from plume.engines.engine import Engine

# Enough for each of so many measures to be exact to its tolerance.
BUDGET = plume.Budget(epsilon=10_000 * len(MEASURES), delta=1e-6)
OF_TIME = [plume.median("day", *SPAN, max_per_key=3), plume.mean("moment", *MOMENTS, max_per_key=3)]


@pytest.fixture(scope="module")
def found(engine: Engine) -> pa.Table:
    measures = [*(measure for measure, _, _ in MEASURES), *OF_TIME]
    query = plume.Query(user="u", keys="k", measures=measures, max_keys_per_user=2, budget=BUDGET)
    return exact_release(query, TABLE, engine=engine)


@pytest.mark.quick_on("spark")
@pytest.mark.parametrize(("measure", "sql", "within"), MEASURES, ids=[measure.name for measure, _, _ in MEASURES])
def test_a_measure_among_many_is_the_exact_answer(found: pa.Table, measure, sql: str, within: float) -> None:
    exact = exact_answers(f"CAST({sql} AS DOUBLE)")
    assert found["k"].to_pylist() == [key for key, _ in exact]
    assert found[measure.name].to_pylist() == pytest.approx([value for _, value in exact], abs=within)


@pytest.mark.quick_on("spark")
def test_measures_of_time_among_many_are_of_their_type(found: pa.Table) -> None:
    assert {type(value) for value in found["day_median"].to_pylist()} == {date}
    assert {type(value) for value in found["moment_mean"].to_pylist()} == {datetime}
