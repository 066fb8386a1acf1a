"""The check that no plan releases what its noise does not cover: right plans pass, and every way to break one is seen."""

from dataclasses import replace

import pytest

import plume
from exact import plan_with
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.pipelines import steps
from plume.pipelines.pipeline import PIPELINES
from plume.plan.analysis import costs
from plume.plan.analysis import steps as steps_of
from plume.plan.expressions import Column, Comparator, Compare, Expression, Literal, Shrink, UsersAbove, UsersWithin
from plume.plan.nodes import (
    Append,
    Clip,
    Combine,
    CountKeys,
    DropSelected,
    KeepFew,
    KeepSelected,
    Lookup,
    Map,
    Node,
    Noise,
    reading,
)
from plume.plan.nodes import sources as sources_of
from plume.plan.reach import releases_only_noise, unpaid_noisers
from plume.plan.rereading import reread
from plume.planning import make_plan
from strategies import Asked, random_questions

QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=3)],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
)


@pytest.fixture
def question() -> CalibratedQuery:
    return calibrate(QUERY)


def rewrite(node: Node, name: str, change: object) -> Node:
    """Replace the step of a name throughout a plan."""
    again = reading(node, {source.name: rewrite(source, name, change) for source in sources_of(node)})
    return change(again) if node.name == name else again


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("case", random_questions(60))
def test_every_query_gives_a_plan_that_releases_only_bounded_noise(pipeline: str, case: Asked) -> None:
    plan = make_plan(case.query, pipeline).plan
    again = reread(plan)
    assert releases_only_noise(plan)
    assert releases_only_noise(again)
    assert unpaid_noisers(plan) == unpaid_noisers(again) == ()
    assert costs(again) == costs(plan)


def skip(node: Node) -> Node:
    return node.source


def twice_the_limit(node: KeepFew) -> Node:
    return replace(node, limit=2 * node.limit)


def wider_split(node: CountKeys) -> Node:
    return replace(node, above=2 * QUERY.max_keys_per_user)


def without_filter(node: Map) -> Node:
    return replace(node, where=None)


def by_key(node: KeepFew | Clip | CountKeys) -> Node:
    return replace(node, user="key_1")


