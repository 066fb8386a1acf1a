"""The check that accounts pay for all that a plan spends: right plans pass, and every way to break one is seen."""

from dataclasses import replace
from typing import Any

import pytest

import plume
from plume.pipelines.pipeline import PIPELINES, checked
from plume.plan.accounts import uncharged_noisers
from plume.plan.aggregates import Count, CountValues, Max
from plume.plan.analysis import readers_of
from plume.plan.analysis import steps as steps_of
from plume.plan.expressions import Clamp, Column, InverseRoot, Literal, PooledWeight, Times
from plume.plan.nodes import Append, Clip, Combine, CountKeys, KeepFew, Map, Node, Noise
from plume.plan.printing.duckdb import DuckDBPrinter
from plume.plan.printing.printer import Printer
from plume.plan.printing.spark import SparkPrinter
from plume.plan.reach import unpaid_noisers
from plume.plan.rereading import reread
from plume.planning import make_plan
from plume.privacy.cost import PooledCost
from plume.selection.pooled_gaussian import PooledGaussian
from plume.selection.weighted_gaussian import UNIT
from strategies import random_questions
from unit.plan.test_reach import rewrite

QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.users(), plume.count(3), plume.mean("seconds", 0, 60)],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
    selection="pooled_gaussian",
)


def planned(pipeline: str = "plume", query: plume.Query = QUERY) -> tuple[Noise, ...]:
    return make_plan(query, pipeline).plan


def broken(plan: tuple[Noise, ...], step: str, change: Any) -> tuple[str, ...]:
    again = tuple(rewrite(stage, step, change) for stage in plan)
    return (*unpaid_noisers(again), *uncharged_noisers(again))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_query_with_pooled_weights_gives_a_plan_that_accounts_pay_for(pipeline: str) -> None:
    for case in random_questions(25):
        query = replace(case.query, selection="pooled_gaussian", noise="auto", composition="tight")
        plan = planned(pipeline, query)
        assert unpaid_noisers(plan) == uncharged_noisers(plan) == ()


@pytest.mark.parametrize("limit", [1, 3, 4, 16, 64, 80])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_accounts_pay_for_plans_of_any_limit(pipeline: str, limit: int) -> None:
    plan = planned(pipeline, replace(QUERY, max_keys_per_user=limit))
    assert unpaid_noisers(plan) == uncharged_noisers(plan) == ()


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_plans_without_accounts_are_charged_for_nothing(pipeline: str) -> None:
    assert uncharged_noisers(planned(pipeline, replace(QUERY, selection="weighted_gaussian"))) == ()


@pytest.mark.parametrize(("printer", "to_count"), [(DuckDBPrinter(), 2), (SparkPrinter(), 1)], ids=["duckdb", "spark"])
@pytest.mark.parametrize(
    ("pipeline", "selection"),
    [
        *((one, QUERY.selection) for one in PIPELINES),
        *((one, "two_round_pooled_gaussian") for one in ("naive", "plume")),
    ],
)
def test_what_accounts_are_charged_for_and_what_moves_is_computed_from_the_table_once(
    pipeline: str, selection: str, printer: Printer, to_count: int
) -> None:
    """DuckDB reads the rows that it counts twice, and keeps them; Spark keeps what it counted."""
    measures = [*QUERY.measures, plume.median("seconds", 0, 60)]
    plan = planned(pipeline, replace(QUERY, measures=measures, selection=selection))

    def computed(step: Node) -> int:
        readers = readers_of(step, plan)
        if step.name in printer.kept(plan) or not readers:
            return 1
        return sum(computed(one) * (to_count if isinstance(one, CountKeys) else 1) for one in readers)

    (rows,) = (step for step in steps_of(plan) if step.name == "rows")
    assert reread(plan) == plan
    assert computed(rows) == 1


def without_account(node: CountKeys) -> Node:
    counted = replace(node, account=None)
    columns = tuple((name, Column(name)) for name in counted.columns)
    return Map(f"{node.name}_whole", counted, (*columns, (node.account.column, Literal(2**30))))


def of_another_account(node: CountKeys) -> Node:
    charges = tuple((size, replace(charge, share=charge.share / 2)) for size, charge in node.account.charges)
    return replace(node, account=replace(node.account, charges=charges))


