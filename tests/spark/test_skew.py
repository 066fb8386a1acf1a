"""Skew: one user with 10^7 rows and keys, one key with a million users, in executors of two gigabytes."""

import json

import pytest

from sparks import run_script


@pytest.mark.starts("spark")
@pytest.mark.slow
def test_skewed_data_are_answered() -> None:
    """The million users' key comes out, and none of the ten million that one person alone has: each with a chance below 1e-7 / 64."""
    done = run_script("skewed_run.py", "10000000")
    (row,) = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert row["key"] == 0
    assert abs(row["users"] - 1_000_000) < 5_000
