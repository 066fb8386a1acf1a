"""Queries whose keys are selected by a released number: what is refused, how the budget is shared out, what is charged and said."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.calibration.calibrated_query import calibrate
from plume.errors import BoundError, BudgetError, MeasureError, PlumeError, PublicKeysError, UsageError
from plume.noise.laplace import DiscreteLaplace
from plume.planning import make_plan

BUDGET = plume.Budget(math.log(3), 1e-5)


def query(**changes: Any) -> plume.Query:
    asked = {
        "user": "person",
        "keys": "page",
        "measures": [plume.users()],
        "max_keys_per_user": 1,
        "budget": BUDGET,
        "selection": "released_users",
    }
    return plume.Query(**asked | changes)


REFUSED: dict[str, tuple[dict[str, Any], type[PlumeError], str]] = {
    "several keys": (
        {"max_keys_per_user": 2},
        BoundError,
        "max_keys_per_user is 2 beside selection = 'released_users'",
    ),
    "a chosen limit": ({"max_keys_per_user": "auto"}, BoundError, "max_keys_per_user is 'auto' beside selection"),
    "no users()": ({"measures": [plume.count(2)]}, MeasureError, r"no measure is users\(\) beside"),
    "users() of some records only": (
        {"measures": [plume.users(where="seconds > 3")]},
        MeasureError,
        r"add users\(\) without a condition",
    ),
    "public keys": ({"public_keys": ["a"]}, PublicKeysError, "there are no keys to select"),
    "a total": ({"keys": []}, PublicKeysError, "keys is empty"),
    "Gaussian noise": ({"noise": "gaussian"}, MeasureError, "noise is 'gaussian' beside selection = 'released_users'"),
    "a chosen bound": (
        {"measures": [plume.users(), plume.sum("seconds", 0, "auto")]},
        BoundError,
        "needs Gaussian noise throughout",
    ),
    "no delta": ({"budget": plume.Budget(1)}, BudgetError, "delta is 0"),
    "a share of users()": ({"shares": {"users": 2}}, BudgetError, "the parts that spend are selection"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_proof_does_not_cover_is_refused(name: str) -> None:
    changes, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        query(**changes)


def test_runtime_optimized_is_refused_beside_other_measures() -> None:
    with pytest.raises(UsageError, match="use pipeline='plume'"):
        plume.explain(query(measures=[plume.users(), plume.count(2)]), pipeline="runtime_optimized")


@pytest.mark.parametrize("pipeline", ["naive", "plume", "runtime_optimized"])
def test_users_alone_spend_all_of_epsilon_in_one_draw(pipeline: str) -> None:
    planned = make_plan(query(), pipeline)
    (stage,) = planned.plan
    (cost,) = stage.noiser.costs
    assert cost.epsilon == BUDGET.exact_epsilon
    assert cost.delta == pytest.approx(4.234e-6, rel=1e-3)


def test_records_of_which_each_user_counts_one_are_the_same_number() -> None:
    planned = make_plan(query(measures=[plume.count(1), plume.users()]))
    assert len(planned.plan) == 1
    assert planned.plan[0].noiser.writes == ("key_1", "measure_1", "measure_2")
    assert plume.explain(query(measures=[plume.count(1)])).spent.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-12)


@pytest.mark.parametrize("composition", ["tight", "basic"])
@pytest.mark.parametrize("noise", ["auto", "laplace"])
def test_the_noise_is_discrete_laplace_whatever_is_left_open(composition: str, noise: str) -> None:
    calibrated = calibrate(query(composition=composition, noise=noise))
    assert [part.noise for part in calibrated.parts] == [DiscreteLaplace(1 / BUDGET.exact_epsilon)]
    assert calibrated.rounds[0].noise == calibrated.parts[0].noise


def test_other_measures_get_half_of_epsilon_and_the_threshold_all_of_delta() -> None:
    explanation = plume.explain(query(measures=[plume.users(), plume.count(2), plume.sum("seconds", 0, 60)]))
    assert explanation.selection[0]["threshold"] == 22
    assert explanation.spent.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-12)
    assert 0.5e-5 < explanation.spent.delta <= 1e-5
    spent = {cost["part"]: cost["epsilon"] for cost in explanation.facts()["spent"]}
    assert spent == pytest.approx(
        {
            "selection and number of users": BUDGET.epsilon / 2,
            "count": BUDGET.epsilon / 4,
            "seconds_sum": BUDGET.epsilon / 4,
        }
    )


def test_shares_weigh_selection_and_users_as_one_part() -> None:
    calibrated = calibrate(query(measures=[plume.count(2), plume.users()], shares={"selection": 3, "count": 1}))
    by_name = {part.measures: part.noise.scale for part in calibrated.parts}
    assert by_name["users",] == 1 / (BUDGET.exact_epsilon * Fraction(3, 4))
    assert by_name["count",] == 2 / (BUDGET.exact_epsilon * Fraction(1, 4))
    assert calibrated.rounds[0].noise.scale == by_name["users",]


def test_recomposition_finds_no_more_than_is_spent() -> None:
    explanation = plume.explain(query(measures=[plume.users(), plume.count(2)]))
    assert explanation.recomputed.epsilon <= BUDGET.epsilon * 1.001


def test_it_is_said_that_nothing_is_drawn_twice() -> None:
    text = str(plume.explain(query()))
    assert "plume: 2 shuffles" in text
    assert "the number that is compared is the one that is released" in text
    assert "selection and number of users: epsilon 1.099, delta 4.23e-06" in text


def crowds(**users: int) -> pa.Table:
    """Keys with so many users each, of whom every one has two rows."""
    rows = [(f"{key}/{number}", key) for key, crowd in users.items() for number in range(crowd)]
    return pa.table(list(zip(*(rows * 2), strict=True)), names=["person", "page"])


def test_no_released_number_is_below_the_threshold() -> None:
    """With 500 keys of 8 to 12 users hundreds are shown; each has a chance of at least 1 % to be."""
    content = crowds(**{f"k{number}": 8 + number % 5 for number in range(500)})
    release = plume.run(query(), content)
    assert len(release) > 20
    assert min(row["users"] for row in release) >= 12


def test_min_users_is_never_undercut() -> None:
    content = crowds(few=29, many=200)
    release = plume.run(query(min_users=30), content)
    assert [row["page"] for row in release] == ["many"]


def test_intervals_of_shown_numbers_are_those_of_the_strategy_under_each_name() -> None:
    content = crowds(small=13, large=500)
    asked = query(measures=[plume.users(), plume.users(name="again")], min_users=2, budget=plume.Budget(3, 1e-5))
    release = plume.run(asked, content)
    rows = release.intervals(0.9).to_arrow()
    low, high = release.explanation.calibrated.releasing.sides(rows["users"].to_numpy(), 0.9)
    assert rows["users"].equals(rows["again"])
    for name in ("users", "again"):
        assert rows[f"{name}_low"].to_pylist() == low.tolist()
        assert rows[f"{name}_high"].to_pylist() == high.tolist()


def test_intervals_of_other_measures_are_as_everywhere() -> None:
    asked = query(measures=[plume.users(), plume.count(2)])
    release = plume.run(asked, crowds(large=500))
    assert set(release.widths(0.95)) == {"count"}
    assert set(release.sides(0.95)) == {"users", "count"}
    assert "users ± 5 and more near the threshold, count ±" in release.noise_in_words


def test_what_to_expect_is_said_of_the_threshold() -> None:
    (prospect,) = plume.expect(query(), users=[1, 11, 12, 20]).prospects
    assert prospect.users_for_even_chance == 12
    assert prospect.selection == "released users"
    assert [chance for _, chance in prospect.chances] == pytest.approx([4.234e-6, 0.25, 0.75, 1.0], rel=1e-3)
    assert prospect.noise[0].standard_deviation == pytest.approx(1.2247, abs=1e-3)


def test_an_empty_release_says_what_would_help() -> None:
    asked = query(measures=[plume.count(2), plume.users()], min_users=4)
    text = str(plume.run(asked, crowds(few=3)))
    assert "with users as its only measure" in text
    assert "with min_users = 1" in text


def test_tuning_tries_it_with_one_key_and_other_selections_with_other_limits_too() -> None:
    tuning = plume.tune(query(), crowds(a=50, b=30, c=9), limits=[2], selections=["auto"])
    assert {(row.selection, row.max_keys_per_user) for row in tuning.tried} == {
        ("released_users", 1),
        ("auto", 1),
        ("auto", 2),
    }


def test_tuning_of_a_query_with_more_keys_tries_it_with_one() -> None:
    asked = query(selection="auto", max_keys_per_user=2)
    tuning = plume.tune(asked, crowds(a=50, b=30, c=9), limits=[2], selections=["released_users"])
    assert ("released_users", 1) in {(row.selection, row.max_keys_per_user) for row in tuning.tried}


def test_the_epsilon_that_is_needed_is_found() -> None:
    assert plume.need(query(), users=50, error=0.1).query.budget.epsilon == pytest.approx(0.5383, abs=1e-3)


def test_statements_ask_for_it_by_its_name() -> None:
    statement = (
        'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = "person", epsilon = 1, delta = 1e-5, '
        "group_selection_strategy = released_users) page, COUNT(DISTINCT person) AS n FROM visits GROUP BY page"
    )
    release = plume.sql(statement, tables={"visits": crowds(large=500)})
    assert release.explanation.selection[0]["strategy"] == "released users"
    assert [row["page"] for row in release] == ["large"]


def test_a_ledger_charges_one_epsilon_and_gives_the_same_numbers_again(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "ledger.db", datasets={"visits": plume.Budget(2, 1e-4)})
    content, asked = crowds(large=500, small=14), query(measures=[plume.users(), plume.count(2)])
    first, second = (
        plume.run(asked, content, ledger=ledger, dataset="visits", release_id="one").intervals() for _ in range(2)
    )
    assert first.rows.equals(second.rows)
    spent = ledger.dataset("visits").spent
    assert spent.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-8)
    assert 0.5e-5 < spent.delta <= 1e-5
