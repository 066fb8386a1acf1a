"""The number that is compared is the one that is released: threshold, price, law, bias and intervals, all of them computed exactly."""

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from entropy import ConstantEntropy, SeededEntropy
from plume.errors import PlumeBug
from plume.noise.entropy import Entropy
from plume.noise.laplace import DiscreteLaplace
from plume.selection.released_users import RULE, ReleasedUsers, released_users
from plume.selection.rule import EpsilonBudget

LN3 = Fraction(math.log(3))
GOLDEN = {"ln 3": (LN3, 12, 4.234e-6, 1.2247), "1/2": (Fraction(1, 2), 24, 6.31e-6, 2.799)}
Law = dict[int | str, Fraction]


@pytest.mark.parametrize("name", GOLDEN)
def test_thresholds_deltas_and_deviations_are_the_golden_ones(name: str) -> None:
    epsilon, threshold, delta, deviation = GOLDEN[name]
    strategy = released_users(epsilon=epsilon, delta=1e-5)
    assert strategy.threshold == threshold
    assert strategy.cost.delta == pytest.approx(delta, rel=1e-3)
    assert strategy.noise.standard_deviation == pytest.approx(deviation, abs=1e-3)
    assert strategy.cost.epsilon == epsilon


def test_with_half_of_epsilon_the_threshold_is_the_golden_one() -> None:
    assert released_users(epsilon=LN3 / 2, delta=1e-5).threshold == 22


def test_at_thousands_of_points_the_threshold_is_the_smallest_that_keeps_delta() -> None:
    random = np.random.default_rng(1)
    with mpmath.workdps(50):
        for _ in range(1_000):
            epsilon, delta = Fraction(float(10 ** random.uniform(-2, 1))), float(10 ** random.uniform(-12, -0.31))
            strategy = released_users(epsilon=epsilon, delta=delta)
            q = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            alone = q ** (strategy.threshold - 1) / (1 + q)
            assert alone <= delta < alone / q or strategy.threshold == 1
            assert strategy.cost.delta == pytest.approx(float(alone), rel=1e-9)


def test_it_is_for_users_with_one_key_each() -> None:
    assert RULE.by_epsilon is not None
    with pytest.raises(PlumeBug, match="one key each"):
        RULE.by_epsilon(EpsilonBudget(2, 1, Fraction(1), 1e-5))


@dataclass(frozen=True)
class Prescribed(DiscreteLaplace):
    """Noise that is said in advance, of the law that it is said to have."""

    drawn: tuple[int, ...] = ()

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:  # noqa: ARG002
        assert size == len(self.drawn)
        return np.array(self.drawn, np.int64)


FAR = 110


def law(strategy: ReleasedUsers, users: int, ratio: Fraction) -> Law:
    """What is released of a key, with its exact probability: each value of the noise goes through the strategy itself.

    What lies further out than `FAR` steps is one outcome, of at most 1e-10 of the deltas here.
    """
    if users == 0:
        return {"not shown": Fraction(1)}  # a key that nobody has is not in the table
    drawn = tuple(range(-FAR, FAR + 1))
    noise = Prescribed(strategy.noise.scale, drawn)
    noised, shown = replace(strategy, noise=noise).release(np.full(len(drawn), users), ConstantEntropy())
    found: Law = defaultdict(Fraction)
    for noise_drawn, number, is_shown in zip(drawn, noised.tolist(), shown.tolist(), strict=True):
        found[number if is_shown else "not shown"] += (1 - ratio) / (1 + ratio) * ratio ** abs(noise_drawn)
    found["far"] = 1 - sum(found.values())
    return found


def beyond(one: Law, other: Law, factor: Fraction) -> Fraction:
    """How much more likely than `factor` times as likely any set of outcomes is."""
    return sum((max(Fraction(), one[out] - factor * other.get(out, Fraction())) for out in one), Fraction())


def exact_delta(strategy: ReleasedUsers, factor: Fraction) -> Fraction:
    """The largest divergence between tables with one user more or less, in keys of up to 40 users, exactly."""
    laws = [law(strategy, users, 1 / factor) for users in range(41)]
    return max(beyond(*pair, factor) for less, more in pairwise(laws) for pair in ((less, more), (more, less)))


@pytest.mark.parametrize("factor", [Fraction(3), Fraction(2), Fraction(3, 2)])
@pytest.mark.parametrize("min_users", [1, 2, 12, 30])
def test_one_user_more_or_less_costs_exactly_what_is_priced(factor: Fraction, min_users: int) -> None:
    strategy = released_users(epsilon=Fraction(math.log(factor)), delta=1e-5, min_users=min_users)
    found = exact_delta(strategy, factor)
    assert found <= 1e-5
    assert float(found) == pytest.approx(strategy.cost.delta, rel=1e-9)


@pytest.mark.parametrize("min_users", [1, 12])
def test_a_threshold_that_is_lower_by_one_costs_more_than_delta(min_users: int) -> None:
    strategy = released_users(epsilon=LN3, delta=1e-5, min_users=min_users)
    assert exact_delta(replace(strategy, threshold=strategy.threshold - 1), Fraction(3)) > 1e-5


