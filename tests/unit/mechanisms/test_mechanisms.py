"""What holds for every mechanism; a new one is added to MECHANISMS and has all of this to show."""

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import plume
from entropy import SeededEntropy
from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import calibrate
from plume.errors import BoundError, RangeError
from plume.mechanisms.grid import grid_between
from plume.mechanisms.quantile_tree import LEAVES, LEVELS
from plume.pipelines.noisers import NoiseMeasures
from plume.plan.aggregates import AddTallies, Count, Sum
from plume.plan.expressions import Clamp, Column, Literal, Shorten, Tally
from plume.plan.trees import columns_of

MECHANISMS = {
    "users": plume.users(),
    "count of one": plume.count(1),
    "count of three": plume.count(3),
    "sum": plume.sum("seconds", 0, 60),
    "sum around zero": plume.sum("seconds", -1.5, 2),
    "sum of some": plume.sum("seconds", 0, 60, where="country = 'DE'"),
    "users of some": plume.users(where="seconds > 3"),
    "count of some": plume.count(1, where="seconds > 3"),
    "count of values": plume.count(2, column="seconds"),
    "mean": plume.mean("seconds", 0, 60),
    "mean far from zero": plume.mean("seconds", 1e6, 1e6 + 0.3, max_per_key=5, where="country = 'DE'"),
    "mean of dates": plume.mean("day", date(2020, 1, 1), date(2021, 1, 1)),
    "mean of moments": plume.mean("day", datetime(2020, 1, 1), datetime(2020, 1, 2), max_per_key=2),  # noqa: DTZ001
    "variance": plume.variance("seconds", 0, 60, max_per_key=3),
    "stddev": plume.stddev("seconds", -0.001, 1e6),
    "vector sum": plume.vector_sum(["seconds", "other"], 3),
    "histogram": plume.histogram("seconds", [0, 1, 5, 60], max_per_key=3),
    "quantiles": plume.quantiles("seconds", [0.1, 0.9], 0, 60, max_per_key=3),
    "median of dates": plume.median("day", date(2020, 1, 1), date(2021, 1, 1), where="country = 'DE'"),
    "minimum": plume.minimum("seconds", 0, 60),
    "maximum": plume.maximum("seconds", 0, 60),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_each_operation_reads_only_what_the_one_before_names(mechanism) -> None:
    raw, preprocessed, keyed = mechanism.combine_raw(), mechanism.preprocess(), mechanism.combine_keyed()
    conditional = columns_of(mechanism.condition) if mechanism.condition else frozenset()
    assert all(columns_of(aggregate) <= {*mechanism.value_columns, *conditional} for aggregate in raw.values())
    assert all(columns_of(expression) <= raw.keys() for expression in preprocessed.values())
    assert all(columns_of(aggregate) <= preprocessed.keys() for aggregate in keyed.values())
    assert keyed.keys() == preprocessed.keys()


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_combining_by_key_is_a_plain_sum_and_therefore_associative_and_commutative(mechanism) -> None:
    sums = {name: [Sum(Column(name)), AddTallies(Column(name))] for name in mechanism.combine_keyed()}
    assert all(aggregate in sums[name] for name, aggregate in mechanism.combine_keyed().items())


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_parts_cover_each_state_once_and_share_out_the_whole_of_the_measure(mechanism) -> None:
    parts = mechanism.parts()
    assert sorted(name for part in parts for name in part.covers) == sorted(mechanism.combine_keyed())
    assert sum(part.weight for part in parts) == 1
    assert {part for part in mechanism.columns.values() if part} <= {part.name for part in parts}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_preprocessing_bounds_one_user_by_the_sensitivity(mechanism) -> None:
    for part in mechanism.parts():
        for name in part.covers:
            match mechanism.preprocess()[name]:
                case Literal(value):
                    assert value == part.absolute == part.squared == 1
                case Clamp(Shorten(_, vector, limit), low, high):
                    assert {column.name for column in vector} == set(part.covers)
                    assert (-low, high, limit**2) == (limit, limit, part.squared)
                    assert part.absolute**2 <= len(vector) * part.squared < (part.absolute + 1) ** 2
                case Clamp(_, low, high):
                    assert max(abs(low), abs(high)) == part.absolute
                    assert part.absolute**2 == part.squared
                case Tally(_, _, limit, unit):
                    levels = LEVELS if part.leaves == LEAVES else 1
                    assert (part.absolute, part.squared) == (levels * limit * unit, levels * (limit * unit) ** 2)
                case expression:
                    pytest.fail(f"{expression} bounds nothing")


PLAIN = {name: mechanism for name, mechanism in MECHANISMS.items() if not mechanism.parts()[0].leaves}
ALONE = {name: mechanism for name, mechanism in PLAIN.items() if len(mechanism.combine_keyed()) == 1}


@pytest.mark.parametrize("mechanism", ALONE.values(), ids=ALONE)
def test_a_measure_of_one_part_is_that_part_in_its_unit(mechanism) -> None:
    (part,) = mechanism.parts()
    ((name, of),) = mechanism.columns.items()
    assert of == part.name
    assert mechanism.noise({of: np.array([0, 3, -7])})[name].to_pylist() == [
        0,
        3 * float(part.unit),
        -7 * float(part.unit),
    ]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("mechanism", PLAIN.values(), ids=PLAIN)
def test_noise_has_the_law_that_calibration_says(mechanism, kind: str) -> None:
    """Chi-square of every part of 200,000 keys against the exact law at 1e-9, on a fixed seed; a scale wrong by 10 % is rejected."""
    for part, noise in noise_drawn(mechanism, kind).items():
        # In whole steps again: what was drawn in finer ones is rounded.
        law = replace(part.noise, scale=part.noise.scale / (1 << part.bits))
        assert fits(noise, law) > 1e-9
        for wrong in (Fraction(9, 10), Fraction(11, 10)):
            assert fits(noise, replace(law, scale=law.scale * wrong)) < 1e-9


def noise_drawn(mechanism, kind: str) -> dict[CalibratedPart, np.ndarray]:
    """What the noiser adds to each part of the state of keys that all have the same."""
    query = plume.Query(
        user="person",
        keys="key",
        measures=[Spy(mechanism)],
        max_keys_per_user=3,
        budget=plume.Budget(epsilon=3, delta=1e-5),
        public_keys=["a"],
        noise=kind,
    )
    asked = calibrate(query)
    noiser = NoiseMeasures(asked.measures, asked.parts, asked.keys, query.max_keys_per_user)
    bits = {column: part.bits for part in asked.parts for column in part.columns}
    states = {column: pa.array(np.full(200_000, 12345 << bits[column])) for column in noiser.reads}
    batch = pa.RecordBatch.from_pydict({"key_1": pa.array(np.arange(200_000))} | states)
    noiser.noise(batch, SeededEntropy(5))
    noised = query.measures[0].seen[-1]
    return {part: np.concatenate([noised[name] for name in part.part.covers]) - 12345 for part in asked.parts}


class Spy:
    """A mechanism that remembers the noised states it was given."""

    def __init__(self, mechanism) -> None:
        self.mechanism, self.seen = mechanism, []

    def __getattr__(self, name: str):
        return getattr(self.mechanism, name)

    def noise(self, noised):
        self.seen.append(noised)
        return self.mechanism.noise(noised)


def fits(noise: np.ndarray, law) -> float:
    """The p-value of noise under a law, in 120 bins of equal width over six scales."""
    width = max(1, round(float(law.scale) / 20))
    edges = np.arange(-60, 61) * width
    tails = np.array([law.tail(int(edge)) for edge in edges])
    expected = np.concatenate([[1 - tails[0]], tails[:-1] - tails[1:], [tails[-1]]]) * len(noise)
    observed = np.bincount(np.searchsorted(edges, noise, side="right"), minlength=len(edges) + 1)
    common = expected > 5
    rest = len(noise) - observed[common].sum(), len(noise) - expected[common].sum()
    kept = (np.append(observed[common], rest[0]), np.append(expected[common], max(rest[1], 1e-9)))
    return float(stats.chisquare(*kept, sum_check=False).pvalue)


def test_counts_are_released_as_integers() -> None:
    for mechanism in (plume.users(), plume.count(3)):
        (name,) = mechanism.combine_keyed()
        (released,) = mechanism.noise({name: np.array([1])}).values()
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
    of_range = [plume.mean, plume.variance, plume.stddev]
    assert [m("seconds", 0, 1).name for m in of_range] == ["seconds_mean", "seconds_variance", "seconds_stddev"]
    assert plume.count(2, column="seconds").name == "seconds_count"


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
