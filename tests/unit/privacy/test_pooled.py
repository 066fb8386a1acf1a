"""Accounts over selection and measures: thresholds against values computed elsewhere, and integers that never promise too much."""

import itertools
import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import ndtr

from plume.errors import RangeError
from plume.privacy.gaussian import delta_of, noise_for
from plume.privacy.pooled import (
    ACCOUNT,
    LEAST_SHARE,
    STEPS,
    Charge,
    Pooled,
    left,
    refuse_too_little_for_selection,
    weight,
)
from plume.selection.threshold import smallest_threshold

EPSILON, DELTA = math.log(3), 1e-5
SIGMA = noise_for(EPSILON, DELTA)
LIMIT = 64
# Thresholds for the share of measures, from a prototype that was computed and reviewed elsewhere.
GOLDEN_USERS = {Fraction(1, 2): 17.608, Fraction(3, 4): 17.62484, Fraction(9, 10): 17.881}
GOLDEN_SUMS = {Fraction(1, 2): 17.645, Fraction(3, 4): 17.64471, Fraction(9, 10): 17.881}
# What golden values are rounded to.
_ROUNDED = 6e-4


def users_of(share: Fraction, limit: int = LIMIT) -> Charge:
    return Charge(share, whole=limit, least=1)


def sums_of(share: Fraction, limit: int = LIMIT, bound: int = 1) -> Charge:
    return Charge(share, whole=limit * bound**2, least=0)


def found_for(*charges: Charge, limit: int = LIMIT) -> Pooled:
    return smallest_threshold(
        lambda threshold: Pooled(SIGMA, threshold, limit, charges), others=0.0, epsilon=EPSILON, delta=DELTA
    )


def exact_delta(threshold: float, keys: float, novel: float, taken: float, *, moved: float | None = None) -> float:
    """What one user spends, written out once more; `moved` is what measures really move, if that is not what is taken."""
    hidden = novel * math.log1p(-ndtr((math.sqrt((1 - taken) / keys) - threshold) / SIGMA))
    mu = math.sqrt((1 - taken) * (1 - novel / keys) + (taken if moved is None else moved)) / SIGMA
    adding = -math.expm1(hidden) + math.exp(hidden) * float(delta_of(mu, EPSILON - hidden))
    return max(adding, float(delta_of(mu, EPSILON + hidden)))


@pytest.mark.parametrize(("share", "threshold"), GOLDEN_USERS.items())
def test_the_threshold_beside_users_is_the_golden_one(share: Fraction, threshold: float) -> None:
    assert found_for(users_of(share)).threshold == pytest.approx(threshold, abs=_ROUNDED)


@pytest.mark.parametrize(("share", "threshold"), GOLDEN_SUMS.items())
def test_the_threshold_beside_sums_is_the_golden_one(share: Fraction, threshold: float) -> None:
    assert found_for(sums_of(share)).threshold == pytest.approx(threshold, abs=_ROUNDED)


def test_the_threshold_beside_counts_of_up_to_eight_is_the_golden_one() -> None:
    counts = Charge(Fraction(3, 4), whole=LIMIT * 64, least=1)
    assert found_for(counts).threshold == pytest.approx(17.644, abs=_ROUNDED)


@pytest.mark.parametrize(("limit", "threshold"), {1: 17.625, 8: 17.625, 64: 17.625, 512: 17.639}.items())
def test_the_threshold_for_another_limit_of_measures_is_the_golden_one(limit: int, threshold: float) -> None:
    assert found_for(users_of(Fraction(3, 4), limit)).threshold == pytest.approx(threshold, abs=_ROUNDED)


def test_the_golden_threshold_is_attained_by_some_user_and_no_lower_one_would_do() -> None:
    found = found_for(users_of(Fraction(3, 4))).threshold
    worst = max(
        exact_delta(found, keys, novel, taken)
        for keys in range(1, LIMIT + 1)
        for novel in range(1, keys + 1)
        for taken in (0.75 * keys / LIMIT, 0.75)
    )
    assert DELTA * (1 - 1e-6) < worst <= DELTA


