"""Means, variances and the like: DuckDB's own answers where noise is next to nothing, something sensible where data is."""

import math
from datetime import date, datetime, timedelta
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import exact_release
from plume.engines.engine import Engine
from questions import answer, asking, people

HUGE = plume.Budget(epsilon=10_000, delta=1e-6)
# Next to nothing is what Laplace noise is with such a budget; noise of the default grows with the root of the limit, and is some units.
NEXT_TO_NOTHING = {"max_keys_per_user": 2, "budget": HUGE, "noise": "laplace"}
START = datetime(2024, 1, 1)  # noqa: DTZ001 - moments of a table have no zone


def bounded_table() -> pa.Table:
    """At most three rows of a user in a key, two keys of a user, and all values within 0 to 100."""
    random = np.random.default_rng(4)
    rows = [
        (user, f"k{key}", number)
        for user in range(3000)
        for key in random.choice(5, 2, replace=False)
        for number in range(3)
    ]
    users, keys, _ = zip(*rows, strict=True)
    seconds = random.gamma(3, 8, len(rows)).clip(0, 100)
    moments = [START + timedelta(seconds=float(number)) for number in random.integers(0, 3_000_000, len(rows))]
    return pa.table(
        {
            "u": users,
            "k": keys,
            "v": seconds,
            "flag": random.random(len(rows)) < 0.3,
            "price": pa.array(np.round(seconds, 2)).cast(pa.decimal128(10, 2), safe=False),
            "small": pa.array(random.integers(-100, 100, len(rows)), pa.int8()),
            "day": [moment.date() for moment in moments],
            "moment": moments,
        }
    )


TABLE = bounded_table()
SPAN = (date(2024, 1, 1), date(2024, 3, 1))
MOMENTS = (START, datetime(2024, 3, 1))  # noqa: DTZ001
# A measure, what DuckDB would compute, and how far apart they may be: some steps of the grid, and what noise is left.
MEASURES = [
    (plume.users(), "count(DISTINCT u)", 0),
    (plume.count(3), "count(*)", 0),
    (plume.count(3, where="v > 20", name="some"), "count(*) FILTER (v > 20)", 0),
    (plume.sum("v", 0, 300), "sum(v)", 2),
    (plume.sum("v", 0, 300, where="flag", name="flagged"), "sum(v) FILTER (flag)", 2),
    (plume.sum("flag", 0, 3), "count(*) FILTER (flag)", 0.02),
    (plume.sum("price", 0, 300), "sum(price)", 2),
    (plume.sum("small", -300, 300), "sum(small)", 2),
    (plume.mean("v", 0, 100, max_per_key=3), "avg(v)", 1e-3),
    (plume.mean("v", 0, 100, max_per_key=3, where="flag", name="of_flagged"), "avg(v) FILTER (flag)", 1e-3),
    (plume.mean("price", 0, 100, max_per_key=3), "avg(price)", 1e-3),
    (plume.mean("flag", 0, 1, max_per_key=3), "count(*) FILTER (flag) / count(*)", 1e-4),
    (plume.mean("small", -128, 127, max_per_key=3), "avg(small)", 1e-3),
    (plume.variance("v", 0, 100, max_per_key=3), "var_pop(v)", 0.1),
    (plume.stddev("v", 0, 100, max_per_key=3), "stddev_pop(v)", 0.01),
    (plume.median("v", 0, 100, max_per_key=3), "median(v)", 0.1),
    (plume.median("price", 0, 100, max_per_key=3), "median(price)", 0.1),
    (plume.median("small", -128, 127, max_per_key=3), "median(small)", 1),
]


