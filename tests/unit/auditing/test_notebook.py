"""What notebooks show of an audit, and that an audit gives no cautions about settings that are its own."""

import re
import warnings

import pytest

import plume
from plume.auditing.audit import Audit
from plume.auditing.finding import Finding
from plume.auditing.trial import Trial
from plume.engines.duckdb import DuckDB

PASSED = Finding("C", "values of one user", passed=True, trials=4_000, claimed=1.1, found=0.25)
FAILED = Finding("A", "every known key has one row", passed=False, trials=1)


def text(audit: Audit) -> str:
    return " ".join(re.sub("<[^>]*>", " ", audit._repr_html_().partition("</style>")[2]).split())


def test_an_audit_shows_its_verdicts_as_a_table() -> None:
    shown = text(Audit("users per k", "plume", (PASSED, PASSED)))
    assert "audit: all 2 tests passed" in shown
    assert "verdict layer claimed found trials test pass C 1.1 0.25 4,000 values of one user" in shown
    assert "a pass is not a proof" in shown


def test_what_failed_comes_first_and_stands_out() -> None:
    audit = Audit("users per k", "plume", (PASSED, FAILED, PASSED))
    assert "1 of 3 tests failed: this query does not keep its promise" in text(audit)
    assert re.search(r"found trials test FAIL A 1 every known key has one row pass C", text(audit))
    assert audit._repr_html_().count('<tr class="failed">') == 1


@pytest.mark.parametrize("release", [Trial.release, Trial.exact])
def test_what_a_trial_asks_for_is_cautioned_against_in_nothing(release) -> None:
    asked = plume.Query(
        user="u", keys="k", measures=[plume.users()], max_keys_per_user=2, budget=plume.Budget(40, 0.05)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", plume.PlumeWarning)
        release(Trial(asked, DuckDB(), "plume"), [])
