"""Keys that are computed, on every engine: the exact answer before noise, no row that makes a run fail, no name that is more than one."""

import json
import math
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import plume
from engines.test_hostile_names import NAMES
from exact import exact_release
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.errors import ColumnNotFound, ColumnTypeError
from questions import asking

DAYS = [date(2024, 1 + number % 3, 1 + number % 28) for number in range(12)]
ROWS = pa.table(
    {
        "u": [f"user {number}" for number in range(12)],
        "day": DAYS,
        "country": ["DE", "de", "FR", None] * 3,
        "age": [7 * number for number in range(12)],
        "a + b": ["x", "y"] * 6,
    }
)


def question(keys: Any, **changes: Any) -> plume.Query:
    """Any key with a user is released, and noise is zero."""
    settings = {"measures": [plume.users()], "max_keys_per_user": 3, "budget": plume.Budget(epsilon=200, delta=0.9)}
    return asking(**({"keys": keys} | settings | changes))


def counted(keys: Any, content: Any, engine: Engine, **changes: Any) -> dict[tuple[Any, ...], int]:
    """How many users each key has; those of a single user may fall to the threshold."""
    rows = exact_release(question(keys, **changes), content, engine=engine).to_pylist()
    return {tuple(_plain(value) for name, value in row.items() if name != "users"): row["users"] for row in rows}


def _plain(value: Any) -> Any:
    return value.date() if isinstance(value, datetime) else value


def expected(*keys: Callable[[dict[str, Any]], Any]) -> dict[tuple[Any, ...], int]:
    found = Counter(tuple(key(row) for key in keys) for row in ROWS.to_pylist())
    return {key: users for key, users in found.items() if None not in key and users > 1}


def month(row: dict[str, Any]) -> date:
    return row["day"].replace(day=1)


def lower(row: dict[str, Any]) -> str | None:
    return row["country"] and row["country"].lower()


CASES: list[tuple[dict[str, str], tuple[Callable[[dict[str, Any]], Any], ...]]] = [
    ({"month": "DATE_TRUNC(day, MONTH)"}, (month,)),
    ({"month": "DATE_TRUNC('month', day)", "country": "country"}, (month, lambda row: row["country"])),
    ({"land": "LOWER(country)"}, (lower,)),
    ({"number": "EXTRACT(MONTH FROM day)"}, (lambda row: row["day"].month,)),
    ({"decade": "CAST(FLOOR(age / 30) AS INT)"}, (lambda row: row["age"] // 30,)),
    ({"old": "age >= 40"}, (lambda row: row["age"] >= 40,)),
    (
        {"group": "CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END"},
        (lambda row: "minor" if row["age"] < 18 else "adult",),
    ),
    ({"odd": '"a + b"'}, (lambda row: row["a + b"],)),
    (
        {"day": "DATE_TRUNC(day, MONTH)", "land": "UPPER(country)"},
        (month, lambda row: row["country"] and row["country"].upper()),
    ),
]


@pytest.mark.quick_on("spark", "spark-connect")
@pytest.mark.parametrize(("keys", "computed"), CASES[:2])
def test_a_month_is_a_key(keys: dict[str, str], computed: Any, engine: Engine) -> None:
    assert counted(keys, ROWS, engine) == expected(*computed)


@pytest.mark.parametrize(("keys", "computed"), CASES[2:])
def test_a_computed_key_is_what_python_computes(keys: dict[str, str], computed: Any, engine: Engine) -> None:
    assert counted(keys, ROWS, engine) == expected(*computed)


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_every_pipeline_has_computed_keys(pipeline: str, engine: Engine) -> None:
    query = question({"land": "LOWER(country)"})
    rows = exact_release(query, ROWS, engine=engine, pipeline=pipeline).to_pylist()
    assert rows == [{"land": "de", "users": 6}, {"land": "fr", "users": 3}]


def test_a_computed_key_is_the_key_of_the_statement_that_computes_it(engine: Engine) -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 200, delta = 0.9, max_groups_contributed = 3, privacy_unit_column = u) "
        "LOWER(country) AS land, COUNT(DISTINCT u) AS users FROM rows WHERE age > 7 GROUP BY 1"
    )
    released = plume.sql(text, tables={"rows": ROWS}, engine=engine).rows.column("land").to_pylist()
    asked = exact_release(question({"land": "LOWER(country)"}, where="age > 7"), ROWS, engine=engine)
    assert asked.column("land").to_pylist() == released


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_files_have_computed_keys(ending: str, tmp_path: Path) -> None:
    """Spark reads Parquet files only, as the frames that the other tests give it."""
    engine, path = DuckDB(threads=1), tmp_path / f"rows.{ending}"
    match ending:
        case "csv":
            pyarrow.csv.write_csv(ROWS, path)
        case "jsonl":
            path.write_text("\n".join(json.dumps(row, default=str) for row in ROWS.to_pylist()) + "\n")
        case _:
            pq.write_table(ROWS, path)
    keys, computed = {"month": "DATE_TRUNC(day, MONTH)", "old": "age >= 40"}, (month, lambda row: row["age"] >= 40)
    assert counted(keys, path, engine) == expected(*computed)


