"""An audit asks with budgets that nobody should, and says nothing of them."""

import warnings

import plume
from plume.auditing.trial import Trial
from questions import ENGINE

LOUD = plume.Query(
    user="u",
    keys="k",
    measures=plume.count("auto"),
    max_keys_per_user=2,
    budget=plume.Budget(epsilon=80_000, delta=0.05),
)
ROWS = [(f"user {number}", "a", None) for number in range(20)]


def test_trials_give_no_warnings_where_warnings_are_errors() -> None:
    trial = Trial(LOUD, ENGINE, "plume")
    with warnings.catch_warnings():
        warnings.simplefilter("error", plume.PlumeWarning)
        assert trial.release(ROWS).keys == ("a",)
        assert trial.exact(ROWS).keys == ("a",)
        ((_, noised),) = trial.choose(LOUD.choices[0], "sizes_1", ROWS, times=1)
    assert noised.released.num_rows > 0
