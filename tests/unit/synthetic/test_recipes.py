from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from numpy.random import default_rng
from numpy.typing import NDArray

from plume.synthetic.recipes import RECIPES, _misspell, _search_repeated, recipe_searches

USERS = 20_000


@pytest.fixture(scope="module")
def searches() -> pa.Table:
    return recipe_searches(USERS, seed=1)


@pytest.fixture(scope="module")
def users_of_spelling(searches: pa.Table) -> Counter[str]:
    pairs = set(zip(searches["recipe"].to_pylist(), searches["user_id"].to_pylist(), strict=True))
    return Counter(recipe for recipe, _ in pairs)


@pytest.fixture(scope="module")
def searches_per_user(searches: pa.Table) -> NDArray[np.int64]:
    return np.array(list(Counter(searches["user_id"].to_pylist()).values()))


def test_there_are_about_sixty_different_recipes() -> None:
    assert len(set(RECIPES)) == len(RECIPES) == 60


def test_columns_are_user_recipe_and_seconds(searches: pa.Table) -> None:
    expected = pa.schema([("user_id", pa.string()), ("recipe", pa.string()), ("seconds", pa.float64())])
    assert searches.schema == expected


def test_every_user_searches(searches: pa.Table) -> None:
    assert set(searches["user_id"].to_pylist()) == {f"u{user:06}" for user in range(USERS)}


def test_a_few_users_search_far_more_than_most(searches_per_user: NDArray[np.int64]) -> None:
    assert np.median(searches_per_user) < 10
    assert searches_per_user.max() > 100


def test_users_search_again_for_the_same(searches: pa.Table, users_of_spelling: Counter[str]) -> None:
    assert users_of_spelling.total() < 0.9 * searches.num_rows


def test_every_recipe_is_searched_and_the_first_far_more_than_the_last(
    users_of_spelling: Counter[str],
) -> None:
    # Of 20,000 users some 9,400 against 500: no chance could turn these around.
    assert all(users_of_spelling[recipe] for recipe in RECIPES)
    assert users_of_spelling[RECIPES[0]] > 10 * users_of_spelling[RECIPES[-1]]


def test_a_fiftieth_of_the_searches_is_misspelt(searches: pa.Table) -> None:
    misspelt = sum(recipe not in RECIPES for recipe in searches["recipe"].to_pylist())
    # Nearly seven standard deviations of 0.00044: false alarms below 10^-10.
    assert misspelt / searches.num_rows == pytest.approx(0.02, abs=0.003)


def test_nine_misspellings_in_ten_are_of_one_user(users_of_spelling: Counter[str]) -> None:
    alone = [users == 1 for recipe, users in users_of_spelling.items() if recipe not in RECIPES]
    assert np.mean(alone) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_a_misspelling_is_no_recipe_and_nearly_as_long(seed: int) -> None:
    generator = default_rng(seed)
    for recipe in RECIPES:
        misspelling = _misspell(recipe, generator)
        assert misspelling not in RECIPES
        assert abs(len(misspelling) - len(recipe)) <= 3


def test_a_repeated_search_is_an_earlier_one_of_the_same_user() -> None:
    searchers = np.repeat(np.arange(1000), 5)
    repeated = _search_repeated(searchers, default_rng(1))
    assert np.array_equal(searchers[repeated], searchers)
    assert (repeated <= np.arange(5000)).all()
    assert (repeated < np.arange(5000)).any()


def test_nobody_stays_longer_than_half_an_hour(searches: pa.Table) -> None:
    seconds = searches["seconds"].to_numpy()
    assert 0 <= seconds.min() < seconds.max() <= 1800


def test_rows_of_a_user_are_not_together(searches: pa.Table) -> None:
    users = np.array(searches["user_id"].to_pylist())
    assert (users[1:] == users[:-1]).mean() < 0.01


def test_the_same_seed_gives_the_same_searches(searches: pa.Table) -> None:
    assert recipe_searches(USERS, seed=1).equals(searches)


def test_another_seed_gives_other_searches(searches: pa.Table) -> None:
    assert not recipe_searches(USERS, seed=2).equals(searches)


def test_no_users_make_an_empty_table() -> None:
    assert recipe_searches(0, seed=1).num_rows == 0


def test_a_negative_number_of_users_is_refused() -> None:
    with pytest.raises(ValueError, match=r"users is -1; it must be at least 0"):
        recipe_searches(-1, seed=1)
