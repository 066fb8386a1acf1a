"""The audit on PostgreSQL: two shapes whole, and of each other kind of measure what must hold exactly."""

import pytest

import plume
from plume.auditing.invariants import invariants
from plume.auditing.made_up_tables import without_conditions
from plume.auditing.trial import Trial
from plume.engines.engine import Engine
from privacy.test_audit import FEW, SHAPES, first_red

pytestmark = [pytest.mark.starts("postgresql")]


@pytest.mark.parametrize("name", ["Gaussian", "pooled"])
def test_the_real_build_passes_there_too(engine: Engine, name: str) -> None:
    """False alarms: as in tests/privacy/test_audit.py."""
    assert first_red(SHAPES[name], FEW, engine) is None


@pytest.mark.parametrize("name", ["moments", "tallies", "vectors", "two rounds"])
def test_what_must_hold_without_noise_holds_there(engine: Engine, name: str) -> None:
    asked: plume.Query = without_conditions(SHAPES[name])
    found = invariants(Trial(asked, engine, "plume"))
    assert [finding.test for finding in found if not finding.passed] == []
