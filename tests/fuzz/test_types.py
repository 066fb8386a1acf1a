"""Types fuzzed: a bounded number of cases of one seed, about 20 seconds of them; `make fuzz` takes any seed and as long as one likes."""

from functools import partial

from fuzz.fuzz_types import check
from fuzz.fuzzing import flaws
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine

SEED, ON_DUCKDB, ON_SPARK = 1, 60, 6


def test_a_user_more_with_hostile_values_changes_nothing_about_how_a_run_ends(engine: Engine) -> None:
    cases = range(ON_DUCKDB if isinstance(engine, DuckDB) else ON_SPARK)
    assert list(flaws(partial(check, engine=engine), seed=SEED, numbers=cases)) == []
