"""The check that nothing exact leaves under the name of a key: right plans pass, and a number in the place of a key is seen."""

from dataclasses import replace

import pytest

import plume
from plume.calibration.calibrated_query import calibrate
from plume.errors import PlumeBug
from plume.pipelines import pipeline as pipelines
from plume.pipelines.pipeline import PIPELINES, checked
from plume.plan.analysis import noisers
from plume.plan.expressions import Column, Expression
from plume.plan.nodes import Combine, KeepSelected, Lookup, Map, Node, Noise, reading
from plume.plan.nodes import sources as sources_of
from plume.plan.rereading import reread
from plume.plan.row_keys import unkeyed_steps
from plume.planning import make_plan
from strategies import Asked, random_questions

QUERY = plume.Query(
    user="user_id",
    keys=["recipe", "day"],
    measures=[plume.count(max_per_key=3)],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
)
SELECTIONS = ["auto", "laplace_threshold", "pooled_gaussian", "two_round_weighted_gaussian"]


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("case", random_questions(60))
def test_every_query_gives_a_plan_whose_rows_go_by_their_keys(pipeline: str, case: Asked) -> None:
    plan = make_plan(case.query, pipeline).plan
    assert unkeyed_steps(plan) == unkeyed_steps(reread(plan)) == ()


def test_a_plan_that_chooses_numbers_goes_by_its_keys() -> None:
    asked = replace(QUERY, max_keys_per_user="auto", measures=[plume.sum("seconds", 0, "auto")])
    assert unkeyed_steps(make_plan(asked, "plume").plan) == ()


def rewrite(node: Node, name: str, change: object) -> Node:
    """Replace the step of a name throughout a plan."""
    again = reading(node, {source.name: rewrite(source, name, change) for source in sources_of(node)})
    return change(again) if node.name == name else again


def in_place_of_a_key(node: Node, what: Expression) -> Map:
    """Write something over the first key."""
    return Map(f"{node.name}_over", node, tuple((c, what if c == "key_1" else Column(c)) for c in node.columns))


def selections(pipeline: str) -> list[str]:
    return [one for one in SELECTIONS if pipeline != "runtime_optimized" or not one.startswith("two_round")]


@pytest.mark.parametrize(
    ("pipeline", "selection"), [(pipeline, one) for pipeline in PIPELINES for one in selections(pipeline)]
)
def test_an_exact_number_in_the_place_of_a_key_is_refused_before_any_row_is_read(pipeline: str, selection: str) -> None:
    """It would leave as it is: noise is for numbers, and a key has none."""
    planned = make_plan(replace(QUERY, selection=selection), pipeline)
    for step in noisers(planned.plan):

        def smuggle(node: Noise) -> Noise:
            return replace(node, source=in_place_of_a_key(node.source, Column(node.noiser.reads[0])))

        smuggling = noisers(rewrite(planned.plan[-1], step.name, smuggle))
        assert step.name in unkeyed_steps(smuggling)
        with pytest.raises(PlumeBug, match="would release something noise does not cover"):
            checked(replace(planned, plan=smuggling))


def test_rows_that_are_combined_by_an_exact_number_are_seen() -> None:
    """One user moves a key from one group to another, and so changes two."""

    def again(node: Map) -> Map:
        smuggled = in_place_of_a_key(node.source, Column("weight"))
        aggregates = node.source.aggregates
        return replace(node, source=Combine("again", smuggled, node.source.by, aggregates, gather=node.source.gather))

    plan = PIPELINES["plume"](calibrate(QUERY))
    assert "again" in unkeyed_steps(rewrite(plan, "keyed_weights", again))


def test_a_key_that_was_not_selected_with_the_others_is_seen() -> None:
    """Of two keys one is selected: the other is anybody's."""

    def of_the_first(node: Noise) -> Noise:
        return replace(node, noiser=replace(node.noiser, keys=("key_1",)))

    plan = PIPELINES["runtime_optimized"](calibrate(QUERY))
    assert "selected_keys" in unkeyed_steps(rewrite(plan, "selected_keys", of_the_first))


def test_rows_of_keys_that_are_kept_by_some_of_their_keys_are_seen() -> None:
    def by_the_first(node: KeepSelected) -> KeepSelected:
        return replace(node, keys=("key_1",), lookup=Lookup.BROADCAST)

    plan = PIPELINES["runtime_optimized"](calibrate(QUERY))
    assert "keyed_selected" in unkeyed_steps(rewrite(plan, "keyed_selected", by_the_first))


def test_keys_that_are_selected_among_rows_of_users_are_seen() -> None:
    """A strategy's proof is for a weight that all users of a key gave together."""

    def of_users(node: Noise) -> Noise:
        rows = node.source
        while not {"user_id", "key_1", "key_2"} <= set(rows.columns):
            rows = sources_of(rows)[0]
        one = Map(
            "of_users", rows, (("key_1", Column("key_1")), ("key_2", Column("key_2")), ("weight", Column("key_1")))
        )
        return replace(node, source=one)

    plan = PIPELINES["plume"](calibrate(QUERY))
    assert "selected_keys" in unkeyed_steps(rewrite(plan, "selected_keys", of_users))


def test_the_check_is_part_of_what_every_plan_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = make_plan(QUERY, "plume")
    monkeypatch.setattr(pipelines, "unkeyed_steps", lambda _: ("release",))
    with pytest.raises(PlumeBug):
        checked(planned)
