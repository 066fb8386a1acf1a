"""Bars with error bars, and curves, drawn by Vega-Lite when the page is written: a page that only shows pictures needs no script."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree as ET

from plume.errors import OutputError, UsageError
from plume.redaction import redacting

_SVG = "{http://www.w3.org/2000/svg}"
# The room for the longest numbers.
_RIGHT = 76
# All that a bar chart is made of. What is not here, scripts, links and styles among it, does not reach a page.
_ELEMENTS = frozenset({"svg", "g", "path", "line", "text"})
_ATTRIBUTES = frozenset(
    {"aria-hidden", "aria-label", "class", "d", "display", "fill", "font-size", "height", "opacity", "role", "stroke"}
    | {"stroke-dasharray", "stroke-width", "text-anchor", "transform", "viewBox", "width", "x", "x2", "y", "y2"}
)

# Curves through more points than this need no dots.
_FEW_POINTS = 20
# And at more places than this an axis is marked at round numbers.
_FEW_PLACES = 12
# Large numbers are written in words on an axis, and beyond them with exponents.
_LARGE = ((10**12, " trillion"), (10**9, " billion"), (10**6, " million"))
_TOO_LARGE = 10**15
_COLOURS = ("#8560d0", "#d9822b", "#2e9e83", "#d14c7d", "#4a90d9", "#9a9a2c", "#8a6d5a", "#7a7a8c")
# More curves than colours are told apart by their dashes.
_DASHES = ([1, 0], [7, 4], [2, 3], [9, 3, 2, 3])


@dataclass(frozen=True)
class Bar:
    """A released value, how far noise may have moved it, and what stands beside it."""

    place: int
    label: str
    value: float
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class Point:
    """A point of a curve; those that are marked stand out."""

    series: str
    x: float
    y: float
    marked: bool = False


@dataclass(frozen=True)
class Figure:
    """Curves, and what they show."""

    caption: str
    across: str
    """What the axis from left to right is called."""
    up: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Layout:
    """How a chart makes use of the room there is."""

    name: str
    width: int
    """Of the bars alone."""
    left: int
    """The room for what stands left of them; fonts differ from machine to machine, so it is more than what Vega measures."""
    step: int
    label: Mapping[str, Any]
    """How a bar's name is set: left of it, or above it where there is no room at its side."""
    shift: int
    """How far bars and all that belongs to them lie below the middle of their step."""


WIDE = Layout("wide", 670, 210, 27, {"align": "right", "dx": -10, "limit": 170}, shift=0)
NARROW = Layout("narrow", 262, 6, 42, {"align": "left", "dy": -10, "limit": 270}, shift=8)


@dataclass(frozen=True)
class CurveLayout:
    """How curves make use of the room there is."""

    name: str
    width: int
    """Of the curves alone."""
    height: int
    columns: int
    """In how many columns the legend stands."""
    limit: int
    """The room for a line of the legend."""
    ticks: int


WIDE_CURVES = CurveLayout("wide", 690, 270, columns=2, limit=290, ticks=6)
NARROW_CURVES = CurveLayout("narrow", 250, 190, columns=1, limit=270, ticks=5)


def refuse_without_charts() -> None:
    """Raise UsageError if nothing can be drawn here; to be asked before a budget is spent."""
    if find_spec("vl_convert") is None:
        raise UsageError("a report needs vl-convert to draw its charts; run pip install vl-convert-python.")


def draw_if_possible(draw: Callable[[], str]) -> str | None:
    """Draw what a notebook shows beside its table: nothing if that cannot be done here, since no cell may fail for want of a picture."""
    with suppress(Exception):  # whatever is wrong with an extra
        return draw()
    return None


def draw_bars(bars: Sequence[Bar], layout: Layout) -> str:
    """Draw bars as SVG to stand inside a page; colours and fonts are the page's."""
    return _draw(_specification(bars, layout))


def draw_curves(figure: Figure, layout: CurveLayout) -> str:
    """Draw a curve through the points of each series as SVG."""
    return _draw(_specification_of_curves(figure, layout))


def _draw(specification: dict[str, Any]) -> str:
    refuse_without_charts()
    import vl_convert  # noqa: PLC0415 - an extra

    failure = OutputError("the chart of the report could not be drawn; the rows are not affected.")
    with redacting(ValueError, to=failure):  # its words quote the page
        drawn = vl_convert.vegalite_to_svg(specification)
    # The text was written by vl_convert, which escapes; parsing it again lets through only what is known to be harmless.
    return ET.tostring(_harmless(ET.fromstring(drawn)), encoding="unicode")  # noqa: S314


