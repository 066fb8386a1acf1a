"""Curves to choose numbers by, as one page that needs nothing else. Imported when a page is made: templates and charts are slow."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from plume.query import Query
from plume.report.chart import NARROW_CURVES, WIDE_CURVES, Figure, draw_curves
from plume.report.page import policy
from plume.report.rendering import read, render
from plume.report.settings import query_call
from plume.tuning.expectation import CHANCE
from plume.version import __version__


@dataclass(frozen=True)
class Page:
    """What a page says."""

    kind: str
    lead: str
    warning: str
    query: Query
    figures: tuple[Figure, ...]
    rows: pa.Table


def make_page(page: Page) -> str:
    """Make the page."""
    style = read("report.css") + read("curves.css")
    grouped = f"per {', '.join(page.query.keys)}" if page.query.keys else "in total"
    return render(
        "curves.html",
        version=__version__,
        policy=policy(style),
        style=Markup(style),  # noqa: S704 - our own file
        kind=page.kind,
        title=f"{', '.join(measure.name for measure in page.query.measures)} {grouped}",
        warning=page.warning,
        lead=page.lead,
        figures=[(figure.caption, _drawings(figure)) for figure in page.figures],
        names=page.rows.column_names,
        rows=list(zip(*(_figures(name, page.rows) for name in page.rows.column_names), strict=True)),
        call=query_call(page.query),
    )


def _figures(name: str, rows: pa.Table) -> list[Any]:
    """Give a column as people read it: of chances four digits behind the point, of other fractions four digits in all."""
    values = rows.column(name).to_pylist()
    if name == CHANCE:
        return [round(value, 4) for value in values]
    return [_four_digits(value) if isinstance(value, float) else value for value in values]


def _four_digits(value: float) -> float:
    """Round to four digits, and never before the point."""
    return float(f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}")  # noqa: PLR2004 - from where on four digits are whole


def _drawings(figure: Figure) -> list[tuple[str, Markup]]:
    """Draw curves for a desk and for a phone; a drawing holds nothing but what chart.py lets through."""
    return [
        (layout.name, Markup(draw_curves(figure, layout)))  # noqa: S704
        for layout in (WIDE_CURVES, NARROW_CURVES)
    ]