def exact_answers(sql: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.register("rows", TABLE)
    return connection.sql(f"SELECT k, {sql} FROM rows GROUP BY k ORDER BY k").fetchall()


def released(measure, engine: Engine) -> pa.Table:
    query = plume.Query(user="u", keys="k", measures=[measure], **NEXT_TO_NOTHING)
    return plume.run(query, TABLE, engine=engine).to_arrow()


def without_noise(measure, engine: Engine) -> pa.Table:
    """Without any: extremes look at many empty nodes, of which now and then one is taken for more."""
    query = plume.Query(user="u", keys="k", measures=[measure], **NEXT_TO_NOTHING)
    return exact_release(query, TABLE, engine=engine)


@pytest.mark.large
@pytest.mark.parametrize(("measure", "sql", "within"), MEASURES, ids=[measure.name for measure, _, _ in MEASURES])
def test_with_a_huge_budget_a_measure_is_the_exact_answer(engine: Engine, measure, sql: str, within: float) -> None:
    exact = exact_answers(f"CAST({sql} AS DOUBLE)")
    found = released(measure, engine)
    assert found["k"].to_pylist() == [key for key, _ in exact]
    assert found[measure.name].to_pylist() == pytest.approx([value for _, value in exact], abs=within)


@pytest.mark.large
def test_with_a_huge_budget_quantiles_are_exact_to_the_width_of_a_leaf(engine: Engine) -> None:
    exact = exact_answers("unnest(quantile_cont(v, [0.1, 0.5, 0.95]))")
    found = released(plume.quantiles("v", [0.1, 0.5, 0.95], 0, 100, max_per_key=3), engine)
    columns = [found[f"v_p{percent}"].to_pylist() for percent in (10, 50, 95)]
    answers = [value for row in zip(*columns, strict=True) for value in row]
    assert answers == pytest.approx([value for _, value in exact], abs=0.3)


@pytest.mark.large
def test_where_noise_is_priced_next_to_nothing_and_drawn_as_nothing_extremes_are_near_the_ends(engine: Engine) -> None:
    measures = [plume.minimum("v", 0, 100, max_per_key=3), plume.maximum("v", 0, 100, max_per_key=3)]
    low, high = (without_noise(measure, engine)[measure.name].to_pylist() for measure in measures)
    exact = exact_answers("min(v), quantile_cont(v, 0.001), quantile_cont(v, 0.999), max(v)")
    for number, (_, first, early, late, last) in enumerate(exact):
        assert first - 0.1 <= low[number] <= early + 0.1
        assert late - 0.1 <= high[number] <= last + 0.1


@pytest.mark.large
def test_with_a_huge_budget_a_histogram_is_exact(engine: Engine) -> None:
    edges = [0, 5, 20, 50, 60]
    inside = [f"count(*) FILTER (v >= {low} AND v < {high})" for low, high in pairwise(edges)]
    found = released(plume.histogram("v", edges, max_per_key=3), engine)
    assert [tuple(row.values()) for row in found.to_pylist()] == exact_answers(", ".join(inside))


@pytest.mark.large
def test_with_a_huge_budget_a_vector_sum_is_exact(engine: Engine) -> None:
    found = released(plume.vector_sum(["v", "small"], 500), engine)
    exact = exact_answers("sum(v), CAST(sum(small) AS DOUBLE)")
    for row, (key, *sums) in zip(found.to_pylist(), exact, strict=True):
        assert row["k"] == key
        assert [row["v_vector_sum"], row["small_vector_sum"]] == pytest.approx(sums, abs=5)


@pytest.mark.large
@pytest.mark.parametrize("kind", ["median", "minimum", "maximum"])
def test_quantiles_of_dates_are_dates(engine: Engine, kind: str) -> None:
    found = without_noise(getattr(plume, kind)("day", *SPAN, max_per_key=3), engine)[f"day_{kind}"]
    sql = {"median": "median(day)", "minimum": "min(day)", "maximum": "max(day)"}[kind]
    assert found.type == pa.date32()
    for day, (_, exact) in zip(found.to_pylist(), exact_answers(f"CAST({sql} AS DATE)"), strict=True):
        assert abs(day - exact) <= timedelta(days=1)


@pytest.mark.large
def test_the_mean_of_dates_is_a_date(engine: Engine) -> None:
    found = released(plume.mean("day", *SPAN, max_per_key=3), engine)["day_mean"]
    exact = [moment for _, moment in exact_answers("avg(day)")]
    assert found.type == pa.date32()
    assert all(
        abs(datetime.combine(day, START.time()) - at) <= timedelta(hours=13)
        for day, at in zip(found.to_pylist(), exact, strict=True)
    )


@pytest.mark.large
@pytest.mark.parametrize(("column", "bounds"), [("moment", MOMENTS), ("day", MOMENTS)])
def test_the_mean_between_moments_is_a_moment(engine: Engine, column: str, bounds: tuple[datetime, datetime]) -> None:
    found = released(plume.mean(column, *bounds, max_per_key=3), engine)[f"{column}_mean"]
    exact = [moment for _, moment in exact_answers(f"avg({column})")]
    assert found.type == pa.timestamp("us")
    assert all(abs(at - other) < timedelta(minutes=10) for at, other in zip(found.to_pylist(), exact, strict=True))


RANGED = {
    "mean": (plume.mean("v", 10, 20), (10, 20)),
    "variance": (plume.variance("v", 10, 20), (0, 25)),
    "stddev": (plume.stddev("v", 10, 20), (0, 5)),
    "median": (plume.median("v", 10, 20), (10, 20)),
    "minimum": (plume.minimum("v", 10, 20), (10, 20)),
    "maximum": (plume.maximum("v", 10, 20), (10, 20)),
}
NOTHING = pa.array([None] * 3, pa.float64())
HARD = {
    "all NULL": [None] * 3,
    "no numbers": [math.nan, math.inf, -math.inf],
    "outside": [-1e308, 1e308, 1e300],
    "constants": [15.0, 15.0, 15.0],
    "one user": [19.0],
    "nobody's": [],
}
# Each five times, so that there is noise of both signs.
HARD_KEYS = {f"{kind} {number}": values for kind, values in HARD.items() for number in range(5)}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("measure", "bounds"), RANGED.values(), ids=RANGED)
def test_hard_values_give_a_number_within_the_bounds(measure, bounds: tuple[float, float], noise: str) -> None:
    query = plume.Query(
        user="u",
        keys="k",
        measures=[measure],
        max_keys_per_user=1,
        budget=plume.Budget(epsilon=0.5, delta=1e-6),
        public_keys=list(HARD_KEYS),
        noise=noise,
    )
    keys = [key for key, values in HARD_KEYS.items() for _ in values]
    values = pa.array([value for values in HARD_KEYS.values() for value in values], pa.float64())
    released = plume.run(query, people(k=keys, v=values)).to_arrow()
    found = dict(zip(released["k"].to_pylist(), released[measure.name].to_pylist(), strict=True))
    assert found.keys() == HARD_KEYS.keys()
    assert {key: value for key, value in found.items() if not bounds[0] <= value <= bounds[1]} == {}


