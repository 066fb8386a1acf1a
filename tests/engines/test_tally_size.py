"""Quantiles of very many rows: what is kept of a key grows with its leaves, not with its rows."""

from pathlib import Path

import duckdb
import pytest

import plume

ROWS = 10**8


@pytest.mark.slow
@pytest.mark.parametrize(("users", "memory"), [(10**7, "4GB"), (1, "4GB")], ids=["many users", "one user"])
def test_a_key_with_a_hundred_million_rows_passes_within_the_memory_limit(
    tmp_path: Path, users: int, memory: str
) -> None:
    path = tmp_path / "rows.parquet"
    made = f"SELECT i % {users} AS u, 'x' AS k, CAST(hash(i) % 1000 AS SMALLINT) AS v FROM range({ROWS}) AS t(i)"
    duckdb.connect().execute(f"COPY ({made}) TO '{path}' (FORMAT parquet)")
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.median("v", 0, 1000, max_per_key=10)],
        max_keys_per_user=1,
        budget=plume.Budget(epsilon=1),
        public_keys=["x"],
    )
    engine = plume.DuckDB(memory_limit=memory, temp_directory=tmp_path)
    (found,) = plume.run(query, path, engine=engine).to_arrow()["v_median"].to_pylist()
    assert 0 <= found <= 1000
    assert users == 1 or found == pytest.approx(500, abs=2)
