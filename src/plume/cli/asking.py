"""Options become a query and an engine."""

from collections.abc import Mapping
from typing import Any

from plume.cli.measure_text import parse_measure
from plume.engines.duckdb import DuckDB
from plume.privacy.budget import Budget
from plume.query import Query


def make_query(options: Mapping[str, Any]) -> Query:
    """Make the query that the options ask."""
    return Query(
        user=options["user"],
        keys=options["keys"],
        measures=tuple(parse_measure(text) for text in options["measures"]),
        max_keys_per_user=options["max_keys_per_user"],
        budget=Budget(epsilon=options["epsilon"], delta=options["delta"]),
        where=options["where"],
        public_keys=options["public_keys"],
        min_users=options["min_users"],
        selection=options["selection"],
        noise=options["noise"],
        composition=options["composition"],
        shares=options["shares"],
    )


def make_engine(options: Mapping[str, Any]) -> DuckDB:
    """Make the engine that the options describe."""
    return DuckDB(
        memory_limit=options["memory_limit"],
        threads=options["threads"],
        temp_directory=options["temp_directory"],
    )