BROKEN = {
    "plume without its first bounding": ("plume", "bounded", skip, "selected_keys"),
    "plume without its second bounding": ("plume", "safe", skip, "release"),
    "plume with a second bounding twice as wide": ("plume", "safe", twice_the_limit, "release"),
    "plume with a second bounding by key": ("plume", "safe", by_key, "release"),
    "plume with users above the limit left uncut": ("plume", "uncut", without_filter, "release"),
    "plume whose uncut users may have twice as many keys": ("plume", "by_user", wider_split, "selected_keys"),
    "plume that counts cut users in both phases": ("plume", "above_limit", without_filter, "release"),
    "plume that releases keys nobody selected": ("plume", "exact", without_filter, "release"),
    "naive without its second bounding": ("naive", "safe", skip, "release"),
    "naive without its first bounding": ("naive", "bounded_few", skip, "selected_keys"),
    "runtime_optimized without bounding": ("runtime_optimized", "bounded_few", skip, "selected_keys"),
    "runtime_optimized that releases every key": ("runtime_optimized", "keyed_selected", skip, "release"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_plan_is_seen(broken: str) -> None:
    """With Laplace noise, for which nothing but the number of keys counts."""
    pipeline, step, change, noiser = BROKEN[broken]
    plan = rewrite(PIPELINES[pipeline](calibrate(replace(QUERY, composition="basic"))), step, change)
    assert noiser in unpaid_noisers(plan)


def test_a_plan_that_ends_in_exact_rows_is_seen(question: CalibratedQuery) -> None:
    plan = PIPELINES["plume"](question)
    assert not releases_only_noise(plan.source)


def test_counting_a_user_twice_per_key_is_seen(question: CalibratedQuery) -> None:
    """Bounding rows that are not one per user and key bounds nothing."""
    rows = steps.rows(question)
    unordered = Map("ordered", rows, (*((c, Column(c)) for c in rows.columns), ("key_order", Literal(""))))
    few = steps.keep_few(question, unordered, name="bounded")
    weights = Map("weights", few, (*steps.keys(question), *steps.weight(question)))
    keyed = steps.combine_by_key(question, weights, name="keyed")
    selected = steps.select_keys(question, keyed, steps.by_user(question, rows))
    assert unpaid_noisers(selected) == ("selected_keys",)


def test_dropping_the_dummy_rows_is_seen(question: CalibratedQuery) -> None:
    plan = PIPELINES["plume"](question)
    without = rewrite(plan, "with_missing_keys", lambda node: replace(node, sources=node.sources[:-1]))
    restricted = rewrite(
        without,
        "exact",
        lambda node: replace(
            node, source=KeepSelected("kept", node.source, _selected(plan), question.keys, Lookup.BROADCAST), where=None
        ),
    )
    assert unpaid_noisers(restricted) == ("release",)


def test_splits_at_different_steps_do_not_add_up_to_one_bound(question: CalibratedQuery) -> None:
    rows = steps.rows(question)
    one, other = (steps.by_user(question, rows, name=name) for name in ("one", "other"))
    few = steps.uncut(question, one, name="few_in_one")
    many = steps.keep_few(question, steps.above_limit(question, other, name="many_in_other"), name="cut")
    cut = Map("same_columns", many, tuple((column, Column(column)) for column in few.columns))
    both = Append("both", (few, cut))
    weights = Map("weights", both, (*steps.keys(question), *steps.weight(question)))
    keyed = steps.combine_by_key(question, weights, name="keyed")
    assert unpaid_noisers(steps.select_keys(question, keyed, one)) == ("selected_keys",)


def test_changes_of_one_key_that_users_make_several_times_are_seen(question: CalibratedQuery) -> None:
    """Two changes of one key are a larger change, in squares, than one of each of two keys."""

    def one_key_twice(node: Append) -> Append:
        first, *others = node.sources
        one = replace(first, source=KeepFew("one_key", first.source, "user_id", ("key_1",), 1))
        return replace(node, sources=(one, one, *others))

    plan = PIPELINES["plume"](question)
    assert unpaid_noisers(plan) == ()
    assert unpaid_noisers(rewrite(plan, "weights", one_key_twice)) == ("selected_keys", "release")


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_clipping_to_more_than_noise_pays_for_is_seen(question: CalibratedQuery, pipeline: str) -> None:
    plan = PIPELINES[pipeline](question)
    assert unpaid_noisers(plan) == ()
    wider = rewrite(plan, "clipped", lambda node: replace(node, limit=node.limit + 1))
    assert unpaid_noisers(wider) == ("release",)


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_contributions_that_do_not_shrink_are_seen(question: CalibratedQuery, pipeline: str) -> None:
    whole = rewrite(PIPELINES[pipeline](question), "safe_contributions", _whole)
    assert unpaid_noisers(whole) == ("release",)


def _whole(node: Map) -> Map:
    return replace(node, expressions=tuple((name, _unshrunk(e)) for name, e in node.expressions))


def _unshrunk(expression: Expression) -> Expression:
    return expression.of if isinstance(expression, Shrink) else expression


def test_a_filter_on_exact_values_is_seen(question: CalibratedQuery) -> None:
    plan = PIPELINES["runtime_optimized"](question)
    positive = Compare(Column("measure_1_records"), Comparator.GREATER, Literal(10))
    filtered = rewrite(plan, "exact", lambda node: replace(node, where=positive))
    assert unpaid_noisers(filtered) == ("release",)


def test_users_told_apart_at_different_numbers_are_not_two_classes(question: CalibratedQuery) -> None:
    """A user with three keys would be within four and above two."""
    plan = PIPELINES["plume"](question)
    lower = UsersAbove(Column("keys_of_user"), 2)
    overlapping = rewrite(plan, "above_limit", lambda node: replace(node, where=lower))
    assert unpaid_noisers(overlapping) == ("selected_keys", "release")


def test_a_bound_on_another_column_is_no_bound(question: CalibratedQuery) -> None:
    plan = PIPELINES["plume"](question)
    other = UsersWithin(Column("key_1"), 1)
    assert "release" in unpaid_noisers(rewrite(plan, "uncut", lambda node: replace(node, where=other)))


def of_whoever_has_the_key(node: Node) -> Node:
    expressions = ((c, Column("key_1" if c == "user_id" else c)) for c in node.columns)
    return Map(f"{node.name}_renamed", node, tuple(expressions))


def of_one_user(node: Map) -> Node:
    return replace(node, expressions=tuple((n, Literal(1) if n == "user_id" else e) for n, e in node.expressions))


OF_OTHERS = {
    "rows are cut by key before selection": ("plume", "bounded", by_key, "selected_keys"),
    "rows are clipped by key": ("plume", "clipped", by_key, "release"),
    "joined rows are clipped by key": ("naive", "clipped", by_key, "release"),
    "rows of a key are counted, and not of a user": ("plume", "by_user", by_key, "release"),
    "rows of a selected key are counted": ("naive", "by_user_again", by_key, "release"),
    "rows get the key for their user": ("plume", "above_limit", of_whoever_has_the_key, "selected_keys"),
    "combined rows get the key for their user": ("naive", "by_user_combined", of_whoever_has_the_key, "selected_keys"),
    "all rows of the table are one user's": ("runtime_optimized", "rows", of_one_user, "selected_keys"),
}


@pytest.mark.parametrize("selection", ["weighted_gaussian", "pooled_gaussian"])
@pytest.mark.parametrize("broken", OF_OTHERS)
def test_rows_that_are_bounded_by_anything_but_their_user_are_seen(broken: str, selection: str) -> None:
    pipeline, step, change, noiser = OF_OTHERS[broken]
    plan = PIPELINES[pipeline](calibrate(replace(QUERY, selection=selection)))
    assert unpaid_noisers(plan) == ()
    assert noiser in unpaid_noisers(rewrite(plan, step, change))


@pytest.mark.parametrize("kind", [KeepSelected, DropSelected])
def test_rows_kept_by_keys_that_were_not_noised_are_seen(kind: type, question: CalibratedQuery) -> None:
    """One user who adds a key to such a list changes what others have there."""
    plan = PIPELINES["plume"](question)
    exact = next(step for step in steps_of(plan) if step.name == "keyed_weights")
    lookup = {"lookup": Lookup.BROADCAST} if kind is KeepSelected else {}
    restricted = rewrite(plan, "uncut", lambda node: kind("restricted", node, exact, question.keys, **lookup))
    assert unpaid_noisers(plan) == ()
    assert unpaid_noisers(restricted) == ("selected_keys", "release")


def test_a_comparison_is_not_taken_for_the_predicate_that_bounds(question: CalibratedQuery) -> None:
    plan = PIPELINES["plume"](question)
    alike = Compare(Column("keys_of_user"), Comparator.AT_MOST, Literal(4))
    assert "release" in unpaid_noisers(rewrite(plan, "uncut", lambda node: replace(node, where=alike)))


def _selected(plan: Noise) -> Node:
    return next(step for step in steps_of(plan) if step.name == "selected_keys")


@pytest.mark.parametrize("pipeline", ["naive", "runtime_optimized", "plume"])
def test_tallies_are_paid_for_at_the_limit_and_not_below_it(pipeline: str) -> None:
    asked = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.median("seconds", 0, 60), plume.histogram("seconds", [0, 10])],
        max_keys_per_user=3,
        budget=plume.Budget(epsilon=1, delta=1e-5),
    )
    plan = make_plan(asked, pipeline).plan[-1]
    assert unpaid_noisers(plan) == ()
    cheap = replace(plan, noiser=replace(plan.noiser, max_keys_per_user=2))
    assert unpaid_noisers(cheap) == ("release",)


