"""Plans that gather by user in one pass: spelled out they are the plans they were, and a step that says anything else stays SQL."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

import plume
from plume.errors import PlumeBug
from plume.plan.accounts import uncharged_noisers
from plume.plan.aggregates import Max, Sum
from plume.plan.analysis import costs, shuffles, spelled_out, steps
from plume.plan.carrying import carrying
from plume.plan.explain import explain_steps
from plume.plan.expressions import Clamp, Column, InverseRoot, Literal, SecretOrder, UsersAbove, UsersWithin, When
from plume.plan.nodes import Combine, CountKeys, KeepFew, Made, Map, Node, Noise, OnePass, Size, reading
from plume.plan.one_pass import in_one_pass, recipe_of
from plume.plan.picture import draw
from plume.plan.printing.plan_sql import print_plan
from plume.plan.printing.registry import printer_of
from plume.plan.reach import releases_only_noise, unpaid_noisers
from plume.plan.recipe import Drawn, Spread
from plume.plan.row_keys import unkeyed_steps
from plume.planning import make_plan
from strategies import Asked, random_questions

QUERY = plume.Query(
    user="user_id",
    keys=["recipe", "country"],
    measures=[plume.count(max_per_key=3), plume.users()],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
    selection="pooled_gaussian",
)


def planned(query: plume.Query = QUERY, pipeline: str = "plume") -> tuple[Noise, ...]:
    return make_plan(query, pipeline).plan


def passes(plan: tuple[Noise, ...]) -> list[OnePass]:
    return [step for step in steps(in_one_pass(plan)) if isinstance(step, OnePass)]


@pytest.mark.parametrize("pipeline", ["naive", "runtime_optimized", "plume"])
@pytest.mark.parametrize("case", random_questions(40))
def test_spelled_out_a_plan_is_what_it_was(pipeline: str, case: Asked) -> None:
    plan = planned(case.query, pipeline)
    again = in_one_pass(plan)
    assert spelled_out(again) == (plan if again == plan else carrying(plan))
    assert spelled_out(plan) == plan
    assert releases_only_noise(again)
    assert unpaid_noisers(again) == uncharged_noisers(again) == ()
    assert costs(again) == costs(plan)
    assert shuffles(again) == shuffles(plan)


@pytest.mark.parametrize(
    "selection", ["pooled_gaussian", "weighted_gaussian", "gaussian_threshold", "laplace_threshold"]
)
@pytest.mark.parametrize("keys", ["recipe", ["recipe", "country"]])
def test_users_and_records_are_counted_in_one_pass(keys: str | list[str], selection: str) -> None:
    (one,) = passes(planned(replace(QUERY, keys=keys, selection=selection)))
    assert [step.name for step in one.makes] == ["keyed", "above_limit"]


@pytest.mark.parametrize(
    ("limit", "selection", "ordered"),
    [(4, "pooled_gaussian", 64), (64, "pooled_gaussian", 64), (4, "laplace_threshold", 4)],
)
def test_only_users_who_are_cut_have_their_keys_put_in_order(limit: int, selection: str, ordered: int) -> None:
    """Where measures clip, selection alone cuts, from 64 keys on."""
    (one,) = passes(planned(replace(QUERY, max_keys_per_user=limit, selection=selection)))
    recipe, (_, above) = recipe_of(one), one.makes
    assert recipe is not None
    assert (recipe.limit, recipe.cut_above) == (limit, ordered)
    assert isinstance(above, Map)
    order = above.expressions[-1][1]
    assert isinstance(order, SecretOrder if ordered == limit else When)


def test_steps_inside_of_a_pass_are_not_run() -> None:
    again = in_one_pass(planned())
    names = [step.name for step in steps(again)]
    assert names[:5] == ["input", "rows", "by_user", "keyed", "keyed_marked"]
    assert "by_user_combined" not in names
    assert "keyed and above_limit in one pass; SHUFFLE by user_id" in explain_steps(again)
    assert {"by_user", "keyed", "above_limit"} <= {stop.name for stop in draw(again).stops}


def test_sql_of_a_pass_is_that_of_its_steps() -> None:
    printer = printer_of("duckdb")
    apart, together = print_plan(planned(), printer), print_plan(in_one_pass(planned()), printer)
    inside = [one for name, printed in apart.items() if name not in together or name == "by_user" for one in printed]
    assert set(inside) <= set(together["by_user"])
    assert {one for printed in apart.values() for one in printed} == {
        one for printed in together.values() for one in printed
    }


ALIKE = {
    "sums": [plume.sum("minutes", low_total=0, high_total=9)],
    "records with a value": [plume.count(3, column="minutes")],
    "records that meet a condition": [plume.count(3, where="minutes > 1")],
    "users who meet a condition": [plume.users(where="minutes > 1")],
    "means": [plume.mean("minutes", low=0, high=9, max_per_key=2)],
    "deviations": [plume.stddev("minutes", low=0, high=9, where="minutes > 1")],
    "more numbers than are carried": [plume.count(n, name=f"c{n}") for n in (1, 2, 3, 4)],
}


@pytest.mark.parametrize("selection", ["pooled_gaussian", "gaussian_threshold"])
@pytest.mark.parametrize("what", ALIKE)
def test_sums_of_integers_are_added_up_in_one_pass(what: str, selection: str) -> None:
    plan = planned(replace(QUERY, measures=ALIKE[what], selection=selection))
    (one,) = passes(plan)
    assert [step.name for step in one.makes] == ["keyed", "above_limit"]
    assert checked_again(plan)


def checked_again(plan: tuple[Noise, ...]) -> bool:
    again = in_one_pass(plan)
    return (
        releases_only_noise(again) and unpaid_noisers(again) == uncharged_noisers(again) == unkeyed_steps(again) == ()
    )


NOT_ALIKE = {
    "tallies": {"measures": [plume.median("minutes", low=0, high=9)]},
    "tallies and numbers": {"measures": [plume.median("minutes", low=0, high=9), plume.users()]},
    "vectors": {"measures": [plume.vector_sum(["minutes", "steps"], norm=3)]},
    "totals whose squares may leave 64 bits": {
        "measures": [plume.sum("minutes", low_total=0, high_total=255.9)],
        "max_keys_per_user": 10**6,
    },
    "weights of which the largest are left out": {"selection": "weighted_gaussian", "min_users": 3},
    "two rounds": {"selection": "two_round_weighted_gaussian"},
    "two rounds with accounts": {"selection": "two_round_pooled_gaussian"},
    "limits that are chosen": {"max_keys_per_user": "auto", "selection": "auto"},
    "bounds that are chosen": {"measures": [plume.count("auto")], "selection": "weighted_gaussian"},
    "released users": {"measures": [plume.users()], "selection": "released_users", "max_keys_per_user": 1},
}


@pytest.mark.parametrize("what", NOT_ALIKE)
def test_what_a_recipe_cannot_say_stays_sql(what: str) -> None:
    plan = planned(replace(QUERY, **NOT_ALIKE[what]))
    assert in_one_pass(plan) == plan


@pytest.mark.parametrize("pipeline", ["naive", "runtime_optimized"])
def test_other_pipelines_stay_sql(pipeline: str) -> None:
    assert in_one_pass(planned(pipeline=pipeline)) == planned(pipeline=pipeline)


def changed(name: str, change: Callable[[Node], Node]) -> tuple[Noise, ...]:
    """Replace the step of a name throughout a plan."""
    made: dict[str, Node] = {}
    for step in steps(planned()):
        again = reading(step, made)
        made[step.name] = change(again) if step.name == name else again
    return tuple(reading(stage, made) for stage in planned())


def with_last(map_: Map, expression: object) -> Map:
    return replace(map_, expressions=(*map_.expressions[:-1], (map_.expressions[-1][0], expression)))


CHANGES: dict[str, tuple[str, Callable[[Node], Node]]] = {
    "combined by fewer columns": ("by_user_combined", lambda one: replace(one, by=one.by[:2])),
    "combined and something else": ("by_user_combined", lambda one: replace(one, aggregates=(("n", Max(Column("x"))),))),
    "users are counted by key": ("by_user", lambda one: replace(one, user="key_1")),
    "not all users are counted": ("by_user", lambda one: replace(one, above=3)),
    "sizes that are no records": (
        "by_user",
        lambda one: replace(
            one, account=replace(one.account, charges=((Size((Literal(2),), 4), one.account.charges[0][1]),))
        ),
    ),
    "accounts that may be empty": (
        "by_user",
        lambda one: replace(
            one,
            account=replace(
                one.account, charges=tuple((size, replace(c, share=Fraction(1))) for size, c in one.account.charges)
            ),
        ),
    ),
    "users within another limit": ("uncut", lambda one: replace(one, where=UsersWithin(Column("keys_of_user"), 63))),
    "users within no limit": ("uncut", lambda one: replace(one, where=None)),
    "users above another limit": ("above_limit", lambda one: replace(one, where=UsersAbove(Column("keys_of_user"), 65))),
    "an order of keys alone": ("above_limit", lambda one: with_last(one, SecretOrder((Column("key_1"),)))),
    "rows in another order": ("bounded", lambda one: replace(one, order=one.order[1:])),
    "few of somebody else": ("bounded", lambda one: replace(one, user="key_1")),
    "only some weights": ("uncut_weights", lambda one: replace(one, where=Column("weight"))),
    "other contributions": ("uncut_weights", lambda one: with_last(one, Literal(2))),
    "contributions of users above the limit": ("bounded_weights", lambda one: with_last(one, Literal(1))),
    "other weights of users above the limit": (
        "bounded_weights",
        lambda one: replace(one, expressions=(*one.expressions[:2], ("weight", Literal(1)), *one.expressions[3:])),
    ),
    "weights by an unknown column": (
        "uncut_weights",
        lambda one: replace(
            one,
            expressions=(
                *one.expressions[:2],
                ("weight", InverseRoot(Clamp(Column("measure_1_raw_records"), 1, 9), 8)),
                *one.expressions[3:],
            ),
        ),
    ),
    "other keys": ("keyed", lambda one: replace(one, by=("key_1",), gather=("key_1",))),
    "the largest and no sums": ("keyed", lambda one: replace(one, aggregates=tuple((n, Max(a.of)) for n, a in one.aggregates))),
    "sums of other columns": ("keyed", lambda one: replace(one, aggregates=tuple((n, Sum(Column("weight"))) for n, _ in one.aggregates))),
    "a sum that is left out": ("keyed", lambda one: replace(one, aggregates=one.aggregates[:1])),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_step_that_says_anything_else_stays_sql(change: str) -> None:
    plan = changed(*CHANGES[change])
    assert plan != planned()
    assert passes(plan) == []


def test_a_step_inside_that_another_step_reads_stays_sql() -> None:
    made = {step.name: step for step in steps(planned())}
    other = Map("other", made["by_user"], (("key_1", Column("key_1")),))
    stage = planned()[0]
    assert passes((replace(stage, name="reads_more", source=other), *planned())) == []


def test_a_pass_that_does_not_make_a_step_is_refused() -> None:
    (one,) = passes(planned())
    keyed, above = one.makes
    wider = replace(above, where=UsersAbove(Column("keys_of_user"), 1000))
    assert isinstance(keyed, Combine)
    assert spelled_out(Made(one, keyed)) == keyed
    with pytest.raises(PlumeBug, match="above_limit is not one that by_user makes"):
        spelled_out(Made(one, wider))


def test_a_pass_over_other_rows_than_its_steps_read_is_refused() -> None:
    (one,) = passes(planned())
    assert isinstance(one.source, Map)
    fewer = replace(one, source=replace(one.source, name="fewer", where=Column("user_id")))
    with pytest.raises(PlumeBug, match="keyed is not one that by_user makes"):
        spelled_out(Made(fewer, one.makes[0]))


def test_a_recipe_says_weights_as_strategies_do() -> None:
    (one,) = passes(planned(replace(QUERY, selection="weighted_gaussian")))
    strategy = make_plan(replace(QUERY, selection="weighted_gaussian")).calibrated.rounds[0]
    found = recipe_of(one)
    assert found is not None
    assert isinstance(found.weight, Spread)
    assert [found.weight.weight_of(keys) for keys in range(1, 200)] == [
        strategy.weight_of(keys) for keys in range(1, 200)
    ]


def test_a_recipe_of_an_account_has_its_charges() -> None:
    (one,) = passes(planned(replace(QUERY, max_keys_per_user=4)))
    found = recipe_of(one)
    assert found is not None
    assert (found.limit, found.kept, found.weight) == (4, 64, Drawn(64))
    assert [counted.high for counted, _ in found.charges] == [3, 1]
    assert {CountKeys, KeepFew} <= {type(step) for made in one.makes for step in steps(made)}
