"""What holds for every mechanism; a new one is added to MECHANISMS and has all of this to show."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import plume
from entropy import ConstantEntropy, SeededEntropy
from plume.errors import BoundError, RangeError
from plume.mechanisms.grid import grid_between
from plume.noise.laplace import DiscreteLaplace
from plume.plan.expressions import Clamp, Column, Count, Literal, Sum, columns_of

MECHANISMS = {
    "users": plume.users(),
    "count of one": plume.count(1),
    "count of three": plume.count(3),
    "sum": plume.sum("seconds", 0, 60),
    "sum around zero": plume.sum("seconds", -1.5, 2),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_each_operation_reads_only_what_the_one_before_names(mechanism) -> None:
    raw, preprocessed, keyed = mechanism.combine_raw(), mechanism.preprocess(), mechanism.combine_keyed()
    assert all(columns_of(aggregate) <= set(mechanism.value_columns) for aggregate in raw.values())
    assert all(columns_of(expression) <= raw.keys() for expression in preprocessed.values())
    assert all(columns_of(aggregate) <= preprocessed.keys() for aggregate in keyed.values())
    assert keyed.keys() == preprocessed.keys()


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_combining_by_key_is_a_plain_sum_and_therefore_associative_and_commutative(mechanism) -> None:
    assert all(aggregate == Sum(Column(name)) for name, aggregate in mechanism.combine_keyed().items())


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_preprocessing_bounds_one_user_by_the_sensitivity(mechanism) -> None:
    for expression in mechanism.preprocess().values():
        match expression:
            case Literal(value):
                assert value == mechanism.sensitivity() == 1
            case Clamp(_, low, high):
                assert max(abs(low), abs(high)) == mechanism.sensitivity()
            case _:
                pytest.fail(f"{expression} bounds nothing")


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_noise_is_added_in_units_of_the_grid(mechanism) -> None:
    """KS-like chi-square against the exact law at 1e-9 on a fixed seed; a scale wrong by 10 % is rejected at 1e-9."""
    scale = Fraction(20)
    (name,) = mechanism.combine_keyed()
    exact = np.full(200_000, 12345)
    released = mechanism.noise({name: exact}, DiscreteLaplace(scale), SeededEntropy(5)).to_numpy()
    noise = np.round(released / float(mechanism.grid)).astype(np.int64) - exact
    assert fits(noise, scale) > 1e-9
    assert fits(noise, scale * Fraction(9, 10)) < 1e-9
    assert fits(noise, scale * Fraction(11, 10)) < 1e-9


def fits(noise: np.ndarray, scale: Fraction) -> float:
    edges = np.arange(-60, 61)
    law = DiscreteLaplace(scale)
    tails = np.array([law.tail(int(edge)) for edge in edges])
    expected = np.concatenate([[1 - tails[0]], tails[:-1] - tails[1:], [tails[-1]]]) * len(noise)
    observed = np.bincount(np.searchsorted(edges, noise, side="right"), minlength=len(edges) + 1)
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_without_noise_the_exact_value_comes_out(mechanism) -> None:
    (name,) = mechanism.combine_keyed()
    released = mechanism.noise({name: np.array([0, 3])}, DiscreteLaplace(Fraction(2)), ConstantEntropy()).to_pylist()
    assert released == [0, 3 * float(mechanism.grid)]


def test_counts_are_released_as_integers() -> None:
    for mechanism in (plume.users(), plume.count(3)):
        (name,) = mechanism.combine_keyed()
        released = mechanism.noise({name: np.array([1])}, DiscreteLaplace(Fraction(9)), SeededEntropy(1))
        assert str(released.type) == "int64"


def test_a_limit_of_one_record_needs_no_counting() -> None:
    assert plume.count(1).combine_raw() == {}
    assert plume.count(2).combine_raw() == {"records": Count()}


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3", None, 2**20 + 1])
def test_a_limit_that_is_no_limit_is_refused(limit) -> None:
    with pytest.raises(BoundError, match=r"max_per_key is .*; it must be a whole number from 1"):
        plume.count(limit)


def test_names_follow_column_and_function() -> None:
    assert [m.name for m in (plume.users(), plume.count(1), plume.sum("seconds", 0, 1))] == [
        "users",
        "count",
        "seconds_sum",
    ]
    assert plume.sum("seconds", 0, 1, name="total").name == "total"


@given(low=st.floats(-1e9, 1e9), high=st.floats(-1e9, 1e9))
def test_bounds_move_inward_onto_a_grid_of_a_million_steps(low: float, high: float) -> None:
    if low >= high or max(abs(low), abs(high)) < 1e-9:
        return
    try:
        grid = grid_between(low, high, names=("low", "high"))
    except RangeError:
        assert (high - low) < max(abs(low), abs(high)) * 2.0**-19
        return
    assert Fraction(low) <= grid.low * grid.unit <= grid.high * grid.unit <= Fraction(high)
    assert grid.low * grid.unit - Fraction(low) < grid.unit
    assert grid.largest < 2**21
    assert grid.unit == Fraction(2) ** grid.exponent


def test_whole_bounds_lie_on_the_grid() -> None:
    grid = grid_between(0, 60, names=("low", "high"))
    assert (grid.low * grid.unit, grid.high * grid.unit) == (0, 60)
    assert 2**20 <= grid.largest < 2**21


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (5, 5, "the first must be below the second"),
        (6, 5, "the first must be below the second"),
        (float("nan"), 5, "must be a number of at most"),
        (0, float("inf"), "must be a number of at most"),
        (0, 1e200, "must be a number of at most"),
        ("0", 5, "must be a number of at most"),
        (False, 5, "must be a number of at most"),
        (0, 1e-200, "within 1e-150 of zero"),
        (1e6 + 0.1, 1e6 + 0.2, "too close to each other"),
    ],
)
def test_bounds_that_enclose_nothing_are_refused(low, high, message: str) -> None:
    with pytest.raises(RangeError, match=message):
        plume.sum("seconds", low, high)
