from collections.abc import Callable
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from plume.cli.main import main
from plume.errors import BudgetExceeded, EngineError
from plume.pipelines.pipeline import PIPELINES
from plume.version import __version__

CANARY = "user 4711 searched for canary soup"

Invoke = Callable[..., Result]


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*_args: object, **_options: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (BudgetExceeded("this plan spends too much."), 3, "Error: this plan spends too much."),
        (EngineError("DuckDB failed."), 1, "Error: DuckDB failed."),
        (KeyboardInterrupt(), 130, "Error: interrupted."),
        (ValueError(CANARY), 1, "Error: something unexpected went wrong"),
        (MemoryError(), 1, "Error: something unexpected went wrong"),
        (OSError(28, CANARY), 1, "Error: something unexpected went wrong"),
    ],
)
def test_every_failure_is_one_sentence_and_a_code(
    run: Invoke, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    monkeypatch.setattr("plume.cli.running.run", raising(error))
    result = run("--quiet")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == 1
    assert CANARY not in result.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--epsilonn", "1"], "No such option '--epsilonn'"),
        (["--epsilon", "much"], "'much' is not a number; write one such as 1.1 or 1e-5"),
        (["--min-users", "2.5"], "'2.5' is not a whole number; write one such as 16"),
        (["--top", "0", "count"], "--top is 0; it must be a positive whole number"),
        (["--top", "3", "counts"], "no column 'counts' in the result; did you mean 'count'?"),
        (["--epsilon", "nan"], "epsilon is nan; it must be a finite number above 0"),
        (["--delta", "0"], "selecting keys from data needs a delta above 0"),
        (["--max-keys-per-user", "0"], "max_keys_per_user is 0"),
        (["--key", "recipie"], "did you mean 'recipe'?"),
        (["--measure", "mode(seconds)"], "unknown measure 'mode(seconds)'"),
        (["--measure", "count(1)"], "two columns of the result would be called 'count'"),
        (["--where", "sleep(3)"], "not allowed"),
        (["--public-keys", "nowhere.csv"], "'nowhere.csv' does not exist"),
        (["--pipeline", "fast"], "'fast' is not one of"),
        (["--memory-limit", "plenty"], "DuckDB does not take memory_limit = 'plenty'"),
        (["--threads", "0"], "0 is not in the range x>=1"),
        (["--temp-directory", "nowhere"], "'nowhere' does not exist"),
        (["\udcff"], "is not valid UTF-8 text"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_would_be_right(run: Invoke, args: list[str], sentence: str) -> None:
    result = run(*args, "--quiet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_not_there_is_wrong_use(invoke: Invoke, asked: list[str]) -> None:
    result = invoke("run", "nowhere.parquet", *asked, "--quiet")
    assert (result.exit_code, result.stderr.startswith("Error: no file 'nowhere.parquet'")) == (2, True)


def test_a_command_without_its_options_is_wrong_use(invoke: Invoke) -> None:
    result = invoke("explain")
    assert result.exit_code == 2
    assert "Missing option '--user'. Column that identifies the user (the privacy unit)" in result.stderr


def test_names_of_columns_cannot_command_the_terminal(invoke: Invoke, asked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "hostile.parquet"
    pq.write_table(pa.table({"\x1b[31muser\n": ["a"]}), path)
    result = invoke("run", path, *asked, "--quiet")
    assert r"Columns: \x1b[31muser\n." in result.stderr
    assert "\x1b" not in result.stderr


def test_explain_prints_the_explanation_and_touches_no_data(invoke: Invoke, asked: list[str]) -> None:
    result = invoke("explain", *asked)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("plume: 3 shuffles\nguarantee  (50, ")


def test_explain_says_of_data_that_it_reads_none(invoke: Invoke, asked: list[str]) -> None:
    result = invoke("explain", "searches.csv", *asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert " explain' reads no data; leave 'searches.csv' out." in result.stderr


def test_numbers_of_trials_may_be_powers_of_ten(invoke: Invoke, asked: list[str]) -> None:
    result = invoke("audit", *asked, "--trials", "1e3")
    assert "'1e3' is not a whole number from 4,000 to 100,000,000" in result.stderr


def test_explain_knows_the_other_pipelines(invoke: Invoke, asked: list[str]) -> None:
    assert invoke("explain", *asked, "--pipeline", "naive").stdout.startswith("naive: 5 shuffles")


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_explain_prints_sql(invoke: Invoke, asked: list[str], dialect: str) -> None:
    result = invoke("explain", *asked, "--sql", dialect)
    assert result.exit_code == 0
    assert "GROUP BY" in result.stdout


def test_the_version_is_the_packages_own(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"plume {__version__}\n"


def test_help_names_every_command(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.stdout for command in ("run", "explain", "synth", "demo"))


@pytest.mark.parametrize("command", ["run", "explain"])
def test_the_pipelines_on_offer_are_those_there_are(command: str) -> None:
    (option,) = [option for option in main.commands[command].params if option.name == "pipeline"]
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == tuple(PIPELINES)


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("run", "  plume run searches.parquet --user user_id --key recipe \\\n    --measure 'count(3)'"),
        ("sql", "    max_groups_contributed = 64, privacy_unit_column = user_id)\n    recipe, COUNT(*"),
        ("completion", "  plume completion bash >> ~/.bashrc\n  plume completion zsh >> ~/.zshrc\n"),
    ],
)
def test_help_shows_its_example_line_by_line(command: str, example: str) -> None:
    assert example in CliRunner().invoke(main, [command, "-h"]).stdout


@pytest.mark.parametrize("command", main.commands)
def test_help_shows_no_mark_of_its_maker(command: str) -> None:
    assert "\\b" not in CliRunner().invoke(main, [command, "-h"]).stdout
