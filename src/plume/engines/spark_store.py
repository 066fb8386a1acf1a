"""The store as executors see it: a function of Spark SQL that asks it, and the check that they can.

What is in here runs on executors, which therefore need Plume with its store extra; nothing else of Plume runs there.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stubs lack them

from plume.errors import SettingError
from plume.lookup.store import StoredKeys, ask, connect, encode
from plume.redaction import Redaction
from plume.version import __version__

_PROBES = 8


def asking(stored: StoredKeys) -> Any:
    """Make the function that tells of keys whether they are selected, with one connection for all batches of a task."""

    def is_selected(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        with connect(stored.url) as client:
            for keys in batches:
                encoded = encode(keys)
                held = ask(client, stored, encoded)
                yield pa.array([held[key] for key in encoded], pa.bool_())

    return arrow_udf(is_selected, "boolean")


def refuse_bare_workers(session: Any, url: str) -> None:
    """Let executors reach the store once, and say plainly why if they cannot."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with connect(url) as client:
            client.ping()
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"version": [__version__] * batch.num_rows})

    with Redaction((Exception,), _failure):  # no data was touched yet, but the address may hold a password
        rows = session.range(_PROBES, numPartitions=_PROBES).mapInArrow(probe, "version string").toArrow()
        versions = set(rows.column("version").to_pylist())
    if versions != {__version__}:
        raise SettingError(
            f"executors have another version of Plume than {__version__}, which the driver has; install the same."
        )


def _failure(error: Exception) -> SettingError:
    if "ModuleNotFoundError" in str(error):
        return SettingError(
            "executors cannot ask the store: Plume or redis is not installed there; install Plume's wheel and redis on them, "
            "or leave the store out."
        )
    return SettingError(
        "executors cannot reach the store; check that it is running, and that its address is valid on their machines."
    )
