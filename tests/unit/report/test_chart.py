"""Charts: what is drawn is SVG of a few kinds of elements, whatever the labels say."""

import re
from xml.etree.ElementTree import fromstring

import pytest

from plume.report.chart import NARROW, WIDE, Bar, draw_bars


def bars(*labels: str, width: float = 5) -> list[Bar]:
    return [Bar(place, label, 10, 10 - width, 10 + width, "10") for place, label in enumerate(labels)]


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_a_chart_has_no_scripts_links_styles_or_foreign_elements(layout: object) -> None:
    drawn = draw_bars(bars("a", "</text></svg><script>alert(1)</script>"), layout)
    assert set(re.findall(r"<(\w+)", drawn)) == {"svg", "g", "path", "line", "text", "title"}
    assert not re.search(r"\s(on\w+|style|href|xlink:href)=", drawn)


def test_equal_labels_are_two_bars() -> None:
    assert draw_bars(bars("a", "a"), WIDE).count("<title>a: 10</title>") == 2


@pytest.mark.parametrize(("width", "shapes"), [(5, 3), (0, 0)])
def test_only_values_with_an_interval_have_error_bars(width: float, shapes: int) -> None:
    chart = fromstring(draw_bars(bars("a", width=width), WIDE))  # noqa: S314 - our own
    errors = [group for group in chart.iter("g") if "layer_1_" in group.get("class", "")]
    assert sum(len(group) for group in errors) == shapes  # a line and its two ends


@pytest.mark.parametrize(
    ("value", "written"),
    [(2_000.0, "2,000"), (4_000_000.0, "4 million"), (3e9, "3 billion"), (2e12, "2 trillion"), (4e20, "4e+20")],
)
def test_large_numbers_of_an_axis_are_short(value: float, written: str) -> None:
    drawn = draw_bars([Bar(0, "a", value, value, value, "")], WIDE)
    assert f">{written}<" in drawn
