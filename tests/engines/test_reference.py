"""Before noise, every pipeline on every engine equals the plain-Python reference, exactly."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import ENTROPY, SALT, exact_release, exact_step
from pairs import pairs
from plume.calibration.calibrated_query import CalibratedQuery
from plume.engines import duckdb as duckdb_engine
from plume.engines import duckdb_pass
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine, Table
from plume.plan.analysis import steps
from plume.plan.nodes import OnePass
from plume.planning import make_plan
from plume.schema import kinds_expected
from plume.selection import pooled_gaussian
from plume.selection.strategy import SelectionStrategy
from plume.selection.weighted_gaussian import WeightedGaussian
from random_tables import on_random_tables
from reference import pipelines as reference
from reference.pipelines import Key, Record, System, Total
from strategies import KEYS, KINDS, Asked, Listed, random_cases, records, table, with_numbers

# Of quantiles the reference knows the weights of leaves only; what is made of them is tested with the mechanism.
RELEASED_AS_THEY_ARE = [kind for kind in KINDS if kind != "quantiles"]
INVERSE_ROOTS = {keys: math.isqrt(2**40 // keys) for keys in range(1, 5)}
PIPELINES = ["naive", "runtime_optimized", "plume"]
# Where the other two repeat at length what they show elsewhere.
PLUME_FIRST = [
    "plume",
    pytest.param("naive", marks=pytest.mark.engines),
    pytest.param("runtime_optimized", marks=pytest.mark.engines),
]
NUMBERS = {"DuckDB": 100, "PostgreSQL": 50, "Spark": 50}
# The same random questions are asked of each pipeline, and each several times.
_calibrated = cache(lambda query: make_plan(query).calibrated)


def calibrate_once(query: plume.Query) -> CalibratedQuery:
    """Calibrate a question the first time it is asked; public keys are a table, which has no hash."""
    return _calibrated(query) if query.public_keys is None else make_plan(query).calibrated


def expected(case: Asked, answer: dict[Key, tuple[Total, ...]]) -> list[tuple[object, ...]]:
    """What is released without noise."""
    rows = [(*key, *released(case, totals)) for key, totals in answer.items()]
    return sorted(rows, key=lambda row: by_key(row[: len(case.query.keys)]))


def released(case: Asked, totals: tuple[Total, ...]) -> list[object]:
    left = reference.leave_fine_steps(system(case), totals)
    return [value for measure, total in zip(case.measures, left, strict=True) for value in measure.release(total)]


def expected_states(case: Asked, answer: dict[Key, tuple[Total, ...]]) -> dict[Key, dict[str, object]]:
    """The integers that noise is added to, in the plan's columns."""
    columns = [measure.state for measure in calibrate_once(case.query).measures]
    return {
        key: {of[name]: state(name, total) for of, total in zip(columns, totals, strict=True) for name in of}
        for key, totals in answer.items()
    }


def state(name: str, total: Total) -> object:
    """One integer, or the leaves that have any weight."""
    return total[name] if name != "leaves" else {leaf: weight for (_, leaf), weight in total.items() if weight}


def by_key(key: Key) -> list[bytes]:
    return [str(part).encode() for part in key]


def found(release: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in release.to_pylist()]


def states(exact: pa.Table, case: Asked) -> dict[Key, dict[str, object]]:
    keys = len(case.query.keys)
    rows = [list(row.items()) for row in exact.to_pylist()]
    return {tuple(value for _, value in row[:keys]): {name: plain(value) for name, value in row[keys:]} for row in rows}


def plain(value: object) -> object:
    if isinstance(value, int):
        return value
    return {pair["leaf"]: pair["weight"] for pair in value or [] if pair["weight"]}


