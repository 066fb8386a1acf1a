import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from plume.noise.laplace import DiscreteLaplace

Invoke = Callable[..., Result]
ASKED = [
    "--user",
    "u",
    "--key",
    "k",
    "--measure",
    "users",
    "--epsilon",
    "1",
    "--max-keys-per-user",
    "2",
    "--trials",
    "4000",
]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.csv"
    path.write_text("k\na\n")
    return path


def test_a_report_is_printed(invoke: Invoke, keys: Path) -> None:
    result = invoke("audit", *ASKED, "--public-keys", keys)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[2].split() == ["verdict", "layer", "claimed", "found", "trials", "test"]
    assert result.stdout.splitlines()[-1].endswith("tests passed")


def test_a_report_is_written(invoke: Invoke, keys: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    result = invoke("audit", *ASKED, "--public-keys", keys, "--out", out)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"report written to {out}\n")
    assert json.loads(out.read_text())["passed"] is True


def test_a_bug_ends_with_1_and_the_report_is_there(
    invoke: Invoke, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = DiscreteLaplace.sample
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda self, size, entropy: original(self, size, entropy) // 2)
    out = tmp_path / "audit.txt"
    result = invoke("audit", *ASKED, "--public-keys", keys, "--out", out, "--quiet")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: the audit found a privacy bug; please report it as SECURITY.md says, with this report.\n"
    )
    assert "FAIL" in out.read_text()


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_tried(invoke: Invoke, keys: Path) -> None:
    result = invoke("audit", *ASKED, "--public-keys", keys, "--out", "report.pdf")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "does not end in .json or .txt" in result.stderr
