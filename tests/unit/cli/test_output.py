import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import BinaryIO

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from plume.cli.output import print_rows
from plume.cli.terminal import remarks
from plume.errors import OutputError
from plume.mechanisms.users import users
from plume.privacy.budget import Budget
from plume.query import Query
from plume.release import Release
from plume.running import explain

QUERY = Query(user="u", keys=("key",), measures=(users(),), max_keys_per_user=1, budget=Budget(1, 1e-5))

Invoke = Callable[..., Result]


def printed(keys: pa.Array, layout: str | None, *, also: tuple[str, ...] = ()) -> Result:
    """Print a release of the given keys with the command's own standard output."""
    rows = pa.table({"key": keys} | {name: list(range(len(keys))) for name in ("users", *also)})
    command = click.command()(
        lambda: print_rows(Release(rows, explain(QUERY), private=True), layout, remarks(quiet=False))
    )
    return CliRunner().invoke(command, catch_exceptions=False)


def test_a_long_table_is_cut_and_a_remark_says_so() -> None:
    result = printed(pa.array(range(41)), "table")
    assert len(result.stdout.splitlines()) == 42
    assert result.stderr == "40 of 41 rows shown; --format csv and --out give all.\n"


def test_a_table_of_40_rows_is_whole() -> None:
    result = printed(pa.array(range(40)), "table")
    assert (len(result.stdout.splitlines()), result.stderr) == (41, "")


def test_csv_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plume.output.pieces._ROWS_AT_ONCE", 7)
    assert printed(pa.array(range(41)), "csv").stdout.splitlines() == [
        '"key","users"',
        *(f"{n},{n}" for n in range(41)),
    ]


def test_json_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plume.output.pieces._ROWS_AT_ONCE", 7)
    assert json.loads(printed(pa.array(range(41)), "json").stdout) == [{"key": n, "users": n} for n in range(41)]


def test_no_rows_are_an_empty_array() -> None:
    assert json.loads(printed(pa.array([], pa.string()), "json").stdout) == []


def test_json_writes_dates_as_text() -> None:
    assert json.loads(printed(pa.array([date(2026, 1, 31)]), "json").stdout)[0]["key"] == "2026-01-31"


@pytest.mark.parametrize("keys", [pa.array([[1, 2]]), pa.array([{"a": 1}])])
def test_a_key_that_csv_cannot_hold_is_refused(keys: pa.Array) -> None:
    with pytest.raises(OutputError, match=r"a key that CSV cannot hold; use --format json"):
        printed(keys, "csv")


def test_csv_on_a_terminal_escapes_what_could_command_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    assert printed(pa.array(["red\x1b[31m"]), "csv").stdout.splitlines()[1] == r'"red\x1b[31m",0'


def test_a_terminal_gets_a_table_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    assert printed(pa.array(["a"]), None).stdout.splitlines() == ["key  users", "  a      0"]


def test_columns_that_do_not_fit_a_terminal_stand_below_each_other_behind_the_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    monkeypatch.setenv("COLUMNS", "11")
    assert printed(pa.array(["a", "b"]), "table", also=("visits", "days")).stdout.splitlines() == [
        *("key  users", "  a      0", "  b      1", ""),
        *("key  visits", "  a       0", "  b       1", ""),
        *("key  days", "  a     0", "  b     1"),
    ]


def test_columns_that_fit_stand_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    monkeypatch.setenv("COLUMNS", "18")
    assert printed(pa.array(["a"]), "table", also=("visits",)).stdout.splitlines() == [
        "key  users  visits",
        "  a      0       0",
    ]


def test_a_table_that_goes_to_no_terminal_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "11")
    assert printed(pa.array(["a"]), "table", also=("visits",)).stdout.splitlines() == [
        "key  users  visits",
        "  a      0       0",
    ]


def test_a_file_that_exists_is_not_replaced(run: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("plume.cli.running.run")  # it must not even be called
    out = tmp_path / "popular.csv"
    out.write_text("precious")
    result = run("--out", out)
    assert (result.exit_code, out.read_text()) == (2, "precious")
    assert "exists; give another name, or --force to replace it" in result.stderr


def test_force_replaces_a_file(run: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "popular.csv"
    out.write_text("old")
    assert run("--out", out, "--force").exit_code == 0
    assert out.read_text().startswith('"recipe","count"\n')


@pytest.mark.parametrize("option", ["--out", "--record", "--report"])
def test_data_are_never_replaced_even_by_force(run: Invoke, searches: Path, option: str) -> None:
    before = searches.read_bytes()
    named_so = searches.with_suffix({"--record": ".json", "--report": ".html"}.get(option, ".parquet"))
    if named_so != searches:
        named_so.hardlink_to(searches)
    result = run(option, named_so, "--force")
    assert (result.exit_code, searches.read_bytes()) == (2, before)
    assert "is part of the data" in result.stderr


@pytest.mark.parametrize(
    ("option", "name", "sentence"),
    [
        ("--out", "popular.xlsx", "does not end in .parquet or .csv"),
        ("--out", "popular", "does not end in .parquet or .csv"),
        ("--out", "nowhere/popular.csv", "is not there or not writable"),
        ("--out", "folder.csv", "is a folder"),
        ("--record", "record.txt", "does not end in .json"),
        ("--record", "record.json", "exists"),
        ("--report", "report.htm", "does not end in .html"),
    ],
)
def test_a_target_is_checked_before_anything_runs(
    run: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, name: str, sentence: str
) -> None:
    monkeypatch.delattr("plume.cli.running.run")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "record.json").touch()
    result = run(option, tmp_path / name)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_format_for_a_file_is_refused(run: Invoke, tmp_path: Path) -> None:
    result = run("--out", tmp_path / "popular.csv", "--format", "json")
    assert result.exit_code == 2
    assert "--format is for standard output" in result.stderr


def test_a_failed_write_leaves_no_file(
    run: Invoke, searches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_rows: object, file: BinaryIO, *_: object) -> None:
        file.write(b"half")
        raise OSError(28, "no space left")

    monkeypatch.setattr("pyarrow.parquet.write_table", half)
    result = run("--out", tmp_path / "popular.parquet")
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == [searches]
