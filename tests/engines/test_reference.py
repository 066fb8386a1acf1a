"""Before noise, every pipeline on every engine equals the plain-Python reference, exactly."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from exact import ENTROPY, SALT, exact_release
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.pipelines.calibrated import calibrate
from plume.selection.strategy import SelectionStrategy
from plume.selection.weighted_gaussian import WeightedGaussian
from random_tables import SETTINGS, Listed, on_random_tables
from reference import pipelines as reference
from reference.pipelines import System
from strategies import KEYS, Asked, asked, records, table, tables

INVERSE_ROOTS = {keys: math.isqrt(2**40 // keys) for keys in range(1, 5)}
PIPELINES = ["naive", "runtime_optimized", "plume"]
NUMBERS = {"DuckDB": 200, "Spark": 50}


def expected(case: Asked, answer: dict[tuple[object, ...], tuple[int, ...]]) -> list[tuple[object, ...]]:
    scaled = [(*key, *(t * g for t, g in zip(total, case.grids, strict=True))) for key, total in answer.items()]
    return sorted(scaled, key=lambda row: [str(part).encode() for part in row[: len(case.query.keys)]])


def found(release: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in release.to_pylist()]


def system(case: Asked) -> System:
    strategy = calibrate(case.query).selection
    weight = INVERSE_ROOTS.__getitem__ if isinstance(strategy, WeightedGaussian) else (lambda keys: 1)  # noqa: ARG005
    return System(case.query.max_keys_per_user, SALT, case.measures, retaining(strategy), weight)


def retaining(strategy: SelectionStrategy | None) -> Callable[[int], bool]:
    """What the strategy keeps when its entropy is constant, one key at a time."""
    return lambda weight: strategy is not None and bool(strategy.keep(np.array([weight]), ENTROPY)[0])


def test_the_random_tables_are_worth_testing_on() -> None:
    seen: Counter[str] = Counter()

    @SETTINGS
    @given(case=asked(), listed=tables)
    def look(case: Asked, listed: list[tuple]) -> None:
        given_records = records(listed, composite=len(case.query.keys) > 1)
        twice = reference.naive(system(case), given_records)
        seen["keys selected"] += bool(twice)
        seen["bounding again matters"] += twice != reference.runtime_optimized(system(case), given_records)

    look()
    assert seen["keys selected"] >= 100
    assert seen["bounding again matters"] >= 40


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipeline_equals_the_reference(engine: Engine, pipeline: str) -> None:
    on_random_tables(engine, NUMBERS[type(engine).__name__], lambda case, listed: check(engine, pipeline, case, listed))


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipeline_equals_the_reference_on_many_more_tables(engine: Engine, pipeline: str) -> None:
    on_random_tables(engine, 500, lambda case, listed: check(engine, pipeline, case, listed))


def check(engine: Engine, pipeline: str, case: Asked, listed: Listed) -> None:
    answer = reference.PIPELINES[pipeline](system(case), records(listed, composite=len(case.query.keys) > 1))
    release = exact_release(case.query, table(listed), engine=engine, pipeline=pipeline)
    assert found(release) == expected(case, answer)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_public_keys_equal_the_reference(engine: Engine, pipeline: str) -> None:
    public = sorted({"nobody's", *KEYS[:4]})

    def look(case: Asked, listed: Listed) -> None:
        query = replace(case.query, keys="key", public_keys=public, min_users=1, selection="auto")
        asked = Asked(query, case.measures, case.grids)
        answer = reference.of_public_keys(system(asked), records(listed, composite=False), {(key,) for key in public})
        release = exact_release(query, table(listed), engine=engine, pipeline=pipeline)
        assert found(release) == expected(asked, answer)

    on_random_tables(engine, 40 if isinstance(engine, DuckDB) else 10, look)


def test_the_answer_does_not_depend_on_the_order_of_rows(engine: Engine) -> None:
    def look(case: Asked, listed: Listed) -> None:
        turned = [*listed[1::2], *listed[::-2]]
        before, after = (exact_release(case.query, table(rows), engine=engine) for rows in (listed, turned))
        assert before.equals(after)

    on_random_tables(engine, 30 if isinstance(engine, DuckDB) else 10, look)
