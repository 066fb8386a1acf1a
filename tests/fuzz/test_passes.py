"""Passes fuzzed: a bounded number of cases of one seed; most of them are passes, and a broken one would be found."""

from functools import partial

import pytest

pytest.importorskip("numba")  # the extra

from fuzz.fuzz_passes import check
from fuzz.fuzzing import flaws
from plume.engines import packed_rows, passing

SEED, CASES = 5, 15


def test_passes_make_what_sql_makes_whatever_one_user_has() -> None:
    passed: list[bool] = []
    assert list(flaws(partial(check, passed=passed), seed=SEED, numbers=range(CASES))) == []
    # Three for each table: two of exact steps, and one of a run.
    assert passed.count(True) >= CASES
    assert passed.count(False) >= 1


def test_users_who_are_merged_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are where one bit of what tells them apart is lost."""
    whole = passing._mask
    monkeypatch.setattr(passing, "_mask", lambda bits: whole(max(1, bits - 1)))
    assert "other rows than SQL" in next(flaws(check, seed=SEED, numbers=range(CASES)))


def test_a_pass_that_fails_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though SQL then makes the steps: ranges that do not fit 64 bits are packed all the same."""
    monkeypatch.setattr(packed_rows, "BITS", 80)
    assert "a pass failed with" in next(flaws(check, seed=SEED, numbers=range(CASES)))
