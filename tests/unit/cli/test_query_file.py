"""`--query file.toml`: what it may hold, and that the command line has the last word."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from plume.cli.query_file import read_query_file
from plume.errors import UsageError

Invoke = Callable[..., Result]
WHOLE = """
user = "user_id"
keys = ["recipe"]
measures = ["count(3)", "sum(seconds, 0, 60)"]
max_keys_per_user = 4
epsilon = 50
delta = 1e-5
where = "seconds > 1"
min_users = 2
selection = "gaussian_threshold"
noise = "gaussian"
composition = "tight"
pipeline = "naive"
data = "searches.parquet"

[shares]
selection = 2
count = 1.5
"""


@pytest.fixture
def query(searches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(searches.parent)
    path = searches.with_name("query.toml")
    path.write_text(WHOLE, encoding="utf-8")
    return path


def test_a_file_says_everything(query: Path, invoke: Invoke) -> None:
    asked = invoke("explain", "--query", query).stdout
    options = shlex.split(
        "--user user_id --key recipe --measure count(3) --max-keys-per-user 4 --epsilon 50 --delta 1e-5 --min-users 2 --noise gaussian "
        "--selection gaussian_threshold --pipeline naive --share selection 2 --share count 1.5"
    )
    told = invoke("explain", *options, "--measure", "sum(seconds, 0, 60)", "--where", "seconds > 1").stdout
    assert asked == told
    assert asked.startswith("naive: ")


def test_data_may_stand_in_the_file(query: Path, invoke: Invoke) -> None:
    result = invoke("run", "--query", query, "--quiet")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 4)


def test_the_command_line_has_the_last_word(query: Path, invoke: Invoke) -> None:
    told = invoke(
        "explain", "--query", query, "--pipeline", "plume", "--measure", "users()", "--share", "users", "1"
    ).stdout
    assert told.startswith("plume: ")
    assert "users: " in told
    assert "count: " not in told


def test_a_file_is_for_the_audit_too(query: Path, invoke: Invoke) -> None:
    result = invoke("audit", "--query", query, "--trials", "1")
    assert "'1' is not a whole number from 4,000" in result.stderr


def test_a_file_may_leave_the_limit_open(tmp_path: Path) -> None:
    path = tmp_path / "query.toml"
    path.write_text('max_keys_per_user = "auto"', encoding="utf-8")
    assert read_query_file(path) == {"max_keys_per_user": "auto"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("user = 3", "user = 3; it must be text"),
        ("epsilon = true", "it must be a number"),
        ("max_keys_per_user = 4.5", "it must be a whole number"),
        ("max_keys_per_user = 'many'", 'it must be a whole number or "auto"'),
        ("keys = {}", "text or a list of texts"),
        ("keys = {a = 1}", "text or a list of texts"),
        ("keys = {a = 'b'}\nkey_expressions = {c = 'd'}", "both as tables; give one of them"),
        ("key_expressions = ['a']", "a table of texts"),
        ("keys = [1]", "text or a list of texts"),
        ("shares = [1]", "a table of numbers"),
        ("usr = 'x'", "'usr', which is not a setting; the settings are user, keys"),
        ("user = ", "is not TOML: "),
        ("\udcff", "is not TOML in UTF-8"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "query.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=said):
        read_query_file(path)


def test_what_the_file_leaves_out_is_missing(tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "query.toml"
    path.write_text('user = "user_id"', encoding="utf-8")
    result = invoke("explain", "--query", path)
    assert (result.exit_code, "Missing option '--key'" in result.stderr) == (2, True)


TOTAL = WHOLE.replace('keys = ["recipe"]', "keys = []").replace("min_users = 2\n", "").replace("selection = 2\n", "")
COMPUTED = WHOLE.replace('keys = ["recipe"]', "keys = {dish = 'LOWER(recipe)', recipe = 'recipe'}")


def columns(result: Result) -> str:
    assert result.exit_code == 0, result.stderr
    return str(result.stdout.splitlines()[0])


def test_a_file_without_keys_asks_for_a_total(query: Path, invoke: Invoke) -> None:
    query.write_text(TOTAL.replace("max_keys_per_user = 4\n", ""), encoding="utf-8")
    assert columns(invoke("run", "--query", query, "--quiet")) == '"count","seconds_sum"'


def test_a_table_of_keys_computes_them(query: Path, invoke: Invoke) -> None:
    query.write_text(COMPUTED, encoding="utf-8")
    assert columns(invoke("run", "--query", query, "--quiet")) == '"dish","recipe","count","seconds_sum"'


@pytest.mark.parametrize("text", [WHOLE, TOTAL, COMPUTED])
@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--key", "recipe"], '"recipe",'),
        (["--key-as", "dish", "UPPER(recipe)"], '"dish",'),
        (["--key", "recipe", "--key-as", "dish", "UPPER(recipe)"], '"recipe","dish",'),
    ],
)
def test_keys_of_the_command_line_replace_those_of_the_file(
    query: Path, invoke: Invoke, text: str, options: list[str], keys: str
) -> None:
    query.write_text(text, encoding="utf-8")
    assert columns(invoke("run", "--query", query, "--quiet", *options)) == f'{keys}"count","seconds_sum"'


@pytest.mark.parametrize(
    "text",
    [
        TOTAL,
        TOTAL.replace("keys = []", "keys = 'recipe'"),
        TOTAL.replace("keys = []", "keys = {dish = 'LOWER(recipe)'}"),
    ],
)
def test_no_keys_of_the_command_line_replace_those_of_the_file(query: Path, invoke: Invoke, text: str) -> None:
    query.write_text(text, encoding="utf-8")
    for options in (["--query", query, "--no-keys"], ["--no-keys", "--query", query]):
        assert columns(invoke("run", *options, "--quiet")) == '"count","seconds_sum"'
