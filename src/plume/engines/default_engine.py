"""Which engine answers where none is named, and what may be named as one."""

from collections.abc import Iterable
from typing import Any

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.engines.frames import is_spark_frame
from plume.errors import SettingError, type_in_words
from plume.plan.dialect import Dialect


def default_engine(data: Iterable[Any]) -> Engine:
    """Spark if any of the data lies there, DuckDB for everything else."""
    if not any(map(is_spark_frame, data)):
        return DuckDB()
    from plume.engines.spark import Spark  # noqa: PLC0415 - an extra, and slow to import

    return Spark()


def refuse_other_than_engine(engine: Any) -> None:
    """Refuse what cannot open data or speaks no SQL."""
    if not callable(getattr(engine, "open", None)) or not isinstance(getattr(engine, "dialect", None), Dialect):
        raise SettingError(f"engine is {type_in_words(engine)}; it must be an engine, such as plume.DuckDB().")
