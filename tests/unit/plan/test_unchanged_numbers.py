"""A number that was released when its keys were selected may pass, and nothing else: every way to let another one pass is seen."""

import math
from dataclasses import replace

import pytest

import plume
from plume.calibration.calibrated_query import calibrate
from plume.errors import BudgetExceeded
from plume.pipelines import pipeline as pipeline_module
from plume.pipelines.noisers import NoiseMeasures
from plume.pipelines.pipeline import PIPELINES, PlannedQuery, checked
from plume.plan.analysis import noisers
from plume.plan.expressions import Column, Literal, Times
from plume.plan.nodes import Append, Map, Node, Noise, reading
from plume.plan.nodes import sources as sources_of
from plume.plan.reach import releases_only_noise, unpaid_noisers
from plume.plan.rereading import reread

QUERY = plume.Query(
    user="person",
    keys="page",
    measures=[plume.users(), plume.count(2)],
    max_keys_per_user=1,
    budget=plume.Budget(math.log(3), 1e-5),
    selection="released_users",
)
NUMBER = "measure_1_users"


def rewrite(node: Node, name: str, change: object) -> Node:
    """Replace the step of a name throughout a plan."""
    again = reading(node, {source.name: rewrite(source, name, change) for source in sources_of(node)})
    return change(again) if node.name == name else again


def planned(pipeline: str = "plume", query: plume.Query = QUERY) -> Node:
    return PIPELINES[pipeline](calibrate(query))


def with_expression(expression: object) -> object:
    def change(node: Map) -> Map:
        return replace(
            node,
            expressions=tuple((name, expression if name == NUMBER else one) for name, one in node.expressions),
        )

    return change


@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_the_number_that_was_compared_passes(pipeline: str) -> None:
    plan = noisers(planned(pipeline))
    assert len(plan) == 2
    assert plan[-1].noiser.passes == (NUMBER,)
    for as_run in (plan, reread(plan)):
        assert releases_only_noise(as_run)
        assert unpaid_noisers(as_run) == ()


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_users_alone_are_released_by_the_step_that_compares(pipeline: str) -> None:
    plan = noisers(planned(pipeline, replace(QUERY, measures=[plume.users()])))
    assert len(plan) == 1
    for as_run in (plan, reread(plan)):
        assert releases_only_noise(as_run)
        assert unpaid_noisers(as_run) == ()


def test_an_exact_number_does_not_pass() -> None:
    """Users are added up once more, as they would be for noise of their own."""
    counted = planned()
    assert unpaid_noisers(rewrite(counted, "keyed_marked", with_expression(Literal(1)))) == ("release",)
    assert unpaid_noisers(rewrite(counted, "safe_contributions_marked", with_expression(Literal(1)))) == ("release",)


def test_a_number_that_is_not_as_it_was_released_does_not_pass() -> None:
    doubled = with_expression(Times(Column(NUMBER), 2))
    assert unpaid_noisers(rewrite(planned(), "missing_keys", doubled)) == ("release",)
    assert unpaid_noisers(rewrite(planned(), "exact", doubled)) == ("release",)


def test_a_constant_does_not_pass_for_a_number() -> None:
    assert unpaid_noisers(rewrite(planned(), "missing_keys", with_expression(Literal(0)))) == ("release",)


def drawn_again(node: Append) -> Append:
    """The keys that were selected, with numbers of another step that reads the same rows."""
    dummies = node.sources[-1]
    selected = dummies.source
    again = replace(selected, name="selected_again")
    numbers = replace(dummies, name="missing_again", source=again)
    return replace(node, sources=(*node.sources[:-1], numbers))


def test_a_number_of_a_second_draw_does_not_pass() -> None:
    plan = rewrite(planned(), "with_missing_keys", drawn_again)
    assert {step.name for step in noisers(plan)} == {"selected_keys", "selected_again", "release"}
    assert "release" in unpaid_noisers(plan)


def test_a_second_draw_in_the_step_that_noises_measures_is_over_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_noise(node: Noise) -> Noise:
        every = calibrate(QUERY).parts
        return replace(node, noiser=replace(node.noiser, parts=every, passes=()))

    plan = noisers(rewrite(planned(), "release", with_noise))
    assert isinstance(plan[-1].noiser, NoiseMeasures)
    with pytest.raises(BudgetExceeded):
        checked(PlannedQuery(QUERY, "plume", calibrate(QUERY), plan))
    monkeypatch.setattr(pipeline_module, "refuse_overspending", lambda *_: None)
    checked(PlannedQuery(QUERY, "plume", calibrate(QUERY), plan))  # nothing but its price is wrong with it


def test_a_number_without_a_threshold_does_not_leave() -> None:
    """A step that noises the number of users of all keys, and shows every one of them."""

    def of_all_keys(node: Noise) -> Noise:
        return replace(node, noiser=replace(node.noiser, chooses_rows=False))

    plan = rewrite(planned(), "selected_keys", of_all_keys)
    assert {"selected_keys", "release"} <= set(unpaid_noisers(plan))


def test_users_with_several_keys_must_be_cut_to_one() -> None:
    alone = planned(query=replace(QUERY, measures=[plume.users()]))
    assert unpaid_noisers(rewrite(alone, "bounded_few", lambda node: replace(node, limit=2))) == ("release",)
    assert unpaid_noisers(rewrite(alone, "bounded_few", lambda node: node.source)) == ("release",)
