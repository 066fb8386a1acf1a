"""Searches: the smallest number is found, to the number or to the digits that were asked for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plume.root import after, crossing, smallest, smallest_whole, within


@given(low=st.integers(-5, 5), start=st.integers(1, 9), at=st.integers(-10, 10**6))
def test_the_smallest_whole_number_is_found(low: int, start: int, at: int) -> None:
    low = min(low, start - 1)
    assert smallest_whole(lambda number: number >= at, low, start) == max(at, low + 1)


@given(at=st.floats(1e-200, 1e200))
def test_the_smallest_number_is_found_to_the_digits_asked_for(at: float) -> None:
    found = smallest(lambda number: number >= at, start=1.0, close=within(1e-10))
    assert at <= found <= at * (1 + 1e-9)


def test_a_number_of_halvings_is_done_and_no_more() -> None:
    looks: list[float] = []
    smallest(lambda number: (looks.append(number), number >= math.pi)[1], start=1.0, close=after(60))
    assert looks[:3] == [1, 2, 4]
    assert len(looks) == 3 + 60


def test_a_search_ends_where_growing_does() -> None:
    def grow(number: float) -> float:
        if number > 100:
            raise OverflowError
        return 2 * number

    with pytest.raises(OverflowError):
        smallest(lambda _: False, start=1.0, close=within(0.1), grow=grow)


@given(at=st.floats(-50, 50), start=st.floats(-20, 20), tolerance=st.floats(1e-6, 1e-2))
def test_where_a_falling_function_crosses_zero_is_found_within_the_tolerance(
    at: float, start: float, tolerance: float
) -> None:
    found = crossing(lambda place: math.sinh(at - place), start, tolerance)
    assert at <= found <= at + tolerance
