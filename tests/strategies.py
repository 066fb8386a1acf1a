"""Random tables with hostile values, and random questions about them; each is what its seed makes of it.

Hypothesis does not draw them: it tries constants that it finds in the modules that are loaded, so that a number anywhere in the package, or
the order of tests, changed the tables, and tests of what few tables show came to see none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

import plume
from reference import measures as reference
from reference.pipelines import Record

# Thresholds from 2 to about 5 at these budgets: small tables have both kept and dropped keys.
EPSILONS = (3.0, 6.0, 20.0, 200.0)
HOSTILE = (
    0.0,
    -0.0,
    0.5,
    -1.5,
    3.25,
    1e-300,
    1e300,
    -1e308,
    2.0**52,
    -(2.0**63),
    float("inf"),
    float("-inf"),
    float("nan"),
    None,
)

KEYS = ("a", "b", "c", "d", "e", "ä:1", "1:ä")

USERS = (*range(9), None)
DAYS = (0, 0, 0, 1, 2)
# Short tables show little: most must be long enough for something to be cut and selected.
FEWEST_ROWS = (0, 30, 45, 60, 75)

Listed = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Asked:
    """A query and what the reference is to compute for it."""

    query: plume.Query
    measures: tuple[Any, ...]


def table(listed: list[tuple[Any, ...]], key: pa.DataType = pa.string()) -> pa.Table:  # noqa: B008 - frozen
    columns = [pa.array(column) for column in zip(*listed, strict=True)] or [[]] * 4
    types = [pa.int64(), key, pa.int64(), pa.float64()]
    arrays = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["person", "key", "day", "value"])


def with_numbers(listed: Listed) -> Listed:
    """The same rows with numbers for keys, some of them negative."""
    known: dict[str, int] = {}
    return [
        (user, None if key is None else known.setdefault(key, 9 - 4 * len(known)), *rest) for user, key, *rest in listed
    ]


def records(listed: list[tuple[Any, ...]], *, composite: bool) -> list[Record]:
    return [Record(u, (k, d) if composite else (k,), {"value": v, "day": d}) for u, k, d, v in listed]


def draw_table(random: Random) -> Listed:
    fewest = random.choice(FEWEST_ROWS)
    return [draw_row(random) for _ in range(random.randint(fewest, 90 if fewest else 10))]


def draw_row(random: Random) -> tuple[Any, ...]:
    return random.choice(USERS), random.choice((*KEYS, *KEYS[:3], None)), random.choice(DAYS), draw_value(random)


def draw_value(random: Random) -> float | None:
    """A hostile value, one of any magnitude up to 100, or a short one, which others may have too."""
    drawn = random.uniform(-100, 100)
    return random.choice(
        (random.choice(HOSTILE), random.choice(HOSTILE), drawn * 2.0 ** -random.randrange(80), round(drawn))
    )


# A condition on a measure, and the same in Python.
CONDITIONS = (
    *[(None, reference.anywhere)] * 3,
    ("day = 1", lambda record: record.values["day"] == 1),
    ("value <= 3.25", lambda record: (record.values["value"] or 0.0) <= 3.25 and record.values["value"] is not None),
    ("value IS NOT NULL", lambda record: record.values["value"] is not None),
)
BOUNDS = ((0, 60), (-8, 8), (-100.5, -1), (1, 2.5), (-1e-3, 1e6))
KINDS = ["users", "count", "sum", "mean", "variance", "stddev", "vector_sum", "histogram", "quantiles"]
EDGES = ((0, 10), (-100, -1.5, 0, 3.25, 100), (0, 0.5, 1, 2, 3.25, 5, 8, 13, 21))


def draw_measure(random: Random, kind: str) -> tuple[Any, Any]:
    """A measure, and the same in the reference."""
    (where, holds), (low, high), limit = random.choice(CONDITIONS), random.choice(BOUNDS), random.randint(1, 3)
    said = {"name": f"m{random.randrange(10**9)}", "where": where}
    counted, ranged = (limit, holds), ("value", low, high, limit, holds)
    between, length = random.choice(EDGES), high - low
    of_range = {"max_per_key": limit, **said}
    made = {
        "users": lambda: (plume.users(**said), reference.Users(holds)),
        "count": lambda: (plume.count(limit, **said), reference.Count(*counted)),
        "sum": lambda: (plume.sum("value", low, high, **said), reference.Sum("value", low, high, holds)),
        "mean": lambda: (plume.mean("value", low, high, **of_range), reference.Mean(*ranged)),
        "variance": lambda: (plume.variance("value", low, high, **of_range), reference.Variance(*ranged)),
        "stddev": lambda: (plume.stddev("value", low, high, **of_range), reference.StandardDeviation(*ranged)),
        "vector_sum": lambda: (
            plume.vector_sum(["value", "day"], length, **said),
            reference.VectorSum(("value", "day"), length, holds),
        ),
        "histogram": lambda: (
            plume.histogram("value", between, **of_range),
            reference.Histogram("value", between, limit, holds),
        ),
        "quantiles": lambda: (
            plume.quantiles("value", [0.5, 0.9], low, high, **of_range),
            reference.Quantiles("value", (0.5, 0.9), low, high, limit, holds),
        ),
    }
    return made[kind]()


# Each strategy, by name or by default, and the fewest users a key must have.
SELECTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"min_users": 3},
    {"selection": "laplace_threshold", "composition": "basic"},
    {"selection": "laplace_threshold", "min_users": 3, "composition": "basic"},
    {"selection": "gaussian_threshold", "min_users": 2},
    {"selection": "weighted_gaussian"},
    {"selection": "weighted_gaussian", "min_users": 2},
    {"noise": "laplace", "composition": "basic"},
)


def draw_question(random: Random, kinds: Sequence[str] = KINDS) -> Asked:
    drawn = [draw_measure(random, random.choice(kinds)) for _ in range(random.randint(1, 3))]
    query = plume.Query(
        user="person",
        keys=random.choice(("key", ["key", "day"])),
        measures=[ours for ours, _ in drawn],
        max_keys_per_user=random.randint(1, 4),
        **random.choice(SELECTIONS),
        budget=plume.Budget(epsilon=random.choice(EPSILONS), delta=0.5),
    )
    return Asked(query, tuple(theirs for _, theirs in drawn))


def random_cases(
    number: int, *, kinds: Sequence[str] = KINDS, together: int = 1
) -> Iterator[tuple[Asked, list[Listed]]]:
    """So many random questions, each with as many random tables as are asked together."""
    for seed in range(number):
        random = Random(seed)  # noqa: S311 - what is drawn here may be guessed, and must come again
        yield draw_question(random, kinds), [draw_table(random) for _ in range(together)]


def random_questions(number: int) -> list[Asked]:
    """So many of the random questions alone."""
    return [case for case, _ in random_cases(number, together=0)]
