import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from scipy import stats

from entropy import ConstantEntropy, ScriptedEntropy, SeededEntropy
from plume.errors import BoundError, BudgetError, RangeError
from plume.plan.expressions import Column, Literal
from plume.privacy.cost import EpsilonCost
from plume.selection import truncated_geometric
from plume.selection.truncated_geometric import TruncatedGeometric, tabulate, turning_points
from reference.truncated_geometric import keep_probability

EPSILON = Fraction(math.log(3)) / 2
GOLDEN = [(1, 19, 38, 0.465691), (4, 75, 149, 0.504688), (64, 1191, 2382, 0.498621), (512, 9527, 19054, 0.499962)]
CERTAIN = 2**128
BITS = 400

# Limit, epsilon, delta: ordinary ones, and those where rounding, capping or an early certainty may go wrong.
BUDGETS = [
    *[(limit, EPSILON, 1e-5) for limit, *_ in GOLDEN],
    (1, Fraction(1), 2.0**-126),
    (1, Fraction(1, 100), 2.0**-120),
    (3, Fraction(1, 10**6), 0.01),
    (2, Fraction(1, 10**100), 0.3),
    (7, Fraction(5), 1e-30),
    (1, Fraction(99), 1e-20),
    (1, Fraction(500), 1e-20),
    (1, Fraction(1, 10), 0.9),
    (1, Fraction(1), math.nextafter(1.0, 0.0)),
    (4000, Fraction(8), 1e-9),
]


def per_key(limit: int, delta: float) -> float:
    return -math.expm1(math.log1p(-delta) / limit)


def scaled(limit: int, epsilon: Fraction, delta: float) -> list[int]:
    """The chances coins are really compared with, and the certainty that follows them."""
    table = tabulate(limit, epsilon=epsilon, delta=delta)
    return [int(high) << 64 | int(low) for high, low in zip(table.high, table.low, strict=True)] + [CERTAIN]


def bounds(limit: int, epsilon: Fraction, delta: float) -> tuple[tuple[int, int], tuple[int, int]]:
    """Integers around e^(ε/L) and 1 - (1 - δ)^(1/L), in units of 2**-400, by interval arithmetic."""
    interval = mpmath.ctx_iv.MPIntervalContext()
    interval.prec = 1200
    growth = interval.exp(interval.mpf(epsilon.numerator) / epsilon.denominator / limit)
    novel = 1 - interval.exp(interval.log(1 - interval.mpf(delta)) / limit)
    exact = mpmath.MPContext()
    exact.prec = 1200
    around = [(exact.mpf(number.a), exact.mpf(number.b)) for number in (growth, novel)]
    return tuple((int(exact.floor(low * 2**BITS)), int(exact.ceil(high * 2**BITS))) for low, high in around)


def allowed(before: int, after: int, *, growth: int, novel: int) -> bool:
    """Both inequalities, in both directions, times 2**528."""
    slack = novel * CERTAIN
    gone, left = CERTAIN - before, CERTAIN - after
    return all(
        (one << BITS) <= growth * other + slack
        for one, other in ((after, before), (before, after), (gone, left), (left, gone))
    )


@pytest.mark.parametrize(("limit", "growing", "uncertain", "chance"), GOLDEN)
def test_turning_points_are_the_golden_ones(limit: int, growing: int, uncertain: int, chance: float) -> None:
    one_key = {"epsilon": EPSILON / limit, "delta": per_key(limit, 1e-5)}
    assert turning_points(**one_key) == (growing, uncertain)
    assert keep_probability(growing, **one_key) == pytest.approx(chance, abs=5e-7)


@pytest.mark.parametrize(("limit", "growing", "uncertain", "chance"), GOLDEN)
def test_the_table_has_the_golden_length_and_chance(limit: int, growing: int, uncertain: int, chance: float) -> None:
    table = scaled(limit, EPSILON, 1e-5)
    assert len(table) == uncertain + 2
    assert table[growing] / CERTAIN == pytest.approx(chance, abs=5e-7)


@pytest.mark.parametrize(
    ("limit", "epsilon", "delta"), [(1, EPSILON, 1e-5), (64, EPSILON, 1e-5), (3, Fraction(2), 0.3)]
)
def test_the_table_is_the_closed_form(limit: int, epsilon: Fraction, delta: float) -> None:
    for users, chance in enumerate(scaled(limit, epsilon, delta)):
        closed = keep_probability(users, epsilon=epsilon / limit, delta=per_key(limit, delta))
        assert chance / CERTAIN == pytest.approx(closed, rel=1e-12)


def test_nobody_s_key_is_never_kept_by_the_closed_form() -> None:
    assert keep_probability(0, epsilon=EPSILON, delta=1e-5) == 0
    assert keep_probability(-3, epsilon=EPSILON, delta=1e-5) == 0


