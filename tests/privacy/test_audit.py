"""The audit turns red on every planted bug and stays green on the real build."""

import json
from typing import Any

import pytest

import plume
from plume.auditing.audit import findings
from plume.auditing.made_up import without_conditions
from plume.auditing.trial import Trial
from plume.engines.duckdb import DuckDB
from plume.errors import UsageError
from privacy.mutants import CHOOSING, GAUSSIAN, GEOMETRIC, LAPLACE, MUTANTS, query, unchecked

# The audit was merged with clipping and tight composition; until all of it was seen to pass again it runs with the slow tests.
pytestmark = pytest.mark.slow

FEW, MANY = 4_000, 20_000
SHAPES = {
    "Gaussian": GAUSSIAN,
    "Laplace": LAPLACE,
    "geometric": GEOMETRIC,
    "choosing": CHOOSING,
    "public": query(public_keys=["a"], budget=plume.Budget(1)),
    "many keys": query(keys=["page", "day"], max_keys_per_user=16, min_users=3, where="seconds > 3"),
}
# One of each layer, quickly found.
BY_DEFAULT = [
    "no second bounding",
    "Gaussian noise times 0.8",
    "no first bounding",
    "a seed used twice",
    "floating-point noise",
    "a limit chosen by raw counts",
]


def first_red(asked: plume.Query, trials: int) -> str | None:
    """What the audit finds first, if anything; it stops there."""
    found = findings(Trial(without_conditions(asked), DuckDB(threads=1), "plume"), trials)
    return next((finding.test for finding in found if not finding.passed), None)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in BY_DEFAULT else pytest.mark.slow) for name in MUTANTS]
)
def test_a_planted_bug_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(monkeypatch)
    MUTANTS[name].plant(monkeypatch)
    assert first_red(MUTANTS[name].query, MANY) is not None


def test_there_are_enough_planted_bugs() -> None:
    assert len(MUTANTS) >= 24


@pytest.mark.parametrize("shape", SHAPES)
def test_the_real_build_is_green(shape: str) -> None:
    assert first_red(SHAPES[shape], FEW) is None


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
@pytest.mark.parametrize("shape", SHAPES)
def test_two_hundred_audits_of_the_real_build_are_green(shape: str, number: int) -> None:
    del number
    assert first_red(SHAPES[shape], FEW) is None


def test_the_report_can_be_kept() -> None:
    report = plume.audit(SHAPES["public"], trials=FEW)
    kept = json.loads(report.to_json())
    assert report.passed
    assert kept["passed"] is True
    assert {finding["layer"] for finding in kept["findings"]} == {"A", "B", "C", "D"}
    assert str(report).endswith(f"all {len(report.findings)} tests passed")


@pytest.mark.parametrize("trials", [0, True, 3999, "many", 1e5])
def test_too_few_trials_are_refused(trials: Any) -> None:
    with pytest.raises(UsageError, match="trials is"):
        plume.audit(GAUSSIAN, trials=trials)


def test_what_is_no_query_is_refused() -> None:
    with pytest.raises(UsageError, match="the query is a str"):
        plume.audit("SELECT 1")
