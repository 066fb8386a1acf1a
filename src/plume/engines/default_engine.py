"""Which engine answers where none is named, and what may be named as one."""

from collections.abc import Iterable
from typing import Any

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.engines.frames import is_spark_frame
from plume.errors import SettingError, UsageError, type_in_words
from plume.plan.dialect import Dialect


def default_engine(data: Iterable[Any]) -> Engine:
    """Data that is an engine itself, as a table in PostgreSQL is, Spark if any of the data lies there, DuckDB for everything else."""
    given = list(data)
    # Asked of the class first: data is not touched before all else that is asked for is known to be right.
    lying: list[Engine] = [one for one in given if hasattr(type(one), "dialect") and _is_engine(one)]
    if lying:
        return lying[0]
    if not any(map(is_spark_frame, given)):
        return DuckDB()
    from plume.engines.spark import Spark  # noqa: PLC0415 - an extra, and slow to import

    return Spark()


def refuse_other_than_engine(engine: Any) -> None:
    """Refuse what cannot open data or speaks no SQL."""
    if not _is_engine(engine):
        raise SettingError(f"engine is {type_in_words(engine)}; it must be an engine, such as plume.DuckDB().")


def refuse_uncomputing(engine: Engine) -> None:
    """Refuse statements and computed keys on an engine where it is not known of any expression that no row makes it fail."""
    if not engine.dialect.statements.computes:
        raise UsageError(
            f"{type(engine).__name__} takes no statements and computes no keys; ask a plume.Query about columns of its table as they are."
        )


def _is_engine(given: Any) -> bool:
    return callable(getattr(given, "open", None)) and isinstance(getattr(given, "dialect", None), Dialect)
