import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Invoke = Callable[..., Result]


@pytest.fixture
def tune(invoke: Invoke, searches: Path, asked: list[str]) -> Invoke:
    return lambda *more: invoke("tune", searches, *asked, "--limit", 2, *more)


def test_a_table_is_printed_and_says_not_private(tune: Invoke) -> None:
    result = tune()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("NOT PRIVATE: ")
    assert "max_per_key=3" in result.stdout


def test_the_grid_is_what_was_asked(tune: Invoke) -> None:
    more = ["--at-epsilon", 9, "--at-selection", "gaussian_threshold", "--at-measure", "count(1)", "--format", "json"]
    record = json.loads(tune(*more).stdout)
    assert record["warning"].startswith("NOT PRIVATE")
    assert {(row["epsilon"], row["selection"]) for row in record["tried"]} == {
        (epsilon, selection) for epsilon in (9, 50) for selection in ("auto", "gaussian_threshold")
    }
    assert {(row["max_keys_per_user"], row["bounds"]) for row in record["tried"]} == {
        (limit, bounds) for limit in (2, 4) for bounds in ("max_per_key=1", "max_per_key=3")
    }


def test_csv_goes_to_standard_output_or_a_file_whose_name_says_it(tune: Invoke, tmp_path: Path) -> None:
    printed = tune("--format", "csv").stdout
    result = tune("--out", tmp_path / "tuned.csv")
    written = tmp_path / "tuned.NOT-PRIVATE.csv"
    assert (result.exit_code, result.stderr) == (0, f"NOT PRIVATE: written to {written}\n")
    assert printed == written.read_text()
    assert all("NOT PRIVATE" in line for line in printed.splitlines()[1:])


def test_formulas_in_names_are_made_harmless_in_csv(tune: Invoke, tmp_path: Path) -> None:
    named = ["--measure", 'users AS "=1+1"']
    assert tune(*named, "--out", tmp_path / "tuned.csv").exit_code == 0
    for csv in (tune(*named, "--format", "csv").stdout, (tmp_path / "tuned.NOT-PRIVATE.csv").read_text()):
        assert '"\'=1+1"' in csv
        assert '"=1+1"' not in csv


def test_a_file_that_exists_is_not_replaced(tune: Invoke, tmp_path: Path) -> None:
    written = tmp_path / "tuned.NOT-PRIVATE.json"
    written.write_text("mine")
    result = tune("--out", tmp_path / "tuned.json")
    assert (result.exit_code, written.read_text()) == (2, "mine")
    assert tune("--out", tmp_path / "tuned.json", "--force", "--quiet").stderr == ""
    assert json.loads(written.read_text())["keys"] == 3


@pytest.mark.parametrize(("option", "ending"), [("--out", "csv"), ("--out", "json"), ("--report", "html")])
def test_what_is_not_private_is_open_only_to_whom_the_umask_lets_in(
    tune: Invoke, tmp_path: Path, option: str, ending: str
) -> None:
    before = os.umask(0o077)
    try:
        assert tune(option, tmp_path / f"tuned.{ending}").exit_code == 0
    finally:
        os.umask(before)
    assert (tmp_path / f"tuned.NOT-PRIVATE.{ending}").stat().st_mode & 0o777 == 0o600


def test_a_page_of_curves_says_not_private_in_its_name(tune: Invoke, tmp_path: Path) -> None:
    result = tune("--report", tmp_path / "tuned.html")
    written = tmp_path / "tuned.NOT-PRIVATE.html"
    assert (result.exit_code, result.stderr) == (0, f"NOT PRIVATE: written to {written}\n")
    assert "NOT PRIVATE" in written.read_text()
    assert tune("--report", tmp_path / "tuned.html").exit_code == 2