@pytest.mark.parametrize(("limit", "epsilon", "delta"), BUDGETS)
def test_integers_keep_both_inequalities_at_every_number_of_users(limit: int, epsilon: Fraction, delta: float) -> None:
    (growth, _), (novel, _) = bounds(limit, epsilon, delta)
    table = scaled(limit, epsilon, delta)
    assert table[0] == 0
    assert all(allowed(before, after, growth=growth, novel=novel) for before, after in pairwise(table))


@pytest.mark.parametrize(("limit", "epsilon", "delta"), BUDGETS)
def test_no_chance_could_be_larger_by_two_units(limit: int, epsilon: Fraction, delta: float) -> None:
    (_, growth), (_, novel) = bounds(limit, epsilon, delta)
    for before, after in pairwise(scaled(limit, epsilon, delta)):
        assert after == CERTAIN or not allowed(before, after + 2, growth=growth, novel=novel)


def test_unrounded_chances_rounded_down_would_break_an_inequality() -> None:
    (_, growth), (_, novel) = bounds(1, EPSILON, 1e-5)
    exact = mpmath.MPContext()
    exact.prec = 600
    power = exact.exp(exact.mpf(EPSILON.numerator) / EPSILON.denominator)
    rounded = [int(exact.mpf(1e-5) * (power**users - 1) / (power - 1) * CERTAIN) for users in range(20)]
    assert not all(allowed(before, after, growth=growth, novel=novel) for before, after in pairwise(rounded))


@pytest.mark.parametrize(("limit", "epsilon", "delta"), BUDGETS)
def test_cost_is_epsilon_exactly_and_never_more_than_delta(limit: int, epsilon: Fraction, delta: float) -> None:
    cost = TruncatedGeometric(limit, epsilon, delta).cost
    assert cost == EpsilonCost("selection", epsilon, delta=cost.delta, coordinates=limit)
    novel = scaled(limit, epsilon, delta)[1]
    with mpmath.workprec(600):
        spent = -mpmath.expm1(limit * mpmath.log1p(-mpmath.mpf(novel) / CERTAIN))
        assert spent <= cost.delta <= delta
        assert cost.delta == pytest.approx(float(spent), rel=1e-15)


def test_delta_is_nearly_all_spent() -> None:
    for limit in (1, 2, 64, 512):
        assert TruncatedGeometric(limit, EPSILON, 1e-5).cost.delta == pytest.approx(1e-5, rel=1e-15)


@pytest.mark.parametrize("users", [5, 19, 30])
def test_cost_is_read_off_the_table_and_would_notice_a_wrong_one(users: int) -> None:
    growth = truncated_geometric._growth(EPSILON)
    table = scaled(1, EPSILON, 1e-5)
    assert truncated_geometric._needed(table, growth) == table[1]
    table[users] += 10**9
    assert truncated_geometric._needed(table, growth) > table[1]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_user_in_all_their_keys_is_protected_by_epsilon_and_delta(limit: int) -> None:
    """Hockey-stick divergences of all outcomes for all numbers of users, both directions, to 1e-15."""
    epsilon, delta = Fraction(2), 0.2
    chances = np.array([chance / CERTAIN for chance in scaled(limit, epsilon, delta)])
    coins = np.stack([1 - chances, chances])
    without, with_user = coins[:, :-1], coins[:, 1:]
    most = 0.0
    for one, other in ((without, with_user), (with_user, without)):
        over = 0.0
        for outcome in product((0, 1), repeat=limit):
            likely, less = (math.prod(np.ix_(*[law[shown] for shown in outcome])) for law in (one, other))
            over = over + np.maximum(likely - math.exp(epsilon) * less, 0)
        most = max(most, float(np.max(over)))
    assert most == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("users", [1, 4, 8, 12])
def test_keys_are_kept_as_often_as_the_closed_form_says_and_not_as_one_user_off(users: int) -> None:
    """Two-sided binomial tests at 1e-8 each on a fixed seed; a table shifted by one user is rejected with the same test."""
    limit, epsilon, delta = 2, Fraction(1, 2), 0.05
    trials = 400_000
    kept = int(TruncatedGeometric(limit, epsilon, delta).keep(np.full(trials, users), SeededEntropy(users)).sum())
    one_key = {"epsilon": epsilon / limit, "delta": per_key(limit, delta)}
    assert stats.binomtest(kept, trials, keep_probability(users, **one_key)).pvalue > 1e-8
    for wrong in (users - 1, users + 1):
        assert stats.binomtest(kept, trials, keep_probability(wrong, **one_key)).pvalue < 1e-8


