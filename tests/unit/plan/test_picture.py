"""A picture of a plan: every step that does something, in lanes that never run through a stop that is not theirs."""

import pytest

import plume
from plume.explanation import picture as explained
from plume.plan.nodes import Noise
from plume.plan.picture import Picture, draw

PIPELINES = ("plume", "naive", "runtime_optimized")


def picture(pipeline: str, **changes: object) -> Picture:
    asked = {
        "user": "u",
        "keys": "k",
        "measures": [plume.count(max_per_key=2)],
        "max_keys_per_user": 6,
        "budget": plume.Budget(1, 1e-6),
    }
    return draw(plan(plume.Query(**asked | changes), pipeline))


def plan(query: plume.Query, pipeline: str) -> Noise:
    return plume.explain(query, pipeline=pipeline).plan


@pytest.mark.parametrize(("pipeline", "shuffles"), [("plume", 3), ("naive", 5), ("runtime_optimized", 2)])
def test_all_shuffles_are_in_the_picture(pipeline: str, shuffles: int) -> None:
    assert sum(stop.shuffled_by is not None for stop in picture(pipeline).stops) == shuffles


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_it_starts_with_the_table_and_ends_with_the_release(pipeline: str) -> None:
    stops = picture(pipeline).stops
    assert (stops[0].name, stops[0].public) == ("input", False)
    assert (stops[-1].name, stops[-1].public) == ("release", True)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_stop_but_the_first_is_reached_from_above(pipeline: str) -> None:
    drawn = picture(pipeline)
    assert all(flow.source < flow.target for flow in drawn.flows)
    assert {flow.target for flow in drawn.flows} == set(range(1, len(drawn.stops)))


@pytest.mark.parametrize(
    ("pipeline", "changes"),
    [
        *((pipeline, {}) for pipeline in PIPELINES),
        *((pipeline, {"public_keys": ["a"]}) for pipeline in PIPELINES),
        *((pipeline, {"selection": "two_round_weighted_gaussian"}) for pipeline in ("plume", "naive")),
    ],
)
def test_no_flow_runs_through_a_stop_that_it_does_not_end_at(pipeline: str, changes: dict[str, object]) -> None:
    drawn = picture(pipeline, **changes)
    crossed = [
        (drawn.stops[flow.source].name, drawn.stops[between].name)
        for flow in drawn.flows
        for between in range(flow.source + 1, flow.target)
        if drawn.stops[between].lane == drawn.stops[flow.source].lane
    ]
    assert crossed == []


def test_what_is_read_twice_is_marked() -> None:
    kept = [stop.name for stop in picture("plume").stops if stop.kept]
    assert kept == ["by_user", "above_limit", "keyed", "selected_keys"]


def test_public_keys_are_public() -> None:
    assert [stop.name for stop in picture("plume", public_keys=["a"]).stops if stop.public] == [
        "selected_keys",
        "release",
    ]


def test_columns_have_the_names_that_callers_gave_them() -> None:
    query = plume.Query(
        user="member",
        keys=["city", "day"],
        measures=[plume.users()],
        max_keys_per_user=6,
        budget=plume.Budget(1, 1e-6),
    )
    stops = {stop.name: stop for stop in explained(plume.explain(query)).stops}
    assert stops["by_user_combined"].shuffled_by == ("member",)
    assert stops["by_user_combined"].doing == "by member, city, day"
    assert stops["keyed"].shuffled_by == ("city", "day")
    assert stops["bounded"].doing == "at most 64 keys per member"
    assert stops["clipped"].doing == "clipped to the norm of 6 keys"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_nothing_shown_of_a_plan_is_called_by_its_place(pipeline: str) -> None:
    query = plume.Query(
        user="member", keys="city", measures=[plume.users()], max_keys_per_user=6, budget=plume.Budget(1, 1e-6)
    )
    shown = plume.explain(query, pipeline=pipeline)._repr_html_()
    assert "key_1" not in shown
    assert "user_id" not in shown
    assert "shuffle by city" in shown