def are_equal(found: list[tuple[object, ...]], expected: list[tuple[object, ...]]) -> bool:
    """Tell whether rows are the same but for the last digits of floating-point numbers."""
    cells = [
        pytest.approx(theirs, rel=1e-9, abs=1e-6) == ours if isinstance(ours, float) else theirs == ours
        for our_row, their_row in zip(found, expected, strict=True)
        for ours, theirs in zip(our_row, their_row, strict=True)
    ]
    return all(cells)


def system(case: Asked) -> System:
    calibrated = calibrate_once(case.query)
    rounds = calibrated.rounds
    weighted = any(isinstance(strategy, WeightedGaussian) for strategy in rounds)
    weight = INVERSE_ROOTS.__getitem__ if weighted else (lambda keys: 1)  # noqa: ARG005
    retaining = [retaining_by(strategy) for strategy in rounds] or [lambda weight: False]  # noqa: ARG005
    again = retaining[1] if len(retaining) > 1 else None
    clips = calibrated.clips
    left_out = case.query.min_users - 1 if weighted else 0
    made = System(case.query.max_keys_per_user, SALT, case.measures, retaining[0], weight, left_out, again, clips=clips)
    charges = charges_of(calibrated)
    return replace(made, charges=charges, keys_when_selecting=rounds[0].max_keys_per_user) if charges else made


def charges_of(calibrated: CalibratedQuery) -> tuple[tuple[int, Fraction], ...]:
    """For each size of rows, one of the measures that have it, and what all of them take."""
    sizes = [measure.size for measure in calibrated.measures]
    account = next((strategy.account for strategy in calibrated.rounds), None)
    return tuple((sizes.index(size), charge.share) for size, charge in account.charges) if account else ()


def retaining_by(strategy: SelectionStrategy) -> Callable[[int], bool]:
    """What the strategy keeps when its entropy is constant, one key at a time."""
    return lambda weight: bool(strategy.keep(np.array([weight]), ENTROPY)[0])


def unclipped(both: System, given_records: list[Record]) -> dict[Key, tuple[Total, ...]]:
    """What naive gives if users above the limit are only cut, in the same fine steps."""
    selected = reference.apply_privacy(both, reference.contribution_bound(both, given_records))
    joined = [record for record in given_records if record.key in selected]
    return reference.aggregate(both, reference.contribution_bound(both, joined), selected)


def test_the_random_tables_are_worth_testing_on() -> None:
    """Several tables to a question, as they are tested."""
    seen: Counter[str] = Counter()
    for case, several in random_cases(50, together=4):
        both = system(case)
        for listed in several:
            given_records = records(listed, composite=len(case.query.keys) > 1)
            twice = reference.naive(both, given_records)
            seen["keys selected"] += bool(twice)
            seen["clipping matters"] += twice != unclipped(both, given_records)
            seen["bounding again matters"] += twice != reference.runtime_optimized(both, given_records)
    assert seen["keys selected"] >= 100
    assert seen["clipping matters"] >= 40
    assert seen["bounding again matters"] >= 80


def test_a_fact_that_does_not_hold_is_shown_with_the_fewest_rows() -> None:
    def look(case: Asked, listed: Listed) -> None:
        del case
        assert len({user for user, *_ in listed if user is not None}) < 3

    with pytest.raises(AssertionError) as failure:
        on_random_tables(DuckDB(), 1, look)
    assert "\non 3 rows: " in failure.value.__notes__[-1]


@pytest.mark.parametrize(
    "pipeline",
    [*PIPELINES[:2], pytest.param("plume", marks=pytest.mark.quick_on("spark", "spark-connect", "postgresql"))],
)
def test_pipeline_equals_the_reference(engine: Engine, pipeline: str) -> None:
    on_random_tables(engine, NUMBERS[type(engine).__name__], lambda case, listed: check(engine, pipeline, case, listed))


