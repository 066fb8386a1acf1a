"""What a command must not write over, by whatever name; told before anything is spent."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import plume

Invoke = Callable[..., Result]
Alias = Callable[[Path, Path], Path]


def itself(path: Path, _: Path) -> Path:
    return path


def roundabout(path: Path, _: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


def symbolic_link(path: Path, named: Path) -> Path:
    named.symlink_to(path)
    return named


def hard_link(path: Path, named: Path) -> Path:
    named.hardlink_to(path)
    return named


ALIASES = pytest.mark.parametrize("alias", [itself, roundabout, symbolic_link, hard_link])


@pytest.fixture
def ledger(tmp_path: Path) -> plume.Ledger:
    made = plume.Ledger.create(tmp_path / "ledger.json")
    made.add_dataset("searches", plume.Budget(120, 1e-4))
    return made


@pytest.fixture
def charge(run: Invoke, ledger: plume.Ledger) -> Invoke:
    return lambda *more: run("--ledger", ledger.path, "--dataset", "searches", "--release-id", "first", *more)


def refused(result: Result, what: str) -> bool:
    return result.exit_code == 2 and result.stdout == "" and what in result.stderr and "Reading" not in result.stderr


@ALIASES
@pytest.mark.parametrize("option", ["--out", "--record"])
def test_a_ledger_is_never_replaced_even_by_force(
    charge: Invoke, ledger: plume.Ledger, tmp_path: Path, option: str, alias: Alias
) -> None:
    result = charge(option, alias(ledger.path, tmp_path / "other.json"), "--force")
    assert refused(result, "is the ledger; give another name")
    assert len(plume.Ledger(ledger.path).history()) == 1


def test_a_ledger_reached_by_a_link_is_never_replaced(run: Invoke, ledger: plume.Ledger, tmp_path: Path) -> None:
    link = symbolic_link(ledger.path, tmp_path / "link.json")
    result = run("--ledger", link, "--dataset", "searches", "--out", ledger.path, "--force")
    assert refused(result, "is the ledger; give another name")


def test_a_report_never_replaces_a_ledger(charge: Invoke, ledger: plume.Ledger, tmp_path: Path) -> None:
    assert refused(charge("--report", hard_link(ledger.path, tmp_path / "r.html"), "--force"), "is the ledger")


@pytest.mark.parametrize("name", ["first.parquet", "second.parquet", "rows.csv"])
def test_nothing_is_written_among_the_releases_of_a_ledger(charge: Invoke, ledger: plume.Ledger, name: str) -> None:
    assert charge().exit_code == 0
    result = charge("--out", ledger.shelf.folder / name, "--force")
    assert refused(result, "is in the folder of the ledger's releases")
    ledger.verify()


@ALIASES
def test_public_keys_are_never_replaced_even_by_force(run: Invoke, tmp_path: Path, alias: Alias) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("recipe\nlasagna\n")
    result = run("--public-keys", keys, "--out", alias(keys, tmp_path / "other.csv"), "--force")
    assert refused(result, "is the list of public keys; give another name")
    assert keys.read_text() == "recipe\nlasagna\n"


@ALIASES
def test_results_do_not_replace_each_other(charge: Invoke, ledger: plume.Ledger, tmp_path: Path, alias: Alias) -> None:
    out = tmp_path / "out.json"
    out.write_text("older")
    result = charge("--out", out, "--record", alias(out, tmp_path / "other.json"), "--force")
    assert refused(result, "are one file; give each result a file of its own")
    assert len(ledger.history()) == 1


def test_results_that_are_not_there_yet_do_not_replace_each_other(charge: Invoke, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    result = charge("--out", tmp_path / "out.json", "--record", tmp_path / "link" / "out.json")
    assert refused(result, "are one file")
    assert not (tmp_path / "out.json").exists()


def test_a_query_file_is_never_replaced(run: Invoke, tmp_path: Path) -> None:
    query = tmp_path / "query.json"
    query.write_text("min_users = 1\n")
    assert refused(run("--query", query, "--record", query, "--force"), "is the file of the query")


def test_a_statement_and_its_tables_are_never_replaced(invoke: Invoke, searches: Path, tmp_path: Path) -> None:
    statement = tmp_path / "popular.sql"
    statement.write_text(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50, delta = 1e-5, max_groups_contributed = 4, privacy_unit_column = user_id) "
        "recipe, COUNT(*, contribution_bounds_per_group => (0, 3)) AS n FROM searches GROUP BY recipe"
    )
    unused = tmp_path / "unused.csv"
    unused.write_text("recipe\n")
    asked = ["sql", statement, "--table", f"searches={searches}", "--public-table", f"unused={unused}", "--force"]
    assert refused(invoke(*asked, "--out", hard_link(statement, tmp_path / "s.json")), "is the statement")
    assert refused(invoke(*asked, "--out", unused), "is part of the data")
    assert refused(invoke(*asked, "--out", searches), "is part of the data")


def test_a_file_on_standard_input_is_never_replaced(searches: Path, asked: list[str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pq.read_table(searches), rows)
    before = rows.read_bytes()
    command = [sys.executable, "-m", "plume", "run", "-", *asked, "--out", str(rows), "--force"]
    line = f"{shlex.join(command)} < {shlex.quote(str(rows))}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert (done.returncode, rows.read_bytes()) == (2, before)
    assert "is part of the data" in done.stderr


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_tuning_never_replaces_the_data(invoke: Invoke, asked: list[str], tmp_path: Path, option: str) -> None:
    rows = tmp_path / "rows.NOT-PRIVATE.csv"
    pyarrow.csv.write_csv(pa.table({"user_id": ["1"], "recipe": ["x"]}), rows)
    target = rows if option == "--out" else hard_link(rows, tmp_path / "rows.NOT-PRIVATE.html")
    assert refused(invoke("tune", rows, *asked, option, target, "--force"), "is part of the data")


@pytest.mark.parametrize("command", ["expect", "audit"])
def test_other_commands_never_replace_public_keys(
    invoke: Invoke, asked: list[str], tmp_path: Path, command: str
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("recipe\nlasagna\n")
    option, name = ("--report", "r.html") if command == "expect" else ("--out", "r.json")
    target = hard_link(keys, tmp_path / name)
    result = invoke(command, *asked, "--public-keys", keys, option, target, "--force")
    assert refused(result, "is the list of public keys")


@pytest.mark.parametrize("command", ["run", "synth"])
def test_a_name_that_is_too_long_is_told(run: Invoke, invoke: Invoke, tmp_path: Path, command: str) -> None:
    out = tmp_path / f"{'x' * 250}.parquet"
    result = run("--out", out) if command == "run" else invoke("synth", "--users", 1, "--out", out)
    assert refused(result, "cannot be written: its name is too long")


def test_a_link_to_itself_is_told(run: Invoke, tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(link)
    assert refused(run("--out", link, "--force"), "it is a link to itself")


@pytest.mark.parametrize("address", ["file://{}", "file:{}"])
def test_data_by_an_address_is_never_replaced(
    invoke: Invoke, searches: Path, asked: list[str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is refused before the session is asked anything, and to start one takes seconds.
    monkeypatch.setattr("plume.engines.spark_session.start_session", lambda **settings: None)  # noqa: ARG005
    given = address.format(searches)
    result = invoke("run", given, *asked, "--engine", "spark", "--out", searches, "--force")
    assert refused(result, "is part of the data")