@pytest.mark.parametrize(
    "values", [NOTHING, pa.array([math.nan, math.inf, -math.inf]), pa.array([-1e308, 1e308, 5e-324])]
)
def test_hard_values_give_finite_sums_and_counts(values: pa.Array) -> None:
    measures = [
        plume.sum("v", 10, 20),
        plume.vector_sum(["v"], 5),
        plume.histogram("v", [10, 20]),
        plume.count(1, column="v"),
    ]
    query = asking(measures=measures, public_keys=["x", "nobody's"], budget=plume.Budget(epsilon=0.5))
    rows = plume.run(query, people(k=["x"] * 3, v=values)).to_arrow()
    assert all(math.isfinite(value) for name in rows.column_names[1:] for value in rows[name].to_pylist())
    assert len(rows) == 2


def exactly(measure, **columns) -> list[object]:
    return answer(asking(measures=[measure], public_keys=["x"]), people(k=["x"] * len(columns["v"]), **columns))[
        measure.name
    ]


def test_the_variance_of_constants_is_no_more_than_a_step_of_the_grid() -> None:
    (found,) = exactly(plume.variance("v", 0, 60), v=[17.3] * 50)
    assert 0 <= found < 1e-2


def test_a_mean_far_from_the_middle_of_wide_bounds_is_right() -> None:
    (found,) = exactly(plume.mean("v", -1e6, 1e6), v=[999_999.0] * 50)
    assert found == pytest.approx(999_999, abs=1)


def test_a_mean_of_values_far_from_zero_keeps_its_digits() -> None:
    (found,) = exactly(plume.mean("v", 1e9, 1e9 + 1), v=[1e9 + 0.25] * 50)
    assert found == pytest.approx(1e9 + 0.25, abs=1e-5)


def test_a_user_with_many_values_is_weighted_down_in_a_histogram() -> None:
    rows = pa.table(
        {"u": ["a"] * 100 + ["b"] * 4, "k": ["x"] * 104, "v": [1.0] * 75 + [5.0] * 25 + [9.0, 5.0, 11.0, -1.0]}
    )
    query = asking(measures=[plume.histogram("v", [0, 4, 8, 10], max_per_key=4)], public_keys=["x", "y"])
    found = answer(query, rows)
    assert [found[f"v_histogram_{bucket}"] for bucket in ("0_4", "4_8", "8_10")] == [[3, 0], [2, 0], [1, 0]]