def _specification(bars: Sequence[Bar], layout: Layout) -> dict[str, Any]:
    place = {"field": "place", "type": "ordinal", "sort": None, "axis": None}
    labels = _labels([end for bar in bars for end in (bar.low, bar.high, bar.value)])
    value = {"type": "quantitative", "title": None, "axis": {"tickCount": layout.width // 80, **labels}}
    beside = {"type": "text", "baseline": "middle", "aria": False}
    shifted = {"yOffset": layout.shift}
    layers = [
        {
            "mark": {"type": "bar", "height": 14, **shifted},
            "encoding": {"x": {"field": "value", **value}, "description": {"field": "said", "type": "nominal"}},
        },
        {
            "transform": [{"filter": "datum.low < datum.high"}],
            "mark": {"type": "errorbar", "ticks": {"size": 8, **shifted}, "rule": shifted},
            "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
        },
        {
            "mark": beside | {"fontSize": 13, **layout.label},
            "encoding": {"x": {"value": 0}, "text": {"field": "label", "type": "nominal"}},
        },
        {
            "mark": beside | {"fontSize": 12, "align": "left", "dx": 7, **shifted},
            "encoding": {"x": {"field": "end", **value}, "text": {"field": "text", "type": "nominal"}},
        },
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": layout.width,
        "height": {"step": layout.step},
        "autosize": "none",
        "padding": {"left": layout.left, "right": _RIGHT, "top": 4, "bottom": 28},
        "config": {
            "view": {"stroke": None},
            "axis": {"domain": False, "ticks": False, "labelFontSize": 12, "labelPadding": 6, "labelFlush": False},
        },
        "data": {"values": [_row(bar) for bar in bars]},
        "encoding": {"y": place},
        "layer": layers,
    }


def _specification_of_curves(figure: Figure, layout: CurveLayout) -> dict[str, Any]:
    """Colours are such that they can be told apart by day and by night."""
    points = figure.points
    series = list(dict.fromkeys(point.series for point in points))
    told = {"field": "series", "type": "nominal", "sort": series, "legend": {"title": None}}
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(series))]
    dashes = [_DASHES[place // len(_COLOURS) % len(_DASHES)] for place in range(len(series))]
    encoding = _axes(figure, layout.ticks) | {"color": told | {"scale": {"domain": series, "range": colours}}}
    dashed = {"strokeDash": told | {"scale": {"domain": series, "range": dashes}}}
    small, large = {"type": "point", "filled": True, "size": 25}, {"type": "point", "size": 220, "strokeWidth": 3}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": layout.width,
        "height": layout.height,
        "config": {
            "view": {"stroke": None},
            "axis": {"domain": False, "ticks": False, "labelFontSize": 12, "titleFontSize": 12, "labelPadding": 6},
            # Letters of the page may be wider than those that the place of the title is computed from.
            "axisY": {"titlePadding": 18},
            "axisX": {"labelOverlap": "greedy", "labelSeparation": 8, "format": ",~r"},
            "legend": {"orient": "bottom", "columns": layout.columns, "columnPadding": 30, "labelLimit": layout.limit}
            | {
                "symbolType": "stroke",
                "symbolStrokeWidth": 3,
                "symbolSize": 300,
                "symbolOpacity": 1,
                "labelFontSize": 12,
            },
        },
        "data": {"values": [asdict(point) for point in points]},
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": dashed},
            *([{"mark": small}] if len(points) <= _FEW_POINTS * len(series) else []),
            {"transform": [{"filter": "datum.marked"}], "mark": large},
        ],
    }


def _axes(figure: Figure, ticks_up: int) -> dict[str, Any]:
    axis, points = {"type": "quantitative"}, figure.points
    ticks = {"values": _ticks([point.x for point in points])}
    labels = {"tickCount": ticks_up} | _labels([point.y for point in points])
    return {
        "x": axis | {"field": "x", "scale": {"type": "log", "nice": False}, "title": figure.across, "axis": ticks},
        "y": axis | {"field": "y", "title": figure.up, "axis": labels},
    }


def _labels(numbers: Sequence[float]) -> dict[str, str]:
    """Write the numbers of an axis so that they stay short."""
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0)
    if largest >= _TOO_LARGE:
        return {"format": ".3~e"}
    size, word = next(((size, word) for size, word in _LARGE if largest >= size), (1, ""))
    in_words = f"datum.value ? format(datum.value / {size}, ',~r') + '{word}' : '0'"
    return {"labelExpr": in_words} if word else {"format": ",~r"}


def _ticks(places: Sequence[float]) -> list[float]:
    """Mark where points are if they are few, and else 1, 2 and 5 of each power of ten."""
    marked = sorted(set(places))
    if len(marked) <= _FEW_PLACES:
        return marked
    powers = range(math.floor(math.log10(marked[0])), math.ceil(math.log10(marked[-1])) + 1)
    return [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]


def _row(bar: Bar) -> dict[str, Any]:
    return asdict(bar) | {"end": max(bar.high, 0), "said": f"{bar.label}: {bar.text}"}


def _harmless(element: ET.Element) -> ET.Element:
    """Copy an element with what is known and nothing else; a bar also tells its name and value to whoever points at it."""
    attributes = {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES}
    copy = ET.Element(element.tag.removeprefix(_SVG), attributes)
    copy.text = element.text
    children = (child for child in element if child.tag.removeprefix(_SVG) in _ELEMENTS)
    copy.extend(_harmless(child) for child in children)
    if copy.tag == "path" and "aria-label" in attributes:
        ET.SubElement(copy, "title").text = attributes["aria-label"]
    return copy
