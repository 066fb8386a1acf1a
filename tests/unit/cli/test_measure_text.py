from datetime import date, datetime

import pytest

from plume.cli.measure_text import parse_measure
from plume.errors import BoundError, MeasureError, RangeError
from plume.mechanisms.count import count
from plume.mechanisms.histogram import histogram
from plume.mechanisms.mean import mean
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.quantiles import maximum, median, minimum, quantiles
from plume.mechanisms.sum import sum as sum_of
from plume.mechanisms.users import users
from plume.mechanisms.variance import stddev, variance
from plume.mechanisms.vector_sum import vector_sum

NOON = datetime(2026, 1, 1, 12, 30)  # noqa: DTZ001 - moments of a table have no zone


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("count(3)", count(3)),
        ("count(max_per_key=3)", count(3)),
        ("  count( 3 )  ", count(3)),
        ("count(3, name=searches)", count(3, name="searches")),
        ("count(3) AS searches", count(3, name="searches")),
        ("count(3) as 'all searches'", count(3, name="all searches")),
        ('count(3) AS "first as last"', count(3, name="first as last")),
        ("users", users()),
        ("users()", users()),
        ("users AS people", users(name="people")),
        ("sum(seconds, 0, 60)", sum_of("seconds", 0, 60)),
        ("sum(seconds, -1.5, 6e1)", sum_of("seconds", -1.5, 60.0)),
        ("sum(column=seconds, low_total=0, high_total=60)", sum_of("seconds", 0, 60)),
        ("sum('time on page', 0, 60, name='time')", sum_of("time on page", 0, 60, name="time")),
        ("sum('x as y', 0, 60)", sum_of("x as y", 0, 60)),
        (r"sum('a\d', 0, 60)", sum_of(r"a\d", 0, 60)),
        ("sum(größe, 0, 60)", sum_of("größe", 0, 60)),
        ("sum(ﬁeld, 0, 60)", sum_of("ﬁeld", 0, 60)),
        ("count(3, where='seconds > 3')", count(3, where="seconds > 3")),
        ("count(3, column=seconds)", count(3, column="seconds")),
        ("mean(seconds, 0, 60, max_per_key=2)", mean("seconds", 0, 60, max_per_key=2)),
        ("mean(day, '2026-01-01', '2026-12-31')", mean("day", date(2026, 1, 1), date(2026, 12, 31))),
        ("mean(at, '2026-01-01 12:30', high='2026-12-31T00:00')", mean("at", NOON, datetime(2026, 12, 31))),  # noqa: DTZ001
        ("variance(seconds, 0, 60) AS spread", variance("seconds", 0, 60, name="spread")),
        ("stddev(seconds, 0, 60)", stddev("seconds", 0, 60)),
        ("quantiles(seconds, [0.5, 0.99], 0, 60)", quantiles("seconds", [0.5, 0.99], 0, 60)),
        ("median(seconds, 0, 60) AS middle", median("seconds", 0, 60, name="middle")),
        ("minimum(day, '2026-01-01', '2026-12-31')", minimum("day", date(2026, 1, 1), date(2026, 12, 31))),
        ("maximum(seconds, -1, 60, max_per_key=3)", maximum("seconds", -1, 60, max_per_key=3)),
        ("histogram(seconds, [-1, 10, 6e1])", histogram("seconds", [-1, 10, 60.0])),
        ("count(auto)", count("auto")),
        ("sum(seconds, 0, auto)", sum_of("seconds", 0, "auto")),
        ("sum(seconds, auto, 'auto')", sum_of("seconds", "auto", "auto")),
        ("mean(seconds, low=0, high=auto)", mean("seconds", 0, "auto")),
        ("vector_sum([east, 'to north'], 3)", vector_sum(["east", "to north"], 3)),
    ],
)
def test_a_measure_is_read_as_it_is_written_in_python(text: str, measure: Mechanism) -> None:
    assert parse_measure(text) == measure


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "cannot be read"),
        ("count(3", "cannot be read"),
        ("sum(time on page, 0, 60)", r"quoted: sum\('my column', 0, 60\)"),
        ("sum(from, 0, 60)", "quoted"),
        ("(" * 100_000, "cannot be read"),
        ("-" * 100_000 + "1", "cannot be read"),
        ("count(" + "9" * 5000 + ")", "cannot be read"),
        ("count(*)", r"cannot be read; count\(3\) counts rows"),
        ("count(distinct visitor)", r"cannot be read; users\(\) counts users"),
        ("mean(day, 2026-01-01, 2026-12-31)", "cannot be read; a date is written '2026-01-31', with the quotes"),
        ("mean(day, 1.1.2026, 31.12.2026)", "cannot be read; a date is written '2026-01-31', with the quotes"),
        ("nunique(visitor)", r"did you mean users\? Write one of"),
        ("p95(seconds, 0, 60)", r"did you mean quantiles\? Write one of"),
        ("mode(seconds)", r"unknown measure 'mode\(seconds\)'; write one of: count\(3\)"),
        ("average(seconds)", r"unknown measure 'average\(seconds\)'; did you mean mean\? Write one of: count\(3\)"),
        ("Median(seconds, 0, 60)", r"; did you mean median\? Write one of"),
        ("user", r"unknown measure 'user'; did you mean users\?"),
        ("3", "unknown measure"),
        ("__import__('os').system('true')", "unknown measure"),
        ("count(3)(4)", "unknown measure"),
        ("count(1 + 2)", r"holds '1 \+ 2'; arguments are numbers"),
        ("count(print('here'))", r"holds \"print\('here'\)\""),
        ("sum(event.seconds, 0, 60)", "holds 'event.seconds'"),
        ("count(*x)", r"holds '\*x'"),
        ("count(None)", "holds 'None'"),
        (
            "count",
            r"does not fit; count needs max_per_key\. .* With max_per_key='auto' it is chosen .*\. Write count\(3\)",
        ),
        (
            "sum(seconds)",
            r"does not fit; sum needs low_total and high_total\. low_total is the least that one user may add",
        ),
        ("mean(seconds, 0, hihg=60)", r"does not fit; mean has no argument 'hihg'; did you mean 'high'\?"),
        ("count(3, 4)", "does not fit"),
        ("count(**x)", "does not fit"),
        ("count(3, max_per_key=3)", "does not fit"),
        ("count(3, name=a, name=b)", "does not fit"),
        ("count(3, name=a) AS b", "does not fit"),
        ("count(3, weight=2)", "does not fit"),
        ("users(3)", "does not fit; users takes no arguments by position"),
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(text: str, hint: str) -> None:
    with pytest.raises(MeasureError, match=hint):
        parse_measure(text)


def test_a_limit_that_is_none_is_refused_by_the_measure_itself() -> None:
    with pytest.raises(BoundError, match=r"max_per_key is 'many'; it must be a whole number"):
        parse_measure("count(many)")


def test_bounds_the_wrong_way_round_are_refused_by_the_measure_itself() -> None:
    with pytest.raises(RangeError, match=r"the first must be below the second"):
        parse_measure("sum(seconds, 60, 0)")


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("avg(x, 0, 60)", mean("x", 0, 60)),
        ("min(x, 0, 60)", minimum("x", 0, 60)),
        ("max(x, 0, 60) AS most", maximum("x", 0, 60, name="most")),
        ("var(x, 0, 60)", variance("x", 0, 60)),
        ("std(x, 0, 60)", stddev("x", 0, 60)),
    ],
)
def test_what_others_call_a_measure_is_understood(text: str, measure: Mechanism) -> None:
    assert parse_measure(text) == measure


def test_a_sum_with_bounds_of_values_is_told_that_totals_are_bounded() -> None:
    with pytest.raises(
        MeasureError, match="has low_total and high_total, not low and high: they bound what one user adds"
    ):
        parse_measure("sum(x, low=0, high=60)")