def test_a_vector_is_shortened_and_keeps_its_direction() -> None:
    rows = people(k=["x"] * 2, v=[300.0, -0.3], w=[400.0, 0.4])
    found = answer(asking(measures=[plume.vector_sum(["v", "w"], 5)], public_keys=["x"]), rows)
    assert [*found["v_vector_sum"], *found["w_vector_sum"]] == pytest.approx([3 - 0.3, 4 + 0.4], abs=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308, -1e308, 5e-324, None])
def test_a_hostile_coordinate_cannot_make_a_vector_longer(value: float | None) -> None:
    rows = people(k=["x"], v=pa.array([value], pa.float64()), w=[0.25])
    found = answer(asking(measures=[plume.vector_sum(["v", "w"], 1)], public_keys=["x"]), rows)
    assert math.hypot(*found["v_vector_sum"], *found["w_vector_sum"]) <= 1


def test_intervals_of_whole_numbers_that_were_rounded_are_half_a_step_wider() -> None:
    query = asking(measures=[plume.histogram("v", [0, 1])], public_keys=["x"], budget=HUGE)
    rows = plume.run(query, people(k=["x"], v=[0.5])).intervals(0.99).to_arrow()
    assert rows.column_names == ["k", "v_histogram_0_1", "v_histogram_0_1_low", "v_histogram_0_1_high"]
    assert rows["v_histogram_0_1_low"][0].as_py() <= 0.5


def test_values_outside_the_bounds_count_as_the_bounds() -> None:
    assert exactly(plume.mean("v", 0, 10), v=[-5.0, 100.0, 100.0, -1e300]) == pytest.approx([5.0], abs=1e-4)


def test_a_user_with_many_values_is_weighted_down_and_not_cut() -> None:
    rows = pa.table({"u": ["a"] * 100 + ["b"], "k": ["x"] * 101, "v": [float(n % 10) for n in range(100)] + [9.0]})
    query = asking(measures=[plume.mean("v", 0, 10)], public_keys=["x"])
    assert answer(query, rows)["v_mean"] == pytest.approx([(4.5 + 9) / 2], abs=1e-4)


@pytest.mark.parametrize("name", ["infinity", "-infinity"])
def test_infinite_dates_and_those_beyond_all_moments_count_as_no_value(name: str) -> None:
    rows = duckdb.connect().sql(
        f"SELECT unnest(['a', 'b', 'c']) AS u, 'x' AS k, unnest([DATE '2024-01-11', DATE '{name}', DATE '5000000-01-01']) AS v"
    )
    query = asking(measures=[plume.mean("v", *SPAN)], public_keys=["x"])
    assert answer(query, rows)["v_mean"] == [date(2024, 1, 11)]


def test_measures_that_have_a_part_in_common_pay_for_it_once() -> None:
    both = [plume.mean("v", 0, 60, max_per_key=2), plume.count(2, column="v")]
    explained = plume.explain(asking(measures=both, max_keys_per_user=8))
    assert [cost["part"] for cost in explained.record()["spent"]] == [
        "selection",
        "v_mean: total",
        "v_mean, v_count: values",
    ]


def test_a_count_of_one_record_and_users_are_the_same_part() -> None:
    explained = plume.explain(asking(measures=[plume.count(1), plume.users()]))
    assert [cost["part"] for cost in explained.record()["spent"]] == ["selection", "count, users"]
    rows = plume.run(
        asking(measures=[plume.count(1), plume.users()], budget=plume.Budget(epsilon=1), public_keys=["x"]),
        people(k=["x"]),
    ).to_arrow()
    assert rows["count"] == rows["users"]


def test_a_condition_on_a_measure_leaves_the_other_measures_alone() -> None:
    rows = people(k=["x"] * 5, v=[1.0, 5.0, 9.0, None, 9.0], w=["a", "b", "a", "a", "b"])
    measures = [
        plume.users(),
        plume.users(where="w = 'a'", name="a"),
        plume.sum("v", 0, 10, where="w = 'b' AND v > 6", name="b"),
    ]
    assert answer(asking(measures=measures, public_keys=["x"]), rows) == {
        "k": ["x"],
        "users": [5],
        "a": [3],
        "b": [9.0],
    }
