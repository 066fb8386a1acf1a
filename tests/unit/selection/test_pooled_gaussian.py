"""Weights drawn from accounts: what is charged, what is left, and what a plan with them spends."""

import math
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import ConstantEntropy
from plume.calibration.calibrated_query import calibrate
from plume.ledger.price import EPSILONS, price_of
from plume.plan.analysis import costs
from plume.plan.expressions import Clamp, Column, PooledWeight
from plume.plan.nodes import Account, Size
from plume.plan.printing.account_sql import print_left
from plume.plan.printing.duckdb import DuckDBPrinter
from plume.plan.printing.expression_sql import print_expression
from plume.privacy.cost import GaussianCost, shares_spent, spend, total_mu
from plume.privacy.gaussian import noise_for
from plume.privacy.pooled import ACCOUNT, Charge, left, weight
from plume.selection.pooled_gaussian import PooledGaussian
from plume.selection.weighted_gaussian import UNIT

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
QUERY = plume.Query(
    user="u",
    keys="k",
    measures=[plume.users()],
    max_keys_per_user=64,
    budget=BUDGET,
    selection="pooled_gaussian",
)
SEVERAL = [plume.users(), plume.count(3), plume.mean("v", 0, 10, max_per_key=2), plume.median("v", 0, 10)]


def strategy_of(query: plume.Query) -> PooledGaussian:
    (strategy,) = calibrate(query).rounds
    assert isinstance(strategy, PooledGaussian)
    return strategy


def test_the_threshold_beside_users_is_the_golden_one_on_the_grid() -> None:
    assert strategy_of(QUERY).threshold / UNIT == pytest.approx(17.62484, abs=1e-5)


def test_the_threshold_beside_sums_is_the_golden_one_on_the_grid() -> None:
    strategy = strategy_of(replace(QUERY, measures=[plume.sum("v", -1, 8)]))
    assert strategy.threshold / UNIT == pytest.approx(17.64471, abs=1e-5)


def test_callers_set_what_measures_take() -> None:
    strategy = strategy_of(replace(QUERY, shares={"selection": 1, "users": 1}))
    assert strategy.threshold / UNIT == pytest.approx(17.608, abs=6e-4)


def test_noise_of_measures_is_that_of_their_share() -> None:
    (part,) = calibrate(QUERY).parts
    assert part.standard_deviation == pytest.approx(noise_for(BUDGET.epsilon, BUDGET.delta) * 8 / math.sqrt(0.75))
    assert part.standard_deviation == pytest.approx(31.6, abs=0.05)


def test_noise_on_weights_is_that_of_the_whole_budget() -> None:
    assert strategy_of(QUERY).noise.scale == math.ceil(noise_for(BUDGET.epsilon, BUDGET.delta) * UNIT)


def test_what_is_charged_is_exactly_what_the_noise_that_is_drawn_lets_a_user_move() -> None:
    asked = calibrate(replace(QUERY, measures=SEVERAL))
    (strategy,) = asked.rounds
    moved = sum((part.moved for part in asked.parts), Fraction())
    assert sum(charge.share for charge in strategy.charges) == moved * strategy.noise.scale**2 / UNIT**2


def test_measures_of_one_size_are_charged_together() -> None:
    """A mean is two parts, a deviation three, and as many values count for both."""
    measures = [plume.mean("v", 0, 10), plume.stddev("v", 0, 10), plume.count(1, column="v")]
    assert len(strategy_of(replace(QUERY, measures=measures)).charges) == 1


@pytest.mark.parametrize(
    ("measure", "least"),
    [
        (plume.users(), 1),
        (plume.count(1), 1),
        (plume.count(8), 1),
        (plume.users(where="v > 1"), 0),
        (plume.count(8, where="v > 1"), 0),
        (plume.count(8, column="v"), 0),
        (plume.sum("v", 1, 8), 0),
        (plume.mean("v", 0, 8), 0),
        (plume.vector_sum(["v"], 8), 0),
        (plume.median("v", 0, 8), 0),
    ],
    ids=lambda value: getattr(value, "word", value),
)
def test_only_where_every_record_counts_each_key_takes_something(measure: Any, least: int) -> None:
    assert [charge.least for charge in strategy_of(replace(QUERY, measures=[measure])).charges] == [least]


