"""Results: what experiments leave in `docs/results/`, each as runs (CSV), a page with a table (Markdown) and a picture (SVG).

Tables and figures in other pages are copies of these; tests/docs/test_results.py compares them.
"""

import csv
import math
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import vl_convert
from trials import LARGE_KEYS, NO_PRIVACY, Outcomes, Trial

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAPER = Path(__file__).with_name("paper_numbers.toml")
# Such that they can be told apart by day and by night.
COLOURS = ("#d9822b", "#4a90d9", "#8560d0", "#2e9e83", "#d14c7d", "#9a9a2c", "#8a6d5a")
GREY = "#808080"
# Titles of columns, and the field and form of what stands below.
ERRORS = {
    "keys": ("keys", ",.0f"),
    "absolute": ("absolute", ",.1f"),
    "relative": ("relative", ".3f"),
    f"absolute, {LARGE_KEYS} largest keys": ("absolute_large", ",.1f"),
}


@dataclass(frozen=True)
class Estimate:
    """A mean over runs, and how far it may be off."""

    mean: float
    standard_error: float
    median: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Estimate":
        """Estimate from the runs that had a value; one run says nothing of its error."""
        given = [value for value in values if value is not None]
        if not given:
            return cls(math.nan, math.nan, math.nan)
        error = statistics.stdev(given) / math.sqrt(len(given)) if len(given) > 1 else math.nan
        return cls(statistics.mean(given), error, statistics.median(given))

    def text(self, form: str = ",.1f") -> str:
        """Write it as the paper does: 12.3 (± 0.4)."""
        if math.isnan(self.mean):
            return "none"
        return f"{self.mean:{form}}" + ("" if math.isnan(self.standard_error) else f" (± {self.standard_error:{form}})")


@dataclass(frozen=True)
class Point:
    """A point of a picture: on a curve, or the end of a bar."""

    series: str
    x: float | str
    y: Estimate


@dataclass(frozen=True)
class Panel:
    """One half of a picture."""

    title: str
    points: Sequence[Point]
    scale: str = "linear"
    form: str = ",.0f"
    """How values at the ends of bars are written."""


@dataclass(frozen=True)
class Result:
    """What an experiment found."""

    name: str
    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    picture: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]
    command: str = "make paper"
    explained: str = "[results](index.md)"
    """Where it says what it means."""

    @property
    def table(self) -> str:
        """The table as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    def write(self) -> None:
        """Write the three files, and show the table."""
        RESULTS.mkdir(exist_ok=True)
        page = (
            f"# {self.heading}\n\n{self.table}\n![{self.heading}]({self.name}.svg)\n\n"
            f"[Every run]({self.name}.csv). Written by `{self.command}`; what it means: {self.explained}.\n"
        )
        (RESULTS / f"{self.name}.md").write_text(page, encoding="utf-8")
        (RESULTS / f"{self.name}.svg").write_text(
            vl_convert.vegalite_to_svg(dict(self.picture)) + "\n", encoding="utf-8"
        )
        with (RESULTS / f"{self.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(self.runs[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.runs)
        print(f"{self.heading}\n\n{self.table}")


def estimate(outcomes: Outcomes, trial: Trial, field: str) -> Estimate:
    """Estimate a field of an outcome from all runs of a trial."""
    return Estimate.of(
        getattr(outcome, field) for each, outcome in outcomes.items() if replace(each, run=trial.run) == trial
    )


def slowdown(outcomes: Outcomes, trial: Trial) -> Estimate:
    """Estimate how many times longer a trial takes than the exact answer, which is timed just before each run."""
    return Estimate.of(
        outcome.seconds / outcomes[replace(each, system=NO_PRIVACY)].seconds
        for each, outcome in outcomes.items()
        if replace(each, run=trial.run) == trial
    )


def error_cells(outcomes: Outcomes, trial: Trial) -> list[str]:
    """What tables say of a trial below the titles `ERRORS`."""
    return [estimate(outcomes, trial, field).text(form) for field, form in ERRORS.values()]


def paper_numbers(table: str) -> dict[str, Any]:
    """What the paper reports, by system."""
    numbers: dict[str, Any] = tomllib.loads(PAPER.read_text(encoding="utf-8"))[table]
    return numbers


def rows_of(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One row per trial, for a CSV file."""
    return [trial.label | asdict(outcome) for trial, outcome in outcomes.items()]


