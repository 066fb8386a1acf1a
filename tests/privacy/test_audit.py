"""The audit turns red on every planted bug and stays green on the real build."""

import json
from datetime import date
from typing import Any

import pytest

import plume
from plume.auditing.audit import findings
from plume.auditing.made_up_tables import without_conditions
from plume.auditing.trial import Trial
from plume.engines.engine import Engine
from plume.errors import UsageError
from privacy.choosing_mutants import CHOOSING, CHOOSING_MUTANTS
from privacy.mutants import GAUSSIAN, GEOMETRIC, LAPLACE, MUTANTS, POOLED, POOLED_TWICE, RELEASED, query, unchecked
from privacy.shared_noise_mutants import SHARED, SHARED_MUTANTS
from questions import ENGINE

FEW, MANY = 4_000, 20_000
PLANTED = CHOOSING_MUTANTS | MUTANTS | SHARED_MUTANTS
SHAPES = {
    "Gaussian": GAUSSIAN,
    "Laplace": LAPLACE,
    "geometric": GEOMETRIC,
    "pooled": POOLED,
    "pooled twice": POOLED_TWICE,
    "released": RELEASED,
    "released alone": query(measures=[plume.users()], selection="released_users", max_keys_per_user=1, min_users=3),
    "public": query(public_keys=["a"], budget=plume.Budget(1)),
    "shared": SHARED,
    "shared by many": query(
        measures=[plume.users()], public_keys=[f"p{one}" for one in range(60)], max_keys_per_user=60, noise="correlated"
    ),
    "users against Gaussian noise": query(selection="gaussian_threshold"),
    "two rounds": query(selection="two_round_weighted_gaussian", min_users=4),
    "hardly any noise": query(measures=[plume.users(), plume.count(2)], budget=plume.Budget(100, 1e-5)),
    "moments": query(
        measures=[plume.mean("seconds", 0, 60, max_per_key=2), plume.stddev("seconds", 0, 60), plume.users()]
    ),
    "tallies": query(measures=[plume.median("seconds", 0, 60), plume.histogram("seconds", [0, 10, 60], max_per_key=2)]),
    "vectors": query(
        measures=[plume.vector_sum(["x", "y"], 5), plume.count(2, where="x > 1")],
        noise="laplace",
        selection="laplace_threshold",
        max_keys_per_user=3,
    ),
    "dates": query(measures=[plume.mean("day", date(2020, 1, 1), date(2026, 1, 1))], public_keys=["a"]),
    "many keys": query(keys=["page", "day"], max_keys_per_user=16, min_users=3, where="seconds > 3"),
    "choosing": CHOOSING,
    "choosing bounds": query(measures=[plume.count("auto"), plume.sum("seconds", 0, "auto")]),
    "choosing all": query(
        measures=[plume.mean("seconds", 0, "auto"), plume.sum("seconds", "auto", "auto")], max_keys_per_user="auto"
    ),
}
# The cheapest are tried most often.
TIMES = {
    "Gaussian": 40,
    "Laplace": 40,
    "geometric": 40,
    "public": 24,
    "choosing": 4,
    "choosing bounds": 4,
    "choosing all": 2,
}
# One of each layer, quickly found.
BY_DEFAULT = [
    "no second bounding",
    "Gaussian noise times 0.8",
    "no first bounding",
    "a seed used twice",
    "floating-point noise",
    "accounts that are charged for some keys only",
    "released numbers of users with several keys",
    "shared noise of contributions of both signs",
    "a common draw for each batch",
]
# The same where it takes longer.
AT_LENGTH = ["a limit chosen by raw counts", "a released number of a second draw"]


def when(name: str) -> list[pytest.MarkDecorator]:
    if name in BY_DEFAULT:
        return []
    return [pytest.mark.engines if name in AT_LENGTH else pytest.mark.slow]


def first_red(asked: plume.Query, trials: int, engine: Engine = ENGINE) -> str | None:
    """What the audit finds first, if anything; it stops there."""
    found = findings(Trial(without_conditions(asked), engine, "plume"), trials)
    return next((finding.test for finding in found if not finding.passed), None)


@pytest.mark.parametrize("name", [pytest.param(name, marks=when(name)) for name in PLANTED])
def test_a_planted_bug_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(monkeypatch)
    PLANTED[name].plant(monkeypatch)
    assert first_red(PLANTED[name].query, MANY) is not None


def test_there_are_enough_planted_bugs() -> None:
    assert len(PLANTED) >= 24


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(GAUSSIAN, id="Gaussian"),
        pytest.param(POOLED, id="pooled"),
        pytest.param(SHARED, id="shared", marks=pytest.mark.engines),
        pytest.param(RELEASED, id="released", marks=pytest.mark.engines),
    ],
)
def test_the_real_build_is_green(asked: plume.Query) -> None:
    assert first_red(asked, FEW) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "number"), [(shape, number) for shape in SHAPES for number in range(TIMES.get(shape, 8))]
)
def test_two_hundred_audits_of_the_real_build_are_green(shape: str, number: int) -> None:
    """Some 44 tests each, of which one gives a false alarm with a chance of 2e-6 at most: one in 42 runs of all of them."""
    del number
    assert first_red(SHAPES[shape], FEW) is None


def test_there_are_two_hundred_audits_of_the_real_build() -> None:
    assert sum(TIMES.get(shape, 8) for shape in SHAPES) >= 200


def test_the_report_can_be_kept() -> None:
    report = plume.audit(SHAPES["public"], trials=FEW)
    kept = json.loads(report.to_json())
    assert report.passed
    assert kept["passed"] is True
    assert kept["query"].startswith(", ".join(measure.name for measure in SHAPES["public"].measures) + " per ")
    assert {finding["layer"] for finding in kept["findings"]} == {"A", "B", "C", "D"}
    assert str(report).endswith(f"all {len(report.findings)} tests passed")


@pytest.mark.parametrize("trials", [0, True, 3999, "many", 1e5])
def test_too_few_trials_are_refused(trials: Any) -> None:
    with pytest.raises(UsageError, match="trials is"):
        plume.audit(GAUSSIAN, trials=trials)


def test_what_is_no_query_is_refused() -> None:
    with pytest.raises(UsageError, match="the query is a str"):
        plume.audit("SELECT 1")


def test_more_keys_that_share_noise_than_an_audit_can_draw_for_are_refused() -> None:
    with pytest.raises(UsageError, match="public_keys holds 2001 keys that share noise"):
        plume.audit(query(measures=[plume.users()], public_keys=range(2001), max_keys_per_user=900, noise="correlated"))
