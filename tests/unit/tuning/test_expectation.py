import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import plume
from entropy import SeededEntropy
from exact import say_nothing
from plume.calibration.calibrated_query import calibrate
from plume.engines.duckdb import DuckDB
from plume.errors import BoundError, BudgetError, UsageError
from plume.running import run_with


def query(**settings) -> plume.Query:
    asked = {
        "user": "person",
        "keys": "key",
        "measures": [plume.users(), plume.mean("seconds", 0, 60)],
        "max_keys_per_user": 4,
        "budget": plume.Budget(epsilon=1.0, delta=1e-5),
    }
    return plume.Query(**asked | settings)


def equal_keys(keys: int, users: int) -> pa.Table:
    """Keys with so many users each, who are in four keys each: the same ones."""
    rows = [(f"p{key // 4}-{user}", f"k{key}", 5.0) for key in range(keys) for user in range(users)]
    return pa.table(dict(zip(("person", "key", "seconds"), zip(*rows, strict=True), strict=True)))


@pytest.mark.parametrize(
    "selection",
    ["weighted_gaussian", "pooled_gaussian", "gaussian_threshold", "truncated_geometric", "laplace_threshold"],
)
def test_a_run_shows_as_many_keys_as_expected(selection: str) -> None:
    """Keys that are shown about half the time; a binomial test at 1e-8 on a fixed seed, and power: not as with two users less or more."""
    asked = query(selection=selection, measures=plume.users(), budget=plume.Budget(epsilon=20.0, delta=1e-5))
    (prospect,) = plume.expect(asked).prospects
    users = prospect.users_for_even_chance
    data, engine = equal_keys(2_000, users), DuckDB(threads=1)
    release = run_with(SeededEntropy(1), asked, data, engine=engine, pipeline="plume", on_step=say_nothing)
    ((chances,),) = (p.chances for p in plume.expect(asked, users=[users]).prospects)
    assert stats.binomtest(len(release), 2_000, chances[1]).pvalue > 1e-8
    ((low, high),) = (p.chances for p in plume.expect(asked, users=[users - 2, users + 2]).prospects)
    assert all(stats.binomtest(len(release), 2_000, wrong).pvalue < 1e-8 for wrong in (low[1], high[1]))


def keys_of_users_with(keys: int, users: int, groups: int) -> list[tuple[str, str, float]]:
    """So many groups of users, each in the same keys."""
    return [
        (f"p{keys}-{g}-{u}", f"k{keys}-{g}-{k}", 5.0) for g in range(groups) for u in range(users) for k in range(keys)
    ]


def test_where_selection_counts_more_keys_than_measures_users_in_more_keys_help_a_key_as_little_as_in_a_run() -> None:
    """Users in ten keys, of which measures pay for four and selection counts all; a binomial test at 1e-8 on a fixed seed.

    Power: the run is not as if users had the four keys that measures pay for.
    """
    asked = query(selection="pooled_gaussian", measures=plume.users(), budget=plume.Budget(epsilon=20.0, delta=1e-5))
    users = plume.expect(asked, keys_of_user=10).prospects[0].users_for_even_chance
    rows = keys_of_users_with(10, users, groups=200)
    data = pa.table(dict(zip(("person", "key", "seconds"), zip(*rows, strict=True), strict=True)))
    release = run_with(SeededEntropy(1), asked, data, engine=DuckDB(threads=1), pipeline="plume", on_step=say_nothing)
    right, wrong = (
        plume.expect(asked, users=[users], keys_of_user=keys).prospects[0].chances[0][1] for keys in (10, 4)
    )
    assert stats.binomtest(len(release), 2_000, right).pvalue > 1e-8
    assert stats.binomtest(len(release), 2_000, wrong).pvalue < 1e-8


@pytest.mark.parametrize("selection", ["weighted_gaussian", "pooled_gaussian"])
def test_users_in_different_numbers_of_keys_give_what_each_of_them_gives(selection: str) -> None:
    """Against the chance of the sum of their weights, without the three largest, which are those of users in one key."""
    asked = query(selection=selection, measures=plume.users(), min_users=4, budget=plume.Budget(epsilon=3, delta=1e-5))
    (strategy,) = calibrate(asked).rounds
    shares = {10: 0.5, 1: 0.5}
    half = plume.expect(asked, keys_of_user=shares).prospects[0].users_for_even_chance // 2
    ((said,),) = (one.chances for one in plume.expect(asked, users=[2 * half], keys_of_user=shares).prospects)
    weights = np.array(
        [(half - left_out) * strategy.weight_of(1) + half * strategy.weight_of(10) for left_out in (3, 0)]
    )
    chance, without_min_users = strategy.chance(weights)
    assert said == (2 * half, pytest.approx(chance, rel=1e-12))
    assert 0.05 < chance < without_min_users - 0.05