def test_a_threshold_for_users_who_fill_their_measures_is_too_low_for_others() -> None:
    """A near miss: delta is not largest where most is taken."""
    filled = found_for(Charge(Fraction(3, 4), whole=1, least=1)).threshold
    assert filled < found_for(sums_of(Fraction(3, 4))).threshold
    worst = max(exact_delta(filled, keys, novel, 0.0) for keys in range(1, 65) for novel in range(1, keys + 1))
    assert worst == pytest.approx(1.03e-5, rel=5e-3)


def test_a_threshold_for_fewer_keys_than_are_admitted_is_too_low() -> None:
    """A near miss."""
    of_eight = found_for(sums_of(Fraction(3, 4)), limit=8).threshold
    assert max(exact_delta(of_eight, 64, novel, 0.75) for novel in range(65)) == pytest.approx(5.3e-5, rel=1e-2)


def test_measures_that_move_more_than_was_taken_spend_more_than_delta() -> None:
    """A near miss: to add up after the first bounding what measures move, for a user whose sums are 0 there and large elsewhere."""
    found = found_for(sums_of(Fraction(3, 4))).threshold
    worst = max(exact_delta(found, LIMIT, novel, 0.0, moved=0.75) for novel in range(LIMIT + 1))
    assert worst == pytest.approx(4.3e-4, rel=1e-2)


@pytest.mark.parametrize(
    ("limit", "share", "delta"), [(4, Fraction(1, 2), 1.8e-4), (64, Fraction(3, 4), 4.3e-4)], ids=["4", "64"]
)
def test_users_whose_rows_are_others_when_they_are_read_again_spend_more_than_delta(
    limit: int, share: Fraction, delta: float
) -> None:
    """A near miss: accounts charged for values of 0, and measures of the largest ones."""
    found = found_for(sums_of(share, limit)).threshold
    worst = max(
        exact_delta(found, keys, novel, 0.0, moved=float(share))
        for keys in range(1, LIMIT + 1)
        for novel in range(keys + 1)
    )
    assert worst == pytest.approx(delta, rel=1e-2)


def test_charges_for_another_limit_than_the_one_that_is_chosen_later_spend_more_than_delta() -> None:
    """A near miss: accounts charged for a limit of 64, and noise for 8."""
    found = found_for(users_of(Fraction(3, 4))).threshold
    worst = max(
        exact_delta(found, keys, novel, 0.75 * keys / LIMIT, moved=0.75 * min(1, keys / 8))
        for keys in range(1, LIMIT + 1)
        for novel in range(keys + 1)
    )
    assert worst == pytest.approx(3.2e-4, rel=1e-2)


@pytest.mark.parametrize("users", [150, pytest.param(1000, marks=pytest.mark.engines)])
@pytest.mark.parametrize(
    "charges",
    [
        (users_of(Fraction(3, 4)),),
        (sums_of(Fraction(1, 4)), users_of(Fraction(1, 2)), Charge(Fraction(1, 10), whole=64 * 25, least=1)),
    ],
    ids=["one charge", "three charges"],
)
def test_no_random_user_spends_more_as_dp_accounting_counts(charges: tuple[Charge, ...], users: int) -> None:
    """Of each user a Gaussian and a disclosure are composed, without looking at how it was calibrated."""
    found = found_for(*charges)
    random = Random(20261118)  # noqa: S311 - which users are tried may be guessed
    for _ in range(users):
        keys = random.randint(1, LIMIT)
        novel = random.choice((0, 1, keys, random.randint(0, keys)))
        least = float(found.taken_at_least(np.array([float(keys)]))[0])
        taken = random.choice((least, found.covered, random.uniform(least, found.covered)))
        passing = 1 - (1 - float(ndtr((math.sqrt((1 - taken) / keys) - found.threshold) / SIGMA))) ** novel
        mu = math.sqrt((1 - taken) * (1 - novel / keys) + taken) / SIGMA
        moved = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=5e-4)
        shown = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.0, passing), 5e-4)
        # Losses are rounded up to the grid, by which delta is overstated by as much as a ten-thousandth.
        assert moved.compose(shown).get_delta_for_epsilon(EPSILON) <= DELTA * (1 + 1e-4)


