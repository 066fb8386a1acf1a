"""A query as Python: who runs what is written asks the same query."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest

import plume
from plume.report.settings import measure_call, query_call

MEASURES = {
    "plume.users()": plume.users(),
    "plume.users(name='people', where='v > 1')": plume.users(name="people", where="v > 1"),
    "plume.count(max_per_key=3)": plume.count(3),
    "plume.count(max_per_key=3, column='v')": plume.count(3, column="v"),
    "plume.sum(column='v', low_total=0, high_total=60)": plume.sum("v", 0, 60),
    "plume.mean(column='v', low=0, high=60, max_per_key=2)": plume.mean("v", 0, 60, max_per_key=2),
    "plume.variance(column='v', low=0, high=60)": plume.variance("v", 0, 60),
    "plume.stddev(column='v', low=0, high=60)": plume.stddev("v", 0, 60),
    "plume.quantiles(column='v', quantiles=[0.5, 0.99], low=0, high=60)": plume.quantiles("v", [0.5, 0.99], 0, 60),
    "plume.quantiles(column='v', quantiles=[0.5], low=0, high=60, name='w')": plume.quantiles(
        "v", [0.5], 0, 60, name="w"
    ),
    "plume.median(column='v', low=0, high=60)": plume.median("v", 0, 60),
    "plume.minimum(column='v', low=0, high=60)": plume.minimum("v", 0, 60),
    "plume.maximum(column='v', low=0, high=60, name='most')": plume.maximum("v", 0, 60, name="most"),
    "plume.histogram(column='v', edges=[0, 10, 60])": plume.histogram("v", [0, 10, 60]),
    "plume.vector_sum(columns=['v', 'w'], norm=3)": plume.vector_sum(["v", "w"], 3),
    "plume.mean(column='day', low=datetime.date(2026, 1, 1), high=datetime.date(2026, 12, 31))": plume.mean(
        "day", date(2026, 1, 1), date(2026, 12, 31)
    ),
}
NOT_MEASURES = {
    *("run", "explain", "audit", "sql", "explain_sql", "expect", "need", "tune", "private", "public"),
    "engine_errors_to",
}


@pytest.mark.parametrize("written", MEASURES)
def test_a_measure_is_written_as_the_shortest_call_that_makes_it(written: str) -> None:
    assert measure_call(MEASURES[written]) == written
    assert eval(written, {"plume": plume, "datetime": SimpleNamespace(date=date)}) == MEASURES[written]  # noqa: S307 - our own text


def test_a_quantile_under_a_name_of_its_own_is_not_written_as_a_median() -> None:
    found = replace(plume.quantiles("v", [0.9], 0, 60), name="late", names=("late",))
    assert measure_call(found) == "plume.quantiles(column='v', quantiles=[0.9], low=0, high=60, name='late')"


def test_every_measure_is_tried() -> None:
    functions = {name for name in plume.__all__ if name.islower() and not name.startswith("_")} - NOT_MEASURES
    assert functions == {written.partition("(")[0].removeprefix("plume.") for written in MEASURES}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"keys": ["k", "l"], "min_users": 7, "where": "v > 'it''s'"},
        {"selection": "laplace_threshold", "noise": "laplace", "composition": "basic"},
        {"shares": {"selection": 1, "v_sum": 2.5}},
        {"user": "naïve \u202e'\"\\ column"},
    ],
)
def test_a_query_is_written_as_the_call_that_makes_it(changes: dict[str, object]) -> None:
    asked = {
        "user": "u",
        "keys": "k",
        "measures": [plume.count(2), plume.sum("v", 0, 0.1)],
        "max_keys_per_user": 3,
        "budget": plume.Budget(1.1, 1e-5),
    }
    query = plume.Query(**asked | changes)
    written = query_call(query)
    assert eval(written, {"plume": plume}) == query  # noqa: S307 - our own text
    assert written.isascii() or "\u202e" not in written


def test_public_keys_are_named_and_not_listed() -> None:
    query = plume.Query(
        user="u", keys="k", measures=plume.users(), max_keys_per_user=1, budget=plume.Budget(1), public_keys=["a", "b"]
    )
    assert "    public_keys=public_keys,\n" in query_call(query)
