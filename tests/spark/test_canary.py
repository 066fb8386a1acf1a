"""A canary in data on Spark: no error, log or release says a word of it, also not what Spark's Java prints."""

import pytest

from privacy.test_canary import CANARY
from spark.poisoned_run import FRAMES
from sparks import run_script


@pytest.mark.parametrize("kind", ["spark", "spark-connect"])
def test_nothing_of_one_persons_data_leaves_spark(kind: str) -> None:
    done = run_script("poisoned_run.py", kind)
    assert CANARY not in done.stdout + done.stderr
    assert "777123" not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("clean") for line in lines) == len(FRAMES) + 4, done.stderr[-3000:]
    # Else these would be ordinary rows, and nothing would be at stake.
    assert int(lines[-1].split()[1]) >= 9