def of_bounded_rows(node: CountKeys) -> Node:
    rows = node.source
    ordered = Map("ordered", rows, (*((name, Column(name)) for name in rows.columns), ("key_order", Literal(0))))
    few = KeepFew("few", ordered, "user_id", ("key_order", "key_1"), 4)
    return replace(node, source=Map("cut", few, tuple((name, Column(name)) for name in rows.columns)))


def of_some_rows(node: Combine) -> Node:
    few = Map("fewer_rows", node.source, tuple((name, Column(name)) for name in node.source.columns))
    return replace(node, source=few)


def of_raw_rows(node: CountKeys) -> Node:
    return replace(
        node, source=replace(node.source, by=(*node.source.by, "value_1"), aggregates=node.source.aggregates)
    )


def weighed(weight: Any) -> Any:
    return lambda node: replace(
        node, expressions=tuple((n, weight if n == "weight" else e) for n, e in node.expressions)
    )


def spread_over(limit: int) -> PooledWeight:
    return PooledWeight(Column("left_of_account"), Clamp(Column("keys_of_user"), 1, limit))


BROKEN = {
    "no account": ("by_user", without_account),
    "another account": ("by_user", of_another_account),
    "an account of bounded rows": ("by_user", of_bounded_rows),
    "an account of rows that are not one per key": ("by_user", of_raw_rows),
    "weights that no account pays for": ("uncut_weights", weighed(InverseRoot(Column("keys_of_user"), UNIT))),
    "weights of one unit": ("uncut_weights", weighed(Literal(UNIT))),
    "weights for fewer keys": ("bounded_weights", weighed(spread_over(2))),
    "weights for more keys": ("bounded_weights", weighed(spread_over(128))),
    "what is left of accounts as the weight": ("uncut_weights", weighed(Column("left_of_account"))),
    "weights by something that is not the number of keys": (
        "uncut_weights",
        weighed(PooledWeight(Column("left_of_account"), Clamp(Column("measure_2_raw_records"), 1, 4))),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_weights_that_are_not_drawn_from_the_account_are_seen(name: str) -> None:
    assert "selected_keys" in broken(planned(), *BROKEN[name])


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_weights_for_fewer_keys_than_users_give_them_to_are_seen(pipeline: str) -> None:
    plan = planned(pipeline)
    named = ["weights"] if pipeline == "naive" else ["uncut_weights", "bounded_weights"]
    for name in named:
        plan = tuple(rewrite(stage, name, weighed(spread_over(32))) for stage in plan)
    assert unpaid_noisers(plan) == ("selected_keys",)


def copied(times: int) -> Any:
    """The rows of the users of the first source several times, as those of other users."""
    return lambda node: replace(node, sources=(*(node.sources[0] for _ in range(times)), *node.sources[1:]))


GIVEN_BY = {"plume": "weights", "naive": "bounded", "runtime_optimized": "bounded"}


@pytest.mark.parametrize("times", [2, 16])
@pytest.mark.parametrize("limit", [1, 3, 4, 16])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_weights_that_users_within_the_limit_give_several_times_are_seen(pipeline: str, limit: int, times: int) -> None:
    """They have few keys, so their copies are not more rows than selection admits."""
    plan = planned(pipeline, replace(QUERY, max_keys_per_user=limit))
    assert "selected_keys" in broken(plan, GIVEN_BY[pipeline], copied(times))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_weights_of_one_key_that_users_give_several_times_are_seen(pipeline: str) -> None:
    """They are no more rows than a user within the limit may have."""

    def one_key_twice(node: Append) -> Node:
        first, *others = node.sources
        one = KeepFew("one_key", first, "user_id", ("key_1",), 1)
        return replace(node, sources=(one, one, *others))

    assert "selected_keys" in broken(planned(pipeline), GIVEN_BY[pipeline], one_key_twice)


TWICE = replace(QUERY, selection="two_round_pooled_gaussian")
BROKEN_AGAIN = {
    "other weights": ("left_weights", weighed(InverseRoot(Clamp(Column("keys_of_user"), 1, 64), UNIT))),
    "whole accounts": (
        "left_with_accounts",
        lambda node: replace(node, expressions=(*node.expressions[:-1], (node.expressions[-1][0], Literal(2**30)))),
    ),
    "fewer keys than there are": ("left_weights", weighed(spread_over(32))),
    "keys that are not counted": ("left_by_user", lambda node: replace(node, above=4)),
    "several times": ("left_bounded", copied(2)),
    "rows that are there twice": (
        "left_by_user",
        lambda node: replace(node, source=Append("twice", (node.source, node.source))),
    ),
}


@pytest.mark.parametrize("pipeline", ["naive", "plume"])
@pytest.mark.parametrize("limit", [4, 80])
def test_accounts_pay_for_two_rounds_of_any_limit(pipeline: str, limit: int) -> None:
    plan = planned(pipeline, replace(TWICE, max_keys_per_user=limit))
    assert unpaid_noisers(plan) == uncharged_noisers(plan) == ()


@pytest.mark.parametrize("name", BROKEN_AGAIN)
@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_weights_of_a_second_round_that_are_not_drawn_from_the_account_are_seen(pipeline: str, name: str) -> None:
    assert "selected_again" in broken(planned(pipeline, TWICE), *BROKEN_AGAIN[name])


@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_a_second_round_with_less_noise_than_it_is_priced_for_is_charged_for(pipeline: str) -> None:
    """The charges of measures are shares of what both rounds move; with one round's part of it they would be too small."""

    def more_noise(node: Noise) -> Node:
        strategy = node.noiser.strategy
        noise = replace(strategy.noise, scale=10 * strategy.noise.scale)
        return replace(node, noiser=replace(node.noiser, strategy=replace(strategy, noise=noise)))

    assert "release" in broken(planned(pipeline, TWICE), "selected_again", more_noise)


def changed_charges(plan: tuple[Noise, ...], **changes: Any) -> tuple[Noise, ...]:
    """The same charges in the account, in the strategy and in its price."""

    def counted(node: CountKeys) -> Node:
        charges = tuple((size, replace(charge, **changes)) for size, charge in node.account.charges)
        return replace(node, account=replace(node.account, charges=charges))

    def selecting(node: Noise) -> Node:
        strategy = node.noiser.strategy
        charges = tuple((size, replace(charge, **changes)) for size, charge in strategy.pool.charges)
        pool = replace(strategy.pool, charges=charges)
        return replace(node, noiser=replace(node.noiser, strategy=replace(strategy, pool=pool)))

    for name, change in (("by_user", counted), ("selected_keys", selecting)):
        plan = tuple(rewrite(stage, name, change) for stage in plan)
    return plan


def test_charges_that_are_said_to_take_something_for_each_key_and_do_not_are_seen() -> None:
    plan = planned(query=replace(QUERY, measures=[plume.users(), plume.sum("seconds", 0, 60)]))
    assert uncharged_noisers(changed_charges(plan)) == ()
    assert uncharged_noisers(changed_charges(plan, least=1)) == ("selected_keys",)


def test_charges_that_take_less_for_each_key_are_seen() -> None:
    assert uncharged_noisers(changed_charges(planned(), whole=1000)) == ("release",)


def test_selection_priced_by_accounts_that_users_do_not_have_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    monkeypatch.setattr(PooledGaussian, "account", None)
    assert uncharged_noisers(plan) == ("selected_keys",)


def test_a_price_for_other_charges_than_those_of_the_account_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    monkeypatch.setattr(PooledGaussian, "charges", ())
    assert uncharged_noisers(plan) != ()


def test_selection_priced_for_fewer_keys_than_it_admits_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = PooledGaussian.cost.fget

    def of_eight_keys(strategy: PooledGaussian) -> PooledCost:
        found = cost(strategy)
        return replace(found, novel=replace(found.novel, max_keys_per_user=8))

    plan = planned()
    monkeypatch.setattr(PooledGaussian, "cost", property(of_eight_keys))
    assert uncharged_noisers(plan) == ("selected_keys",)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_accounts_that_do_not_know_how_many_keys_users_within_the_limit_have_are_seen(pipeline: str) -> None:
    """Their number of keys would be NULL, and the whole weight would go to each key."""
    assert "selected_keys" in broken(planned(pipeline), "by_user", lambda node: replace(node, above=4))


def test_an_account_of_fewer_rows_than_measures_read_is_seen() -> None:
    assert broken(planned("naive"), "by_user_combined", of_some_rows) != ()


def test_measures_of_more_records_than_the_account_was_charged_for_are_seen() -> None:
    """Accounts are charged by the records that satisfy a condition, and measures count all of them."""

    def all_records(node: Combine) -> Node:
        return replace(
            node,
            aggregates=tuple(
                (n, Max(Literal(3)) if isinstance(a, Count | CountValues) else a) for n, a in node.aggregates
            ),
        )

    assert broken(planned("naive"), "by_user_again_combined", all_records) == ("release",)


def test_measures_that_read_other_rows_are_seen() -> None:
    def other_rows(node: Combine) -> Node:
        return replace(node, source=replace(node.source, where=None))

    plan = planned("naive")
    restricted = next(step for step in steps_of(plan) if step.name == "selected_rows")
    other = replace(restricted, source=replace(restricted.source, name="other_rows", where=Literal(value=True)))
    assert broken(plan, "selected_rows", lambda node: replace(other, selected=node.selected)) == ("release",)


def renamed(changes: dict[str, Any]) -> Any:
    def change(node: Node) -> Node:
        return Map(
            f"{node.name}_changed", node, tuple((name, changes.get(name, Column(name))) for name in node.columns)
        )

    return change


ON_THE_WAY = {
    "totals that grow before they are clipped": {"measure_3_raw_total": Times(Column("measure_3_raw_total"), 1000)},
    "totals in the place of numbers of values": {"measure_3_raw_values": Column("measure_3_raw_total")},
    "other keys": {"key_1": Column("measure_2_raw_records")},
    "one key for all": {"key_1": Literal(1)},
}


@pytest.mark.parametrize("step", ["above_limit", "uncut"])
@pytest.mark.parametrize("changes", ON_THE_WAY)
def test_rows_that_change_after_the_account_is_charged_are_seen(changes: str, step: str) -> None:
    found = broken(planned(), step, renamed(ON_THE_WAY[changes]))
    assert set(found) == {"selected_keys", "release"}


@pytest.mark.parametrize("factor", [1.001, 2])
def test_measures_with_less_noise_than_the_account_was_charged_for_are_seen(factor: float) -> None:
    def less_noise(node: Noise) -> Node:
        parts = tuple(
            replace(part, noise=replace(part.noise, scale=part.noise.scale / round(1000 * factor) * 1000))
            for part in node.noiser.parts
        )
        return replace(node, noiser=replace(node.noiser, parts=parts))

    assert broken(planned(), "release", less_noise) == ("release",)


def test_measures_that_no_account_was_charged_for_are_seen() -> None:
    measures = [plume.users(), plume.count(2), plume.mean("seconds", 0, 60)]
    of_others = make_plan(replace(QUERY, measures=measures)).plan[-1].noiser
    assert broken(planned(), "release", lambda node: replace(node, noiser=of_others)) == ("release",)


def sizes_swapped(node: Clip) -> Node:
    names, sizes = zip(*node.factors, strict=True)
    return replace(node, factors=tuple(zip(names, (*sizes[1:], sizes[0]), strict=True)))


def sizes_that_are_larger(node: Clip) -> Node:
    return replace(node, factors=tuple((n, replace(size, squared=100 * size.squared)) for n, size in node.factors))


def one_size(node: Clip) -> Node:
    """All factors by the size of the first measure, which the account is charged for."""
    return replace(node, factors=tuple((name, node.factors[0][1]) for name, _ in node.factors))


def twice_as_many_keys(node: Clip) -> Node:
    return replace(node, limit=2 * node.limit)


@pytest.mark.parametrize("change", [sizes_swapped, sizes_that_are_larger, one_size, twice_as_many_keys])
@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_rows_that_shrink_by_other_sizes_than_the_account_is_charged_for_are_seen(pipeline: str, change: Any) -> None:
    plan = tuple(rewrite(stage, "clipped", change) for stage in planned(pipeline))
    assert uncharged_noisers(plan) == ("release",)


def test_a_measure_that_is_noised_twice_is_seen() -> None:
    def twice(node: Noise) -> Node:
        return replace(node, noiser=replace(node.noiser, parts=(*node.noiser.parts, node.noiser.parts[0])))

    assert broken(planned(), "release", twice) == ("release",)


def test_noise_that_is_not_in_proportion_to_sizes_is_seen() -> None:
    """As of Laplace noise, or of a histogram that a number is chosen from."""
    laplace = make_plan(replace(QUERY, selection="laplace_threshold", noise="laplace")).plan[-1].noiser
    assert laplace.moved is None
    assert broken(planned(), "release", lambda node: replace(node, noiser=laplace)) == ("release",)


def test_a_broken_plan_is_not_run() -> None:
    made = make_plan(QUERY)
    stages = tuple(rewrite(stage, "by_user", without_account) for stage in made.plan)
    with pytest.raises(plume.errors.PlumeBug, match="noise does not cover"):
        checked(replace(made, plan=stages))
