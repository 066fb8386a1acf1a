"""Sessions of Spark for tests: small, quiet and quick to start."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

# Small questions end before Java has learnt to run fast: it need not try.
BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": BRIEF_JAVA,
}
# What pays off for large data only is left out of one kind each, and tried by the other.
OF_KIND = {
    "spark": {"spark.sql.adaptive.enabled": "false"},
    "spark-connect": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
}


def start(kind: str, **settings: str) -> Any:
    from plume.engines.spark_session import start_session  # noqa: PLC0415 - most tests need no Spark

    settings = SETTINGS | OF_KIND[kind] | {name.replace("_", "."): value for name, value in settings.items()}
    if kind == "spark-connect":
        return start_session(remote="local[2]", settings=settings)
    return start_session(master="local[2]", settings=settings)


def run_script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of tests/spark in a process of its own, with a Spark of its own."""
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    command = [sys.executable, str(HERE / "spark" / name), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