def test_a_plain_test_on_the_exact_number_costs_more_than_delta() -> None:
    """As `min_users` would if it did not raise the threshold."""
    strategy = released_users(epsilon=LN3, delta=1e-5)
    assert exact_delta(replace(strategy, min_users=20), Fraction(3)) > 0.5


def test_a_second_draw_costs_more_than_delta() -> None:
    """Compared with one noise and released with another: twice the epsilon."""
    strategy = released_users(epsilon=LN3, delta=1e-5)
    once = [law(replace(strategy, threshold=-FAR), users, Fraction(1, 3)) for users in (12, 13)]
    passing = [Fraction(sum(p for out, p in of.items() if out != "far" and out >= strategy.threshold)) for of in once]
    twice = [
        {out: chance * p for out, p in of.items()} | {"not shown": 1 - chance}
        for of, chance in zip(once, passing, strict=True)
    ]
    assert max(beyond(*twice, Fraction(3)), beyond(*twice[::-1], Fraction(3))) > 0.01


def test_what_is_released_is_what_was_compared() -> None:
    strategy = released_users(epsilon=Fraction(1, 10), delta=1e-3, min_users=3)
    users = np.repeat(np.arange(1, 150), 50)
    noised, shown = strategy.release(users, SeededEntropy(7))
    assert shown.tolist() == [n >= 3 and r >= strategy.threshold for n, r in zip(users, noised, strict=True)]
    assert strategy.keep(users, SeededEntropy(7)).tolist() == shown.tolist()
    assert 0 < shown.sum() < len(users)


def test_no_key_below_min_users_is_shown_whatever_the_noise() -> None:
    strategy = released_users(epsilon=Fraction(1, 100), delta=0.4, min_users=20)
    assert not strategy.keep(np.repeat(np.arange(1, 20), 20_000), SeededEntropy(1)).any()
    assert strategy.keep(np.full(1000, 20), SeededEntropy(1)).any()


def test_chances_are_those_of_the_law() -> None:
    strategy = released_users(epsilon=LN3, delta=1e-5, min_users=3)
    chances = strategy.chance(np.arange(1, 30))
    exact = [1 - law(strategy, users, Fraction(1, 3)).get("not shown", Fraction()) for users in range(1, 30)]
    assert chances.tolist() == pytest.approx([float(chance) for chance in exact], abs=1e-12)


@pytest.mark.parametrize(("users", "bias"), [(1, 11.5), (11, 1.5), (12, 0.5), (14, 0.1), (20, 0.0)])
def test_shown_numbers_of_small_keys_are_too_large_by_as_much_as_the_page_says(users: int, bias: float) -> None:
    released = law(released_users(epsilon=LN3, delta=1e-5), users, Fraction(1, 3))
    shown = {number: chance for number, chance in released.items() if isinstance(number, int)}
    mean = sum(number * chance for number, chance in shown.items()) / sum(shown.values())
    assert float(mean) - users == pytest.approx(bias, abs=0.03)


BUDGETS = [(math.log(3), 1e-5, 1), (0.5, 1e-5, 10), (0.05, 1e-8, 1), (3, 1e-5, 1), (20, 1e-9, 2), (math.log(3), 0.4, 1)]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize(("epsilon", "delta", "min_users"), BUDGETS)
def test_intervals_hold_as_often_as_they_say_given_that_a_key_is_shown(
    epsilon: float, delta: float, min_users: int, level: float
) -> None:
    """Computed, not simulated: for each number of users, over all numbers that may be shown; far above the threshold nothing changes."""
    strategy = released_users(epsilon=Fraction(epsilon), delta=delta, min_users=min_users)
    far = 40 * math.ceil(strategy.noise.scale) + 40
    shown = np.arange(strategy.threshold, strategy.threshold + 3 * far)
    low, high = strategy.sides(shown, level)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)
    assert np.all((min_users <= low) & (low <= shown) & (shown <= high))
    for users in np.unique(np.geomspace(min_users, strategy.threshold + far, 200).astype(int)):
        chances = np.exp(-float(1 / strategy.noise.scale) * np.abs(shown - users))
        assert chances[(low <= users) & (users <= high)].sum() / chances.sum() >= level - 1e-9


def test_symmetric_intervals_would_never_hold_in_small_keys() -> None:
    """Why they are wider: a key of 5 users is shown with 12 or more."""
    strategy = released_users(epsilon=LN3, delta=1e-5)
    low, high = strategy.sides(np.array([12, 14, 15, 16, 20, 50]), 0.95)
    assert low.tolist() == [1, 1, 13, 14, 17, 47]
    assert high.tolist() == [14, 17, 18, 19, 23, 53]


def test_no_numbers_have_no_intervals() -> None:
    low, high = released_users(epsilon=LN3, delta=1e-5).sides(np.array([], np.int64), 0.95)
    assert len(low) == len(high) == 0


def test_it_says_what_is_released() -> None:
    facts = released_users(epsilon=LN3, delta=1e-5).facts()
    assert facts["strategy"] == "released users"
    assert facts["released"] == "the number that is compared is the one that is released"
