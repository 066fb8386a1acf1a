"""Released dates that Python's own cannot hold: before the year 1 and after 9999. Engines have them, so every way out must."""

import json
from pathlib import Path
from typing import Any

import click
import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner

import plume
from plume.cli.output import print_rows
from plume.cli.terminal import remarks
from plume.far_dates import python_rows, python_values
from questions import asking

CAESAR, FAR = "0045-03-15 (BC)", "20000-01-02"
QUERY = asking(
    keys="k", public_keys=duckdb.sql(f"SELECT unnest(['{CAESAR}'::DATE, '{FAR}'::DATE, DATE '2026-05-04']) AS k")
)
WRITTEN = ["-0044-03-15", "2026-05-04", "20000-01-02"]


@pytest.fixture(scope="module")
def release() -> plume.Release:
    return plume.run(QUERY, duckdb.sql("SELECT 'ann' AS u, DATE '2026-05-04' AS k, 1 AS v"))


def printed(release: plume.Release, layout: str) -> str:
    command = click.command()(lambda: print_rows(release, layout, remarks(quiet=False)))
    return CliRunner().invoke(command, catch_exceptions=False).stdout


def test_far_dates_are_printed(release: plume.Release) -> None:
    assert [line.split()[0] for line in str(release).splitlines()[1:4]] == WRITTEN


def test_far_dates_are_shown_in_a_notebook(release: plume.Release) -> None:
    assert all(date in release._repr_html_() for date in WRITTEN)


def test_far_dates_are_in_a_report(release: plume.Release, tmp_path: Path) -> None:
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(date in page for date in WRITTEN)


def test_far_dates_are_in_json(release: plume.Release) -> None:
    assert [row["k"] for row in json.loads(printed(release, "json"))] == WRITTEN


def test_far_dates_are_in_csv_and_no_spreadsheet_computes_with_them(release: plume.Release, tmp_path: Path) -> None:
    release.write_csv(tmp_path / "rows.csv")
    cells = [line.split(",")[0].strip('"') for line in (tmp_path / "rows.csv").read_text().splitlines()[1:]]
    assert cells == ["'-0044-03-15", *WRITTEN[1:]]


def test_far_dates_are_in_pandas(release: plume.Release) -> None:
    days = release.to_pandas()["k"].to_numpy("datetime64[D]").astype(int)
    assert days.tolist() == release.to_arrow()["k"].cast(pa.int32()).to_pylist()


def test_far_dates_are_text_in_rows(release: plume.Release) -> None:
    assert [str(row["k"]) for row in release] == WRITTEN


def test_near_dates_stay_what_they_are() -> None:
    near = pa.table({"k": pa.array([0, 20_000], pa.int32()).cast(pa.date32())})
    assert python_rows(near) == near.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (pa.date32(), 40_000_000, "111486-04-13"),
        (pa.timestamp("us"), -62_200_000_000_000_000, "-0002-12-17 14:13:20.000000"),
        (pa.timestamp("s", "UTC"), 3_456_000_000_000, "111486-04-13 00:00:00+00:00"),
    ],
)
def test_far_moments_are_written_whatever_their_unit(kind: pa.DataType, value: int, written: str) -> None:
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    assert python_values(pa.chunked_array([pa.array([value, None], whole).cast(kind)])) == [written, None]


def nested(kind: str) -> pa.ChunkedArray:
    return duckdb.sql(f"SELECT {kind} AS k").to_arrow_table()["k"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (f"{{'a': DATE '{FAR}', 'b': 1}}", {"a": FAR, "b": 1}),
        (f"[DATE '{FAR}', NULL]", [FAR, None]),
        (f"MAP {{'a': DATE '{FAR}'}}", [("a", FAR)]),
    ],
)
def test_far_dates_inside_of_other_values_are_written(kind: str, found: Any) -> None:
    assert python_values(nested(kind)) == [found]
