"""With max_keys_per_user = "auto", before noise: the histogram, and all that follows from any limit, equal the plain-Python reference."""

import math
from collections import defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest

import plume
from engines.test_reference import calibrate_once, expected_states, retaining_by, states
from exact import SALT, exact_release, exact_step
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.selection.rule import rule_of
from random_tables import on_random_tables
from reference import pipelines as reference
from reference.pipelines import Key, Record, System
from strategies import KEYS, Asked, Listed, records, table

FULL, LIMIT = 1024, "max_keys_per_user"
# Where rows of the histogram begin: one to 2**14 keys, four to an octave, whole numbers only, and each of them once.
STARTS = [1, *sorted({math.ceil(2 ** (step / 4) - 1e-9) + 1 for step in range(56)})]


def choosing(case: Asked, **changes: object) -> Asked:
    """The same question with its limit left open, which only Gaussian selection can be asked."""
    selection = case.query.selection
    if selection != "auto" and not rule_of(selection).gaussian:
        selection = "auto"
    open_limit = {"max_keys_per_user": "auto", "selection": selection, "noise": "auto", "composition": "tight"}
    return replace(case, query=replace(case.query, **open_limit | changes))


def system(case: Asked) -> System:
    rounds = calibrate_once(case.query).rounds
    weighted = case.query.selection != "gaussian_threshold"
    return System(
        limit=case.query.selection_limit,
        salt=SALT,
        measures=case.measures,
        retain_key=retaining_by(rounds[0]) if rounds else lambda weight: False,  # noqa: ARG005
        weight=(lambda keys: math.isqrt(2**40 // keys)) if weighted else (lambda keys: 1),  # noqa: ARG005
        left_out=case.query.min_users - 1 if weighted else 0,
        clips=True,
    )


def given_records(case: Asked, listed: Listed) -> list[Record]:
    return records(listed, composite=len(case.query.keys) > 1)


def selected_by(case: Asked, rows: list[Record]) -> set[Key]:
    asked = system(case)
    return reference.apply_privacy(asked, reference.contribution_bound(asked, rows))


def histogram(case: Asked, rows: list[Record], selected: set[Key]) -> dict[int, tuple[int, int]]:
    """Each user in one row: that of as many keys as they have. Beside users, how full they are: of what each row could say, so much."""
    found = dict.fromkeys(range(len(STARTS)), (0, 0))
    for heap in reference.contribution_bound(system(case), [row for row in rows if row.key in selected]):
        keys = len(heap.content)
        bucket = sum(start <= keys for start in STARTS) - 1
        said = sum(fullness(case, of_key) for of_key in heap.content.values()) // keys
        users, before = found[bucket]
        found[bucket] = (users + 1, before + said)
    return found


def fullness(case: Asked, of_key: list[Record]) -> int:
    parts = [
        abs(size) * FULL // measure.most
        for measure in case.measures
        for size in measure.sizes(measure.combine_raw(of_key))
    ]
    return sum(parts) // len(parts)


def found_in(rows: pa.Table) -> dict[int, tuple[int, int]]:
    return {row["bucket"]: (row["users"], row["fullness"]) for row in rows.to_pylist()}


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_the_histogram_equals_the_reference(engine: Engine, pipeline: str) -> None:
    crowded: dict[str, int] = defaultdict(int)

    def look(case: Asked, listed: Listed) -> None:
        asked, rows = choosing(case), given_records(case, listed)
        expected = histogram(asked, rows, selected_by(asked, rows))
        exact = exact_step(
            asked.query, table(listed), "keys_per_user_exact", engine=engine, pipeline=pipeline, order=("bucket",)
        )
        assert found_in(exact) == expected
        crowded["tables"] += sum(users > 0 for users, _ in expected.values()) > 1

    on_random_tables(engine, 40 if isinstance(engine, DuckDB) else 10, look)
    assert crowded["tables"] >= (8 if isinstance(engine, DuckDB) else 1)


@pytest.mark.parametrize("pipeline", ["plume", "naive"])
def test_whatever_limit_is_chosen_the_rest_equals_the_reference(engine: Engine, pipeline: str) -> None:
    limits = iter(range(10**6))

    def look(case: Asked, listed: Listed) -> None:
        asked, rows, limit = choosing(case), given_records(case, listed), next(limits) % 4 + 1
        answer = reference.of_public_keys(replace(system(asked), limit=limit), rows, selected_by(asked, rows))
        exact = exact_step(asked.query, table(listed), "exact", engine=engine, pipeline=pipeline, chosen={LIMIT: limit})
        assert states(exact, asked) == expected_states(asked, answer)

    on_random_tables(engine, 50 if isinstance(engine, DuckDB) else 20, look)


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_public_keys_with_a_chosen_limit_have_all_their_rows(engine: Engine, pipeline: str) -> None:
    public = sorted({"nobody's", *KEYS[:4]})

    def look(case: Asked, listed: Listed) -> None:
        asked = choosing(case, keys="key", public_keys=public, min_users=1, selection="auto")
        released = exact_release(asked.query, table(listed), engine=engine, pipeline=pipeline)
        assert released.column("key").to_pylist() == sorted(public, key=str.encode)

    on_random_tables(engine, 12 if isinstance(engine, DuckDB) else 10, look)


def people_with(keys: int, users: int, name: str) -> list[tuple[str, str]]:
    return [(f"{name}{user}", f"k{key:03}") for user in range(users) for key in range(keys)]


def test_a_release_says_which_limit_was_chosen(engine: Engine) -> None:
    """Five thousand users with twenty keys each, and noise of a few dozen: whoever cuts them loses more than noise costs."""
    rows = people_with(20, 5000, "u")
    data = pa.table(list(zip(*rows, strict=True)), names=["u", "k"])
    query = plume.Query(
        user="u", keys="k", measures=plume.users(), max_keys_per_user="auto", budget=plume.Budget(1, 1e-5)
    )
    release = plume.run(query, data, engine=engine)
    assert release.chosen == {"max_keys_per_user": 20}
    assert release.record()["chosen"] == {"max_keys_per_user": 20}
    assert "chosen within the budget: max_keys_per_user = 20" in str(release)
    assert len(release) == 20


def test_without_anybody_a_limit_is_chosen_all_the_same(engine: Engine) -> None:
    data = pa.table({"u": pa.array([], pa.string()), "k": pa.array([], pa.string())})
    query = plume.Query(
        user="u", keys="k", measures=plume.users(), max_keys_per_user="auto", budget=plume.Budget(1, 1e-5)
    )
    release = plume.run(query, data, engine=engine)
    assert len(release) == 0
    assert release.chosen == {"max_keys_per_user": 1}
