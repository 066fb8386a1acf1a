"""The examples run without arguments and print a release."""

import runpy
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from docs.pages import ROOT
from plume.cli.main import main
from plume.synthetic import recipe_searches

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def printed_by(example: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(example), run_name="__main__")
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_a_release(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed_by(example, capsys)
    assert any("-differential privacy for every " in line for line in lines)
    assert any(line.startswith("noise (95 %): ") for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "searches.parquet", "--query", "recipes.toml"],
        ["sql", "recipes.sql", "--table", "searches=searches.parquet"],
    ],
)
def test_examples_for_the_command_line_release_every_recipe(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(recipe_searches(20_000, seed=1), "searches.parquet")
    args = [str(ROOT / "examples" / word) if word.startswith("recipes.") else word for word in command]
    result = CliRunner().invoke(main, [*args, "--quiet"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == '"recipe","people","searches","seconds_mean","seconds_mean_reliable"'
    # Each recipe is more than 20 standard deviations of the noise above the threshold, a word of one person 4.7 below it: of some 2,600
    # such words, two pass with a probability below 1e-4.
    assert 60 <= len(result.stdout.splitlines()) - 1 <= 61


def test_recipes_leaves_misspellings_out(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed_by(ROOT / "examples" / "recipes.py", capsys)
    assert lines[0].split() == ["recipe", "searches", "people"]
    # Each of the 60 recipes is 18 standard deviations of the noise above the threshold; that two misspellings pass has a probability
    # below 1e-7.
    released = int(lines[-1].split(", ")[1].split()[0])
    assert 60 <= released <= 61


def test_website_time_shows_every_page_with_its_order_of_magnitude(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed_by(ROOT / "examples" / "website_time.py", capsys)
    rows = {cells[0]: [float(cell) for cell in cells[1:]] for cells in map(str.split, lines[1:5])}
    assert lines[0].split() == ["page", "visitors", "visits", "seconds_sum"]
    assert sorted(rows) == ["help", "home", "imprint", "search"]
    # 25 standard deviations of the noise; Laplace noise is that far off with a probability below 1e-15.
    assert rows["home"][0] == pytest.approx(5_000, abs=320)
    assert rows["imprint"][0] == pytest.approx(0, abs=320)
    assert rows["help"][1] == pytest.approx(3_333, abs=960)
