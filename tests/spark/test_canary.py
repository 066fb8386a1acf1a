"""A canary in data on Spark: no error, log or release says a word of it, also not what Spark's Java prints."""

import pytest

from privacy.test_canary import CANARY, POISONED
from spark.poisoned_run import FEW, MANY
from sparks import run_script

OTHERS = 4
# So many must fail, or what is poisoned would be ordinary rows, and nothing would be at stake.
NUMBERS = {"few": (len(FEW) + OTHERS, 9), "many": (len(MANY) + OTHERS + len(POISONED), 60)}


@pytest.mark.parametrize("much", ["few", pytest.param("many", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.starts(kind)) for kind in ("spark", "spark-connect")]
)
def test_nothing_of_one_persons_data_leaves_spark(kind: str, much: str) -> None:
    done = run_script("poisoned_run.py", kind, much)
    assert CANARY not in done.stdout + done.stderr
    assert "777123" not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    inputs, fail = NUMBERS[much]
    assert sum(line.startswith("clean") for line in lines) == inputs, done.stderr[-3000:]
    assert int(lines[-1].split()[1]) >= fail


def test_there_are_at_least_sixty_poisoned_inputs_of_spark_itself() -> None:
    assert len(MANY) + OTHERS >= 60
