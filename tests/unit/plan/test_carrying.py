"""Plans in which contributions travel with weights: the same but for where they are added up, and only where steps are as expected."""

from collections.abc import Callable
from dataclasses import replace

import pytest

import plume
from plume.plan.accounts import uncharged_noisers
from plume.plan.aggregates import Count, Max
from plume.plan.analysis import costs, shuffles, steps
from plume.plan.carrying import carrying
from plume.plan.expressions import Column, Literal, UsersWithin
from plume.plan.nodes import Combine, KeepSelected, Map, Node, Noise, reading
from plume.plan.reach import releases_only_noise, unpaid_noisers
from plume.plan.row_keys import unkeyed_steps
from plume.planning import make_plan
from strategies import Asked, random_questions

QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.users(), plume.stddev("minutes", low=0, high=60), plume.sum("minutes", low_total=0, high_total=9)],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
)


def planned(query: plume.Query = QUERY, pipeline: str = "plume") -> tuple[Noise, ...]:
    return make_plan(query, pipeline).plan


def test_contributions_of_users_within_the_limit_are_added_up_with_their_weights() -> None:
    again = {step.name: step for step in steps(carrying(planned()))}
    keyed, selected, contributions = again["keyed"], again["uncut_selected"], again["uncut_contributions"]
    assert isinstance(keyed, Combine)
    assert keyed.columns[2:] == contributions.columns[1:]
    assert isinstance(selected, KeepSelected)
    assert selected.source == keyed
    assert "uncut_again" not in again


@pytest.mark.parametrize("pipeline", ["naive", "runtime_optimized", "plume"])
@pytest.mark.parametrize("case", random_questions(40))
def test_a_plan_that_carries_passes_all_checks_and_costs_the_same(pipeline: str, case: Asked) -> None:
    plan = planned(case.query, pipeline)
    again = carrying(plan)
    assert releases_only_noise(again)
    assert unpaid_noisers(again) == uncharged_noisers(again) == unkeyed_steps(again) == ()
    assert costs(again) == costs(plan)
    assert shuffles(again) == shuffles(plan)


@pytest.mark.parametrize("measures", [[plume.users()], [plume.users(), plume.count(3)]])
def test_a_plan_that_carries_already_stays_as_it_is(measures: list[object]) -> None:
    plan = planned(replace(QUERY, measures=measures))
    assert carrying(plan) == plan


def changed(name: str, change: Callable[[Node], Node]) -> tuple[Noise, ...]:
    """Replace the step of a name throughout a plan."""
    made: dict[str, Node] = {}
    for step in steps(planned()):
        again = reading(step, made)
        made[step.name] = change(again) if step.name == name else again
    return tuple(reading(stage, made) for stage in planned())


def with_last(one: Node, *last: object) -> Node:
    """Put other expressions in the place of the last one."""
    assert isinstance(one, Map)
    return replace(one, expressions=(*one.expressions[:-1], *last))


FEWER = UsersWithin(Column("keys_of_user"), 63)
CHANGES: dict[str, tuple[str, Callable[[Node], Node]]] = {
    "other users are read again": ("uncut_again", lambda one: replace(one, where=FEWER)),
    "all users are read again": ("uncut_again", lambda one: replace(one, where=None)),
    "fewer columns are read again": ("uncut_again", with_last),
    "what is read again is changed": ("uncut_again", lambda one: with_last(one, (one.columns[-1], Literal(1)))),
    "weights are of other rows": ("uncut", lambda one: replace(one, where=FEWER)),
    "only some rows have weights": ("uncut_weights", lambda one: replace(one, where=Column("weight"))),
    "only some rows contribute": ("uncut_contributions", lambda one: replace(one, where=Column("key_1"))),
    "contributions to other keys": (
        "uncut_contributions",
        lambda one: replace(one, expressions=(("key_1", Literal(1)), *one.expressions[1:])),
    ),
    "keys are selected by other columns": ("uncut_selected", lambda one: replace(one, keys=("user_id",))),
    "a contribution is called as a weight is": (
        "uncut_contributions",
        lambda one: with_last(one, ("weight", one.expressions[-1][1])),
    ),
    "only some contributions are added up": (
        "uncut_contributions_marked",
        lambda one: replace(one, where=Column("measure_1_users")),
    ),
    "rows are counted as well": ("uncut_contributions_marked", lambda one: with_last(one, ("selected", Literal(1)))),
    "contributions are not added up": (
        "aggregates",
        lambda one: replace(one, aggregates=tuple((name, Max(Column(name))) for name, _ in one.aggregates)),
    ),
    "rows of keys are counted": ("aggregates", lambda one: replace(one, aggregates=(*one.aggregates, ("n", Count())))),
    "contributions are added up by other columns": ("aggregates", lambda one: replace(one, by=("selected",))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_steps_that_say_anything_else_go_on_waiting(change: str) -> None:
    plan = changed(*CHANGES[change])
    assert plan != planned()
    assert carrying(plan) == plan


def test_contributions_that_another_step_reads_go_on_waiting() -> None:
    made = {step.name: step for step in steps(planned())}
    other = Combine("other", made["uncut_contributions"], ("key_1",), (("n", Max(Column("key_1"))),), gather=("key_1",))
    stage = planned()[0]
    plan = (replace(stage, name="reads_more", source=Map("others", other, (("key_1", Column("key_1")),))), *planned())
    assert carrying(plan) == plan
