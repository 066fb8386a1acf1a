"""Which limit is chosen from a noised histogram, what that costs, and where it cannot be chosen."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import SeededEntropy
from exact import plan_with
from plume.choosing.histogram import list_buckets
from plume.choosing.keys_per_user import CANDIDATES, FULL, choose_limit, read_keys_per_user
from plume.choosing.open_query import choose
from plume.errors import BoundError, BudgetError, PlumeBug, UsageError
from plume.plan.analysis import costs, shuffles
from plume.planning import make_plan
from plume.privacy.cost import shares_spent, spend

LIMIT = "max_keys_per_user"
QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=3)],
    max_keys_per_user="auto",
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
)


def histogram(users: dict[int, int], full: float = 1.0) -> pa.Table:
    """A histogram in which so many users have so many keys, each of which says so much of the most it could."""
    counts = np.zeros(len(CANDIDATES), np.int64)
    for keys, number in users.items():
        counts[np.searchsorted(CANDIDATES, min(keys, CANDIDATES[-1]))] += number
    return pa.table(
        [*list_buckets(len(CANDIDATES)).columns, pa.array(counts), pa.array((counts * full * FULL).astype(np.int64))],
        names=["bucket", "users", "fullness"],
    )


def best_limit(users: dict[int, int], selected: int, full: float = 1.0, **changes: object) -> int:
    return choose(make_plan(replace(QUERY, **changes)), histogram(users, full), selected=selected)


def test_the_limits_on_offer_are_four_to_an_octave() -> None:
    assert CANDIDATES[:12] == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
    assert CANDIDATES[-5:] == (8192, 9742, 11586, 13778, 16384)


def test_few_keys_for_many_users_get_a_limit_that_cuts_nobody() -> None:
    assert best_limit({20: 10**6}, selected=20) == 20


def test_the_more_keys_are_selected_the_more_noise_counts() -> None:
    found = [best_limit({100: 3000, 10: 10**5}, selected) for selected in (100, 1000, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 4 * found[-1]


def test_users_who_say_little_are_cut_more() -> None:
    found = [best_limit({200: 3000}, 2000, full) for full in (1.0, 0.3, 0.05)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_what_noise_could_be_is_taken_for_nobody() -> None:
    floor = make_plan(QUERY).choice.users.standard_deviation * math.sqrt(2 * math.log(len(CANDIDATES) / 0.02))
    few, enough = math.floor(floor), math.ceil(floor)
    assert best_limit({30: few}, selected=30) == 1
    assert best_limit({30: enough}, selected=30) > 1


def test_nobody_has_more_keys_than_are_selected() -> None:
    assert best_limit({16_000: 10**5}, selected=30) <= 32
    assert read_keys_per_user(histogram({500: 10**5}), make_plan(QUERY).choice, selected=30).keys.tolist() == [30]


@pytest.mark.parametrize("selected", [0, 1])
def test_where_nothing_is_known_the_smallest_limit_is_chosen(selected: int) -> None:
    assert best_limit({}, selected) == 1


def test_a_limit_whose_noise_could_not_be_drawn_is_not_on_offer() -> None:
    wide = {"budget": plume.Budget(1e-4, 1e-9), "measures": [plume.count(2**20)]}
    limit = best_limit({16_000: 10**9}, selected=16_000, **wide)
    plan_with(replace(QUERY, **wide), {LIMIT: limit})
    assert limit < 16_000


def test_the_estimate_is_what_is_lost_and_the_noise() -> None:
    """A thousand users with 100 keys; at a limit of 25 they count in all of them by a half, and lose 50,000 in 500 keys."""
    known = read_keys_per_user(histogram({100: 1000}), make_plan(QUERY).choice, selected=500)
    middle = float(known.keys[0])
    assert known.lost(25) == pytest.approx(1000 * (middle - math.sqrt(25 * middle)))
    assert known.lost(10) == pytest.approx(1000 * (middle - math.sqrt(10 * middle)))
    assert known.lost(150) == 0
    costs_of = {limit: known.lost(limit) / 500 + 3.0 * math.sqrt(limit) for limit in CANDIDATES}
    chosen = choose_limit(known, selected=500, noise=3.0, parts=1, largest=10**6)
    assert costs_of[chosen] == min(costs_of.values())


@pytest.mark.parametrize("limit", [1, 2, 7, 64, 1024, 16_384])
def test_measures_spend_the_same_at_every_limit_and_never_more(limit: int) -> None:
    nominal, chosen = costs(make_plan(QUERY).plan), costs(plan_with(QUERY, {LIMIT: limit}).plan)
    for before, after in zip(nominal, chosen, strict=True):
        assert after.what == before.what
        assert before.mu * (1 - 1e-6) < after.mu <= before.mu
    assert spend(chosen, QUERY.budget).delta <= QUERY.budget.delta


def test_choosing_takes_one_percent_of_the_budget() -> None:
    spent = shares_spent(costs(make_plan(QUERY).plan))
    assert spent == pytest.approx({"selection": 0.495, "max_keys_per_user": 0.01, "count": 0.495}, rel=1e-3)


def test_choosing_can_be_given_another_share() -> None:
    spent = shares_spent(costs(make_plan(replace(QUERY, shares={"max_keys_per_user": 2})).plan))
    assert spent == pytest.approx({"selection": 0.25, "max_keys_per_user": 0.5, "count": 0.25}, rel=1e-3)


def test_a_given_limit_pays_for_no_choice() -> None:
    plan = make_plan(replace(QUERY, max_keys_per_user=64)).plan
    assert [cost.what for cost in costs(plan)] == ["selection", "count"]
    assert [stage.name for stage in plan] == ["selected_keys", "release"]


def test_noise_is_drawn_for_every_row() -> None:
    choice = make_plan(QUERY).choice
    (batch,) = histogram({}).to_batches()
    noised = choice.noise(batch, SeededEntropy(1))
    assert noised.column("bucket").to_pylist() == list(range(len(CANDIDATES)))
    assert len(set(noised.column("users").to_pylist())) > len(CANDIDATES) / 2
    assert np.std(noised.column("fullness").to_numpy()) > FULL


def test_a_histogram_of_other_numbers_is_a_bug() -> None:
    wrong = pa.record_batch({"bucket": [0], "users": [None], "fullness": [1]})
    with pytest.raises(PlumeBug, match="does not hold 64-bit integers"):
        make_plan(QUERY).choice.noise(wrong, SeededEntropy(1))


def test_the_histogram_is_gathered_in_one_more_shuffle() -> None:
    assert {name: shuffles(make_plan(QUERY, name).plan) for name in ("plume", "naive")} == {"plume": 4, "naive": 7}


def test_pipelines_that_bound_before_they_select_cannot_choose() -> None:
    with pytest.raises(UsageError, match="runtime_optimized bounds once, before keys are selected"):
        make_plan(QUERY, "runtime_optimized")
    public = replace(QUERY, public_keys=["a"])
    assert make_plan(public, "runtime_optimized").plan == make_plan(public, "plume").plan


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": "laplace"},
        {"composition": "basic"},
        {"selection": "laplace_threshold"},
        {"selection": "truncated_geometric"},
    ],
)
def test_only_gaussian_noise_lets_a_limit_be_chosen(changes: dict[str, str]) -> None:
    with pytest.raises(BoundError, match="needs Gaussian noise throughout"):
        replace(QUERY, **changes)


def test_a_delta_of_zero_does_not_let_a_limit_be_chosen() -> None:
    with pytest.raises(BudgetError, match="max_keys_per_user = 'auto' needs a delta above 0"):
        replace(QUERY, public_keys=["a"], budget=plume.Budget(1.0))


@pytest.mark.parametrize("limit", ["Auto", "many", 0, True, 1.5])
def test_other_words_are_no_limits(limit: object) -> None:
    with pytest.raises(BoundError, match="it must be a whole number from 1 to 1000000, or 'auto'"):
        replace(QUERY, max_keys_per_user=limit)


def test_shares_of_a_choice_that_is_not_made_are_refused() -> None:
    with pytest.raises(BudgetError, match="shares names 'max_keys_per_user'"):
        replace(QUERY, max_keys_per_user=3, shares={"max_keys_per_user": 1})


def test_expectations_and_tuning_need_a_number() -> None:
    with pytest.raises(BoundError, match="max_keys_per_user is 'auto'; what to expect depends on it"):
        plume.expect(QUERY)
    with pytest.raises(BoundError, match="max_keys_per_user is 'auto'; what to expect depends on it"):
        plume.expect(replace(QUERY, max_keys_per_user=3), limits=["auto"])
    with pytest.raises(BoundError, match="max_keys_per_user is 'auto'; what to expect depends on it"):
        plume.tune(QUERY, "searches.parquet")


def test_an_explanation_says_what_is_left_open() -> None:
    explained = plume.explain(QUERY)
    said = str(explained)
    assert "max_keys_per_user is chosen once keys are selected" in said
    assert "times √max_keys_per_user" in said
    assert "max_keys_per_user: mu 0.0" in said
    assert explained.chosen == {}
    assert explained.facts()["query"]["max_keys_per_user"] == "auto"
    assert "chosen" not in explained.facts()


def test_two_rounds_can_be_chosen_after() -> None:
    query = replace(QUERY, selection="two_round_weighted_gaussian")
    nominal, chosen = costs(make_plan(query).plan), costs(plan_with(query, {LIMIT: 9}).plan)
    assert [cost.what for cost in chosen] == [cost.what for cost in nominal]
    assert spend(chosen, query.budget).delta <= query.budget.delta
