"""Starting Spark where nobody has: on this machine, on a cluster's master or on a Spark Connect server."""

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from plume.engines.java import find_java
from plume.errors import SettingError

# A Spark that Plume started has nobody else to talk to, and its log quotes data.
_SETTINGS = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}


def active_session() -> Any:
    """Give the session that is active in this process, or start one on this machine."""
    return SparkSession.getActiveSession() or start_session()


def start_session(
    *, master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> Any:
    """Start Spark on a master, such as `local[2]`, or connect to a server, such as `sc://host:15002`."""
    if master is not None and remote is not None:
        raise SettingError("a master and a remote server were both given; Spark runs on one of them.")
    builder = SparkSession.builder.appName("plume").config(map={**_SETTINGS, **(settings or {})})
    if remote is None or remote.startswith("local"):
        if home := find_java():
            os.environ["JAVA_HOME"] = home
        # Workers on this machine run this very Python, with what is installed in it.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    started, failed = None, False
    try:
        # A server does not take all settings that a new Spark takes, and says so for each; what it takes is what counts.
        with warnings.catch_warnings(action="ignore"):
            wanted = builder.master(master or "local[*]") if remote is None else builder.remote(remote)
            started = wanted.getOrCreate()
    except Exception:  # noqa: BLE001 - Spark's own words may hold what the settings held, such as passwords
        failed = True
    if failed:
        where = f"master {master!r}" if remote is None else "that remote server"
        raise SettingError(f"Spark did not start on {where}; is it there, and are the settings right?")
    return started