def test_mixed_keys_in_several_pieces_are_each_kept_by_their_own_chance() -> None:
    """Binomial tests at 1e-8 for each of 12 numbers of users, interleaved over more keys than one piece holds."""
    limit, epsilon, delta = 2, Fraction(1, 2), 0.05
    users = np.tile(np.arange(1, 13), 10_000)
    kept = TruncatedGeometric(limit, epsilon, delta).keep(users, SeededEntropy(3))
    for count in range(1, 13):
        chance = keep_probability(count, epsilon=epsilon / limit, delta=per_key(limit, delta))
        assert stats.binomtest(int(kept[users == count].sum()), 10_000, chance).pvalue > 1e-8


@pytest.mark.parametrize("users", [1, 2, 19, 20, 38])
def test_a_coin_is_two_words_the_high_one_first_and_exact_to_the_last_bit(users: int) -> None:
    chance = scaled(1, EPSILON, 1e-5)[users]
    words = [part for number in (chance - 1, chance) for part in divmod(number, 2**64)]
    kept = TruncatedGeometric(1, EPSILON, 1e-5).keep(np.array([users, users]), ScriptedEntropy(words))
    assert kept.tolist() == [True, False]


def test_with_constant_words_of_one_half_a_key_is_kept_from_an_even_chance_on() -> None:
    strategy = TruncatedGeometric(1, EPSILON, 1e-5)
    kept = strategy.keep(np.arange(60), ConstantEntropy())
    assert kept.tolist() == [users >= 20 for users in range(60)]
    assert strategy.facts() == {
        "strategy": "truncated geometric",
        "users_for_even_chance": 20,
        "users_for_certainty": 39,
        "min_users": 1,
    }


def test_whatever_the_coin_keys_without_users_are_dropped_and_those_with_many_kept() -> None:
    strategy = TruncatedGeometric(1, EPSILON, 1e-5)
    assert strategy.keep(np.array([38, 39, 2**62]), ConstantEntropy(2**64 - 1)).tolist() == [False, True, True]
    assert strategy.keep(np.array([-1, 0, 1]), ConstantEntropy(0)).tolist() == [False, False, True]
    assert strategy.keep(np.array([], dtype=np.int64), ConstantEntropy()).tolist() == []


def test_min_users_counts_from_there_on_and_costs_the_same() -> None:
    plain = TruncatedGeometric(4, EPSILON, 1e-5)
    shifted = TruncatedGeometric(4, EPSILON, 1e-5, min_users=20)
    users = np.repeat(np.arange(1, 160), 100)
    assert (plain.keep(users, SeededEntropy(1)) == shifted.keep(users + 19, SeededEntropy(1))).all()
    assert shifted.cost == plain.cost
    assert shifted.facts()["users_for_certainty"] == 150 + 19
    assert shifted.facts()["users_for_even_chance"] == 75 + 19


def test_no_key_below_min_users_is_kept_whatever_the_coin() -> None:
    strategy = TruncatedGeometric(1, Fraction(1, 100), 0.4, min_users=20)
    assert not strategy.keep(np.arange(20), ConstantEntropy(0)).any()
    assert strategy.keep(np.array([20]), ConstantEntropy(0)).all()


def test_one_user_counts_one_however_many_keys_they_have() -> None:
    strategy = TruncatedGeometric(4, EPSILON, 1e-5)
    assert strategy.weight(Column("keys")) == Literal(1)
    assert not strategy.counts_all_keys


@pytest.mark.parametrize(("limit", "delta"), [(100_000, 1e-5), (1, 1e-300)])
def test_a_table_that_would_be_too_long_is_refused_when_the_strategy_is_made(limit: int, delta: float) -> None:
    with pytest.raises(RangeError, match=f"max_keys_per_user = {limit}, .* more than 1048576 chances; lower"):
        TruncatedGeometric(limit, EPSILON, delta)


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        ({"epsilon": 0.5}, TypeError, "epsilon is a float; it must be an exact Fraction"),
        ({"epsilon": Fraction(0)}, BudgetError, "epsilon is 0; it must be above 0"),
        ({"delta": 0.0}, BudgetError, "delta is 0.0; selecting keys needs one above 0 and below 1"),
        ({"delta": 1.0}, BudgetError, "delta is 1.0"),
        ({"delta": math.nan}, BudgetError, "delta is nan"),
        ({"max_keys_per_user": 0}, BoundError, "max_keys_per_user is 0"),
        ({"min_users": 0}, BoundError, "min_users is 0"),
    ],
)
def test_what_is_no_budget_or_limit_is_refused(wrong: dict, error: type[Exception], sentence: str) -> None:
    right = {"max_keys_per_user": 1, "epsilon": EPSILON, "delta": 1e-5}
    with pytest.raises(error, match=sentence):
        TruncatedGeometric(**(right | wrong))


def test_strategies_of_one_budget_share_a_table_that_nobody_can_change() -> None:
    table = TruncatedGeometric(4, EPSILON, 1e-5)._table()
    assert table is TruncatedGeometric(4, EPSILON, 1e-5, min_users=7)._table()
    with pytest.raises(ValueError, match="read-only"):
        table.high[1] = 0
