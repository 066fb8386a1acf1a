"""Servers that speak Spark Connect and are not Spark: what they do otherwise, and say nothing of, is found out before a row is read."""

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import ArithmeticException

from plume.engines.spark_silence import withheld
from plume.errors import SettingError

_OVERFLOW = "SELECT CAST(9223372036854775807 AS BIGINT) + CAST(1 AS BIGINT) AS wrapped"
# A server is asked once for each session of a caller's: it takes as long as a small question.
_ACTS: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def refuse_other_than_spark(caller: Any, session: Any) -> None:
    """Refuse a server that takes the settings of a run and does not act on them; `session` is one that has them.

    Guarantee: what the proofs take for an error is one. docs/guarantees/reading.md.
    """
    if hasattr(caller, "_jvm"):
        return
    if caller not in _ACTS:
        _ACTS[caller] = withheld("input", lambda: fails_on_overflow(session))
    if not _ACTS[caller]:
        raise SettingError(
            "this server takes the setting spark.sql.ansi.enabled and does not act on it: integers that overflow come out as others. "
            "Use Spark 4.1 or newer; servers that speak its protocol, such as Sail, are not supported."
        )


def fails_on_overflow(session: Any) -> bool:
    """Return whether a sum that 64 bits do not hold is an error."""
    try:
        session.sql(_OVERFLOW).toArrow()
    except ArithmeticException:
        return True
    return False
