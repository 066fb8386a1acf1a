"""Queries whose keys share noise: what is refused, what is spent, and what is said."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.calibration.calibrated_query import calibrate
from plume.errors import BoundError, BudgetError, MeasureError, PlumeBug, PlumeError, PublicKeysError, UsageError
from plume.noise.correlated import CorrelatedGaussian
from plume.pipelines.pipeline import PIPELINES

KEYS = [f"k{number:02}" for number in range(24)]
BUDGET = plume.Budget(1.0, 1e-6)
TABLE = pa.table({"person": [1, 1, 2, None], "page": ["k01", "k02", "k03", "k03"], "seconds": [1, 2, 3, 4]})


def query(**changes: Any) -> plume.Query:
    asked = {
        "user": "person",
        "keys": "page",
        "measures": [plume.users()],
        "max_keys_per_user": 24,
        "budget": BUDGET,
        "public_keys": KEYS,
        "noise": "correlated",
    }
    return plume.Query(**asked | changes)


REFUSED: dict[str, tuple[dict[str, Any], type[PlumeError], str]] = {
    "keys from data": ({"public_keys": None}, PublicKeysError, "public_keys is missing beside noise = 'correlated'"),
    "a file of keys": ({"public_keys": Path("pages.csv")}, PublicKeysError, "public_keys is a file beside"),
    "one key": ({"public_keys": ["a"]}, PublicKeysError, "public_keys holds 1 key beside"),
    "a total": ({"public_keys": None, "keys": []}, PublicKeysError, "keys is empty beside"),
    "a selection": ({"selection": "weighted_gaussian"}, PublicKeysError, "selection is 'weighted_gaussian' beside"),
    "no delta": ({"budget": plume.Budget(1)}, BudgetError, "delta is 0 beside noise = 'correlated'"),
    "epsilons that are added up": ({"composition": "basic"}, MeasureError, "composition is 'basic' beside"),
    "a chosen limit": ({"max_keys_per_user": "auto"}, BoundError, "max_keys_per_user is 'auto' beside"),
    "a chosen bound": (
        {"measures": [plume.sum("seconds", 0, "auto")]},
        BoundError,
        "seconds_sum: high_total is 'auto' beside",
    ),
    "a sum across 0": (
        {"measures": [plume.sum("seconds", -1, 10)]},
        MeasureError,
        "seconds_sum has contributions above 0 and below 0 beside",
    ),
    "a mean": ({"measures": [plume.mean("seconds", 0, 9)]}, MeasureError, "seconds_mean is made of several noised"),
    "a variance": ({"measures": [plume.variance("seconds", 0, 9)]}, MeasureError, "is made of several noised numbers"),
    "a deviation": ({"measures": [plume.stddev("seconds", 0, 9)]}, MeasureError, "is made of several noised numbers"),
    "a vector": ({"measures": [plume.vector_sum(["x", "y"], 3)]}, MeasureError, "is made of several noised numbers"),
    "a vector of one": ({"measures": [plume.vector_sum(["x"], 3)]}, MeasureError, "above 0 and below 0"),
    "quantiles": ({"measures": [plume.median("seconds", 0, 9)]}, MeasureError, "is made of several noised numbers"),
    "a histogram": (
        {"measures": [plume.histogram("seconds", [0, 1, 9])]},
        MeasureError,
        "is made of several noised numbers",
    ),
    "one signed measure of several": (
        {"measures": [plume.users(), plume.sum("seconds", -1, 1)]},
        MeasureError,
        "seconds_sum has contributions",
    ),
    "one key of each user": ({"max_keys_per_user": 1}, BoundError, "only 0.00% narrower"),
    "few of many keys": (
        {"max_keys_per_user": 2, "public_keys": list(range(1000))},
        BoundError,
        "max_keys_per_user is 2 and public_keys holds 1000 keys beside",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_proof_does_not_cover_and_what_does_not_help_is_refused(name: str) -> None:
    changes, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        query(**changes)


@pytest.mark.parametrize(
    "measure",
    [
        plume.users(where="seconds > 1"),
        plume.count(3),
        plume.count(3, column="seconds"),
        plume.sum("seconds", 0, 10),
        plume.sum("seconds", 2, 10),
        plume.sum("seconds", -10, 0),
        plume.sum("seconds", -10, -2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_contributions_in_one_direction_are_planned_and_released(measure: Any, pipeline: str) -> None:
    release = plume.run(query(measures=[measure]), TABLE, pipeline=pipeline)
    assert [noise.kind for noise in release.noise] == ["correlated Gaussian"]
    assert release.to_arrow()["page"].to_pylist() == KEYS


@pytest.mark.parametrize(
    ("keys", "limit", "most"),
    [(24, 24, 0.60206), (7, 7, 0.68898), (24, 8, 0.91716), (24, 14, 0.78781), (60, 60, 0.56455)],
)
def test_noise_is_narrower_than_that_of_draws_apart(keys: int, limit: int, most: float) -> None:
    asked = query(public_keys=KEYS[:keys] if keys <= 24 else list(range(keys)), max_keys_per_user=limit)
    (shared,), (apart,) = (plume.explain(one).noise for one in (asked, replace(asked, noise="gaussian")))
    assert shared.standard_deviation / apart.standard_deviation == pytest.approx(most, abs=1e-4)


@pytest.mark.parametrize("measures", [[plume.users()], [plume.users(), plume.count(5), plume.sum("seconds", 0, 3)]])
def test_all_of_the_budget_is_spent_and_no_more(measures: list[Any]) -> None:
    spent = plume.explain(query(measures=measures)).spent
    assert spent.epsilon == BUDGET.epsilon
    assert 0.999_999 * BUDGET.delta < spent.delta <= BUDGET.delta


def test_auto_never_takes_it() -> None:
    kinds = {noise.kind for noise in plume.explain(query(noise="auto")).noise}
    assert kinds.isdisjoint({CorrelatedGaussian.kind})


def test_parts_that_two_measures_share_are_noised_once() -> None:
    release = plume.run(query(measures=[plume.users(), plume.count(1)]), TABLE).to_arrow()
    assert release["users"] == release["count"]


def test_an_explanation_and_its_record_say_what_noise_it_is_and_that_totals_get_worse() -> None:
    explanation = plume.explain(query(budget=plume.Budget(math.log(3), 1e-5)))
    (noise,) = explanation.record()["noise"]
    assert "users: correlated Gaussian, standard deviation 10.1" in str(explanation)
    assert "the 24 keys share a part of it, so that totals over keys get worse" in str(explanation)
    assert noise["kind"] == "correlated Gaussian"
    # 32.0 against 24.0, in units of the noise of one user in one key.
    sigma = noise["standard_deviation"] / ((math.sqrt(24) + 1) / 2)
    assert noise["standard_deviation_of_total"] / sigma == pytest.approx(31.98, abs=0.01)
    assert f"noise = 'gaussian' has {24 * sigma:.4g}" in str(explanation)


def test_a_release_says_that_totals_are_noisier() -> None:
    assert "; keys share a part of it, so that totals over keys are noisier" in str(plume.run(query(), TABLE))
    assert "share a part" not in str(plume.run(query(noise="gaussian"), TABLE))


def test_noise_of_keys_that_share_nothing_says_nothing_of_totals() -> None:
    (noise,) = plume.explain(query(noise="gaussian")).record()["noise"]
    assert "standard_deviation_of_total" not in noise


def test_intervals_are_those_of_the_noise_of_one_key() -> None:
    release = plume.run(query(), TABLE)
    (noise,) = release.noise
    rows = release.intervals(0.95).to_arrow().to_pylist()
    widths = {row["users_high"] - row["users_low"] for row in rows}
    assert widths == {2 * math.ceil(1.959964 * noise.standard_deviation + 0.5)}


def test_what_to_expect_and_what_is_needed_know_it() -> None:
    (noise,) = plume.expect(query()).prospects[0].noise
    assert noise.kind == CorrelatedGaussian.kind
    needed = plume.need(query(), users=1000, absolute={"users": 20})
    assert needed.epsilon is not None
    assert needed.epsilon < plume.need(query(noise="gaussian"), users=1000, absolute={"users": 20}).epsilon


def test_tuning_refuses_public_keys_as_ever() -> None:
    with pytest.raises(UsageError, match="leave public_keys out"):
        plume.tune(query(), TABLE)


def test_a_ledger_charges_it_and_adds_it_up_with_others(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "visits.ledger", datasets={"visits": plume.Budget(2, 1e-5)})
    dataset = ledger.dataset("visits")
    plume.run(query(), TABLE, ledger=dataset, release_id="shared")
    plume.run(query(noise="gaussian"), TABLE, ledger=dataset, release_id="apart")
    assert BUDGET.epsilon < dataset.spent.epsilon < 2 * BUDGET.epsilon
    assert "correlated Gaussian" in str(plume.run(query(), TABLE, ledger=dataset, release_id="shared").explanation)
    ledger.verify()


def test_a_plan_for_fewer_keys_than_there_are_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plume.Query, "known_keys", property(lambda _: len(KEYS) - 1))
    with pytest.raises(PlumeBug, match="more or fewer public keys"):
        plume.run(query(), TABLE)


def test_parts_of_a_calibrated_query_share_noise_for_all_keys() -> None:
    (part,) = calibrate(query()).parts
    assert isinstance(part.noise, CorrelatedGaussian)
    assert part.noise.keys == len(KEYS)
