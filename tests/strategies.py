"""Hypothesis strategies: tables with hostile values, and queries over them."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

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

users = st.sampled_from([*range(9), None])
keys = st.sampled_from([*KEYS, *KEYS[:3], None])
values = st.one_of(st.sampled_from(HOSTILE), st.floats(-100, 100))
rows = st.tuples(users, keys, st.sampled_from([0, 0, 0, 1, 2]), values)
# Hypothesis favours short lists, on which nothing is ever cut or selected; most tables must be long enough to matter.
tables = st.one_of(
    st.lists(rows, max_size=10), *[st.lists(rows, min_size=size, max_size=90) for size in (30, 45, 60, 75)]
)


@dataclass(frozen=True)
class Asked:
    """A query and what the reference is to compute for it."""

    query: plume.Query
    measures: tuple[Any, ...]


def table(listed: list[tuple[Any, ...]]) -> pa.Table:
    columns = [pa.array(column) for column in zip(*listed, strict=True)] or [[]] * 4
    types = [pa.int64(), pa.string(), pa.int64(), pa.float64()]
    arrays = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["person", "key", "day", "value"])


def records(listed: list[tuple[Any, ...]], *, composite: bool) -> list[Record]:
    return [Record(u, (k, d) if composite else (k,), {"value": v, "day": d}) for u, k, d, v in listed]


# A condition on a measure, and the same in Python.
conditions = st.sampled_from(
    [
        *[(None, reference.anywhere)] * 3,
        ("day = 1", lambda record: record.values["day"] == 1),
        (
            "value <= 3.25",
            lambda record: (record.values["value"] or 0.0) <= 3.25 and record.values["value"] is not None,
        ),
        ("value IS NOT NULL", lambda record: record.values["value"] is not None),
    ]
)
bounds = st.sampled_from([(0, 60), (-8, 8), (-100.5, -1), (1, 2.5), (-1e-3, 1e6)])
limits = st.integers(1, 3)


KINDS = ["users", "count", "sum", "mean", "variance", "stddev", "vector_sum", "histogram", "quantiles"]
edges = st.sampled_from([(0, 10), (-100, -1.5, 0, 3.25, 100), (0, 0.5, 1, 2, 3.25, 5, 8, 13, 21)])


@st.composite
def measures(draw: st.DrawFn, kinds: list[str] = KINDS) -> tuple[Any, Any]:
    (where, holds), (low, high), limit = draw(conditions), draw(bounds), draw(limits)
    said = {"name": f"m{draw(st.integers(0, 10**9))}", "where": where}
    counted, ranged = (limit, holds), ("value", low, high, limit, holds)
    between, length = draw(edges), high - low
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
    return made[draw(st.sampled_from(kinds))]()


# Each strategy, by name or by default, and the fewest users a key must have.
selections = st.sampled_from(
    [
        {},
        {"min_users": 3},
        {"selection": "laplace_threshold", "composition": "basic"},
        {"selection": "laplace_threshold", "min_users": 3, "composition": "basic"},
        {"selection": "gaussian_threshold", "min_users": 2},
        {"selection": "weighted_gaussian"},
        {"selection": "weighted_gaussian", "min_users": 2},
        {"noise": "laplace", "composition": "basic"},
    ]
)


@st.composite
def asked(draw: st.DrawFn, kinds: list[str] = KINDS) -> Asked:
    drawn = draw(st.lists(measures(kinds), min_size=1, max_size=3, unique_by=lambda measure: measure[0].name))
    query = plume.Query(
        user="person",
        keys=["key", "day"] if draw(st.booleans()) else "key",
        measures=[ours for ours, _ in drawn],
        max_keys_per_user=draw(st.integers(1, 4)),
        **draw(selections),
        budget=plume.Budget(epsilon=draw(st.sampled_from(EPSILONS)), delta=0.5),
    )
    return Asked(query, tuple(theirs for _, theirs in drawn))
