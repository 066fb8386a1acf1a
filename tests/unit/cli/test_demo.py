import io
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from rich.console import Console

from entropy import SeededEntropy
from plume.cli.demo import IN_A_SHELL, IN_PYTHON, QUERY, Exact, count_exactly, print_demo
from plume.engines.duckdb import DuckDB
from plume.release import Release
from plume.running import run_with
from plume.synthetic import RECIPES, recipe_searches

Invoke = Callable[..., Result]


@pytest.fixture(scope="module")
def made_up() -> pa.Table:
    return recipe_searches(20_000, seed=1)


@pytest.fixture(scope="module")
def exact(made_up: pa.Table) -> Exact:
    return count_exactly(made_up)


@pytest.fixture(scope="module")
def release(made_up: pa.Table) -> Release:
    return run_with(SeededEntropy(1), QUERY, made_up, engine=DuckDB(), pipeline="plume", on_step=lambda _: None)


@pytest.fixture(scope="module")
def shown(release: Release, exact: Exact) -> str:
    return show(release, exact)


def show(release: Release, exact: Exact, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_demo(release, exact, Console(file=file, width=80, highlight=False))
    file.seek(0)
    return file.read()


def test_exact_counts_are_those_of_the_searches(made_up: pa.Table, exact: Exact) -> None:
    lasagna = made_up.filter(pc.equal(made_up["recipe"], "lasagna"))["user_id"].to_pylist()
    assert (exact.searches["lasagna"], exact.people["lasagna"]) == (len(lasagna), len(set(lasagna)))


def test_private_numbers_stand_beside_exact_ones(shown: str, release: Release, exact: Exact) -> None:
    (row,) = [row for row in release.to_arrow().to_pylist() if row["recipe"] == "lasagna"]
    numbers = row["people"], exact.people["lasagna"], row["searches"], exact.searches["lasagna"]
    (line,) = [line for line in shown.splitlines() if line.startswith("lasagna")]
    assert line.split()[1:5] == [f"{number:,}" for number in numbers]
    assert line.split()[5] == "█" * 20


def test_misspellings_of_one_person_are_shown_as_kept_back(shown: str, release: Release, exact: Exact) -> None:
    kept_back = " ".join(shown.partition("Kept back: ")[2].partition("\n\n")[0].split())
    examples = kept_back.removesuffix(".").split(": ")[1].split(", ")
    assert len(examples) == 6
    assert all(exact.people[example] == 1 and example not in RECIPES for example in examples)
    assert not set(examples) & set(release.to_arrow()["recipe"].to_pylist())


def test_it_says_that_data_is_made_up_and_what_was_spent(shown: str) -> None:
    said = " ".join(shown.split())
    assert "only because the data is made up" in said
    assert "Of it, 50% on selection, 25% on people, 25% on searches." in said


def test_it_fits_80_columns_and_needs_no_colour(shown: str) -> None:
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


def test_a_terminal_without_blocks_gets_other_bars(release: Release, exact: Exact) -> None:
    assert "#" * 20 in show(release, exact, encoding="ascii")


def test_its_lines_of_python_run(made_up: pa.Table, tmp_path: Path) -> None:
    pq.write_table(made_up, tmp_path / "searches.parquet")
    printed = subprocess.check_output([sys.executable, "-c", IN_PYTHON], cwd=tmp_path, text=True)  # noqa: S603
    assert "differential privacy for every user_id" in printed


def test_its_shell_command_runs(
    invoke: Invoke, made_up: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(made_up, tmp_path / "searches.parquet")
    result = invoke(*shlex.split(IN_A_SHELL.replace("\\\n", ""))[1:])
    assert result.exit_code == 0
    assert '"lasagna",' in result.stdout


@pytest.mark.parametrize("users", ["1", "2e3"])
def test_the_command_shows_it_all(invoke: Invoke, users: str) -> None:
    result = invoke("demo", "--users", users, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Your own data" in result.stdout
