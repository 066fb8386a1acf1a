"""Executors die, files vanish, tasks fail and run twice: the bounded data and the answer stay the same, and noise is drawn once.

So it is where kept steps lie in a folder. Where they lie on executors, losing them ends the run.

The faults hit a small cluster of real processes; what comes out is compared with DuckDB, where nothing went wrong.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from exact import exact_step
from plume.engines.duckdb import DuckDB
from spark.faulty_run import KEPT, QUERY, digest, write_rows
from sparks import run_script

# Those of a group hit one cluster one after another, which takes long to start; the cluster of the last has settings of its own.
QUICK = ["stage 2", "shuffle files"]
OTHERS = ["stage 1", "stage 3", "stage 4", "stage 5", "first attempt"]
HARMLESS = ["first attempt", "speculation"]


@pytest.mark.starts("spark")
@pytest.mark.parametrize(
    "faults",
    [QUICK, pytest.param(OTHERS, marks=pytest.mark.slow), pytest.param(["speculation"], marks=pytest.mark.slow)],
    ids=", ".join,
)
def test_faults_change_nothing(faults: list[str], tmp_path: Path) -> None:
    write_rows(tmp_path / "rows")
    done = run_script("faulty_run.py", str(tmp_path), *faults)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = pq.read_table(tmp_path / "rows")
    names = ("bounded", "safe", "exact", "keyed_weights")
    expected = {name: exact_step(QUERY, rows, name, engine=DuckDB()) for name in names}
    noised = {"selected_keys": len(expected["keyed_weights"]), "release": len(expected["exact"])}
    for fault, found in json.loads(done.stdout.splitlines()[-1]).items():
        for name in ("bounded", "safe", "exact"):
            assert found["digests"][name] == digest(expected[name]), (fault, name)
        assert found["noised"] == noised, fault
        assert found["lost"] == (0 if fault in HARMLESS else 1), fault


@pytest.mark.starts("spark")
def test_kept_rows_that_are_lost_with_their_executors_end_the_run(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows")
    done = run_script("faulty_run.py", str(tmp_path), KEPT)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])[KEPT]["said"]
    assert said.startswith("ResourceError: an executor was lost, and with it what step")