CHOOSING = replace(QUERY, max_keys_per_user="auto")


def two_rows_each(node: Append) -> Node:
    """The users of one row are in another one too."""
    return replace(node, sources=(node.sources[0], *node.sources))


def by_user_and_key(node: Combine) -> Node:
    return replace(node, by=(*node.by, "key_1"))


BROKEN_CHOICES = {
    "users in two rows of the histogram": ("keys_per_user_with_buckets", two_rows_each, "keys_per_user"),
    "a row for each key of a user": ("users", by_user_and_key, "keys_per_user"),
    "rows that are there only if somebody is in them": ("keys_per_user_exact", without_filter, "keys_per_user"),
    "contributions that do not shrink": ("safe_contributions", _whole, "release"),
    "nobody cut": ("uncut", without_filter, "release"),
    "a limit above the chosen one": ("clipped", lambda node: replace(node, limit=node.limit + 1), "release"),
    "no first bounding": ("bounded_few", skip, "selected_keys"),
}


@pytest.mark.parametrize("broken", BROKEN_CHOICES)
@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_a_broken_plan_with_a_chosen_limit_is_seen(pipeline: str, broken: str) -> None:
    step, change, noiser = BROKEN_CHOICES[broken]
    plan = plan_with(CHOOSING, {"max_keys_per_user": 7}, pipeline).plan
    assert unpaid_noisers(plan) == ()
    assert noiser in unpaid_noisers(tuple(rewrite(stage, step, change) for stage in plan))


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_measures_with_noise_for_another_limit_than_the_chosen_one_are_seen(pipeline: str) -> None:
    *before, release = plan_with(CHOOSING, {"max_keys_per_user": 7}, pipeline).plan
    cheap = replace(release, noiser=replace(release.noiser, max_keys_per_user=6))
    assert unpaid_noisers((*before, cheap)) == ("release",)
