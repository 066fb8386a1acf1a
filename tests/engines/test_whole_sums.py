"""Sums of whole numbers are whole, on every engine; how they are rounded, and how far their intervals reach."""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import plume
from plume.engines.engine import Engine
from plume.mechanisms.sum import sum as total
from plume.plan.types import ColumnType, Kind
from plume.query import Query
from plume.whole_sums import with_whole_sums
from questions import asking, people

PEOPLE = 400
ROWS = people(
    k=["a"] * PEOPLE,
    small=pa.array([3] * PEOPLE, pa.int8()),
    large=pa.array([2**40] * PEOPLE, pa.int64()),
    flag=[True] * PEOPLE,
    real=[3.0] * PEOPLE,
)
MEASURES = [
    plume.sum("small", 0, 5),
    plume.sum("small", 0, 5.0, name="float_bound"),
    plume.sum("large", 0, 2**31, name="large_sum"),
    plume.sum("flag", 0, 1),
    plume.sum("small", 0, 2.5, name="half_bound"),
    plume.sum("large", 0, 2**32, name="huge_bound"),
    plume.sum("real", 0, 5),
]
WHOLE = ["small_sum", "float_bound", "large_sum", "flag_sum"]
OTHERS = ["half_bound", "huge_bound", "real_sum"]


@pytest.mark.quick_on("spark")
def test_sums_are_whole_where_column_and_bounds_are(engine: Engine) -> None:
    query = asking(measures=MEASURES, budget=plume.Budget(epsilon=50, delta=1e-6))
    types = plume.run(query, ROWS, engine=engine).to_arrow().schema
    assert {name: str(types.field(name).type) for name in [*WHOLE, *OTHERS]} == {
        **dict.fromkeys(WHOLE, "int64"),
        **dict.fromkeys(OTHERS, "double"),
    }


def test_a_chosen_bound_gives_whole_sums_too() -> None:
    query = plume.Query(
        user="u",
        keys="k",
        measures=plume.sum("small", 0, "auto"),
        max_keys_per_user=1,
        budget=plume.Budget(epsilon=50, delta=1e-6),
    )
    assert plume.run(query, ROWS).to_arrow().schema.field("small_sum").type == pa.int64()


def test_files_without_types_have_no_whole_numbers(tmp_path: Path) -> None:
    lines = "\n".join(f"{user},a,3" for user in range(PEOPLE))
    (tmp_path / "rows.csv").write_text(f"u,k,v\n{lines}\n", encoding="utf-8")
    release = plume.run(asking(measures=plume.sum("v", 0, 5)), tmp_path / "rows.csv")
    assert release.to_arrow().schema.field("v_sum").type == pa.float64()


def of_pandas(dtype: str, *, missing: bool) -> pd.DataFrame:
    # As pandas makes columns of values that come from text: integers of numpy cannot be missing.
    visits = pd.Series(
        [3] * (PEOPLE - 1) + [None if missing else 3], dtype=dtype if dtype == "Int64" or not missing else None
    )
    return pd.DataFrame({"u": [f"user {user}" for user in range(PEOPLE)], "k": "a", "visits": visits})


@pytest.mark.parametrize(("dtype", "released"), [("int64", "double"), ("Int64", "int64")])
@pytest.mark.parametrize("asked", ["query", "statement"])
def test_a_missing_value_does_not_change_the_type_of_a_sum_over_pandas(dtype: str, released: str, asked: str) -> None:
    statement = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50, delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = u) "
        "k, SUM(visits, contribution_bounds_per_group => (0, 5)) AS visits_sum FROM visits GROUP BY k"
    )
    query = asking(measures=plume.sum("visits", 0, 5))
    frames = [of_pandas(dtype, missing=missing) for missing in (False, True)]
    types = {
        str(
            (plume.run(query, frame) if asked == "query" else plume.sql(statement, tables={"visits": frame}))
            .rows.schema.field("visits_sum")
            .type
        )
        for frame in frames
    }
    assert types == {released}


@pytest.mark.parametrize("beside", [[3, 3, 1], [True, True, False]], ids=["integers", "booleans"])
@pytest.mark.parametrize("asked", ["sums", "a mean beside it", "a condition", "a computed key", "a statement"])
def test_a_missing_value_does_not_change_the_type_of_a_sum_over_another_column(
    beside: list[object], asked: str
) -> None:
    """The other column keeps its type, whatever pandas makes of the one with the missing value."""

    def released(values: list[object]) -> str:
        people = [f"user {user}" for user in range(len(values))]
        visits = pd.array([3] * len(values), dtype="Int64")
        frame = pd.DataFrame({"u": people, "k": "a", "visits": visits, "beside": values})
        whole, public = plume.sum("visits", 0, 5), {"public_keys": ["a"]}
        queries = {
            "sums": asking(measures=[whole, plume.sum("beside", 0, 5)], **public),
            "a mean beside it": asking(measures=[whole, plume.mean("beside", 0, 5)], **public),
            "a condition": asking(measures=[whole, plume.count(1, column="beside")], **public),
            "a computed key": asking(keys={"k": "LOWER(k)", "is": "CAST(beside AS BOOLEAN)"}, measures=[whole]),
        }
        statement = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50, delta = 1e-6, privacy_unit_column = u) k, "
            "SUM(visits, contribution_bounds_per_group => (0, 5)) AS visits_sum "
            "FROM (SELECT u, k, visits FROM t WHERE beside + 1 > 0) AS some GROUP BY k"
        )
        made = plume.run(queries[asked], frame) if asked in queries else plume.sql(statement, tables={"t": frame})
        return str(made.rows.schema.field("visits_sum").type)

    assert {released([*beside]), released([*beside[:-1], None])} == {"double"}


