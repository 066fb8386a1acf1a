"""What Spark says is withheld: its errors quote values, and both Spark and PySpark log them, even those that somebody catches."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from plume.engines.failures import redacted
from plume.errors import EngineError, PlumeError, ResourceError, StoreError

# PySpark's two loggers of failing queries, those of its gateway to Java, and Spark Connect's.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j", "pyspark")
_JAVA_LOGGER = "org.apache.spark"
_OUT_OF_ROOM = ("OutOfMemoryError", "No space left on device", "maxResultSize", "MemoryError")
# What Spark says of a piece that it may not compute again.
_LOST = ("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "Checkpoint block")
_OF_THE_STORE = ("plume.errors.StoreError", "redis.exceptions")

_Result = TypeVar("_Result")


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


def withheld(step: str, call: Callable[[], _Result]) -> _Result:
    """Call into Spark; its errors quote data, so they end here and a plain sentence goes on."""
    return redacted(call, lambda error: _failure(step, error))


def _failure(step: str, error: Exception) -> PlumeError:
    """Say what went wrong in words of our own."""
    if any(sign in str(error) for sign in _OUT_OF_ROOM) or isinstance(error, MemoryError):
        return ResourceError(
            f"step {step} ran out of memory or disk space; give executors more, or make pieces smaller with spark.sql.shuffle.partitions."
        )
    if any(sign in str(error) for sign in _LOST):
        return ResourceError(
            f"an executor was lost, and with it what step {step} reads; nothing was released. Run again, and give a folder that outlives "
            "executors, as in plume.Spark(keep_in='s3a://bucket/folder')."
        )
    if any(sign in str(error) for sign in _OF_THE_STORE):
        return StoreError(
            f"the store of selected keys failed at step {step}; nothing was released. Check that all of its nodes are up."
        )
    return EngineError(f"Spark failed at step {step}; its message is withheld, since it may quote data.")