def test_cells_are_priced_no_lower_than_any_user_in_them_and_hardly_higher() -> None:
    random = Random(7)  # noqa: S311 - the same
    for _ in range(40):
        charges = tuple(
            Charge(Fraction(random.randint(1, 300), 1000), whole=random.randint(1, 500), least=random.randint(0, 1))
            for _ in range(random.randint(1, 3))
        )
        limit = random.choice((1, 2, 7, 20))
        pooled = Pooled(SIGMA, random.uniform(10, 20), limit, charges)
        exact = 0.0
        for keys in range(1, limit + 1):
            least = float(pooled.taken_at_least(np.array([float(keys)]))[0])
            for taken in np.linspace(least, pooled.covered, 9):
                exact = max(exact, *(exact_delta(pooled.threshold, keys, novel, taken) for novel in range(keys + 1)))
        assert exact <= pooled.worst(others=0.0, epsilon=EPSILON).delta * (1 + 1e-12)
        assert pooled.worst(others=0.0, epsilon=EPSILON).delta <= exact * (1 + 1e-3)


def test_ranges_of_keys_are_priced_no_lower_than_every_user_in_them() -> None:
    limit, random = 400, Random(3)  # noqa: S311 - the same
    pooled = Pooled(SIGMA, 17.0, limit, (users_of(Fraction(3, 4), limit),))
    worst = pooled.worst(others=0.0, epsilon=EPSILON).delta
    for _ in range(20_000):
        keys = random.randint(1, limit)
        novel, taken = random.randint(0, keys), random.uniform(0.75 * keys / limit, 0.75)
        assert exact_delta(17.0, keys, novel, taken) <= worst


def test_a_higher_threshold_never_spends_more() -> None:
    spent = [
        Pooled(SIGMA, threshold, LIMIT, (sums_of(Fraction(3, 4)),)).worst(others=0.0, epsilon=EPSILON).delta
        for threshold in range(1, 40)
    ]
    assert all(after <= before * (1 + 1e-8) for before, after in itertools.pairwise(spent))


def test_noise_that_accounts_do_not_pay_for_is_added_in_full() -> None:
    pooled = found_for(users_of(Fraction(3, 4)))
    alone = pooled.worst(others=0.0, epsilon=EPSILON).mu
    assert pooled.worst(others=0.1, epsilon=EPSILON).mu == pytest.approx(math.hypot(alone, 0.1), rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_weights_and_what_is_taken_never_come_to_more_than_an_account(seed: int) -> None:
    """An identity of integers: t b² + 2¹⁰ Q ≤ 2⁴⁰, and Q is never less than what measures move."""
    random = Random(seed)  # noqa: S311 - the same
    for _ in range(500):
        shares = [Fraction(random.randint(1, 10**6), 3 * 10**6) for _ in range(random.randint(1, 3))]
        charges = tuple(Charge(share, whole=random.randint(1, 2 ** random.randint(1, 80)), least=0) for share in shares)
        squares = tuple(
            random.choice((0, 1, one.whole - 1, one.whole, 2**82, random.randint(0, 2 * one.whole))) for one in charges
        )
        keys, remaining = random.randint(1, 10**6), left(charges, squares)
        exact = sum(
            (
                charge.share * min(Fraction(1), Fraction(total, charge.whole))
                for charge, total in zip(charges, squares, strict=True)
            ),
            Fraction(),
        )
        assert exact * ACCOUNT <= ACCOUNT - remaining
        assert remaining >= 0
        assert keys * weight(remaining, keys) ** 2 + STEPS * (ACCOUNT - remaining) <= ACCOUNT * STEPS


def test_a_share_taken_at_the_least_is_never_more_than_what_is_taken() -> None:
    charge = Charge(Fraction(3, 4), whole=64 * 25, least=1)
    for keys in range(1, 3000):
        assert ACCOUNT * float(charge.at_least(np.array([float(keys)]))[0]) <= charge.taken(keys)


def test_measures_that_take_nearly_everything_are_refused() -> None:
    refuse_too_little_for_selection((users_of(1 - LEAST_SHARE),))
    with pytest.raises(RangeError, match=r"selection has a share of 0 of the budget; .* it needs 0\.001 or more"):
        refuse_too_little_for_selection((users_of(Fraction(1)),))


def test_a_threshold_is_found_for_the_least_share_of_selection() -> None:
    assert math.isfinite(found_for(sums_of(1 - LEAST_SHARE), limit=1000).threshold)
