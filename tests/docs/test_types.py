"""The examples are right in the eyes of type checkers: whoever copies one into a typed project sees no error."""

import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import README, python_blocks

FIRST = python_blocks(README)[0].code
# What else may be written: one measure, tuples, a mapping, open numbers, all settings.
SETTINGS = """
import plume

plume.Query(user="u", keys=("a", "b"), measures=plume.users(), max_keys_per_user="auto", budget=plume.Budget(epsilon=1, delta=1e-6))
plume.Query(user="u", keys=["a", "b"], measures=(plume.count("auto"), plume.sum("x", 0, "auto"), plume.mean("x", 0, 1)),
    max_keys_per_user=3, budget=plume.Budget(epsilon=1), where="x > 1", public_keys=[("a", 1)], min_users=3,
    selection="gaussian_threshold", noise="gaussian", composition="tight", shares={"selection": 2, "count": 1.5})
release = plume.run(plume.Query.paper(user="u", keys="a", measures=plume.median("x", 0, 1), max_keys_per_user=3,
    budget=plume.Budget(epsilon=1, delta=1e-6)), "rows.parquet")
keys: tuple[str, ...] = release.explanation.asked.query.keys
"""
WRONG = FIRST.replace('keys="recipe"', "keys=3")


@pytest.fixture(params=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """Counts what a type checker, at its strictest with ours and at its defaults for strangers, finds wrong in a program."""

    def check(program: str) -> str:
        (tmp_path / "program.py").write_text(program, encoding="utf-8")
        settings = {
            "mypy": ["--strict", "--cache-dir", str(tmp_path / "cache")],
            "pyright": ["--pythonpath", sys.executable],
        }
        command = [sys.executable, "-m", request.param, *settings[request.param], "program.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        return "" if done.returncode == 0 else done.stdout + done.stderr

    return check


@pytest.mark.parametrize("program", [FIRST, SETTINGS], ids=["README", "settings"])
def test_type_checkers_find_nothing_wrong(errors, program: str) -> None:
    assert errors(program) == ""


def test_type_checkers_find_what_is_wrong(errors) -> None:
    assert "keys" in errors(WRONG)
