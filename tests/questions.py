"""Queries for tests that care about data rather than about privacy: all keys pass, and noise is zero."""

from pathlib import Path
from typing import Any

import pyarrow as pa

import plume
from exact import exact_release
from plume.engines.duckdb import DuckDB

# So large that any key with two users is selected.
GENEROUS = plume.Budget(epsilon=200, delta=0.5)
ENGINE = DuckDB(threads=1)


def asking(**changes: Any) -> plume.Query:
    """A query for the columns u, k and perhaps v, with the paper's noise, which a constant source of randomness makes zero."""
    asked = {
        "user": "u",
        "keys": "k",
        "measures": [plume.count(max_per_key=2)],
        "max_keys_per_user": 3,
        "budget": GENEROUS,
    }
    return plume.Query.paper(**asked | changes)


def answer(query: plume.Query, content: Any, **settings: Any) -> dict[str, list[Any]]:
    """The exact rows of a release, column by column."""
    return exact_release(query, content, engine=ENGINE, **settings).to_pydict()


def write_text(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def people(**columns: Any) -> pa.Table:
    """One row per user, so that each row counts."""
    rows = max(len(values) for values in columns.values())
    return pa.table({"u": [f"user {number}" for number in range(rows)]} | columns)


# A table in which some rows are nobody's, and what is asked about it wherever it lies.
ROWS = pa.table(
    {
        "u": ["a", "a", "b", "b", "c", None, "d"],
        "k": ["x", "x", "x", "y", "y", "x", None],
        "v": [1.0, 2.0, 3.0, 4.0, None, 5.0, 6.0],
    }
)
QUERY = asking(
    measures=[plume.count(max_per_key=2), plume.sum("v", low_total=0, high_total=10)], public_keys=["x", "y", "z"]
)
EXPECTED = {"k": ["x", "y", "z"], "count": [3, 2, 0], "v_sum": [6.0, 4.0, 0.0]}
USERS = asking(measures=[plume.users()], public_keys=["x", "y"])
