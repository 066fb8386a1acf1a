"""Data of the worst shapes in little memory: a release, or one clear message that memory ran out, and nothing left behind."""

import re
from pathlib import Path

import duckdb
import pytest

import plume
from plume.errors import ResourceError

ROWS = 10**8
SHAPES = {
    "one heavy user": f"SELECT CASE WHEN i % 2 = 0 THEN 0 ELSE i % 10000000 END AS u, hash(i) % 1000000 AS k FROM range({ROWS}) AS t(i)",
    "one heavy key": f"SELECT i % 10000000 AS u, CASE WHEN i % 2 = 0 THEN 0 ELSE hash(i) % 1000000 END AS k FROM range({ROWS}) AS t(i)",
    "all keys distinct": f"SELECT i % 10000000 AS u, i AS k FROM range({ROWS}) AS t(i)",
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_million_skewed_rows_pass_in_two_gigabytes_or_fail_clearly(tmp_path: Path, shape: str) -> None:
    path, spill = tmp_path / "rows.parquet", tmp_path / "spill"
    spill.mkdir()
    duckdb.connect().execute(f"COPY ({SHAPES[shape]}) TO '{path}' (FORMAT parquet)")
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.count(max_per_key=2)],
        max_keys_per_user=8,
        budget=plume.Budget(epsilon=1, delta=1e-9),
    )
    said = ""
    try:
        release = plume.run(query, path, engine=plume.DuckDB(memory_limit="2GB", temp_directory=spill))
    except ResourceError as error:
        said = str(error)
    print(shape, said or f"{len(release)} keys")
    assert not said or re.match(r"step \w+ ran out of memory or temporary disk space; ", said)
    assert not list(spill.iterdir())
