"""Which bounds are chosen from noised histograms, what that costs, and where they cannot be chosen."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad

import plume
from entropy import SeededEntropy
from exact import plan_with
from plume.choosing.open_query import choose
from plume.choosing.sizes import _last_seen, estimated_error
from plume.errors import BoundError, BudgetError, MeasureError, RangeError, UsageError
from plume.plan.analysis import costs, shuffles
from plume.plan.reach import unpaid_noisers
from plume.planning import make_plan
from plume.privacy.cost import shares_spent, spend

WHAT = "seconds_sum: high_total"
QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.sum("seconds", 0, "auto")],
    max_keys_per_user=8,
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
)
COUNTING = replace(QUERY, measures=[plume.count("auto")])


def best(sizes: dict[float, int], selected: int, query: plume.Query = QUERY, *, noise: int | None = None) -> float:
    """The bound that is chosen if so many pairs are of such sizes; with a seed for noise, or without any."""
    planned = make_plan(query)
    choice = planned.choice
    pairs = np.zeros(choice.buckets, np.int64)
    for size, number in sizes.items():
        pairs[np.searchsorted(choice.bound.candidates, size)] += number
    batch = pa.record_batch([pa.array(range(choice.buckets), pa.int64()), pa.array(pairs)], ["bucket", "pairs"])
    noised = batch if noise is None else choice.noise(batch, SeededEntropy(noise))
    return choose(planned, pa.table(noised), selected=selected)


def test_candidates_are_two_to_an_octave() -> None:
    candidates = make_plan(QUERY).choice.bound.candidates
    assert (candidates[0], candidates[20], candidates[21], candidates[-1]) == (2.0**-10, 1.0, 1.5, 2.0**40)
    assert make_plan(COUNTING).choice.bound.candidates[:7] == (1, 2, 3, 4, 6, 8, 12)
    assert make_plan(COUNTING).choice.bound.candidates[-1] == 2**20


def test_few_keys_for_many_users_get_a_bound_that_cuts_nobody() -> None:
    assert best({20.0: 10**6}, selected=5) == 24
    assert best({5: 10**6}, selected=5, query=COUNTING) == 6


def test_the_more_keys_are_selected_the_more_noise_counts() -> None:
    found = [best({1.0: 10**6, 100.0: 10**5, 1000.0: 10**4}, selected) for selected in (10, 1000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (1024, 1)


def test_the_estimate_is_the_mean_over_keys_whose_bias_is_exponential() -> None:
    """Against a numerical integral over both: bias and noise of a key partly make up for each other."""
    for lost, noise in [(0.01, 1.0), (0.5, 1.0), (1.0, 1.0), (3.0, 1.0), (100.0, 1.0), (420.0, 352.0)]:
        deviation = noise * math.sqrt(math.pi / 2)

        def off(bias: float, lost: float = lost, deviation: float = deviation) -> float:
            scaled = bias / deviation
            moved = math.sqrt(2 / math.pi) * math.exp(-(scaled**2) / 2) + scaled * math.erf(scaled / math.sqrt(2))
            return deviation * moved * math.exp(-bias / lost) / lost

        expected, _ = quad(off, 0, 60 * lost, limit=500)
        assert estimated_error(np.array([lost]), np.array([noise]))[0] == pytest.approx(expected, rel=1e-6)
    assert estimated_error(np.array([0.0]), np.array([2.0]))[0] == 2.0


def test_the_candidate_with_the_smallest_estimated_error_is_chosen() -> None:
    """Computed by hand for totals that are spread alike from 0 to 20: each contribution is taken to be in the middle of its bucket."""
    sizes = {8.0: 4 * 10**5, 12.0: 2 * 10**5, 16.0: 2 * 10**5, 20.0: 2 * 10**5}
    planned = make_plan(QUERY)
    (part,) = planned.calibrated.parts
    noise, selected = part.mean_noise * float(part.unit) / 3, 20_000
    middles = {7: 4 * 10**5, 10: 2 * 10**5, 14: 2 * 10**5, 20: 2 * 10**5}
    errors = {}
    for bound in (8, 12, 16, 24):
        lost = sum(number * max(middle - bound, 0) for middle, number in middles.items()) / selected
        errors[bound] = float(estimated_error(np.array([lost]), np.array([noise * bound]))[0])
    assert best(sizes, selected) == min((bound for bound in errors if bound >= 12), key=lambda bound: errors[bound])


def test_noise_behind_a_full_bucket_is_no_tail() -> None:
    """A thousand draws: a window that reached back into the full bucket would end in noise in many of them."""
    choice = make_plan(QUERY).choice
    full = np.zeros(choice.buckets)
    full[40] = 10**6
    drawn = choice.pairs.sample(choice.buckets * 1000, SeededEntropy(1)).reshape(1000, choice.buckets)
    assert {_last_seen(full + noise, choice.pairs) for noise in drawn} == {40}


def test_a_tail_of_several_buckets_is_seen_where_none_of_them_is() -> None:
    choice = make_plan(QUERY).choice
    deviation, pairs = choice.pairs.standard_deviation, np.zeros(choice.buckets)
    pairs[40], pairs[41:45] = 10**6, 3 * deviation
    assert _last_seen(pairs, choice.pairs) == 44
    pairs[41:45] = deviation
    assert _last_seen(pairs, choice.pairs) == 40


def test_half_of_the_contributions_lie_within_the_bound() -> None:
    """With so many keys that releasing zeros would be least off."""
    assert best({8.0: 600, 64.0: 400}, selected=10**9) == 8
    assert best({8.0: 400, 64.0: 600}, selected=10**9) == 64


def test_noise_far_up_does_not_count() -> None:
    assert {best({10.0: 10**6}, selected=5, noise=seed) for seed in range(30)} == {12}


def test_with_nobody_there_is_a_bound_all_the_same() -> None:
    assert best({}, selected=0) == 2.0**-10


@pytest.mark.parametrize("bound", [2.0**-10, 1.0, 1.5, 24.0, 2.0**40])
@pytest.mark.parametrize("limit", [8, "auto"])
def test_everything_spends_the_same_at_every_bound_and_never_more(limit: int | str, bound: float) -> None:
    query = replace(QUERY, max_keys_per_user=limit)
    decided = {WHAT: bound} | ({"max_keys_per_user": 100} if limit == "auto" else {})
    nominal, chosen = costs(make_plan(query).plan), costs(plan_with(query, decided).plan)
    for before, after in zip(nominal, chosen, strict=True):
        assert after.what == before.what
        assert before.mu * (1 - 1e-6) < after.mu <= before.mu
    assert spend(chosen, QUERY.budget).delta <= QUERY.budget.delta


def test_each_number_that_is_chosen_takes_one_percent_of_the_budget() -> None:
    query = replace(QUERY, measures=[*QUERY.measures, *COUNTING.measures], max_keys_per_user="auto")
    small = {"max_keys_per_user": 0.01, WHAT: 0.01, "count: max_per_key": 0.01}
    others = {"selection": 0.485, "seconds_sum": 0.2425, "count": 0.2425}
    assert shares_spent(costs(make_plan(query).plan)) == pytest.approx(small | others, rel=1e-3)


def test_choosing_can_be_given_another_share() -> None:
    spent = shares_spent(costs(make_plan(replace(QUERY, shares={WHAT: 2})).plan))
    assert spent == pytest.approx({"selection": 0.25, WHAT: 0.5, "seconds_sum": 0.25}, rel=1e-3)


def test_noise_on_sizes_pays_for_all_keys_of_a_user_in_one_row() -> None:
    choice = make_plan(QUERY).choice
    assert choice.costs[0].mu == pytest.approx(8 / float(choice.pairs.scale))


def test_noise_is_drawn_for_every_row() -> None:
    choice = make_plan(QUERY).choice
    empty = pa.record_batch([pa.array(range(choice.buckets)), pa.array([0] * choice.buckets)], ["bucket", "pairs"])
    noised = choice.noise(empty, SeededEntropy(1)).column("pairs").to_numpy()
    assert np.std(noised) == pytest.approx(choice.pairs.standard_deviation, rel=0.3)


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_sizes_of_more_keys_than_the_noise_pays_for_are_seen(pipeline: str) -> None:
    plan = make_plan(QUERY, pipeline).plan
    assert unpaid_noisers(plan) == ()
    *selection, sizes, release = plan
    cheap = replace(sizes, noiser=replace(sizes.noiser, max_keys_per_user=7))
    assert unpaid_noisers((*selection, cheap, release)) == ("sizes_1",)


def test_a_histogram_is_gathered_in_one_more_shuffle_and_keys_once_more() -> None:
    assert {name: shuffles(make_plan(QUERY, name).plan) for name in ("plume", "naive")} == {"plume": 4, "naive": 6}


def test_pipelines_that_bound_before_they_select_cannot_choose() -> None:
    with pytest.raises(UsageError, match="seconds_sum: high_total = 'auto' is chosen after that"):
        make_plan(QUERY, "runtime_optimized")


@pytest.mark.parametrize(
    "changes", [{"noise": "laplace"}, {"composition": "basic"}, {"selection": "laplace_threshold"}]
)
def test_only_gaussian_noise_lets_bounds_be_chosen(changes: dict[str, str]) -> None:
    with pytest.raises(BoundError, match="seconds_sum: high_total is 'auto', which needs Gaussian noise throughout"):
        replace(QUERY, **changes)


def test_a_delta_of_zero_does_not_let_bounds_be_chosen() -> None:
    with pytest.raises(BudgetError, match="high_total = 'auto' needs a delta above 0"):
        replace(QUERY, public_keys=["a"], budget=plume.Budget(1.0))


@pytest.mark.parametrize(("low", "high"), [(1, "auto"), ("auto", 5), (-3.0, "auto"), (False, "auto")])
def test_beside_an_open_bound_the_lower_one_is_zero_or_open(low: object, high: object) -> None:
    with pytest.raises(RangeError, match="low_total is 0, or 'auto' for the same bound below 0"):
        plume.sum("seconds", low, high)
    with pytest.raises(RangeError, match="low is 0, or 'auto' for the same bound below 0"):
        plume.mean("seconds", low, high)


def test_other_words_are_no_bounds() -> None:
    with pytest.raises(RangeError, match="high_total is 'Auto'; it must be a number"):
        plume.sum("seconds", 0, "Auto")
    with pytest.raises(BoundError, match="or 'auto'"):
        plume.count("many")


def test_open_bounds_of_means_are_those_of_users_own_means() -> None:
    with pytest.raises(BoundError, match="max_per_key is 2 beside high = 'auto'"):
        plume.mean("seconds", 0, "auto", max_per_key=2)


def test_expectations_and_tuning_need_numbers() -> None:
    with pytest.raises(BoundError, match="seconds_sum: high_total is 'auto'; what to expect depends on it"):
        plume.expect(QUERY)
    fixed = replace(QUERY, measures=[plume.sum("seconds", 0, 60)])
    with pytest.raises(MeasureError, match="and bounds be numbers"):
        plume.tune(fixed, pa.table({"user_id": [1], "recipe": ["a"], "seconds": [1.0]}), measures=QUERY.measures)


def test_an_explanation_says_what_is_left_open_and_then_what_was_chosen() -> None:
    said = str(plume.explain(QUERY))
    assert f"{WHAT} is chosen once keys are selected, from 0.000977 to 1.1e+12" in said
    assert "times high_total" in said
    assert f"{WHAT}: mu 0.0" in said
    facts = plume.explain(QUERY).facts()
    assert facts["query"]["measures"][0]["high_total"] == "auto"
    assert "chosen" not in facts


def test_standard_deviations_are_in_proportion_to_the_chosen_bound() -> None:
    small, large = (plan_with(QUERY, {WHAT: bound}).calibrated.parts[0].standard_deviation for bound in (1.5, 96.0))
    assert large / small == pytest.approx(64)
    assert math.isfinite(small)
