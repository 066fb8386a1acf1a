"""Tables and figures in pages are those in `docs/results/`, and the tables there follow from the runs beside them."""

import csv
import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from docs.figures import RESULTS, copied_anew, marks, table, understood_marks
from docs.pages import PAGES, README, ROOT

# Which experiment writes a result, where their names differ; peers, speeds and what is worked out are not trials of ours.
WRITTEN_BY = {"strategies": "selection_strategies", "strategies_words": "selection_strategies"}
WRITTEN = sorted(
    path.stem
    for path in RESULTS.glob("*.csv")
    if path.stem != "peers" and not path.stem.startswith(("speed_", "defaults"))
)
CAPS = "defaults_caps"
DEFAULTS = sorted(path.stem for path in RESULTS.glob("defaults*.csv") if path.stem != CAPS)
# Which benchmark writes a speed, by the word in its name.
BENCHMARKS = {
    "csv": "csv_reading",
    "duckdb": "duckdb_group_by",
    "measures": "duckdb_measures",
    "spark": "spark_group_by",
    "tune": "tune",
}
SPEEDS = sorted(path.stem for path in RESULTS.glob("speed_*.csv"))
PAPER = {"keys_retained", "error_by_users", "runtime_by_users", "error_by_bound", "words", "configurations"}
LABELS = ("data", "configuration", "limit", "system", "run")
TEXTS, WHOLE = ("data", "configuration", "system"), ("limit", "run", "keys")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_tables_and_figures_are_those_of_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == copied_anew(text)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_mark_is_understood(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert marks(text) == understood_marks(text)


@pytest.mark.parametrize("page", [README, RESULTS / "index.md", ROOT / "docs" / "accuracy.md"], ids=name)
def test_pages_about_results_have_some(page: Path) -> None:
    assert marks(page.read_text(encoding="utf-8")) > 0


def test_a_wrong_figure_is_found() -> None:
    wrong = "7<!-- keys_retained | 10^6 | plume -->"
    assert copied_anew(wrong) != wrong


def test_a_wrong_table_is_found() -> None:
    mark = "<!-- table: words -->\n\n"
    assert copied_anew(f"{mark}| wrong |\n") == mark + table("words")


def test_text_below_a_new_table_stays_text() -> None:
    mark = "<!-- table: words -->\n\n"
    assert copied_anew(f"{mark}Text.\n") == f"{mark}{table('words')}\nText.\n"


def test_every_table_and_figure_of_the_paper_is_there() -> None:
    assert set(WRITTEN) >= PAPER


@pytest.mark.parametrize("result", WRITTEN)
def test_tables_and_pictures_follow_from_the_runs(result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    experiment = WRITTEN_BY.get(result, result)
    beside = [name for name in WRITTEN if WRITTEN_BY.get(name, name) == experiment]
    runs = [run for name in beside for run in read_runs(RESULTS / f"{name}.csv")]
    monkeypatch.setattr(import_module("trials"), "KEPT", tmp_path / "trials.jsonl")
    monkeypatch.setattr(import_module("results"), "RESULTS", tmp_path)
    (tmp_path / "trials.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in runs), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", [experiment, *arguments(experiment, runs)])
    import_module(experiment).main()
    for suffix in (".md", ".svg", ".csv"):
        assert (tmp_path / f"{result}{suffix}").read_text() == (RESULTS / f"{result}{suffix}").read_text()


@pytest.mark.parametrize("result", SPEEDS)
def test_speeds_follow_from_the_runs(result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    speeds, (_, word, users) = import_module("speeds"), result.split("_")
    speed = import_module(BENCHMARKS[word]).speed(int(users))
    runs = speeds.read_runs(speed)
    monkeypatch.setattr(import_module("results"), "RESULTS", tmp_path)
    speeds.compare(speed, runs).write()
    for suffix in (".md", ".svg", ".csv"):
        assert (tmp_path / f"{result}{suffix}").read_text() == (RESULTS / f"{result}{suffix}").read_text()


def test_the_record_of_speeds_says_what_moved_since_the_commit_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    record, path = import_module("record"), tmp_path / "record.csv"
    line = record.Line
    assert record.add([line("a", "plume", "4.00", 860, "9.5"), line("a", "naive", "15.00")], path) == []
    assert record.add([line("b", "plume", "4.39", 840, "9.5"), line("b", "naive", "15.00")], path) == []
    now = [line("c", "plume", "4.90", 900, "9.4"), line("c", "naive", "15.00"), line("c", "new", "1.00")]
    for _ in range(2):  # a commit that is measured again takes its own place
        assert record.add(now, path) == ["plume: times 4.39 -> 4.90, keys 840 -> 900, deviation 9.5 -> 9.4 (since b)"]
    assert [one.commit for one in record.read(path)] == ["a", "a", "b", "b", "c", "c", "c"]


@pytest.mark.parametrize("result", DEFAULTS)
def test_what_is_said_of_defaults_follows_from_every_way(
    result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    defaults = import_module("defaults")
    with (RESULTS / "defaults_ways.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = ("data", "way")
    cells = [
        defaults.Cell(
            **{name: value if name in texts else float(value) for name, value in row.items()}
            | {"limit": int(row["limit"])}
        )
        for row in rows
    ]
    monkeypatch.setattr(import_module("results"), "RESULTS", tmp_path)
    [found] = [one for one in defaults.results(cells) if one.name == result]
    found.write()
    for suffix in (".md", ".svg", ".csv"):
        assert (tmp_path / f"{result}{suffix}").read_text() == (RESULTS / f"{result}{suffix}").read_text()


def test_the_table_of_caps_has_every_figure_that_is_kept() -> None:
    with (RESULTS / f"{CAPS}.csv").open(encoding="utf-8", newline="") as file:
        kept = [tuple(row.values()) for row in csv.DictReader(file)]
    assert [tuple(line[2:-3].split(" | ")) for line in table(CAPS).splitlines(keepends=True)[2:]] == kept


def test_the_bars_of_the_design_were_measured() -> None:
    assert set(SPEEDS) >= {"speed_duckdb_1000000", "speed_duckdb_10000000", "speed_spark_10000000"}


def read_runs(path: Path) -> list[dict[str, dict[str, object]]]:
    """Read runs as trials are kept, so that an experiment finds all of them done."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{field: parsed(field, text) for field, text in row.items()} for row in csv.DictReader(file)]
    return [
        {
            "trial": {field: row[field] for field in LABELS},
            "outcome": {field: row[field] for field in row if field not in LABELS},
        }
        for row in rows
    ]


def arguments(experiment: str, runs: list[dict[str, dict[str, object]]]) -> list[str]:
    if experiment in ("words", "selection_strategies"):
        return ["words.parquet"]
    users = dict.fromkeys(str(run["trial"]["data"]).removeprefix("synthetic-") for run in runs)
    systems = dict.fromkeys(str(run["trial"]["system"]) for run in runs if run["trial"]["system"] != "no privacy")
    return ["--users", *users, "--systems", *systems]


def parsed(field: str, text: str) -> object:
    if field in TEXTS:
        return text
    return None if text == "" else int(text) if field in WHOLE else float(text)
