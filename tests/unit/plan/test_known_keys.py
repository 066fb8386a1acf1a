"""The check of noise that keys share: right plans pass, and keys that are not known, too many, or changed both ways are seen."""

from dataclasses import replace

import pytest

import plume
from plume.calibration.calibrated_query import calibrate
from plume.errors import PlumeBug
from plume.pipelines.pipeline import PIPELINES, checked
from plume.plan.aggregates import Max, Sum
from plume.plan.expressions import Absolute, Clamp, Column, Expression, Literal, Shrink, Times
from plume.plan.known_keys import noisers_of_unknown_keys
from plume.plan.nodes import Append, Combine, Map, Node, Noise, Scan
from plume.plan.rereading import reread
from plume.plan.signs import BOTH, signs_of
from plume.planning import make_plan
from unit.plan.test_reach import rewrite

KEYS = [f"k{number}" for number in range(12)]
QUERY = plume.Query(
    user="person",
    keys="page",
    measures=[plume.users(), plume.sum("seconds", 0, 10)],
    max_keys_per_user=8,
    budget=plume.Budget(1, 1e-5),
    public_keys=KEYS,
    noise="correlated",
)


def plan(pipeline: str = "plume") -> Noise:
    return PIPELINES[pipeline](calibrate(QUERY))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_plans_of_queries_pass(pipeline: str) -> None:
    assert noisers_of_unknown_keys(plan(pipeline)) == ()
    assert noisers_of_unknown_keys(reread((plan(pipeline),))) == ()


def of_column(change: object) -> object:
    """Change the expression of the sum in a step."""

    def changed(node: Map) -> Map:
        listed = [(name, change(one) if name == "measure_2_total" else one) for name, one in node.expressions]
        return replace(node, expressions=tuple(listed))

    return changed


def largest(node: Combine) -> Combine:
    aggregates = [(name, Max(one.of) if name == "measure_2_total" else one) for name, one in node.aggregates]
    return replace(node, aggregates=tuple(aggregates))


def marks_are_added(node: Combine) -> Combine:
    return replace(node, aggregates=tuple((name, Sum(one.of)) for name, one in node.aggregates))


def with_data_as_keys(node: Append) -> Append:
    """Every key that somebody has counts as listed."""
    first, *others = node.sources
    listed = tuple((name, Literal(1) if name == "selected" else one) for name, one in first.expressions)
    return replace(node, sources=(replace(first, expressions=listed), *others))


BROKEN = {
    "keys that are not public": ("selected_keys", lambda node: replace(node, public=False)),
    "keys of which nobody knows how many there are": ("selected_keys", lambda node: replace(node, rows=None)),
    "more keys than noise is made for": ("selected_keys", lambda node: replace(node, rows=len(KEYS) + 1)),
    "rows of other keys": ("exact", lambda node: replace(node, where=None)),
    "keys of the data among the listed ones": ("with_missing_keys", with_data_as_keys),
    "marks that are added up": ("aggregates", marks_are_added),
    "contributions below 0 as well": ("uncut_contributions", of_column(lambda _: Clamp(Column("x"), -1, 1))),
    "contributions of other signs in another step": (
        "safe_contributions",
        of_column(lambda _: Clamp(Column("x"), -1, 0)),
    ),
    "a factor below 0 in one step": ("uncut_contributions", of_column(lambda one: Times(one, -1))),
    "contributions that nothing bounds": ("safe_contributions", of_column(lambda _: Column("factor_1"))),
    "an aggregate that is no sum": ("aggregates", largest),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_plan_is_seen(broken: str) -> None:
    step, change = BROKEN[broken]
    assert noisers_of_unknown_keys(rewrite(plan(), step, change)) == ("release",)


def test_a_plan_that_is_seen_to_be_broken_is_not_run() -> None:
    planned = make_plan(QUERY)
    stages = tuple(rewrite(stage, "selected_keys", lambda node: replace(node, rows=13)) for stage in planned.plan)
    assert checked(planned) is planned
    with pytest.raises(PlumeBug, match="something noise does not cover"):
        checked(replace(planned, plan=stages))


def test_noise_that_keys_do_not_share_asks_for_nothing() -> None:
    apart = PIPELINES["plume"](calibrate(replace(QUERY, noise="gaussian")))
    assert noisers_of_unknown_keys(rewrite(apart, "selected_keys", lambda node: replace(node, rows=None))) == ()


SIGNS: dict[str, tuple[Expression, frozenset[int]]] = {
    "nothing": (Literal(0), frozenset()),
    "one": (Literal(1), frozenset({1})),
    "minus one": (Literal(-1), frozenset({-1})),
    "a truth": (Literal(value=True), BOTH),
    "a count": (Clamp(Column("x"), 0, 3), frozenset({1})),
    "a total above 0": (Clamp(Column("x"), 2, 3), frozenset({1})),
    "a total below 0": (Clamp(Column("x"), -3, -2), frozenset({-1})),
    "a total across 0": (Clamp(Column("x"), -3, 2), BOTH),
    "a clipped total": (Shrink(Clamp(Column("x"), 0, 3), Column("factor")), frozenset({1})),
    "a total that is turned round": (Times(Clamp(Column("x"), 0, 3), -2), frozenset({-1})),
    "what is not understood": (Absolute(Column("x")), BOTH),
    "a column of nothing": (Column("x"), BOTH),
}


@pytest.mark.parametrize("name", SIGNS)
def test_signs_are_read_off_bounds(name: str) -> None:
    expression, signs = SIGNS[name]
    assert signs_of(expression) == signs


def test_columns_are_followed_to_their_bounds() -> None:
    rows: Node = Map("rows", Scan("input", ("x",), public=False), (("total", Clamp(Column("x"), 0, 3)),))
    assert signs_of(Column("total"), rows) == frozenset({1})
    assert signs_of(Column("x"), rows) == BOTH
