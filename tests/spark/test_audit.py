"""The audit on Spark: each job holds thousands of neighbours in cells of their own, so that few jobs are many trials."""

from typing import Any

import pytest

import plume
from plume.engines.spark import Spark
from privacy.mutants import unchecked
from privacy.test_audit import FEW, MANY, PLANTED, SHAPES, first_red


def test_a_query_is_audited_on_spark(classic: Any) -> None:
    report = plume.audit(SHAPES["public"], engine=Spark(classic), trials=FEW)
    assert report.passed, report
    assert {finding.layer for finding in report.findings} == {"A", "B", "C", "D"}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_real_build_is_green_on_spark(classic: Any, shape: str) -> None:
    assert first_red(SHAPES[shape], FEW, Spark(classic)) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught_on_spark(classic: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(monkeypatch)
    PLANTED[name].plant(monkeypatch)
    # Few trials show most bugs, in a fifth of the time.
    assert any(first_red(PLANTED[name].query, trials, Spark(classic)) is not None for trials in (FEW, MANY))