@pytest.mark.parametrize("pipeline", PLUME_FIRST)
def test_pipeline_equals_the_reference_where_rows_are_read_again(
    pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_engine, "_LARGE_FILES_BYTES", 0)
    rewritten: list[bool] = []

    def check_again(case: Asked, listed: Listed) -> None:
        papers = in_the_papers_configuration(case)
        plan = make_plan(papers.query, pipeline).plan
        with DuckDB().open({"input": Table(table(listed), kinds_expected(papers.query))}) as session:
            rewritten.append(session.rewrite(plan) != plan)
        check(DuckDB(), pipeline, papers, listed)

    # Where plume does not add all of it up before keys are selected, users within the limit are kept.
    on_random_tables(DuckDB(), 100, check_again, kinds=["users", "count", "sum"] if pipeline == "plume" else KINDS)
    assert all(rewritten)


@pytest.mark.parametrize("selection", ["as drawn", "pooled_gaussian", "laplace_threshold"])
@pytest.mark.parametrize("key", [pa.int64(), pa.string()], ids=str)
def test_a_pass_equals_the_reference(key: pa.DataType, selection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each measure counts users or records."""
    pytest.importorskip("numba")
    passes: list[bool] = []
    for fewest in ("_FEWEST_ROWS", "_FEWEST_ROWS_TO_COMPILE_FOR"):
        monkeypatch.setattr(duckdb_pass, fewest, 0)

    def look(case: Asked, listed: Listed) -> None:
        rows = with_numbers(listed) if key == pa.int64() else listed
        asked = {"pooled_gaussian": pooled, "laplace_threshold": in_the_papers_configuration}.get(selection, replace)(
            case
        )
        given = table(rows, key)
        with DuckDB().open({"input": Table(given, kinds_expected(asked.query))}) as session:
            passes.append(
                any(isinstance(step, OnePass) for step in steps(session.rewrite(make_plan(asked.query).plan)))
            )
        answer = reference.plume(system(asked), records(rows, composite=len(asked.query.keys) > 1))
        assert states(exact_step(asked.query, given, "exact", engine=DuckDB()), asked) == expected_states(asked, answer)

    on_random_tables(DuckDB(), 60, look, kinds=["users", "count"])
    # Of 15 questions; the others have conditions.
    assert sum(passes) >= 3


def in_the_papers_configuration(case: Asked) -> Asked:
    """Only there users within the limit are not counted, so that rows can be read again."""
    query = replace(case.query, selection="laplace_threshold", noise="auto", composition="basic")
    return replace(case, query=query)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipeline_equals_the_reference_on_many_more_tables(engine: Engine, pipeline: str) -> None:
    on_random_tables(engine, 500, lambda case, listed: check(engine, pipeline, case, listed))


def check(engine: Engine, pipeline: str, case: Asked, listed: Listed) -> None:
    answer = reference.PIPELINES[pipeline](system(case), records(listed, composite=len(case.query.keys) > 1))
    exact = exact_step(case.query, table(listed), "exact", engine=engine, pipeline=pipeline)
    assert states(exact, case) == expected_states(case, answer)


@pytest.mark.engines
@pytest.mark.large
@pytest.mark.parametrize("kind", KINDS)
def test_each_measure_equals_the_reference(engine: Engine, kind: str) -> None:
    number = 60 if isinstance(engine, DuckDB) else 10
    on_random_tables(engine, number, lambda case, listed: check(engine, "plume", case, listed), kinds=[kind])


@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_two_rounds_equal_the_reference(engine: Engine, pipeline: str) -> None:
    number = 20 if isinstance(engine, DuckDB) else 10
    on_random_tables(engine, number, lambda case, listed: check(engine, pipeline, in_two_rounds(case), listed))


@pytest.mark.parametrize(("pipeline", "keys"), pairs(["naive", "plume"], [2, 64]))
def test_two_rounds_with_accounts_equal_the_reference(
    engine: Engine, pipeline: str, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 12 if isinstance(engine, DuckDB) else 5
    monkeypatch.setattr(pooled_gaussian, "_KEYS_WHEN_SELECTING", keys)
    _calibrated.cache_clear()
    on_random_tables(engine, number, lambda case, listed: check(engine, pipeline, in_two_pooled_rounds(case), listed))
    _calibrated.cache_clear()


def in_two_pooled_rounds(case: Asked) -> Asked:
    return replace(
        case, query=replace(case.query, selection="two_round_pooled_gaussian", noise="auto", composition="tight")
    )


@pytest.mark.engines
@pytest.mark.parametrize("pipeline", ["naive", "plume"])
def test_two_rounds_equal_the_reference_on_more_tables(pipeline: str) -> None:
    """Each question takes long to calibrate."""
    engine = DuckDB(threads=1)
    on_random_tables(engine, 60, lambda case, listed: check(engine, pipeline, in_two_rounds(case), listed))


def in_two_rounds(case: Asked) -> Asked:
    query = replace(case.query, selection="two_round_weighted_gaussian", noise="auto", composition="tight")
    return replace(case, query=query)


@pytest.mark.engines
def test_second_rounds_find_more_keys_in_the_random_tables() -> None:
    """Several tables to a question: two rounds take long to calibrate."""
    more = 0
    for case, several in random_cases(15, together=4):
        both = system(in_two_rounds(case))
        alone = replace(both, retain_again=None)
        for listed in several:
            rows = records(listed, composite=len(case.query.keys) > 1)
            more += reference.plume(both, rows).keys() != reference.plume(alone, rows).keys()
    assert more >= 25


@pytest.mark.parametrize(("pipeline", "keys"), pairs(PIPELINES, [64, 2]))
def test_weights_drawn_from_accounts_equal_the_reference(
    engine: Engine, pipeline: str, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where selection counts more keys of a user than measures do, and where it counts as many."""
    number = 60 if isinstance(engine, DuckDB) else 20
    monkeypatch.setattr(pooled_gaussian, "_KEYS_WHEN_SELECTING", keys)
    _calibrated.cache_clear()

    def look(case: Asked, listed: Listed) -> None:
        asked = pooled(case)
        check(engine, pipeline, asked, listed)
        given = records(listed, composite=len(asked.query.keys) > 1)
        both = system(asked)
        most = max(keys, both.limit) if pipeline != "runtime_optimized" else both.limit
        heaps = reference.contribution_bound(replace(both, limit=most), given)
        weights = reference.key_occurrences(both, heaps)
        exact = exact_step(asked.query, table(listed), "keyed_weights", engine=engine, pipeline=pipeline)
        assert {
            tuple(row[:-1]): row[-1] for row in map(tuple, zip(*exact.to_pydict().values(), strict=True))
        } == weights

    on_random_tables(engine, number, look)
    _calibrated.cache_clear()


def pooled(case: Asked) -> Asked:
    return replace(case, query=replace(case.query, selection="pooled_gaussian", noise="auto", composition="tight"))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_public_keys_equal_the_reference(engine: Engine, pipeline: str) -> None:
    public = sorted({"nobody's", *KEYS[:4]})

    def look(case: Asked, listed: Listed) -> None:
        query = replace(case.query, keys="key", public_keys=public, min_users=1, selection="auto")
        asked = replace(case, query=query)
        answer = reference.of_public_keys(system(asked), records(listed, composite=False), {(key,) for key in public})
        release = exact_release(query, table(listed), engine=engine, pipeline=pipeline)
        assert are_equal(found(release.select(query.released_columns)), expected(asked, answer))

    on_random_tables(engine, 40 if isinstance(engine, DuckDB) else 10, look, kinds=RELEASED_AS_THEY_ARE)


def test_the_answer_does_not_depend_on_the_order_of_rows(engine: Engine) -> None:
    def look(case: Asked, listed: Listed) -> None:
        turned = [*listed[1::2], *listed[::2]]
        before, after = (exact_release(case.query, table(rows), engine=engine) for rows in (listed, turned))
        assert before.equals(after)

    on_random_tables(engine, 30 if isinstance(engine, DuckDB) else 10, look)