def test_shares_of_users_are_said_and_kept_from_small_to_large() -> None:
    expectation = plume.expect(query(), keys_of_user={10: 0.5, 1: 0.5})
    assert "how many users, 0.5 of them in 1 key, 0.5 of them in 10 keys, a key needs to be shown:" in str(expectation)
    assert expectation.record()["keys_of_user"] == {1: 0.5, 10: 0.5}


def test_noise_is_that_of_the_explanation_and_half_widths_those_of_intervals() -> None:
    asked = query()
    expected, explained = plume.expect(asked).prospects[0].noise, plume.explain(asked).noise
    assert [(n.measure, n.part, n.kind, n.standard_deviation) for n in expected] == [
        (n.measure, n.part, n.kind, n.standard_deviation) for n in explained
    ]
    data = equal_keys(4, 200)
    release = plume.run(asked, data, engine=DuckDB(threads=1)).intervals(0.95).to_arrow()
    widths = {high - middle for high, middle in zip(*(release[n].to_pylist() for n in ("users_high", "users")))}  # noqa: B905
    assert widths == {expected[0].half_width}


def test_every_limit_is_tried_with_every_epsilon_and_the_querys_own_are_among_them() -> None:
    expectation = plume.expect(query(), limits=[8, 2], epsilons=[0.5, 1.0])
    tried = [(prospect.max_keys_per_user, prospect.epsilon) for prospect in expectation.prospects]
    assert tried == [(limit, epsilon) for limit in (2, 4, 8) for epsilon in (0.5, 1.0)]


def test_a_setting_is_expected_as_if_it_were_asked_alone() -> None:
    among = plume.expect(query(), limits=[16], epsilons=[2.0]).prospects[-1]
    alone = plume.expect(query(max_keys_per_user=16, budget=plume.Budget(epsilon=2.0, delta=1e-5))).prospects[0]
    assert among == alone


def test_the_users_a_key_needs_are_the_fewest() -> None:
    (prospect,) = plume.expect(query()).prospects
    for needed, chance in ((prospect.users_for_even_chance, 0.5), (prospect.users_for_95_percent, 0.95)):
        ((less, enough),) = (p.chances for p in plume.expect(query(), users=[needed - 1, needed]).prospects)
        assert less[1] < chance <= enough[1]


def test_users_in_fewer_keys_than_count_help_a_key_more_and_in_more_keys_not_less() -> None:
    needed = [plume.expect(query(), keys_of_user=keys).prospects[0].users_for_even_chance for keys in (1, 4, 9, None)]
    assert needed[0] < needed[1] == needed[2] == needed[3]


def test_public_keys_are_always_shown() -> None:
    (prospect,) = plume.expect(query(public_keys=["a", "b"])).prospects
    assert prospect.selection == "public keys"
    assert {chance for _, chance in prospect.chances} == {1.0}


def test_rows_hold_one_line_for_each_limit_epsilon_and_number_of_users() -> None:
    expectation = plume.expect(query(), limits=[8], users=[50, 10, 50])
    rows = expectation.to_arrow()
    assert rows.num_rows == 2 * 2
    assert rows["users"].to_pylist() == [10, 50] * 2
    first, noise = rows.to_pylist()[0], expectation.prospects[0].noise[0]
    assert first["users_standard_deviation"] == noise.standard_deviation
    assert first["users_relative_error"] == noise.standard_deviation / 10
    assert "seconds_mean_total_half_width" in first
    assert "seconds_mean_total_relative_error" not in first


def test_the_record_is_json_and_the_text_says_that_no_data_was_read() -> None:
    expectation = plume.expect(query(), users=[100])
    record = json.loads(expectation.to_json())
    assert record == expectation.record()
    assert record["prospects"][0]["chances"][0]["users"] == 100
    assert str(expectation).startswith("expected from the query alone: no data was read, nothing is spent\n")
    assert repr(expectation) == str(expectation)


def test_names_of_strangers_do_not_command_a_terminal() -> None:
    expectation = plume.expect(query(measures=plume.users(name="red\x1b[31m")))
    assert "\x1b" not in str(expectation)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"limits": [0]}, BoundError, "max_keys_per_user is 0"),
        ({"limits": ["4"]}, BoundError, "max_keys_per_user is '4'"),
        ({"epsilons": [-1.0]}, BudgetError, "epsilon is -1.0"),
        ({"users": [0]}, BoundError, "users holds 0; it must be a whole number from 1"),
        ({"users": [True]}, BoundError, "users holds True"),
        ({"limits": 4}, UsageError, r"limits is 4; it must be a list, such as \[4, 16\]"),
        ({"epsilons": 2.0}, UsageError, "epsilons is 2.0; it must be a list"),
        ({"users": "500"}, UsageError, "users is '500'; it must be a list"),
        ({"keys_of_user": 0}, BoundError, "keys_of_user holds 0"),
        ({"keys_of_user": {5: 0.5}}, BoundError, "add up to 0.5; they must add up to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        plume.expect(query(), **settings)


def test_what_is_no_query_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the query is a str; it must be a plume\.Query"):
        plume.expect("searches.parquet")


def test_an_expectation_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="prospects"):
        plume.expect(query()).prospects = ()
