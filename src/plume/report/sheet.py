"""What notebooks show of everything but rows that were released: a head, facts, bars, small curves and tables, in this order.

Whoever makes a sheet hands over words as they are; they are escaped where the sheet becomes HTML. It needs no script and fetches nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup

from plume.report.chart import NARROW_CURVES, Figure, draw_curves, draw_if_possible
from plume.report.rendering import render

ROWS = 500
FIGURES = 12
_ALL = 100


Mark = Literal["best", "failed"]


@dataclass(frozen=True)
class Listing:
    """A table of values by the names of their columns."""

    title: str
    rows: Sequence[Mapping[str, Any]]
    words: frozenset[str] = frozenset()
    """The columns that hold words; all others are set as numbers are, to the right."""
    marks: Mapping[int, Mark] = field(default_factory=dict)
    """The rows that stand out, by their numbers."""


@dataclass(frozen=True)
class Gauge:
    """How full something is, as a bar."""

    label: str
    before: float
    """The share that is taken already."""
    after: float | None
    """The share that would be; None if there is no room for it."""
    beside: str
    """What stands beside it."""

    @property
    def pieces(self) -> Iterator[tuple[str, float, float]]:
        """What is drawn, each piece with its start and its length in percent."""
        taken, then = (_ALL * min(max(share, 0), 1) for share in (self.before, 1 if self.after is None else self.after))
        yield "taken", 0, taken
        yield "over" if self.after is None else "more", taken, max(then - taken, 0)


@dataclass(frozen=True)
class Sheet:
    """What is shown."""

    head: str
    warning: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    gauges: Sequence[Gauge] = ()
    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    notes: Sequence[str] = ()


def show_sheet(sheet: Sheet) -> str:
    """Make the HTML; curves are left out where nothing can draw them, and the tables say the same."""
    return render("sheet.html", sheet=sheet, pictures=list(_pictures(sheet.figures[:FIGURES])), most=ROWS)


def _pictures(figures: Iterable[Figure]) -> Iterator[tuple[str, Markup]]:
    for figure in figures:
        drawn = draw_if_possible(lambda figure=figure: draw_curves(figure, NARROW_CURVES))  # type: ignore[misc]
        if drawn is not None:
            yield figure.caption, Markup(drawn)  # noqa: S704 - it holds nothing but what chart.py lets through