def test_a_parquet_file_has_computed_keys(tmp_path: Path, engine: Engine) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    assert counted({"month": "DATE_TRUNC(day, MONTH)"}, tmp_path / "rows.parquet", engine) == expected(month)


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_frames_have_computed_keys(form: str, engine: Engine) -> None:
    import polars as pl  # noqa: PLC0415 - for one form

    frame = ROWS.to_pandas() if form == "pandas" else pl.from_arrow(ROWS)
    assert counted({"decade": "CAST(FLOOR(age / 30) AS INT)"}, frame, engine) == expected(lambda row: row["age"] // 30)


def test_public_keys_may_be_computed_ones(engine: Engine) -> None:
    query = question({"land": "LOWER(country)"}, public_keys=["de", "it"])
    assert exact_release(query, ROWS, engine=engine).to_pylist() == [
        {"land": "de", "users": 6},
        {"land": "it", "users": 0},
    ]


def test_a_column_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(ColumnNotFound, match=r"no column 'Country' in this Table; did you mean 'country'\?"):
        exact_release(question({"land": "LOWER(Country)"}), ROWS, engine=engine)


def test_double_quotes_around_a_text_are_pointed_to(engine: Engine) -> None:
    with pytest.raises(ColumnNotFound, match=r"text is written in single quotes: 'DE'\."):
        exact_release(question({"german": 'country = "DE"'}), ROWS, engine=engine)


def test_a_computed_key_of_an_inexact_type_is_refused_by_its_name(engine: Engine) -> None:
    with pytest.raises(ColumnTypeError, match=r"key 'part' is computed as floating-point, .* CAST it, as in CAST"):
        exact_release(question({"part": "age / 10"}), ROWS, engine=engine)


HOSTILE: list[tuple[pa.Array, str]] = [
    (pa.array([2**63 - 1, -(2**63), 2**62], pa.int64()).view(pa.timestamp("us")), "DATE_TRUNC(x, MONTH)"),
    (pa.array([2**63 - 1, -(2**63), 2**62], pa.int64()).view(pa.timestamp("us")), "EXTRACT(YEAR FROM x)"),
    (pa.array([2**63 - 1, -(2**63), 0], pa.int64()).view(pa.timestamp("us")), "CAST(x AS DATE)"),
    (pa.array([2**31 - 1, -(2**31), 0], pa.int32()).view(pa.date32()), "DATE_TRUNC(x, YEAR)"),
    (pa.array([0, -(2**63), 2**63 - 1], pa.int64()), "CAST(1 / x AS BIGINT)"),
    (pa.array([0, -(2**63), 2**63 - 1], pa.int64()), "CAST(ABS(x) * x AS INT)"),
    (pa.array([0, -(2**63), 2**63 - 1], pa.int64()), "x % 0 = 1"),
    (pa.array([0.0, math.nan, -math.inf]), "CAST(LN(x) AS INT)"),
    (pa.array([1e308, math.inf, -1.0]), "CAST(SQRT(EXP(x)) AS BIGINT)"),
    (pa.array(["", "2024-13-45", "é" * 10_000]), "CAST(x AS DATE)"),
    (pa.array(["", "9" * 400, "x"]), "CAST(x AS BIGINT)"),
    (pa.array(["", "%", "\\"]), "x LIKE '%a'"),
    (
        pa.StringArray.from_buffers(3, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe\xc3")),
        "UPPER(x)",
    ),
    (
        pa.StringArray.from_buffers(3, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe\xc3")),
        "SUBSTR(x, 1, 1)",
    ),
]


@pytest.mark.parametrize(("values", "text"), HOSTILE)
def test_no_value_makes_a_computed_key_fail(values: pa.Array, text: str, engine: Engine) -> None:
    """The others of the table, who have no value, are in no key; that a run ends is what is asked."""
    calm = pa.array([None] * 3, values.type)
    rows = pa.table({"u": list("aabcde"), "x": pa.chunked_array([values, calm])})
    exact_release(question({"k": text}), rows, engine=engine)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.engines] * (number % 4 > 0)) for number, name in enumerate(NAMES)]
)
def test_a_hostile_name_beside_and_in_an_expression_is_only_a_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"u of it": ["a", "b", "c"], name: ["X", "x", "x"]})
    text = '"' + name.replace('"', '""') + '"'
    query = asking(
        user="u of it",
        keys={name: f"LOWER({text})"},
        measures=[plume.users(name="n of it")],
        where=f"{text} <> 'y'",
        public_keys=["x"],
    )
    assert exact_release(query, rows, engine=DuckDB(threads=1)).to_pylist() == [{name: "x", "n of it": 3}]
    assert not list(tmp_path.rglob("*"))
