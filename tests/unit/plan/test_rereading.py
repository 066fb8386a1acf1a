"""Plans that read their table again: every way to break one is seen, and rows are read and not kept. That all pass, test_reach checks."""

from collections.abc import Callable
from dataclasses import replace

import pytest

import plume
from plume.choosing.open_query import OpenQuery, decide
from plume.pipelines.pipeline import PIPELINES, PlannedQuery
from plume.plan.analysis import read_twice, steps
from plume.plan.expressions import Column, Comparator, Compare, Literal, UsersAbove
from plume.plan.nodes import Combine, DropUsers, KeepUsers, Map, Node, Noise, reading, sources
from plume.plan.reach import unpaid_noisers
from plume.plan.rereading import reread
from plume.planning import make_plan

PAPER = plume.Query.paper(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=1)],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
)


def reread_plan(pipeline: str) -> Noise:
    plan = make_plan(PAPER, pipeline).plan
    again = reread(plan)
    assert again != plan
    return again[-1]


def rewrite(node: Node, name: str, change: Callable[[Node], Node]) -> Node:
    """Replace the step of a name throughout a plan."""
    again = reading(node, {source.name: rewrite(source, name, change) for source in sources(node)})
    return change(again) if node.name == name else again


def skip(node: KeepUsers | DropUsers) -> Node:
    return node.source


def without_filter(node: Map) -> Node:
    return replace(node, where=None)


def one_more(node: Map) -> Node:
    """Users with one row more than the limit count as users with few."""
    return replace(node, where=UsersAbove(node.where.counted, node.where.limit + 1))


def by_a_comparison(node: Map) -> Node:
    return replace(node, where=Compare(node.where.counted, Comparator.GREATER, Literal(node.where.limit)))


def by_keys(node: Combine) -> Node:
    return replace(node, by=(*node.by, "key_1"))


def of_other_rows(node: Combine) -> Node:
    """Rows are counted in one table, and read in another."""
    positive = Compare(Column("key_1"), Comparator.UNEQUAL, Literal("lasagna"))
    rows = node.source
    return replace(node, source=Map("other_rows", rows, tuple((c, Column(c)) for c in rows.columns), where=positive))


def of_somebody_else(node: Map) -> Node:
    return replace(node, expressions=(("user_id", Literal("ann")),))


BROKEN: dict[str, tuple[str, Callable[[Node], Node]]] = {
    "users with many rows are among those with few": ("of_few", skip),
    "users with few rows are counted among those with many": ("of_many", skip),
    "users with few rows may have one more than the limit": ("many", one_more),
    "everybody is listed": ("many", without_filter),
    "users are listed by something alike": ("many", by_a_comparison),
    "users are listed by rows of one key": ("counted", by_keys),
    "users are listed by other rows than are read": ("counted", of_other_rows),
    "users are listed for others": ("many", of_somebody_else),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_broken_plan_is_seen(pipeline: str, broken: str) -> None:
    step, change = BROKEN[broken]
    plan = reread_plan(pipeline)
    assert unpaid_noisers(plan) == ()
    assert "selected_keys" in unpaid_noisers(rewrite(plan, f"by_user_combined_{step}", change))


@pytest.mark.parametrize("step", ["uncut_of_many", "above_limit"])
def test_users_who_are_not_told_apart_by_their_keys_are_seen(step: str) -> None:
    assert "release" in unpaid_noisers(rewrite(reread_plan("plume"), step, without_filter))


def test_users_told_apart_at_another_number_of_keys_are_seen() -> None:
    lower = UsersAbove(Column("keys_of_user"), 2)
    plan = rewrite(reread_plan("plume"), "above_limit", lambda node: replace(node, where=lower))
    assert unpaid_noisers(plan) == ("selected_keys", "release")


def test_rows_are_read_again_and_users_with_many_of_them_are_kept() -> None:
    kept = read_twice(reread_plan("plume"))
    assert "rows" not in kept
    assert "by_user_combined_many" in kept


def test_a_second_count_of_keys_reads_what_the_first_became() -> None:
    """In naive keys are counted twice: to select keys, and of their rows."""
    again = reread_plan("naive")
    assert {step.name for step in steps(again) if isinstance(step, DropUsers)} == {
        "by_user_combined_of_few",
        "by_user_again_combined_of_few",
    }


@pytest.mark.parametrize("limit", ["auto", 4])
def test_what_ran_before_a_choice_is_rewritten_as_it_was_after_it(limit: str | int) -> None:
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.count("auto"), plume.sum("minutes", 0, "auto")],
        max_keys_per_user=limit,
        budget=PAPER.budget,
        selection="gaussian_threshold",
    )
    planned: PlannedQuery = make_plan(query, "naive")
    rewritten = reread(planned.plan)
    assert rewritten != planned.plan
    ran: dict[str, Node] = {}
    while isinstance(planned, OpenQuery):
        ran |= {step.name: step for step in steps(replace(planned, plan=rewritten).deciding)}
        planned = decide(planned, 3)
        rewritten = reread(planned.plan)
        assert unpaid_noisers(rewritten) == ()
        assert {step.name: step for step in steps(rewritten) if step.name in ran} == ran
