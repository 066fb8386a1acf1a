"""Executors die, files vanish, tasks fail and run twice: the bounded data and the answer stay the same, and noise is drawn once.

Each fault hits a small cluster of real processes; what it gives is compared with DuckDB, where nothing went wrong.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from exact import exact_step
from plume.engines.duckdb import DuckDB
from spark.faulty_run import QUERY, digest, write_rows
from sparks import run_script

STAGES = [f"stage {number}" for number in range(1, 6)]
QUICK = ["stage 2", "shuffle files"]
FAULTS = [*STAGES, "shuffle files", "first attempt", "speculation"]


@pytest.mark.parametrize("fault", [pytest.param(f, marks=() if f in QUICK else pytest.mark.slow) for f in FAULTS])
def test_a_fault_changes_nothing(fault: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows")
    done = run_script("faulty_run.py", fault, str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    rows = pq.read_table(tmp_path / "rows")
    expected = {
        name: exact_step(QUERY, rows, name, engine=DuckDB()) for name in ("bounded", "safe", "key_weights", "exact")
    }
    for name in ("bounded", "safe", "exact"):
        assert found["digests"][name] == digest(expected[name]), name
    assert found["noised"] == {"selected_keys": len(expected["key_weights"]), "release": len(expected["exact"])}
    assert found["lost"] == (0 if fault in ("first attempt", "speculation") else 1)
