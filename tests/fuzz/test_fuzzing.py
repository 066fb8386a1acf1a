"""What the fuzzers say: their cases and flaws, and nothing about queries that ask for little privacy on purpose."""

import subprocess
import sys
from pathlib import Path

import pytest

# A case of hostile types whose query is cautioned: its key has few users, for all the noise.
CAUTIONED = "25"


def test_fuzzers_say_what_they_tried_and_no_cautions() -> None:
    command = [sys.executable, str(Path(__file__).with_name("fuzzing.py")), "--seed", "1", "--case", CAUTIONED]
    pytest.importorskip("numba")  # else one of the fuzzers is left out
    told = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert told.stdout.splitlines() == [
        f"{name}: 1 cases of seed 1, 0 flaws" for name in ("statements", "types", "postgresql", "passes")
    ]
    assert told.stderr == ""
