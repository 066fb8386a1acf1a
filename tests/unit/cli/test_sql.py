"""`plume sql`, `plume explain` of a statement, and `plume completion`."""

import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Invoke = Callable[..., Result]
OPTIONS = "epsilon = 50, delta = 1e-5, max_groups_contributed = 4, privacy_unit_column = user_id"
COUNT = "COUNT(*, contribution_bounds_per_group => (0, 3)) AS n"
STATEMENT = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS})\nrecipe, {COUNT}\nFROM searches GROUP BY recipe ORDER BY recipe DESC"


def test_a_statement_is_answered(invoke: Invoke, searches: Path) -> None:
    result = invoke("sql", STATEMENT, "--table", f"searches={searches}", "--format", "json", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [row["recipe"] for row in json.loads(result.stdout)] == ["red\x1b[31m", "lasagna", "=1+1"]


def test_files_are_read_by_their_paths(invoke: Invoke, searches: Path) -> None:
    result = invoke("sql", STATEMENT.replace("searches", f"'{searches}'"), "--quiet")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 4)


def test_a_wrong_statement_ends_with_2_and_its_place(invoke: Invoke, searches: Path) -> None:
    result = invoke("sql", STATEMENT.replace("GROUP BY recipe", "GROUP BY 9"), "--table", f"searches={searches}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: line 3, column 24: there is no column 9 in the list of this SELECT.\n"


@pytest.mark.parametrize("more", [["--table", "searches"], ["--table", "a=1", "--table", "a=2"], ["--table", "=x"]])
def test_wrong_tables_end_with_2(invoke: Invoke, more: list[str]) -> None:
    assert invoke("sql", STATEMENT, *more).exit_code == 2


def test_a_unit_that_is_declared_is_the_unit(invoke: Invoke, searches: Path) -> None:
    declared = ["--table", f"searches={searches}", "--unit", "searches=user_id", "--quiet"]
    assert invoke("sql", STATEMENT, *declared).exit_code == 0


OTHER_UNIT = STATEMENT.replace("privacy_unit_column = user_id", "privacy_unit_column = recipe")
REFUSED_BESIDE_UNITS = {
    "another unit": (OTHER_UNIT, [], "belong to the user in 'user_id', as declared, and not to the one in 'recipe'"),
    "a path": (STATEMENT.replace("FROM searches", "FROM '{path}'"), [], "a statement can name no others"),
    "a table that is not declared": (
        STATEMENT.replace("FROM searches", "FROM others"),
        ["--table", "others={path}"],
        "is not declared and others are",
    ),
    "a unit of no table": (STATEMENT, ["--unit", "visits=user_id"], "--unit names 'visits', which no --table does"),
}


@pytest.mark.parametrize("case", REFUSED_BESIDE_UNITS)
def test_beside_units_that_are_declared_others_end_with_2(invoke: Invoke, searches: Path, case: str) -> None:
    statement, more, words = REFUSED_BESIDE_UNITS[case]
    declared = ["--table", f"searches={searches}", "--unit", "searches=user_id"]
    result = invoke("sql", statement.format(path=searches), *declared, *(one.format(path=searches) for one in more))
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


def test_the_data_of_a_statement_are_never_replaced(invoke: Invoke, searches: Path) -> None:
    before = searches.read_bytes()
    result = invoke("sql", STATEMENT.replace("searches", f"'{searches}'"), "--out", searches, "--force")
    assert (result.exit_code, "is part of the data" in result.stderr) == (2, True)
    assert searches.read_bytes() == before


def test_a_statement_is_charged(invoke: Invoke, searches: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "budget.ledger"
    invoke("ledger", "create", ledger, "--dataset", "searches", "--epsilon", 60, "--delta", 1e-4)
    charged = ["--table", f"searches={searches}", "--ledger", ledger, "--dataset", "searches"]
    assert invoke("sql", STATEMENT, *charged).exit_code == 0
    assert invoke("sql", STATEMENT, *charged).exit_code == 3


def test_a_statement_is_explained_as_its_query(invoke: Invoke, asked: list[str]) -> None:
    options = [word if word != "count(3)" else "count(3) AS n" for word in asked]
    for more in ([], ["--sql", "spark"], ["--format", "json"], ["--pipeline", "naive"]):
        stated = invoke("explain", STATEMENT, "--table", "searches=none.parquet", *more)
        assert (stated.exit_code, stated.stdout) == (0, invoke("explain", *options, *more).stdout)


def test_a_report_shows_the_statement(invoke: Invoke, searches: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = invoke("sql", STATEMENT, "--table", f"searches={searches}", "--report", page)
    assert result.exit_code == 0
    assert STATEMENT in html.unescape(page.read_text(encoding="utf-8"))


def test_a_record_is_json(invoke: Invoke, asked: list[str]) -> None:
    assert json.loads(invoke("explain", *asked, "--format", "json").stdout)["query"]["user"] == "user_id"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([STATEMENT, "--user", "u"], "--user cannot be combined with a statement"),
        ([STATEMENT, "--delta", "1"], "--delta cannot be combined with a statement"),
        (["--table", "a=b"], "--table needs a statement"),
        ([], "Missing option '--user'"),
    ],
)
def test_an_explanation_is_of_one_form(invoke: Invoke, args: list[str], said: str) -> None:
    result = invoke("explain", *args)
    assert (result.exit_code, said in result.stderr) == (2, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_learn_to_complete(invoke: Invoke, shell: str) -> None:
    result = invoke("completion", shell)
    assert result.exit_code == 0
    assert "_PLUME_COMPLETE" in result.stdout


def test_commands_and_options_are_completed() -> None:
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - this test's own

    from plume.cli.main import main  # noqa: PLC0415 - the same

    complete = ShellComplete(main, {}, "plume", "_PLUME_COMPLETE")
    assert {item.value for item in complete.get_completions([], "")} == set(main.commands)
    assert "--max-keys-per-user" in {item.value for item in complete.get_completions(["run"], "--max")}
    assert "--user" in {item.value for item in complete.get_completions(["explain"], "--us")}
