"""Differentially private GROUP BY at any scale.

The public names; each is imported when first used, so that `plume --help` need not wait for engines.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plume.version import __version__

if TYPE_CHECKING:
    from plume.engines.duckdb import DuckDB
    from plume.engines.spark import Spark
    from plume.errors import PlumeError
    from plume.explanation import Explanation
    from plume.mechanisms.count import count
    from plume.mechanisms.sum import sum  # noqa: A004 - plume.sum, as in pandas and SQL
    from plume.mechanisms.users import users
    from plume.privacy.budget import Budget
    from plume.query import Query
    from plume.release import Release
    from plume.running import explain, run

__all__ = [
    "Budget",
    "DuckDB",
    "Explanation",
    "PlumeError",
    "Query",
    "Release",
    "Spark",
    "__version__",
    "count",
    "explain",
    "run",
    "sum",
    "users",
]

_HOMES = {
    "Budget": "plume.privacy.budget",
    "DuckDB": "plume.engines.duckdb",
    "Explanation": "plume.explanation",
    "PlumeError": "plume.errors",
    "Query": "plume.query",
    "Release": "plume.release",
    "Spark": "plume.engines.spark",
    "count": "plume.mechanisms.count",
    "explain": "plume.running",
    "run": "plume.running",
    "sum": "plume.mechanisms.sum",
    "users": "plume.mechanisms.users",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'plume' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
