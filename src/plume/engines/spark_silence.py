"""Silence while a run is under way: Spark and PySpark log errors with the values that caused them, even those somebody catches."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# PySpark's two loggers of failing queries, those of its gateway to Java, and Spark Connect's.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j", "pyspark")
_JAVA_LOGGER = "org.apache.spark"


@contextmanager
def silence(session: Any) -> Iterator[None]:
    """Keep the loggers of this process quiet, and those of its Java; what a remote server logs is its owner's."""
    loggers = [logger for name in _LOGGERS for logger in _family(name)]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with _java_silence(session):
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _family(name: str) -> list[logging.Logger]:
    """A logger and those below it, which do not ask it whether they may speak."""
    known = [other for other in logging.Logger.manager.loggerDict if other.startswith(f"{name}.")]
    return [logging.getLogger(one) for one in (name, *known)]


@contextmanager
def _java_silence(session: Any) -> Iterator[None]:
    if not hasattr(session, "_jvm"):  # Spark Connect: the Java is elsewhere
        yield
        return
    log4j = session._jvm.org.apache.logging.log4j  # noqa: SLF001 - PySpark has no other way to Java's loggers
    level = log4j.LogManager.getLogger(_JAVA_LOGGER).getLevel()
    configurator = log4j.core.config.Configurator
    configurator.setLevel(_JAVA_LOGGER, log4j.Level.OFF)
    try:
        yield
    finally:
        configurator.setLevel(_JAVA_LOGGER, level)