def power(users: int) -> str:
    """Write a number of users as it stands in tables: 3·10^6."""
    exponent = int(math.log10(users))
    factor = users // 10**exponent
    return f"10^{exponent}" if factor == 1 else f"{factor}·10^{exponent}"


def curves(panels: Sequence[Panel], across: str) -> dict[str, Any]:
    """Draw curves with their standard errors, each panel beside the other; `across` is what x is, on a logarithmic scale."""
    x = {"field": "x", "type": "quantitative", "scale": {"type": "log", "nice": False}, "title": across}
    band = {"mark": {"type": "area", "opacity": 0.25}, "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}}}
    line = {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": {"field": "y"}}}
    dots = {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": {"y": {"field": "y"}}}
    return _beside(
        {
            "width": 320,
            "height": 220,
            "data": {"values": [_drawn(point) for point in _known(panel)]},
            "encoding": {
                "x": x | {"axis": {"format": "~s", "labelOverlap": "greedy", "tickCount": 6}},
                "y": {
                    "type": "quantitative",
                    "title": panel.title,
                    "scale": {"type": panel.scale, "zero": panel.scale == "linear"},
                },
                "color": _colour(panel.points, {"title": None, "orient": "bottom", "symbolOpacity": 1}),
            },
            "layer": [band, line, dots],
        }
        for panel in panels
    )


def bars(panels: Sequence[Panel]) -> dict[str, Any]:
    """Draw bars, grouped by x, with the value at the end of each; each panel beside the other."""
    group = {
        "field": "x",
        "type": "nominal",
        "title": None,
        "sort": None,
        "header": {"labelAngle": 0, "labelAlign": "left"},
    }
    value = {"field": "y", "type": "quantitative", "axis": None}
    text = {"type": "text", "align": "left", "dx": 5, "color": GREY}
    return _beside(
        {
            "title": {"text": panel.title, "color": GREY, "anchor": "start"},
            "data": {"values": [_drawn(point) | {"text": f"{point.y.mean:{panel.form}}"} for point in _known(panel)]},
            "facet": {"row": group},
            "resolve": {"scale": {"y": "independent"}},
            "spec": {
                "width": 200,
                "height": {"step": 18},
                "encoding": {
                    "x": value | {"scale": {"type": panel.scale}},
                    "y": {"field": "series", "type": "nominal", "title": None, "sort": None},
                },
                "layer": [
                    {"mark": {"type": "bar", "height": 12}, "encoding": {"color": _colour(panel.points, None)}},
                    {"mark": text, "encoding": {"text": {"field": "text"}}},
                ],
            },
        }
        for panel in panels
    )


def keys_and_errors(outcomes: Outcomes, groups: Mapping[Trial, str]) -> dict[str, Any]:
    """Draw how many keys each configuration releases, and how far it is off on the largest ones, group by group."""
    shown = {
        "keys released": "keys",
        f"mean absolute error on the {LARGE_KEYS} largest keys": "absolute_large",
    }
    return bars(
        [
            Panel(
                title,
                [Point(kind.configuration, group, estimate(outcomes, kind, field)) for kind, group in groups.items()],
            )
            for title, field in shown.items()
        ]
    )


def _known(panel: Panel) -> list[Point]:
    return [point for point in panel.points if math.isfinite(point.y.mean)]


def _drawn(point: Point) -> dict[str, Any]:
    spread = 0.0 if math.isnan(point.y.standard_error) else point.y.standard_error
    return {
        "series": point.series,
        "x": point.x,
        "y": point.y.mean,
        "low": point.y.mean - spread,
        "high": point.y.mean + spread,
    }


def _colour(points: Sequence[Point], legend: Mapping[str, Any] | None) -> dict[str, Any]:
    series = list(dict.fromkeys(point.series for point in points))
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": series, "range": COLOURS[: len(series)]},
        "sort": series,
        "legend": legend,
    }


def _beside(panels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    plain = {
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": GREY,
        "gridOpacity": 0.25,
        "labelColor": GREY,
        "titleColor": GREY,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "hconcat": list(panels),
        "config": {
            "view": {"stroke": None},
            "axis": plain,
            "legend": {"labelColor": GREY},
            "header": {"labelColor": GREY},
            "background": None,
        },
    }
