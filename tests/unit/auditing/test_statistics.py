import numpy as np
import pytest

from plume.auditing.statistics import (
    ALPHA,
    Seen,
    along_the_difference,
    epsilon_shown,
    has_rate,
    is_rarer_than,
    largest_epsilon_shown,
)


@pytest.mark.parametrize(("times", "holds"), [(50_000, True), (50_700, True), (52_000, False), (48_000, False)])
def test_a_rate_is_neither_higher_nor_lower_than_it_is_said_to_be(times: int, holds: bool) -> None:  # noqa: FBT001
    # One standard deviation is 158.
    assert has_rate(Seen(times, 100_000), 0.5, tests=16) is holds


@pytest.mark.parametrize(("times", "holds"), [(0, True), (1000, True), (1300, False)])
def test_what_is_rare_may_be_rarer(times: int, holds: bool) -> None:  # noqa: FBT001
    assert is_rarer_than(Seen(times, 100_000), 0.01) is holds


def test_an_event_that_is_always_there_or_never_shows_a_large_epsilon() -> None:
    always, never = Seen(10_000, 10_000), Seen(0, 10_000)
    assert epsilon_shown(always, never, 0.0) > 6
    assert epsilon_shown(never, always, 0.0) == 0


def test_samples_of_one_law_show_nothing_beyond_zero() -> None:
    one, other = np.random.default_rng(1).laplace(size=(2, 20_000))
    assert largest_epsilon_shown(one, other, 0.0) < 0.1


def test_laplace_noise_around_neighbours_shows_its_epsilon_and_no_more() -> None:
    one, other = np.random.default_rng(2).laplace(size=(2, 200_000))
    assert 1.5 < largest_epsilon_shown(one + 2, other, 0.0) <= 2


def test_numbers_that_move_in_opposite_directions_do_not_cancel() -> None:
    dice = np.random.default_rng(3)
    one, other = dice.normal([1, -1], size=(10_000, 2)), dice.normal([0, 0], size=(10_000, 2))
    assert largest_epsilon_shown(one.sum(axis=1), other.sum(axis=1), 0.0) < 0.1
    assert largest_epsilon_shown(*along_the_difference(one, other), 0.0) > 1.5


def test_a_number_without_noise_tells_all() -> None:
    one, other = np.ones((1000, 1)), np.zeros((1000, 1))
    assert largest_epsilon_shown(*along_the_difference(one, other), 0.0) > 3


def test_the_second_halves_have_no_say_in_the_direction() -> None:
    dice = np.random.default_rng(4)
    one, other = dice.normal(size=(2, 1000, 3))
    changed = np.concatenate([one[:500], 100 * one[500:]])
    assert np.array_equal(along_the_difference(one, other)[0][:500], along_the_difference(changed, other)[0][:500])


def test_false_alarms_are_rare_by_design() -> None:
    assert ALPHA <= 1e-6
