"""What is said of the size of an expression holds for every value an engine can meet, so that 64 bits are enough where it says so."""

import math

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from plume.plan.aggregates import Sum
from plume.plan.expressions import (
    GUARD,
    Clamp,
    Column,
    Expression,
    Fullness,
    Literal,
    Quantise,
    Square,
    Tally,
    Times,
    When,
)
from plume.plan.magnitude import fits, magnitude, sum_fits
from plume.plan.printing.duckdb import DuckDBPrinter
from plume.plan.printing.expression_sql import print_expression

X = Column("x")
CONNECTION = duckdb.connect()
EXTREMES = (0.0, 1.0, -1.0, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan)
BOUNDS = st.integers(1, 2**22)


def quantised(low: int, high: int, exponent: int = 0) -> Quantise:
    return Quantise(X, exponent, 0.0, low, high)


def largest_found(expression: Expression, values: tuple[float, ...]) -> int:
    text = print_expression(expression, DuckDBPrinter())
    ((found,),) = CONNECTION.execute(f"SELECT max(abs({text})) FROM (SELECT unnest(?) AS x)", [list(values)]).fetchall()
    return found or 0


# Each opens a database, for which a busy machine takes its time.
@settings(deadline=None)
@given(low=BOUNDS, high=BOUNDS, exponent=st.integers(-20, 20), factor=st.integers(1, 2**10))
def test_no_value_is_larger_than_said(low: int, high: int, exponent: int, factor: int) -> None:
    value = quantised(-low, high, exponent)
    for expression in (
        value,
        Square(value, max(low, high) ** 2 // 2, 20),
        Square(value, 0, 0),
        Times(Clamp(value, -low, high), factor),
        When(Literal(value=True), value),
        Fullness((value, value), (low, high), 2**10),
    ):
        assert largest_found(expression, EXTREMES) <= (magnitude(expression) or 0)


@settings(deadline=None)
@given(low=BOUNDS, high=BOUNDS)
def test_what_is_said_is_reached(low: int, high: int) -> None:
    for expression in (quantised(-low, high), Clamp(quantised(-low, high), -low, high)):
        assert largest_found(expression, EXTREMES) == magnitude(expression)


def test_nothing_is_said_of_columns_and_of_what_only_they_bound() -> None:
    assert magnitude(X) is None
    assert magnitude(Times(X, 2)) is None
    assert magnitude(Square(X, 0, 0)) is None
    assert not fits(X)


def test_totals_fit_if_so_many_rows_as_no_table_has_would() -> None:
    assert sum_fits(Sum(quantised(-1, 2**23 - 1)))
    assert not sum_fits(Sum(quantised(-1, 2**23)))
    assert not sum_fits(Sum(quantised(-GUARD, GUARD)))


def test_weights_of_a_tally_are_bounded_together() -> None:
    assert magnitude(Tally(X, X, limit=3, unit=2**20)) == 3 * 2**20