def categories(values: list[object], dtype: object) -> pd.DataFrame:
    """A column whose values stand once each, in its categories, which have a type of their own."""
    people = [f"user {user}" for user in range(len(values))]
    return pd.DataFrame({"u": people, "k": "a", "visits": pd.Series(values, dtype=dtype).astype("category")})  # type: ignore[call-overload] - any type


CATEGORIES = [
    # As pandas makes a column of the values, and with the type that it is told.
    ([3, 3, 1], [3, 3, None], None, "double"),
    ([3, 3, 1], [3, 3, 0.5], None, "double"),
    ([3, 3, 1], [3, 3, 2**63], None, "double"),
    ([3, 3, 1], [3, 3, 2**64], None, "double"),
    ([3, 3, 1], [3, 3, "x"], None, "double"),
    ([3, 3, 1], [3, 3, True], None, "double"),
    ([3, 3, 1], [None, None, None], None, "double"),
    ([True, True, False], [None, None, None], None, "double"),
    ([3, 3, 1], [3, 3, None], object, "double"),
    ([3, 3, 1], [3, 3, None], "Int64", "int64"),
    ([3, 3, 1], [None, None, None], "UInt8", "int64"),
    ([3, 3, 1], [3, 3, None], pd.ArrowDtype(pa.int64()), "int64"),
    ([True, True, False], [True, True, None], "boolean", "int64"),
    ([3.0, 3.0, 1.0], [3.0, 3.0, None], None, "double"),
]


@pytest.mark.parametrize(("without", "given", "dtype", "released"), CATEGORIES, ids=str)
def test_a_value_does_not_change_the_type_of_a_sum_over_categories(
    without: list[object], given: list[object], dtype: object, released: str
) -> None:
    query = asking(measures=plume.sum("visits", 0, 5), public_keys=["a"])
    frames = [categories(values, dtype) for values in (without, given)]
    assert {str(plume.run(query, frame).rows.schema.field("visits_sum").type) for frame in frames} == {released}


def whole(*sums: float) -> list[int]:
    query = Query(
        user="u", keys="k", measures=total("v", 0, 5), max_keys_per_user=1, budget=plume.Budget(epsilon=1, delta=1e-6)
    )
    rows = pa.table({"key_1": ["a"] * len(sums), "measure_1": pa.array(sums, pa.float64())})
    made: list[int] = with_whole_sums(rows, query, {"v": ColumnType(Kind.INTEGER, "BIGINT")})["measure_1"].to_pylist()
    return made


def test_noised_sums_are_rounded_to_the_nearest_whole_number_and_halves_up() -> None:
    assert whole(0.5, 1.5, -0.5, -1.5, 2.49, -2.51, 2.0**52 + 1) == [1, 2, 0, -1, 2, -3, 2**52 + 1]


def test_no_noised_sum_is_beyond_64_bits() -> None:
    assert whole(1e300, -1e300) == [2**63 - 1024, -(2**63)]


def test_intervals_of_rounded_sums_reach_half_a_step_further() -> None:
    release = plume.run(asking(measures=plume.sum("small", 0, 5)), ROWS)
    # As releases of a ledger are that were written before sums were rounded.
    before = replace(
        release, rows=release.rows.set_column(1, "small_sum", release.rows["small_sum"].cast(pa.float64()))
    )
    width = before.widths(0.95)["small_sum"]
    assert release.widths(0.95)["small_sum"] == math.ceil(width + 1 / 2)
    assert release.explanation.calibrated.parts[0].half_width(0.95) == width


def test_rounding_is_the_same_whether_a_ledger_gives_a_release_again_or_not(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "ledger", datasets={"d": plume.Budget(epsilon=200, delta=0.5)})
    query = asking(measures=plume.sum("small", 0, 5), budget=plume.Budget(epsilon=20, delta=1e-3))
    once, again = (plume.run(query, ROWS, ledger=ledger, dataset="d", release_id="r") for _ in range(2))
    assert once.rows.equals(again.rows)
    assert again.rows.schema.field("small_sum").type == pa.int64()
