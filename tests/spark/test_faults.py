"""Executors die, files vanish, tasks fail and run twice: the bounded data and the answer stay the same, and noise is drawn once.

Each fault hits a small cluster of real processes; what it gives is compared with DuckDB, where nothing went wrong.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from exact import exact_step
from plume.engines.duckdb import DuckDB
from spark.faulty_run import QUERY, digest, write_rows

HERE = Path(__file__).parent
STAGES = [f"stage {number}" for number in range(1, 6)]
QUICK = ["stage 2", "shuffle files"]
FAULTS = [*STAGES, "shuffle files", "first attempt", "speculation"]


def faulty_run(fault: str, folder: Path) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, str(HERE / "faulty_run.py"), fault, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("fault", [pytest.param(f, marks=() if f in QUICK else pytest.mark.slow) for f in FAULTS])
def test_a_fault_changes_nothing(fault: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows")
    found = faulty_run(fault, tmp_path)
    rows = pq.read_table(tmp_path / "rows")
    expected = {
        name: exact_step(QUERY, rows, name, engine=DuckDB()) for name in ("bounded", "safe", "key_weights", "exact")
    }
    for name in ("bounded", "safe", "exact"):
        assert found["digests"][name] == digest(expected[name]), name
    assert found["noised"] == {"selected_keys": len(expected["key_weights"]), "release": len(expected["exact"])}
    assert found["lost"] == (0 if fault in ("first attempt", "speculation") else 1)
