"""Types of PostgreSQL fuzzed: a bounded number of cases of one seed; `make fuzz` takes any seed and as long as one likes."""

import pytest

from fuzz.fuzz_postgresql import prepared
from fuzz.fuzzing import flaws
from postgresql_servers import Server

pytestmark = [pytest.mark.starts("postgresql"), pytest.mark.engines]


def test_a_user_more_with_hostile_values_changes_nothing_about_how_a_run_ends_there(server: Server) -> None:
    assert list(flaws(prepared(server.url), seed=1, numbers=range(150))) == []
