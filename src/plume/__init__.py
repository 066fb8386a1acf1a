"""Differentially private GROUP BY at any scale.

The public names; each is imported when first used, so that `plume --help` need not wait for engines.
"""

from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from plume.version import __version__

if TYPE_CHECKING:
    from plume.auditing.audit import Audit, audit
    from plume.declaration import private, public
    from plume.engines.duckdb import DuckDB
    from plume.engines.engine import DatabaseTable
    from plume.engines.postgresql import PostgreSQL
    from plume.engines.spark import Spark
    from plume.errors import PlumeError, PlumeWarning
    from plume.explanation import Explanation
    from plume.ledger.ledger import Ledger
    from plume.mechanisms.count import count
    from plume.mechanisms.histogram import histogram
    from plume.mechanisms.mean import mean
    from plume.mechanisms.quantiles import maximum, median, minimum, quantiles
    from plume.mechanisms.sum import sum  # noqa: A004 - plume.sum, as in pandas and SQL
    from plume.mechanisms.users import users
    from plume.mechanisms.variance import stddev, variance
    from plume.mechanisms.vector_sum import vector_sum
    from plume.output.engine_errors import engine_errors_to
    from plume.privacy.budget import Budget
    from plume.query import Query
    from plume.release import Release
    from plume.running import explain, run
    from plume.statement.answering import explain_sql, sql
    from plume.tuning.expectation import Expectation, expect
    from plume.tuning.need import Need, need
    from plume.tuning.tuning import NotPrivateTuning, tune

__all__ = [
    "Audit",
    "Budget",
    "DatabaseTable",
    "DuckDB",
    "Expectation",
    "Explanation",
    "Ledger",
    "Need",
    "NotPrivateTuning",
    "PlumeError",
    "PlumeWarning",
    "PostgreSQL",
    "Query",
    "Release",
    "Spark",
    "__version__",
    "audit",
    "count",
    "engine_errors_to",
    "expect",
    "explain",
    "explain_sql",
    "histogram",
    "maximum",
    "mean",
    "median",
    "minimum",
    "need",
    "private",
    "public",
    "quantiles",
    "run",
    "sql",
    "stddev",
    "sum",
    "tune",
    "users",
    "variance",
    "vector_sum",
]

_HOMES = {
    "Audit": "plume.auditing.audit",
    "Budget": "plume.privacy.budget",
    "DatabaseTable": "plume.engines.engine",
    "DuckDB": "plume.engines.duckdb",
    "Expectation": "plume.tuning.expectation",
    "Explanation": "plume.explanation",
    "Ledger": "plume.ledger.ledger",
    "Need": "plume.tuning.need",
    "NotPrivateTuning": "plume.tuning.tuning",
    "PlumeError": "plume.errors",
    "PlumeWarning": "plume.errors",
    "PostgreSQL": "plume.engines.postgresql",
    "Query": "plume.query",
    "Release": "plume.release",
    "Spark": "plume.engines.spark",
    "audit": "plume.auditing.audit",
    "count": "plume.mechanisms.count",
    "engine_errors_to": "plume.output.engine_errors",
    "expect": "plume.tuning.expectation",
    "explain": "plume.running",
    "explain_sql": "plume.statement.answering",
    "histogram": "plume.mechanisms.histogram",
    "maximum": "plume.mechanisms.quantiles",
    "mean": "plume.mechanisms.mean",
    "median": "plume.mechanisms.quantiles",
    "minimum": "plume.mechanisms.quantiles",
    "need": "plume.tuning.need",
    "private": "plume.declaration",
    "public": "plume.declaration",
    "quantiles": "plume.mechanisms.quantiles",
    "run": "plume.running",
    "sql": "plume.statement.answering",
    "stddev": "plume.mechanisms.variance",
    "sum": "plume.mechanisms.sum",
    "tune": "plume.tuning.tuning",
    "users": "plume.mechanisms.users",
    "variance": "plume.mechanisms.variance",
    "vector_sum": "plume.mechanisms.vector_sum",
}

_PACKAGES = {
    "plume.engines.spark": ("plume.Spark", "PySpark"),
    "plume.engines.postgresql": ("plume.PostgreSQL", "psycopg"),
}


if not TYPE_CHECKING:  # which would find every name, right or wrong

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'plume' has no attribute {name!r}{_hint(name)}")
        value = getattr(_imported(_HOMES[name]), name)
        globals()[name] = value
        return value


def _imported(home: str) -> Any:
    """Import a module; those of some engines need a package that not everybody has."""
    try:
        return import_module(home)
    except ModuleNotFoundError:
        if home not in _PACKAGES:
            raise
        missing = import_module("plume.errors").MissingPackage(*_PACKAGES[home])
    raise missing


def _hint(name: str) -> str:
    """Point to what was meant, also by the names that others use; Python itself does so in some terminals only."""
    if name.startswith("_") or find_spec(f"plume.{name}") is not None:  # a module that is about to be imported
        return ""
    word = import_module("plume.mechanisms.forms").nearest(name)
    meant = [word] if word else get_close_matches(name, __all__, n=1)
    return f"; did you mean plume.{meant[0]}?" if meant else ""


def __dir__() -> list[str]:
    return sorted(__all__)
