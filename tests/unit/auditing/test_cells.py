"""What the audit allows selection to spend is what selection spends, whatever measures are called."""

import pytest

import plume
from plume.auditing.cells import _of_selection
from plume.auditing.trial import Trial
from plume.engines.duckdb import DuckDB


def allowed(name: str, **changes: object) -> tuple[float, float]:
    asked = {
        "user": "u",
        "keys": "k",
        "measures": [plume.users(name=name)],
        "max_keys_per_user": 4,
        "budget": plume.Budget(1, 1e-5),
    }
    return _of_selection(Trial(plume.Query(**asked | changes), DuckDB(), "plume"))


@pytest.mark.parametrize(
    "selection", ["laplace_threshold", "truncated_geometric", "weighted_gaussian", "two_round_weighted_gaussian"]
)
def test_a_measure_whose_name_begins_like_selection_is_not_taken_for_it(selection: str) -> None:
    assert allowed("selections", selection=selection) == allowed("people", selection=selection)


def test_what_selection_may_spend_is_its_share_of_what_adds_up() -> None:
    epsilon, delta = allowed("people", selection="laplace_threshold", noise="laplace", composition="basic")
    assert epsilon == pytest.approx(0.5)
    assert 0.5e-5 < delta <= 1e-5
