"""Starting Spark where nobody has: on this machine, on a cluster's master or on a Spark Connect server."""

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from plume.engines.java import find_java
from plume.errors import SettingError
from plume.redaction import redacting

# A Spark that Plume started has nobody else to talk to, and its log quotes data.
_SETTINGS = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}
# A server that Plume started is for this machine alone, on any port that is free.
_LOCAL_SERVER = {"spark.connect.grpc.binding.address": "localhost", "spark.connect.grpc.binding.port": "0"}


def active_session() -> Any:
    """Give the session that is active in this process, or start one on this machine."""
    return SparkSession.getActiveSession() or start_session()


def start_session(
    *, master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> Any:
    """Start Spark on a master, such as `local[2]`, or connect to a server, such as `sc://host:15002`.

    With a remote of `local[2]` the server is started too, in this process and on any port that is free.
    """
    if master is not None and remote is not None:
        raise SettingError("a master and a remote server were both given; Spark runs on one of them.")
    if remote is None or remote.startswith("local"):
        if home := find_java():
            os.environ["JAVA_HOME"] = home
        # Workers on this machine run this very Python, with what is installed in it.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    where = f"master {master!r}" if remote is None else "that remote server"
    refusal = SettingError(f"Spark did not start on {where}; check that it is there and that the settings are right.")
    # Spark's own words may hold what the settings held, such as passwords. A server does not take all settings that a new Spark takes, and
    # says so for each; what it takes is what counts.
    with redacting(Exception, to=refusal), warnings.catch_warnings(action="ignore"):
        return _start({"spark.app.name": "plume", **_SETTINGS, **(settings or {})}, master, remote)


def _start(settings: dict[str, Any], master: str | None, remote: str | None) -> Any:
    if remote is None:
        return SparkSession.builder.config(map=settings).master(master or "local[*]").getOrCreate()
    if remote.startswith("local") and not _is_running():
        return _start_server(settings, remote)
    return SparkSession.builder.config(map=settings).remote(remote).getOrCreate()


def _is_running() -> bool:
    """Say if this process runs Spark already."""
    from pyspark import SparkContext  # noqa: PLC0415 - a PySpark that only connects has none

    return SparkContext._active_spark_context is not None  # noqa: SLF001 - PySpark asks itself the same way


def _start_server(settings: dict[str, Any], master: str) -> Any:
    """Start a Spark Connect server in this process, and connect to it.

    Left to itself, PySpark always connects to port 15002, where somebody else's server may be.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - a PySpark that only connects has none
    from pyspark.sql.connect.session import SparkSession as Remote  # noqa: PLC0415 - it needs packages of its own

    options = {**_LOCAL_SERVER, **settings}
    os.environ["SPARK_LOCAL_REMOTE"] = "1"  # the mark by which stopping the session stops the server
    Remote._start_connect_server(master, options)  # noqa: SLF001 - leaves those settings in options that a session takes
    service = getattr(SparkContext._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")  # noqa: SLF001
    port = getattr(service, "MODULE$").localPort()
    return SparkSession.builder.config(map=options).remote(f"sc://localhost:{port}").create()
