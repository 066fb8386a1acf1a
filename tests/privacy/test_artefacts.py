"""Non-interference: tables that differ only in what bounding drops, or in how they are kept, give the same files, byte by byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import plume
from entropy import ConstantEntropy
from plume.engines.duckdb import DuckDB
from plume.running import run_with
from questions import ENGINE, asking, write_text

# Users from 20 on have two records in z, which is as many as count, and some a total that is as large as any.
ROWS = pa.table(
    {
        "u": [f"user {n}" for n in range(40) for _ in range(2)],
        "k": ["x", "y"] * 20 + ["z", "z"] * 20,
        "v": [float(n % 7) for n in range(80)],
    }
)
QUERY = asking(measures=[plume.count(2), plume.users(), plume.sum("v", 0, 10)], where="v IS NULL OR v <> 100")
RARE = [f"rare {n}" for n in range(500)]
NAN, INF = float("nan"), float("inf")


def more(**columns: list[object]) -> pa.Table:
    return pa.concat_tables([ROWS, pa.table(columns, schema=ROWS.schema)])


def of_those_who_said_enough(value: float | None) -> pa.Table:
    return more(u=["user 30"] * 500, k=["z"] * 500, v=[value] * 500)


def with_column(name: str, column: Any) -> pa.Table:
    return ROWS.set_column(ROWS.schema.get_field_index(name), name, column)


def larger_totals() -> pa.Table:
    """Totals that are at the upper bound grow."""
    totals = ROWS.group_by(["u", "k"]).aggregate([("v", "sum")])
    at_bound = {(row["u"], row["k"]) for row in totals.to_pylist() if row["v_sum"] >= 10}
    values = [99.0 if (row["u"], row["k"]) in at_bound else row["v"] for row in ROWS.to_pylist()]
    assert at_bound
    return with_column("v", pa.array(values))


def relation() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("t", ROWS)
    return connection.sql("SELECT * FROM t ORDER BY v")


def parquet(folder: Path, **settings: Any) -> Path:
    pq.write_table(ROWS, folder / "rows.parquet", **settings)
    return folder / "rows.parquet"


def csv(folder: Path) -> Path:
    pyarrow.csv.write_csv(ROWS, folder / "rows.csv")
    return folder / "rows.csv"


OTHERS: dict[str, Callable[[Path], Any]] = {
    # Rows that are nobody's, or that a condition drops.
    "rows without a user": lambda _: more(u=[None] * 500, k=["x"] * 500, v=[1.0] * 500),
    "rows without a key": lambda _: more(u=["new"] * 500, k=[None] * 500, v=[1.0] * 500),
    "rows without either": lambda _: more(u=[None] * 500, k=[None] * 500, v=[1.0] * 500),
    "rows a condition drops": lambda _: more(u=["new"] * 500, k=["w"] * 500, v=[100.0] * 500),
    "rows a condition drops, of a known user": lambda _: more(u=["user 1"] * 500, k=["x"] * 500, v=[100.0] * 500),
    "values that are none, of no user": lambda _: more(u=[None] * 2, k=["x", "y"], v=[NAN, None]),
    # Users and keys that nobody is to know of.
    "keys of too few users": lambda _: more(u=["new"] * 2, k=["rare", "rarer"], v=[1.0, 2.0]),
    "many keys of one user": lambda _: more(u=["new"] * 500, k=RARE, v=[1.0] * 500),
    "many keys of many users": lambda _: more(u=[f"new {n}" for n in range(500)], k=RARE, v=[1.0] * 500),
    "very long keys": lambda _: more(u=["new"] * 2, k=["r" * 10**6, "s" * 10**6], v=[1.0, 2.0]),
    "keys of odd characters": lambda _: more(u=["new"] * 3, k=["\0", "\u202e", "<b>"], v=[1.0] * 3),
    "users called otherwise": lambda _: with_column("u", pc.binary_join_element_wise(ROWS["u"], "person", " ")),
    "users as numbers": lambda _: with_column("u", pa.array([n for n in range(40) for _ in range(2)])),
    # What is more than counts.
    "more records than count": lambda _: of_those_who_said_enough(0.0),
    "records without a value": lambda _: of_those_who_said_enough(None),
    "records that are no numbers": lambda _: of_those_who_said_enough(NAN),
    "infinite records": lambda _: of_those_who_said_enough(INF),
    "records of minus infinity": lambda _: of_those_who_said_enough(-INF),
    "larger totals": lambda _: larger_totals(),
    # The same rows in other order and other types.
    "another order": lambda _: ROWS.take(pa.array(range(80)[::-1])),
    "sorted by value": lambda _: ROWS.sort_by("v"),
    "other pieces": lambda _: pa.concat_tables([ROWS.slice(n, 1) for n in range(80)]),
    "a column nobody asks for": lambda _: ROWS.append_column("more", pa.array(["secret"] * 80)),
    "columns in another order": lambda _: ROWS.select(["v", "k", "u"]),
    "text in dictionaries": lambda _: with_column("k", ROWS["k"].dictionary_encode()),
    "large text": lambda _: with_column("k", ROWS["k"].cast(pa.large_string())),
    "decimals": lambda _: with_column("v", ROWS["v"].cast(pa.decimal128(10, 2))),
    # The same rows kept elsewhere.
    "pandas": lambda _: ROWS.to_pandas(),
    "Polars": lambda _: pl.from_arrow(ROWS),
    "a relation of DuckDB": lambda _: relation(),
    "Parquet": parquet,
    "Parquet in many pieces": lambda folder: parquet(folder, row_group_size=1, compression="zstd"),
    "CSV": csv,
    "JSON": lambda folder: write_text(folder / "rows.json", pl.from_arrow(ROWS).write_json()),
}


def artefacts(content: Any, folder: Path, engine: DuckDB = ENGINE) -> list[bytes]:
    """Every file and every text that a release gives, and the steps that were told."""
    told: list[str] = []
    release = run_with(ConstantEntropy(), QUERY, content, engine=engine, pipeline="plume", on_step=told.append)
    release.write_csv(folder / "release.csv")
    release.write_parquet(folder / "release.parquet")
    release.report(folder / "release.html")
    files = [(folder / name).read_bytes() for name in ("release.csv", "release.parquet", "release.html")]
    return [
        *files,
        str(release).encode(),
        release.to_json().encode(),
        release._repr_html_().encode(),
        repr(told).encode(),
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return artefacts(ROWS, tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize("kind", OTHERS)
def test_what_bounding_drops_leaves_no_trace(kind: str, expected: list[bytes], tmp_path: Path) -> None:
    assert artefacts(OTHERS[kind](tmp_path), tmp_path) == expected


def test_sums_of_whole_numbers_do_not_show_how_many_bits_those_have(tmp_path: Path) -> None:
    """The types of columns are public; a sum of whole numbers is released as 64-bit integers."""
    kept = []
    for kind in (pa.int8(), pa.int64()):
        folder = tmp_path / str(kind)
        folder.mkdir()
        kept.append(artefacts(with_column("v", ROWS["v"].cast(kind)), folder))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("engine", [DuckDB(threads=2), DuckDB(memory_limit="64MB")], ids=repr)
def test_an_engine_leaves_no_trace(engine: DuckDB, expected: list[bytes], tmp_path: Path) -> None:
    assert artefacts(ROWS, tmp_path, engine) == expected


def test_there_are_at_least_thirty_pairs() -> None:
    assert len(OTHERS) >= 30


def test_the_test_would_see_one_user_more(expected: list[bytes], tmp_path: Path) -> None:
    changed = artefacts(more(u=["new"], k=["x"], v=[1.0]), tmp_path)
    # All but the steps that were told.
    assert all(one != other for one, other in zip(changed[:4], expected[:4], strict=True))
