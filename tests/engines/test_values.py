"""Values of every sort: sums are finite and exact, and what is no number is dropped by the declared rule."""

import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import plume
from plume.errors import ColumnTypeError
from questions import answer, asking, people


def total(values: Any, low: float = -100, high: float = 100) -> float:
    """The sum over all users, each with one value."""
    rows = people(v=values).append_column("k", pa.array(["x"] * len(values)))
    (found,) = answer(asking(measures=[plume.sum("v", low, high)], public_keys=["x"]), rows)["v_sum"]
    assert math.isfinite(found)
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0),
        (math.nan, 0),
        (math.inf, 0),
        (-math.inf, 0),
        (0.0, 0),
        (-0.0, 0),
        (5e-324, 0),
        (-5e-324, 0),
        (2.2250738585072014e-308, 0),
        (1.7976931348623157e308, 100),
        (-1.7976931348623157e308, -100),
        (1e308, 100),
        (0.5, 0.5),
        (2.0**53 + 2, 100),
        (-(2.0**63), -100),
        (2.0**63, 100),
        (99.9999999, 99.9999999),
    ],
)
@pytest.mark.parametrize("others", [[], [1.0, 2.0]])
def test_a_special_value_counts_by_the_declared_rule(value: float | None, expected: float, others: list[float]) -> None:
    found = total(pa.array([value, *others], pa.float64()))
    assert found == pytest.approx(expected + sum(others), abs=1e-4)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_users_without_a_value_add_nothing_even_where_zero_is_out_of_bounds(value: float | None) -> None:
    assert total(pa.array([value], pa.float64()), low=5, high=10) == 0


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_a_special_value_beside_others_of_its_user_is_dropped(value: float | None) -> None:
    rows = pa.table({"u": ["a", "a", "a"], "k": ["x", "x", "x"], "v": pa.array([value, 3.0, 4.0])})
    assert answer(asking(measures=[plume.sum("v", 0, 10)], public_keys=["x"]), rows)["v_sum"] == [7.0]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_a_key_of_special_values_only_is_released(value: float | None) -> None:
    rows = people(k=["x"] * 3, v=pa.array([value] * 3, pa.float64()))
    query = asking(measures=[plume.sum("v", 5, 10), plume.count(1), plume.users()])
    assert answer(query, rows) == {"k": ["x"], "v_sum": [0.0], "count": [3], "users": [3]}


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("TINYINT", ["-128", "127"]),
        ("UTINYINT", ["0", "255"]),
        ("BIGINT", [str(-(2**63)), str(2**63 - 1)]),
        ("UBIGINT", ["0", str(2**64 - 1)]),
        ("HUGEINT", [str(-(2**127)), str(2**127 - 1)]),
        ("DECIMAL(38,0)", ["-" + "9" * 38, "9" * 38]),
        ("DECIMAL(38,37)", ["-9.9", "9.9"]),
        ("DECIMAL(4,1)", ["-999.9", "999.9"]),
        ("FLOAT", ["'nan'::FLOAT", "3e38"]),
        ("DOUBLE", ["'-inf'::DOUBLE", "1e308"]),
        ("BOOLEAN", ["true", "false"]),
    ],
)
def test_the_largest_values_of_a_type_do_not_overflow(name: str, constants: list[str]) -> None:
    many = ", ".join(f"CAST({constant} AS {name})" for constant in constants * 50)
    rows = duckdb.connect().sql(f"SELECT 'a' AS u, 'x' AS k, unnest([{many}]) AS v")
    (found,) = answer(asking(measures=[plume.sum("v", -1e6, 1e6)], public_keys=["x"]), rows)["v_sum"]
    assert -1e6 <= found <= 1e6


def test_integers_beyond_the_precision_of_floats_are_clamped() -> None:
    assert total(pa.array([2**53 + 1, -(2**53) - 1, 3])) == 3


def test_booleans_count_as_one_and_zero() -> None:
    assert total(pa.array([True, False, None, True])) == 2


def test_decimals_are_summed() -> None:
    assert total(pa.array([Decimal("1.25"), Decimal("-0.5"), None])) == 0.75


def test_values_are_clamped_per_user_and_key() -> None:
    rows = pa.table({"u": ["a"] * 4 + ["b"], "k": ["x", "x", "y", "y", "x"], "v": [40.0, 40.0, -40.0, 1.0, 2.0]})
    found = answer(asking(measures=[plume.sum("v", -10, 50)], public_keys=["x", "y"]), rows)
    assert found["v_sum"] == [52.0, -10.0]


def test_a_sum_does_not_depend_on_the_order_of_rows() -> None:
    values = [1e16, 1.0, -1e16, 0.5, 2.0**52, -0.25, 1e-9] * 20
    rows = pa.table({"u": ["a"] * len(values), "k": ["x"] * len(values), "v": values})
    query = asking(measures=[plume.sum("v", -1000, 1000)], public_keys=["x"])
    turned = rows.take(pa.array(range(len(values))[::-1]))
    assert answer(query, rows) == answer(query, turned)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["1"]),
        pa.array([b"1"]),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([1], pa.date32()),
        pa.array([1], pa.time64("us")),
    ],
)
def test_values_must_be_numbers(values: pa.Array) -> None:
    with pytest.raises(ColumnTypeError, match=r"column 'v' is .*; a value must be a number"):
        total(values)


def test_one_column_can_be_key_and_value() -> None:
    rows = people(k=[1, 1, 2, 2, 2])
    assert answer(asking(measures=[plume.sum("k", 0, 10)]), rows) == {"k": [1, 2], "k_sum": [2.0, 6.0]}


def test_several_sums_over_one_column_keep_their_own_bounds() -> None:
    rows = people(k=["x"] * 2, v=[5.0, 50.0])
    query = asking(measures=[plume.sum("v", 0, 10, name="small"), plume.sum("v", 0, 100, name="large")])
    assert answer(query, rows) == {"k": ["x"], "small": [15.0], "large": [55.0]}
