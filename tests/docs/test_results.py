"""Figures in pages are those in `docs/results/`, and the tables there follow from the runs beside them.

In a page, `<!-- table: words -->` stands above a copy of the table in docs/results/words.md. Behind a figure, `0.21<!-- words | 64 | plume
| relative -->` names its cell: the row's first cells, then the column. Two cells with ` / ` between them are a ratio.
"""

import csv
import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from docs.pages import PAGES, ROOT

RESULTS = ROOT / "docs" / "results"
TABLE = re.compile(r"<!-- table: (?P<name>\w+) -->\n+(?P<table>(?:\|.*\n)+)")
FIGURE = re.compile(r"(?P<figure>[\d.,]*\d)<!-- (?P<cells>\w+ \|[^>]*) -->")
MARK = re.compile(r"<!-- (?:table:|\w+ \|)")
EXPERIMENTS = ["keys_retained", "error_by_users", "runtime_by_users", "error_by_bound", "configurations", "words"]
LABELS = ("data", "configuration", "limit", "system", "run")


def written_table(page: Path) -> str:
    return "".join(re.findall(r"^\|.*\n", page.read_text(encoding="utf-8"), re.MULTILINE))


def value(cell: str) -> float:
    """Look a cell up, such as `words | 64 | plume | relative`."""
    name, *row, column = cell.split(" | ")
    columns, _, *rows = [line.strip("| ").split(" | ") for line in written_table(RESULTS / f"{name}.md").splitlines()]
    [found] = [cells for cells in rows if cells[: len(row)] == row]
    return number(found[columns.index(column)].partition(" (±")[0])


def number(text: str) -> float:
    return float(text.replace(",", ""))


def decimals(figure: str) -> int:
    return len(figure.partition(".")[2])


def marked_figures(page: Path) -> list[tuple[str, str]]:
    return [(found["figure"], " ".join(found["cells"].split())) for found in FIGURE.finditer(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_copies_of_results(page: Path) -> None:
    for found in TABLE.finditer(page.read_text(encoding="utf-8")):
        assert found["table"] == written_table(RESULTS / f"{found['name']}.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_are_those_of_results(page: Path) -> None:
    for figure, cells in marked_figures(page):
        over, *under = (value(cell) for cell in cells.split(" / "))
        expected = over / under[0] if under else over
        assert (cells, number(figure)) == (cells, pytest.approx(expected, abs=0.51 * 10 ** -decimals(figure)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_mark_is_understood(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(MARK.findall(text)) == len(TABLE.findall(text)) + len(FIGURE.findall(text))


def test_the_readme_and_the_results_have_figures() -> None:
    for page in (ROOT / "README.md", RESULTS / "index.md"):
        assert marked_figures(page)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_tables_and_pictures_follow_from_the_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    trials, results, experiment = (import_module(module) for module in ("trials", "results", name))
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        runs = [{key: parsed(key, text) for key, text in row.items()} for row in csv.DictReader(file)]
    kept = [
        {"trial": {key: run[key] for key in LABELS}, "outcome": {key: run[key] for key in run if key not in LABELS}}
        for run in runs
    ]
    monkeypatch.setattr(trials, "KEPT", tmp_path / "trials.jsonl")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    trials.KEPT.write_text("".join(f"{json.dumps(each)}\n" for each in kept), encoding="utf-8")
    users = dict.fromkeys(run["data"].removeprefix("synthetic-") for run in runs)
    monkeypatch.setattr(sys, "argv", [name, *(["words.parquet"] if name == "words" else ["--users", *users])])
    experiment.main()
    for suffix in (".md", ".svg", ".csv"):
        assert (tmp_path / f"{name}{suffix}").read_text() == (RESULTS / f"{name}{suffix}").read_text()


def parsed(key: str, text: str) -> object:
    if key in ("data", "configuration", "system"):
        return text
    return None if text == "" else int(text) if key in ("limit", "run", "keys") else float(text)
