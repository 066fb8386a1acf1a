"""With bounds left open, before noise: the histograms of sizes, and all that follows from any bounds, equal the plain-Python reference."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import plume
from engines.test_chosen_limit import choosing, given_records, selected_by, system
from engines.test_reference import expected_states, states
from exact import exact_release, exact_step, exact_steps
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from random_tables import on_random_tables
from reference import measures, pipelines
from reference.pipelines import Record
from strategies import KEYS, Asked, Listed, table

COUNT = plume.count("auto", where="value IS NOT NULL")
OPEN = (
    plume.sum("value", 0, "auto", name="above"),
    plume.sum("value", "auto", "auto", name="around"),
    COUNT,
    plume.mean("value", 0, "auto", name="mean_above"),
    plume.mean("value", "auto", "auto", name="mean_around", where="day = 1"),
)
WHATS = ["above: high_total", "around: high_total", "count: max_per_key", "mean_above: high", "mean_around: high"]
CHOSEN = [(1.5, 2.0**-10, 1, 3.0, 96.0), (24.0, 2.0**40, 2, 2.0**-9, 1.0), (2.0**20, 6.0, 3, 48.0, 2.0**12)]
OFFERS = [*(factor * 2.0**octave for octave in range(-10, 40) for factor in (1, 1.5)), 2.0**40]
COUNTS = sorted({int(factor * 2**octave) for octave in range(20) for factor in (1, 1.5) if octave or factor == 1})
COUNTS.append(2**20)


def present(record: Record) -> bool:
    return record.values["value"] is not None


def first_day(record: Record) -> bool:
    return record.values["day"] == 1


def bounded(above: float, around: float, most: int, mean_above: float, mean_around: float) -> tuple[Any, ...]:
    return (
        measures.OpenSum("value", 0, above),
        measures.OpenSum("value", -around, around),
        measures.Count(most, present),
        measures.OpenMean("value", 0, mean_above, 1),
        measures.OpenMean("value", -mean_around, mean_around, 1, first_day),
    )


def opened(case: Asked, numbers: tuple[float, ...], limit: int) -> Asked:
    return choosing(replace(case, measures=bounded(*numbers)), measures=OPEN, max_keys_per_user=limit)


def size_of(of_key: list[Record], number: int) -> int:
    """How large a row is for a measure, in steps; rows without values are as small as can be."""
    measure = bounded(*CHOSEN[0])[number]
    state = measure.combine_raw(of_key)
    size = (measure.own(state) if isinstance(measure, measures.OpenMean) else state) or 0
    return abs(size) if WHATS[number].split(":")[0].endswith("around") else size


def looked_at(case: Asked, rows: list[Record], number: int, *, largest: bool) -> list[int]:
    """How large the rows of users are: of the keys of each that count in measures the largest, or the first, as many as the limit."""
    asked, selected = system(case), selected_by(case, rows)
    heaps = pipelines.second_bound(asked, [row for row in rows if row.key in selected])
    sizes = [[size_of(of_key, number) for _, of_key in heap.top()] for heap in heaps]
    ordered = [sorted(of_user, reverse=True) if largest else of_user for of_user in sizes]
    return [size for of_user in ordered for size in of_user[: asked.limit]]


def histogram(case: Asked, rows: list[Record], number: int, *, largest: bool = True) -> dict[int, int]:
    """For each offer, how many rows of users that are looked at are larger than the offer before and no larger than it.

    Engines compare floating-point numbers, for which 2**53 + 1 is no other number than 2**53.
    """
    offers = COUNTS if number == OPEN.index(COUNT) else [int(offer * 2**22) for offer in OFFERS]
    found = Counter(dict.fromkeys(range(len(offers)), 0))
    for size in looked_at(case, rows, number, largest=largest):
        if size >= 1:
            found[min(sum(float(offer + 1) <= float(size) for offer in offers), len(offers) - 1)] += 1
    return dict(found)


@pytest.mark.parametrize("pipeline", ["plume", pytest.param("naive", marks=pytest.mark.engines)])
def test_histograms_of_sizes_equal_the_reference(engine: Engine, pipeline: str) -> None:
    crowded: Counter[int] = Counter()
    not_the_first: Counter[int] = Counter()
    steps = [f"sizes_{number + 1}_exact" for number in range(len(OPEN))]

    def look(case: Asked, listed: Listed) -> None:
        asked = opened(case, CHOSEN[0], limit=2)
        rows = given_records(case, listed)
        exact = exact_steps(asked.query, table(listed), steps, engine=engine, pipeline=pipeline, order=("bucket",))
        for number, step in enumerate(steps):
            expected = histogram(asked, rows, number)
            assert {row["bucket"]: row["pairs"] for row in exact[step].to_pylist()} == expected
            crowded[number] += sum(pairs > 0 for pairs in expected.values()) > 1
            not_the_first[number] += expected != histogram(asked, rows, number, largest=False)

    on_random_tables(engine, 40 if isinstance(engine, DuckDB) else 20, look)
    fewest = 5 if isinstance(engine, DuckDB) else 1
    assert all(crowded[number] >= fewest for number in range(len(OPEN)))
    assert sum(not_the_first.values()) >= fewest


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
@pytest.mark.parametrize("numbers", CHOSEN)
def test_whatever_bounds_are_chosen_the_rest_equals_the_reference(
    engine: Engine, pipeline: str, numbers: tuple[float, ...]
) -> None:
    def look(case: Asked, listed: Listed) -> None:
        asked, rows = opened(case, numbers, limit=2), given_records(case, listed)
        answer = pipelines.of_public_keys(system(asked), rows, selected_by(asked, rows))
        chosen = dict(zip(WHATS, numbers, strict=True))
        exact = exact_step(asked.query, table(listed), "exact", engine=engine, pipeline=pipeline, chosen=chosen)
        assert states(exact, asked) == expected_states(asked, answer)

    on_random_tables(engine, 10, look)


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_public_keys_with_chosen_bounds_have_all_their_rows(engine: Engine, pipeline: str) -> None:
    public = sorted({"nobody's", *KEYS[:4]})

    def look(case: Asked, listed: Listed) -> None:
        asked = opened(case, CHOSEN[0], limit=2).query
        query = replace(asked, keys="key", public_keys=public, min_users=1, selection="auto")
        released = exact_release(query, table(listed), engine=engine, pipeline=pipeline)
        assert released.column("key").to_pylist() == sorted(public, key=str.encode)

    on_random_tables(engine, 8 if isinstance(engine, DuckDB) else 10, look)


def test_a_release_says_what_was_chosen(engine: Engine) -> None:
    """Five thousand users, each with 3 rows of 5.0 in each of 20 keys: any lower bound loses more than noise costs."""
    rows = [(f"u{user}", f"k{key:02}", 5.0) for user in range(5000) for key in range(20) for _ in range(3)]
    data = pa.table(list(zip(*rows, strict=True)), names=["u", "k", "v"])
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.sum("v", 0, "auto"), plume.count("auto"), plume.mean("v", 0, "auto")],
        max_keys_per_user="auto",
        budget=plume.Budget(1, 1e-5),
    )
    release = plume.run(query, data, engine=engine)
    chosen = {"max_keys_per_user": 20, "v_sum: high_total": 16.0, "count: max_per_key": 3, "v_mean: high": 6.0}
    assert release.chosen == chosen
    assert release.record()["chosen"] == chosen
    assert "chosen within the budget: v_sum: high_total = 16" in str(release)
    deviations = {str(noise): noise.standard_deviation for noise in release.noise}
    for row in release.to_arrow().to_pylist():
        assert abs(row["v_sum"] - 75_000) < 8 * deviations["v_sum"]
        assert abs(row["count"] - 15_000) < 8 * deviations["count"]
        assert abs(row["v_mean"] - 5) < 1


def test_without_anybody_bounds_are_chosen_all_the_same(engine: Engine) -> None:
    data = pa.table({"u": pa.array([], pa.string()), "k": pa.array([], pa.string()), "v": pa.array([], pa.float64())})
    query = plume.Query(
        user="u",
        keys="k",
        measures=plume.sum("v", 0, "auto"),
        max_keys_per_user=3,
        budget=plume.Budget(1, 1e-5),
        public_keys=["a"],
    )
    release = plume.run(query, data, engine=engine)
    assert len(release) == 1
    assert list(release.chosen) == ["v_sum: high_total"]