def test_weights_are_exact_integers_in_duckdb() -> None:
    """Squares, and squares less one, of what a part can be are among them."""
    random = Random(5)  # noqa: S311 - which numbers are tried may be guessed
    cases = [(random.randint(0, ACCOUNT), random.randint(1, 10**6)) for _ in range(100_000)]
    cases += [(max(0, (root * root // 1024) + off), 1) for root in range(0, UNIT + 1, 97) for off in (-1, 0, 1)]
    table = {"left": [units for units, _ in cases], "keys": [keys for _, keys in cases]}
    printed = print_expression(PooledWeight(Column("left"), Clamp(Column("keys"), 1, 10**6)), DuckDBPrinter())
    found = duckdb.from_arrow(pa.table(table)).project(f"{printed} AS w").fetchnumpy()["w"]
    assert found.tolist() == [weight(units, keys) for units, keys in cases]


def test_a_user_of_whose_account_nothing_is_known_gives_no_weight() -> None:
    printed = print_expression(PooledWeight(Column("left"), Clamp(Column("keys"), 1, 64)), DuckDBPrinter())
    rows = duckdb.sql(f"SELECT {printed} FROM (SELECT CAST(NULL AS BIGINT) AS left, CAST(1 AS BIGINT) AS keys)")
    assert rows.fetchall() == [(0,)]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000, 2**27 + 1, 2**41])
def test_what_is_left_is_the_same_in_duckdb(size: int) -> None:
    charge = Charge(Fraction(3, 4) + Fraction(1, 2**50), whole=64, least=0)
    account = Account("left", ((Size((Column("x"),), 1), charge),))
    printed = print_left(account, DuckDBPrinter())
    rows = duckdb.sql(f"SELECT {printed} FROM (SELECT CAST({size} AS BIGINT) AS x)").fetchall()
    assert rows == [(left((charge,), (size**2,)),)]


def test_a_weight_for_expectations_is_the_least_that_a_user_with_that_number_of_keys_gives() -> None:
    strategy = strategy_of(replace(QUERY, measures=[plume.count(5)]))
    (charge,) = strategy.charges
    for keys in (1, 2, 64, 100):
        of_any = [weight(left((charge,), (squares,)), min(keys, 64)) for squares in range(keys, 25 * keys + 1, keys)]
        assert strategy.weight_of(keys) == min(of_any)


def test_a_plan_spends_no_more_than_its_budget_and_nearly_all_of_it() -> None:
    explained = plume.explain(replace(QUERY, measures=SEVERAL))
    assert BUDGET.delta * (1 - 1e-6) < explained.spent.delta <= BUDGET.delta
    assert 0.97 * BUDGET.epsilon < explained.recomputed.epsilon <= BUDGET.epsilon * (1 + 1e-3)


@pytest.mark.parametrize("limit", [1, 2, 3, 16, 100, 700])
@pytest.mark.parametrize("budget", [(0.1, 1e-9), (1, 1e-6), (8, 0.1)])
def test_plans_of_any_budget_and_limit_keep_within_it(limit: int, budget: tuple[float, float]) -> None:
    query = replace(QUERY, max_keys_per_user=limit, budget=plume.Budget(*budget))
    spent = plume.explain(query).spent
    assert spent.delta <= budget[1] * (1 + 1e-12)


def test_selection_and_measures_together_are_charged_to_a_ledger_once() -> None:
    explained = plume.explain(replace(QUERY, measures=SEVERAL))
    one = 1 / noise_for(BUDGET.epsilon, BUDGET.delta)
    assert total_mu(costs(explained.plan)) == pytest.approx(one, rel=1e-6)
    price = price_of(costs(explained.plan), explained.spent, BUDGET)
    assert price.mu / EPSILONS == pytest.approx(one, rel=1e-6)
    assert price.passing > 0


def test_noise_that_accounts_do_not_pay_for_is_priced_on_top() -> None:
    spending = costs(plume.explain(QUERY).plan)
    more = (*spending, GaussianCost("more", 0.1))
    assert total_mu(more) == pytest.approx(math.hypot(total_mu(spending), 0.1), rel=1e-9)
    assert spend(more, BUDGET).delta > 1.2 * BUDGET.delta


def test_shares_of_what_is_spent_add_up_to_one() -> None:
    spent = shares_spent(costs(plume.explain(QUERY).plan))
    assert spent == {"selection": pytest.approx(0.25, abs=1e-4), "users": pytest.approx(0.75, abs=1e-4)}


def test_an_explanation_says_what_an_account_is() -> None:
    text = str(plume.explain(QUERY))
    assert "each user has one account for selection and measures; measures take at most 75 % of it" in text
    assert "selection: mu 0.292 together with what is below" in text


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_accounts_take_no_shuffle(pipeline: str) -> None:
    without = replace(QUERY, selection="weighted_gaussian")
    assert plume.explain(QUERY, pipeline=pipeline).shuffles == plume.explain(without, pipeline=pipeline).shuffles


def test_laplace_noise_beside_accounts_is_refused() -> None:
    with pytest.raises(plume.errors.MeasureError, match="needs Gaussian noise throughout"):
        replace(QUERY, noise="laplace")


def test_public_keys_need_no_account() -> None:
    assert calibrate(replace(QUERY, public_keys=["a"])).rounds == ()


def test_too_small_a_share_of_selection_is_refused() -> None:
    with pytest.raises(plume.errors.RangeError, match="give 'selection' a larger share"):
        calibrate(replace(QUERY, shares={"selection": 1e-6}))


def test_a_key_of_few_users_is_never_kept() -> None:
    strategy = replace(strategy_of(QUERY), threshold=-(2**60), min_users=3)
    assert strategy.left_out == 2
    assert strategy.keep(np.array([0, 1]), ConstantEntropy()).tolist() == [False, True]
