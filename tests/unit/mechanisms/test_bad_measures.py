"""Measures that cannot be computed are refused when they are made, in words that say what would be right."""

from datetime import UTC, date, datetime

import pytest

import plume
from plume.errors import ColumnTypeError, ConditionError, MeasureError, RangeError
from questions import answer, asking, people

DAY = date(2026, 1, 1)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (5, 5, "the first must be below the second"),
        (DAY, DAY, "the first must be below the second"),
        (DAY, 5, "both must be numbers, or both dates, or both timestamps"),
        (DAY, datetime(2026, 2, 1), "both must be numbers, or both dates, or both timestamps"),  # noqa: DTZ001
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC), "given without a time zone"),
        (float("nan"), 5, "low is nan; it must be a number of at most"),
        (0, float("inf"), "high is inf; it must be a number of at most"),
        (0, 1e200, "must be a number of at most"),
        ("0", 5, "must be a number of at most"),
        (False, 5, "must be a number of at most"),
        (0, 1e-200, "rescale the column"),
    ],
)
@pytest.mark.parametrize(
    "measure", [plume.mean, plume.variance, plume.stddev, plume.median, plume.minimum, plume.maximum]
)
def test_bounds_that_enclose_nothing_are_refused(measure, low, high, message: str) -> None:
    with pytest.raises(RangeError, match=message):
        measure("v", low, high)


@pytest.mark.parametrize("measure", [plume.variance, plume.stddev, plume.median, plume.minimum, plume.maximum])
def test_a_bound_that_is_not_chosen_is_told_from_those_that_are(measure) -> None:
    with pytest.raises(
        RangeError, match="high is 'auto'; bounds of counts, sums and means are chosen by it, and no others"
    ):
        measure("v", 0, "auto")


@pytest.mark.parametrize("measure", [plume.variance, plume.stddev])
def test_a_variance_of_dates_is_refused(measure) -> None:
    with pytest.raises(RangeError, match="a variance is of numbers, not of dates"):
        measure("v", DAY, date(2026, 2, 1))


MEASURES = {
    "users": lambda where: plume.users(where=where),
    "count": lambda where: plume.count(1, where=where),
    "sum": lambda where: plume.sum("v", 0, 1, where=where),
    "mean": lambda where: plume.mean("v", 0, 1, where=where),
    "variance": lambda where: plume.variance("v", 0, 1, where=where),
    "median": lambda where: plume.median("v", 0, 1, where=where),
    "histogram": lambda where: plume.histogram("v", [0, 1], where=where),
    "vector sum": lambda where: plume.vector_sum(["v"], 1, where=where),
}


@pytest.mark.parametrize("where", ["v +", "random() > 0.5", "v + 1 > 2", "", 5])
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_a_condition_that_is_none_is_refused(measure, where) -> None:
    with pytest.raises(ConditionError, match="where"):
        measure(where)


@pytest.mark.parametrize("columns", [[], ["v", "v"], [f"v{number}" for number in range(65)]])
def test_a_vector_of_no_columns_or_too_many_or_the_same_twice_is_refused(columns: list[str]) -> None:
    with pytest.raises(MeasureError, match="a vector sum is of 1 to 64 columns, each named once"):
        plume.vector_sum(columns, 1)


@pytest.mark.parametrize("norm", [0, -1, float("nan"), float("inf"), "3", True, None])
def test_a_norm_that_is_no_length_is_refused(norm) -> None:
    with pytest.raises(RangeError, match=r"^norm is .*; it must be a number above 0 and at most 1e\+150, such as 3\.$"):
        plume.vector_sum(["v"], norm)


def test_a_condition_on_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(ColumnTypeError, match="where compares column 'w', which is text, with integer"):
        answer(asking(measures=[plume.count(1, where="w > 3")]), people(k=["x"], w=["a"]))


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        (plume.mean("v", 0, 1), "a value must be a number"),
        (plume.count(1, column="v"), "a value must be a number"),
        (plume.median("k", DAY, date(2027, 1, 1)), "a value must be a date or a timestamp, as its bounds are"),
    ],
)
def test_a_column_of_another_type_than_the_bounds_is_refused(measure, wanted: str) -> None:
    with pytest.raises(ColumnTypeError, match=wanted):
        answer(asking(measures=[measure]), people(k=["x"], v=[DAY]))


def test_two_measures_with_a_column_of_the_same_name_are_refused() -> None:
    with pytest.raises(MeasureError, match="two columns of the result would be called 'v_p50'"):
        asking(measures=[plume.quantiles("v", [0.5], 0, 1), plume.quantiles("v", [0.5], 0, 2)])
