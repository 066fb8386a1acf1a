from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result

from plume.synthetic import write_paper_data

Invoke = Callable[..., Result]


def test_synth_writes_the_papers_data(invoke: Invoke, tmp_path: Path) -> None:
    out, expected = tmp_path / "made_up.parquet", tmp_path / "expected.parquet"
    result = invoke("synth", "--users", "1e3", "--out", out, "--seed", "7")
    rows = write_paper_data(expected, 1000, seed=7)
    assert pq.read_table(out).equals(pq.read_table(expected))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Making up 1,000 users\n{rows:,} rows written to {out}\n"


def test_synth_can_be_quiet(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("synth", "--users", "10", "--out", tmp_path / "made_up.parquet", "-q").output == ""


def test_synth_replaces_a_file_only_by_force(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "made_up.parquet"
    out.touch()
    assert invoke("synth", "--users", "10", "--out", out).exit_code == 2
    assert invoke("synth", "--users", "10", "--out", out, "--force").exit_code == 0


@pytest.mark.parametrize("users", ["0", "-1", "1.5", "many", "nan", "inf", "1e13", "1e999999"])
def test_a_number_of_users_that_is_none_is_refused(invoke: Invoke, tmp_path: Path, users: str) -> None:
    result = invoke("synth", f"--users={users}", "--out", tmp_path / "made_up.parquet")
    assert result.exit_code == 2
    assert f"'{users}' is not a whole number from 1 to 1,000,000,000,000" in result.stderr


def test_a_file_that_is_no_parquet_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("synth", "--users", "10", "--out", tmp_path / "made_up.csv")
    assert result.exit_code == 2
    assert "does not end in .parquet" in result.stderr


def test_a_full_disk_is_told_in_a_sentence(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_options: object) -> int:
        raise OSError(28, "no space left")

    monkeypatch.setattr("plume.cli.synthesis.write_paper_data", full)
    result = invoke("synth", "--users", "10", "--out", tmp_path / "made_up.parquet")
    assert result.exit_code == 2
    assert "could not be written; check that there is free space." in result.stderr
