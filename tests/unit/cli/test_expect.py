import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Invoke = Callable[..., Result]


@pytest.fixture
def expect(invoke: Invoke, asked: list[str]) -> Invoke:
    return lambda *more: invoke("expect", *asked, *more)


def test_a_table_is_printed(expect: Invoke) -> None:
    result = expect()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("expected from the query alone")


def test_formulas_in_names_are_made_harmless_in_csv(expect: Invoke) -> None:
    header = expect("--measure", 'users AS "=1+1"', "--format", "csv").stdout.splitlines()[0]
    assert '"\'=1+1_half_width"' in header
    assert '"=1+1' not in header


def test_the_grid_is_printed_as_csv(expect: Invoke) -> None:
    result = expect("--limit", 8, "--limit", 2, "--at-epsilon", 1.5, "--users-per-key", 30, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["max_keys_per_user"], float(row["epsilon"]), row["users"]) for row in rows] == [
        (limit, epsilon, "30") for limit in ("2", "4", "8") for epsilon in (1.5, 50)
    ]


def test_the_record_is_printed_as_json(expect: Invoke) -> None:
    record = json.loads(expect("--keys-of-user", 2, "--format", "json").stdout)
    assert record["keys_of_user"] == 2
    assert record["prospects"][0]["noise"][0]["measure"] == "count"


def test_a_limit_that_is_none_is_wrong_use(expect: Invoke) -> None:
    result = expect("--limit", 0)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: max_keys_per_user is 0; it must be a whole number from 1 to 1000000, or 'auto'.\n"


def test_a_page_of_curves_is_written_once(expect: Invoke, tmp_path: Path) -> None:
    report = tmp_path / "expected.html"
    result = expect("--report", report)
    assert (result.exit_code, result.stderr) == (0, f"report written to {report}\n")
    assert "<figure" in report.read_text()
    assert expect("--report", report).exit_code == 2
    assert expect("--report", report, "--force", "--quiet").stderr == ""
