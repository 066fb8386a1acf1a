"""Charts: what is drawn is SVG of a few kinds of elements, whatever the labels say."""

import re

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


def test_values_without_an_interval_have_no_error_bars() -> None:
    with_errors, without = (draw_bars(bars("a", width=width), WIDE) for width in (5, 0))
    assert "layer_1_" in with_errors
    assert with_errors.count("<line") > without.count("<line")
