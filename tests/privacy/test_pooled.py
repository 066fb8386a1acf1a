"""Accounts hold for any two neighbours: what a user moves in weights and in measures together is never more than noise pays for.

As in `test_neighbours`, each pair has its own users and keys, so one run holds them all.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import plume
from exact import exact_steps
from plume import query as query_module
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.engines.engine import Engine
from plume.errors import BudgetExceeded, PlumeBug
from plume.pipelines import pipeline as pipeline_module
from plume.pipelines import steps
from plume.plan.analysis import steps as steps_of
from plume.plan.nodes import Account, Clip
from plume.plan.printing import account_sql
from plume.planning import make_plan
from plume.privacy.pooled import ACCOUNT, STEPS, Charge
from plume.selection import pooled_gaussian as pooled_module
from plume.selection.pooled_gaussian import LEFT, PooledGaussian
from plume.selection.weighted_gaussian import UNIT
from privacy.mutants import unchecked
from privacy.test_neighbours import EVERYBODY, LIMIT, SELECTED, WEIGHTED, WITHOUT, changes, changes_of

PIPELINES = ["naive", "runtime_optimized", "plume"]
POOLED = replace(WEIGHTED, selection="pooled_gaussian")
SIMPLE = replace(POOLED, measures=[plume.users(), plume.count(2), plume.sum("value", -8, 8)])
WORST = 2000
pytestmark = pytest.mark.large


def worst_users() -> tuple[pa.Table, pa.Table, pa.Table]:
    """Users with up to five times as many keys as the limit and nothing but the largest, or the smallest, rows; all keys are selected.

    Of some keys only the last ones are selected, which the first bounding may have cut.
    """
    rows, selected = [], []
    for pair in range(WORST):
        keys, records = 1 + pair % (5 * LIMIT), (1, 3)[pair // (5 * LIMIT) % 2]
        value = (1e9, -1e9, 0.001, None)[pair % 4]
        names = [f"{pair}/{key}" for key in range(keys)]
        rows += [(f"{pair}/0", name, value, 1e9) for name in names for _ in range(records)]
        rows += [(f"{pair}/1", name, 1.0, 1.0) for name in names[::2]]
        selected += names[pair % 3 and keys // 2 :]
    without = [row for row in rows if not row[0].endswith("/0")]
    columns = ["person", "key", "value", "other"]
    tables = [pa.table(list(zip(*listed, strict=True)), names=columns) for listed in (without, rows)]
    return tables[0], tables[1], pa.table({"key_1": selected})


TABLES = {"random": (WITHOUT, EVERYBODY, SELECTED), "worst": worst_users()}


def moved(
    query: plume.Query, tables: tuple[pa.Table, pa.Table, pa.Table], engine: Engine, pipeline: str
) -> dict[str, tuple[int, Fraction, int]]:
    """Of each pair: by what its user moves weights, squared; by what measures, as a share of the account; and what is left of it."""
    without, everybody, selected = tables
    names = ["by_user", "keyed_weights", "exact"]
    given: dict[str, Any] = {"engine": engine, "pipeline": pipeline, "prescribed": {"selected_keys": selected}}
    before, after = (exact_steps(query, content, names, **given) for content in (without, everybody))
    calibrated = make_plan(query, pipeline).calibrated
    of_weights = changes(before["keyed_weights"], after["keyed_weights"], "weight")
    of_parts = [(part, changes_of(part, before["exact"], after["exact"])) for part in calibrated.parts]
    whole = _whole(calibrated)
    users = dict(zip(after["by_user"]["user_id"].to_pylist(), after["by_user"][LEFT].to_pylist(), strict=True))
    found = {}
    for user, left in users.items():
        pair, number = user.split("/")
        if number == "0":
            squares = (
                Fraction(sum(x**2 for change in changed.get(pair, []) for x in change)) / part.noise.scale**2
                for part, changed in of_parts
            )
            found[pair] = (sum(x**2 for x in of_weights.get(pair, [])), sum(squares, Fraction()) / whole, left)
    return found


def _whole(calibrated: CalibratedQuery) -> Fraction:
    """What an account holds, in squares of mu, of all rounds together."""
    return sum((UNIT**2 / strategy.noise.scale**2 for strategy in calibrated.rounds), Fraction())


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_no_user_moves_weights_and_measures_by_more_than_an_account(engine: Engine, pipeline: str, rows: str) -> None:
    """Exactly, in fractions: measures within what is taken, weights within what is left; and some users use nearly all of both."""
    found = moved(SIMPLE, TABLES[rows], engine, pipeline)
    assert len(found) == WORST
    for weights, measures, left in found.values():
        assert weights <= STEPS * left
        assert measures * ACCOUNT <= ACCOUNT - left
    assert max(weights / UNIT**2 + measures for weights, measures, _ in found.values()) > 0.999
    assert min(weights / UNIT**2 for weights, _, _ in found.values()) < 0.6


@pytest.mark.parametrize("pipeline", ["plume", pytest.param("runtime_optimized", marks=pytest.mark.engines)])
def test_no_user_moves_any_measure_by_more_than_an_account(engine: Engine, pipeline: str) -> None:
    found = moved(POOLED, TABLES["random"], engine, pipeline)
    assert all(measures * ACCOUNT <= ACCOUNT - left for _, measures, left in found.values())
    assert all(weights <= STEPS * left for weights, _, left in found.values())
    assert max(weights / UNIT**2 + measures for weights, measures, _ in found.values()) > 0.9


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_no_user_moves_more_than_an_account_where_selection_counts_fewer_keys_than_measures(
    engine: Engine, pipeline: str, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooled_module, "_KEYS_WHEN_SELECTING", 2)
    found = moved(SIMPLE, TABLES[rows], engine, pipeline)
    assert all(measures * ACCOUNT <= ACCOUNT - left for _, measures, left in found.values())
    assert all(weights <= STEPS * left for weights, _, left in found.values())


def moved_again(query: plume.Query, tables: tuple[pa.Table, ...], engine: Engine, pipeline: str) -> dict[str, Any]:
    """Of each pair: by what its user moves weights of the second round, squared, and what is left of the account by all rows."""
    without, everybody, selected = tables
    names = ["by_user", "left_keyed_weights"]
    given: dict[str, Any] = {"engine": engine, "pipeline": pipeline, "prescribed": {"selected_first": selected}}
    before, after = (exact_steps(query, content, names, **given) for content in (without, everybody))
    of_weights = changes(before["left_keyed_weights"], after["left_keyed_weights"], "weight")
    by_user = after["by_user"]
    lefts = dict(zip(by_user["user_id"].to_pylist(), by_user[LEFT].to_pylist(), strict=True))
    return {
        pair: (sum(x**2 for x in of_weights.get(pair, [])), left)
        for (pair, number), left in ((user.split("/"), left) for user, left in lefts.items())
        if number == "0"
    }


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_weights_of_the_second_round_move_by_no_more_than_all_rows_leave(
    engine: Engine, pipeline: str, rows: str
) -> None:
    """Half of the keys of each user are selected in the first round; measures may read them all."""
    twice = replace(SIMPLE, selection="two_round_pooled_gaussian")
    found = moved_again(twice, TABLES[rows], engine, pipeline)
    assert len(found) == WORST
    assert all(weights <= STEPS * left for weights, left in found.values())
    assert max(weights / left for weights, left in found.values()) > 0.999 * STEPS
    assert min(left for _, left in found.values()) < 0.6 * ACCOUNT


def charged_for_what_is_left(patch: pytest.MonkeyPatch) -> None:
    """A near miss: in the second round accounts are charged for the keys alone that the first one left."""
    original = steps._select_again

    def wrong(calibrated: CalibratedQuery, by_user: Any, selected: Any) -> Any:
        made = original(calibrated, by_user, selected)
        (counted,) = (one for one in steps_of((made,)) if one.name == "left_by_user")
        few = steps.DropSelected("left_combined", by_user.source, selected, calibrated.keys)
        again = replace(by_user, name="left_by_user", source=few)
        return _with(made, counted, again)

    patch.setattr(steps, "_select_again", wrong)


def _with(node: Any, old: Any, new: Any) -> Any:
    """Put another step in place of one."""
    if node == old:
        return new
    if isinstance(node, steps.Append):
        return replace(node, sources=tuple(_with(source, old, new) for source in node.sources))
    return replace(node, source=_with(node.source, old, new)) if hasattr(node, "source") else node


def test_a_second_round_charged_for_what_is_left_is_refused_and_would_be_seen(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = replace(SIMPLE, selection="two_round_pooled_gaussian")
    charged_for_what_is_left(monkeypatch)
    with pytest.raises(PlumeBug, match="noise does not cover"):
        make_plan(twice)
    unchecked(monkeypatch)
    monkeypatch.setattr("exact.checked", lambda planned: planned)
    found = moved_again(twice, TABLES["worst"], engine, "plume")
    assert any(weights > STEPS * left for weights, left in found.values())


def test_in_two_rounds_too_no_user_moves_measures_by_more_than_is_taken(engine: Engine) -> None:
    twice = replace(SIMPLE, selection="two_round_pooled_gaussian")
    found = moved(twice, TABLES["worst"], engine, "plume")
    assert all(measures * ACCOUNT <= ACCOUNT - left for _, measures, left in found.values())
    assert all(weights <= STEPS * left for weights, _, left in found.values())
    assert max(weights / UNIT**2 + measures for weights, measures, _ in found.values()) > 0.999


@pytest.mark.parametrize("min_users", [2, 3])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_weights_without_the_largest_move_by_no_more_than_what_is_left(
    engine: Engine, pipeline: str, min_users: int
) -> None:
    found = moved(replace(SIMPLE, min_users=min_users), TABLES["random"], engine, pipeline)
    assert all(weights <= STEPS * left for weights, _, left in found.values())


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_an_account_is_charged_for_keys_that_the_first_bounding_cuts(engine: Engine, pipeline: str) -> None:
    """Users above the limit fill it with the smallest rows too: every key of theirs counts, kept or not."""
    counts = replace(SIMPLE, measures=[plume.count(3)], max_keys_per_user=4)
    rows = [("many/0", f"many/{key}", 1.0, 1.0) for key in range(36)] + [("few/0", "few/1", 1.0, 1.0)]
    content = pa.table(list(zip(*rows, strict=True)), names=["person", "key", "value", "other"])
    by_user = exact_steps(counts, content, ["by_user"], engine=engine, pipeline=pipeline)["by_user"]
    left = dict(zip(by_user["user_id"].to_pylist(), by_user[LEFT].to_pylist(), strict=True))
    (charge,) = make_plan(counts, pipeline).calibrated.rounds[0].charges
    assert left == {"many/0": ACCOUNT - charge.most, "few/0": ACCOUNT - charge.taken(1)}


def rounded_down(patch: pytest.MonkeyPatch) -> None:
    """What is taken is cut down, in place of rounded up."""
    patch.setattr(
        account_sql,
        "_print_taken",
        lambda squares, charge, _: f"CAST(floor(least({squares} * {charge.rate:.17e}, {charge.most}e0)) AS BIGINT)",
    )


def charged_after_bounding(patch: pytest.MonkeyPatch) -> None:
    """A near miss: an account is charged for the keys that are left after the first bounding."""
    original = steps._counted_by_user

    def wrong(calibrated: Any, source: Any, **given: Any) -> Any:
        counted = original(calibrated, source, **given)
        few = steps.bound(calibrated, counted, name=f"{counted.name}_early")
        kept = steps.Map(f"{counted.name}_kept", few, steps.as_they_are(counted.source))
        again = steps.Combine(
            f"{counted.name}_combined_again",
            kept,
            counted.source.by,
            tuple((name, steps.Max(steps.Column(name))) for name, _ in counted.source.aggregates),
            gather=counted.source.gather,
        )
        return replace(counted, name=f"{counted.name}_again", source=again)

    patch.setattr(steps, "_counted_by_user", wrong)


def with_rounds(change: Callable[[PooledGaussian], PooledGaussian]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        original = pipeline_module.calibrate
        patch.setattr(
            pipeline_module,
            "calibrate",
            lambda query: replace(made := original(query), rounds=tuple(map(change, made.rounds))),
        )

    return plant


def of_fewer_keys(strategy: PooledGaussian) -> PooledGaussian:
    """A near miss: the threshold for eight keys, where more are admitted."""
    epsilon, delta = BIG.budget.epsilon, BIG.budget.delta
    threshold = pooled_module.lowest_threshold(1 / strategy.cost.mu, 8, strategy.charges, epsilon, delta)
    return replace(strategy, threshold=pooled_module.on_grid(threshold, unit=pooled_module.UNIT))


def of_full_users(strategy: PooledGaussian) -> PooledGaussian:
    """A near miss: the threshold for users who fill all measures."""
    full = tuple((size, replace(charge, whole=1, least=1)) for size, charge in strategy.pool.charges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooled_module, "_charge", lambda *_, **__: full[0][1])
        return replace(strategy, threshold=_made(BIG).threshold)


BIG = replace(
    SIMPLE,
    measures=[plume.sum("value", -8, 8)],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.0986122886681098, delta=1e-5),
)


def _made(query: plume.Query) -> PooledGaussian:
    (strategy,) = calibrate(query).rounds
    return strategy


@pytest.mark.parametrize("near_miss", [of_fewer_keys, of_full_users], ids=lambda change: change.__name__)
def test_a_threshold_for_other_users_is_refused(near_miss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make_plan(BIG)
    with_rounds(near_miss)(monkeypatch)
    with pytest.raises(BudgetExceeded):
        make_plan(BIG)


def test_an_account_charged_after_bounding_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    charged_after_bounding(monkeypatch)
    with pytest.raises(PlumeBug, match="noise does not cover"):
        make_plan(SIMPLE)


def test_an_account_charged_after_bounding_would_be_seen_by_the_test_above(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = replace(SIMPLE, measures=[plume.count(3)], max_keys_per_user=2)
    rows = [("0/0", f"0/{key}", 1.0, 1.0) for key in range(8)] + [("0/1", "0/0", 1.0, 1.0)]
    columns = ["person", "key", "value", "other"]
    tables = [pa.table(list(zip(*listed, strict=True)), names=columns) for listed in (rows[-1:], rows)]
    selected = pa.table({"key_1": [f"0/{key}" for key in range(8)]})
    for planted in (False, True):
        with monkeypatch.context() as patch:
            if planted:
                unchecked(patch)
                patch.setattr("exact.checked", lambda planned: planned)
                _charge_bounded_rows(patch)
            ((_, measures, left),) = moved(counts, (*tables, selected), engine, "plume").values()
            assert (measures * ACCOUNT > ACCOUNT - left) == planted


def _charge_bounded_rows(patch: pytest.MonkeyPatch) -> None:
    """Charge as if the user had no more keys than the limit."""
    original = Charge.rate.fget
    patch.setattr(Charge, "rate", property(lambda self: original(self) / 4))


def test_an_account_that_is_rounded_down_would_be_seen_by_the_test_above(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded_down(monkeypatch)
    found = moved(SIMPLE, TABLES["random"], engine, "plume")
    assert any(measures * ACCOUNT > ACCOUNT - left for _, measures, left in found.values())


@pytest.mark.parametrize("change", [{"max_keys_per_user": "auto"}, {"measures": [plume.count("auto")]}], ids=str)
def test_numbers_that_are_chosen_later_are_refused(change: dict[str, Any]) -> None:
    """A near miss: to charge accounts for other numbers than those that noise is scaled for."""
    with pytest.raises(plume.errors.BoundError, match="needs every number to be given"):
        replace(SIMPLE, **change)


def test_charges_for_another_limit_than_the_chosen_one_are_refused_by_their_price_and_by_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same near miss, where nothing refuses the query: accounts are charged for 64 keys, whatever is chosen later."""
    monkeypatch.setattr(query_module, "_refuse_what_accounts_are_not_charged_for", lambda _: None)
    chosen_later = replace(SIMPLE, max_keys_per_user="auto")
    with pytest.raises(BudgetExceeded):
        make_plan(chosen_later)
    monkeypatch.setattr(pipeline_module, "refuse_overspending", lambda *_: None)
    with pytest.raises(PlumeBug, match="noise does not cover"):
        make_plan(chosen_later)


def test_an_account_is_of_the_sizes_that_are_clipped() -> None:
    plan = make_plan(POOLED).plan
    (clipped,) = (step for step in steps_of(plan) if isinstance(step, Clip))
    account: Account = make_plan(POOLED).calibrated.rounds[0].account
    assert {size for _, size in clipped.factors} == {size for size, _ in account.charges}
