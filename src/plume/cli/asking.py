"""Options become a query and an engine."""

from collections.abc import Mapping
from typing import Any

from plume.cli.measure_text import parse_measure
from plume.engines.duckdb import DuckDB
from plume.errors import UsageError
from plume.ledger.ledger import Dataset, Ledger
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
        shares=options["shares"],
    )


def find_dataset(options: Mapping[str, Any]) -> Dataset | None:
    """Find the dataset that is to be charged, if any is."""
    if options["ledger"] is None:
        if options["dataset"] is not None or options["release_id"] is not None:
            raise UsageError("--dataset and --release-id need --ledger, the file they are charged to.")
        return None
    if options["dataset"] is None:
        raise UsageError("--ledger needs --dataset, the name of the dataset to charge.")
    return Ledger(options["ledger"]).dataset(options["dataset"])


def make_engine(options: Mapping[str, Any]) -> DuckDB:
    """Make the engine that the options describe."""
    return DuckDB(
        memory_limit=options["memory_limit"],
        threads=options["threads"],
        temp_directory=options["temp_directory"],
    )
