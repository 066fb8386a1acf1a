"""Options become a query and an engine."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from plume.cli.measure_text import parse_measure
from plume.cli.public_keys import read_public_keys
from plume.declaration import private
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.errors import MissingPackage, UsageError
from plume.ledger.ledger import Dataset, Ledger
from plume.privacy.budget import Budget
from plume.query import Query
from plume.settings import CORRELATED, SETTINGS


def make_query(options: Mapping[str, Any]) -> Query:
    """Make the query that the options ask."""
    given = {setting.name: options[setting.name] for setting in SETTINGS}
    budget = Budget(epsilon=given.pop("epsilon"), delta=given.pop("delta"))
    if options["no_keys"] and (given["keys"] or given["key_expressions"]):
        raise UsageError("--no-keys asks for a total, which has no keys; leave --key and --key-as out.")
    if given["max_keys_per_user"] is None:  # a total has none
        del given["max_keys_per_user"]
    if given["noise"] == CORRELATED and given["public_keys"] and given["keys"]:
        given["public_keys"] = read_public_keys(given["public_keys"], given["keys"])
    measures = tuple(parse_measure(text) for text in given.pop("measures"))
    return Query(**given, measures=measures, budget=budget)


def declare(tables: Mapping[str, Any], units: Mapping[str, str]) -> dict[str, Any]:
    """Declare the units of tables, where any is given."""
    if unknown := [name for name in units if name not in tables]:
        raise UsageError(f"--unit names {unknown[0]!r}, which no --table does; give --table {unknown[0]}=FILE as well.")
    return {name: private(data, unit=units[name]) if name in units else data for name, data in tables.items()}


def find_dataset(options: Mapping[str, Any]) -> Dataset | None:
    """Find the dataset that is to be charged, if any is."""
    if options["ledger"] is None:
        if options["dataset"] is not None or options["release_id"] is not None:
            raise UsageError("--dataset and --release-id need --ledger, the file they are charged to.")
        return None
    if options["dataset"] is None:
        raise UsageError("--ledger needs --dataset, the name of the dataset to charge.")
    return Ledger(options["ledger"]).dataset(options["dataset"])


def make_engine(options: Mapping[str, Any]) -> Engine:
    """Make the engine that the options describe, and refuse options of others."""
    for engine, (names, _) in ENGINES.items():
        given = [name for name in names if options[name]]
        if given and engine != options["engine"]:
            option = "--spark-conf" if given[0] == "spark_settings" else f"--{given[0].replace('_', '-')}"
            raise UsageError(f"{option} is not for --engine {options['engine']}; leave one of them out.")
    _, make = ENGINES[options["engine"]]
    return make(options)


def _make_duckdb(options: Mapping[str, Any]) -> Engine:
    return DuckDB(
        memory_limit=options["memory_limit"],
        threads=options["threads"],
        temp_directory=options["temp_directory"],
    )


def _make_spark(options: Mapping[str, Any]) -> Engine:
    if find_spec("pyspark") is None:
        raise MissingPackage("--engine spark", "PySpark")
    from plume.engines.spark import Spark  # noqa: PLC0415 - an extra, and slow to import
    from plume.engines.spark_session import start_session  # noqa: PLC0415 - the same

    # A wrong setting is said before Spark starts, which takes seconds.
    engine = Spark(
        lookup=options["spark_lookup"] or "auto", store=options["spark_store"], keep_in=options["spark_keep_in"]
    )
    session = start_session(
        master=options["spark_master"], remote=options["spark_remote"], settings=options["spark_settings"]
    )
    return replace(engine, session=session)


ENGINES: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Engine]]] = {
    "duckdb": (("memory_limit", "threads", "temp_directory"), _make_duckdb),
    "spark": (
        ("spark_lookup", "spark_store", "spark_keep_in", "spark_master", "spark_remote", "spark_settings"),
        _make_spark,
    ),
}
"""The options of each engine, and what makes it of them."""
