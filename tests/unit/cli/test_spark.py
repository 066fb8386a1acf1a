"""`plume run --engine spark`: which options go together, and one real run in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from plume.cli.main import main

ASKING = [
    "--user",
    "u",
    "--key",
    "k",
    "--measure",
    "users()",
    "--epsilon",
    "1000",
    "--delta",
    "0.1",
    "--max-keys-per-user",
    "2",
]
SETTINGS = [
    "--spark-master",
    "local[1]",
    "--spark-conf",
    "spark.sql.shuffle.partitions=1",
    "--spark-conf",
    "spark.ui.enabled=false",
]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--spark-master", "local[1]"], "--spark-master is not for --engine duckdb"),
        (["--spark-remote", "sc://host"], "--spark-remote is not for --engine duckdb"),
        (["--spark-conf", "a=b"], "--spark-conf is not for --engine duckdb"),
        (["--engine", "spark", "--memory-limit", "1GB"], "--memory-limit is not for --engine spark"),
        (["--engine", "spark", "--threads", "1"], "--threads is not for --engine spark"),
        (["--engine", "spark", "--spark-conf", "a"], "'a' is not of the form NAME=VALUE"),
        (["--engine", "spark", "--spark-conf", "=a"], "'=a' is not of the form NAME=VALUE"),
        (["--engine", "spark", "--spark-master", "local", "--spark-remote", "sc://host"], "both given"),
        (["--engine", "flink"], "'flink' is not one of 'duckdb', 'spark'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], match: str) -> None:
    done = CliRunner().invoke(main, ["run", "rows.parquet", *ASKING, *options])
    assert done.exit_code == 2
    assert match in done.stderr


def on_spark(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command on Spark, in a process of its own."""
    command = [sys.executable, "-m", "plume", *map(str, arguments), *ASKING, "--engine", "spark", *SETTINGS]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own


@pytest.mark.starts("spark")
def test_a_run_on_spark_says_what_a_run_on_duckdb_says(tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": range(50), "k": ["x", "y"] * 25}), tmp_path / "rows.parquet")
    done = on_spark("run", tmp_path / "rows.parquet")
    assert (done.returncode, done.stdout) == (0, '"k","users"\n"x",25\n"y",25\n')
    assert "Selecting keys\n" in done.stderr
    assert "differential privacy for every u" in done.stderr


@pytest.mark.starts("spark")
@pytest.mark.slow
def test_an_audit_on_spark_has_all_its_layers() -> None:
    done = on_spark("audit", "--trials", 4000)
    assert done.returncode == 0, done.stdout
    assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith("pass")} == set("ABCD")
