"""The chances that strategies state are those with which they keep keys."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy import stats

from entropy import SeededEntropy
from plume.plan.expressions import Column
from plume.plan.printing.duckdb import DuckDBPrinter
from plume.plan.printing.expression_sql import print_expression
from plume.privacy.gaussian import noise_for
from plume.selection.chances import chance_of_users, users_for_chance
from plume.selection.gaussian_threshold import gaussian_threshold_alone
from plume.selection.laplace_threshold import laplace_threshold
from plume.selection.strategy import SelectionStrategy
from plume.selection.truncated_geometric import TruncatedGeometric
from plume.selection.two_round_weighted_gaussian import weighted_gaussian_round
from plume.selection.weighted_gaussian import UNIT, WeightedGaussian, weighted_gaussian_alone
from reference.truncated_geometric import keep_probability

KEYS = 4
TRIALS = 100_000
SIGMA = noise_for(math.log(3), 1e-5)
MADE = {
    "laplace_threshold": lambda least: laplace_threshold(KEYS, epsilon=Fraction(2), delta=1e-5, min_users=least),
    "truncated_geometric": lambda least: TruncatedGeometric(KEYS, Fraction(2), 1e-5, min_users=least),
    "gaussian_threshold": lambda least: gaussian_threshold_alone(KEYS, sigma=SIGMA, delta=1e-5, min_users=least),
    "weighted_gaussian": lambda least: weighted_gaussian_alone(KEYS, sigma=SIGMA, delta=1e-5, min_users=least),
}


def simulated(strategy: SelectionStrategy, users: int, seed: int) -> int:
    """How many of many keys with so many users, each in all keys that count, are kept."""
    weight = max(users - strategy.left_out, 0) * strategy.weight_of(KEYS)
    return int(strategy.keep(np.full(TRIALS, weight), SeededEntropy(seed)).sum())


@pytest.mark.parametrize("least", [1, 30])
@pytest.mark.parametrize("name", MADE)
def test_keys_are_kept_as_often_as_their_chance_says_and_not_as_that_of_a_user_more_or_less(
    name: str, least: int
) -> None:
    """Binomial tests at 1e-8 each on fixed seeds, for keys kept now and then, half the time, and nearly always."""
    rounds = (MADE[name](least),)
    for seed, wanted in enumerate((0.1, 0.5, 0.9)):
        users = users_for_chance(rounds, wanted, keys_of_user=KEYS)
        kept = simulated(rounds[0], users, seed)
        less, right, more = chance_of_users(rounds, np.arange(users - 1, users + 2), keys_of_user=KEYS)
        assert stats.binomtest(kept, TRIALS, right).pvalue > 1e-8
        assert all(stats.binomtest(kept, TRIALS, wrong).pvalue < 1e-8 for wrong in (less, more))


@pytest.mark.parametrize("name", MADE)
def test_keys_below_min_users_have_no_chance(name: str) -> None:
    users = np.arange(0, 40)
    chances = chance_of_users((MADE[name](30),), users, keys_of_user=KEYS)
    assert ((chances > 0) == (users >= 30)).all()


@pytest.mark.parametrize("name", MADE)
def test_chances_never_fall_with_users_and_end_in_certainty(name: str) -> None:
    chances = chance_of_users((MADE[name](1),), np.arange(0, 400), keys_of_user=KEYS)
    assert (np.diff(chances) >= 0).all()
    assert (chances[0], chances[-1]) == (0, pytest.approx(1, abs=1e-9))


def test_the_table_says_what_the_closed_form_says() -> None:
    strategy = TruncatedGeometric(1, Fraction(1, 2), 1e-5)
    users = np.arange(0, 60)
    expected = [keep_probability(int(number), epsilon=Fraction(1, 2), delta=1e-5) for number in users]
    assert strategy.chance(users) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("keys", [1, 2, 3, 7, KEYS, 10**6])
def test_the_weight_of_a_user_is_that_of_the_plan(keys: int) -> None:
    for make in MADE.values():
        strategy = make(1)
        printed = print_expression(strategy.weight(Column("t")), DuckDBPrinter())
        ((found,),) = duckdb.sql(f"SELECT {printed} FROM (SELECT {keys}::BIGINT AS t)").fetchall()
        assert strategy.weight_of(keys) == found


def test_users_with_fewer_keys_help_a_key_more() -> None:
    rounds = (MADE["weighted_gaussian"](1),)
    needed = [users_for_chance(rounds, 0.5, keys_of_user=keys) for keys in (1, KEYS)]
    assert needed[1] == pytest.approx(2 * needed[0], abs=1)


def test_a_key_missed_in_the_first_round_has_a_second_chance() -> None:
    rounds = tuple(
        weighted_gaussian_round(number, KEYS, sigma=sigma, delta=5e-6) for number, sigma in ((1, 12.0), (2, 4.0))
    )
    users = np.arange(1, 100)
    first, second = (chance_of_users((each,), users, keys_of_user=KEYS) for each in rounds)
    both = chance_of_users(rounds, users, keys_of_user=KEYS)
    assert both == pytest.approx(1 - (1 - first) * (1 - second), abs=1e-12)


def test_public_keys_are_certain() -> None:
    assert chance_of_users((), np.array([0, 1, 5]), keys_of_user=1).tolist() == [1, 1, 1]


def test_tiny_chances_are_not_rounded_to_none() -> None:
    strategy = MADE["weighted_gaussian"](1)
    assert isinstance(strategy, WeightedGaussian)
    assert strategy.chance(np.array([UNIT]))[0] == pytest.approx(strategy.noise.tail(strategy.threshold - UNIT))
    assert 0 < chance_of_users((strategy,), np.array([1]), keys_of_user=1)[0] <= 1e-5
