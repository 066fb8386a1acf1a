"""What notebooks show: words of strangers stay words, and nothing that is missing or broken makes a cell fail."""

import builtins
import re
import sys
from types import ModuleType
from typing import Any

import pytest

import plume
from plume.report.chart import NARROW_CURVES, WIDE_CURVES, Figure, Point, draw_curves
from plume.report.rendering import heading, sentence
from plume.report.sheet import FIGURES, ROWS, Gauge, Listing, Sheet, show_sheet
from report.strangers import KEYS, releasing

QUERY = plume.Query(
    user="user_id", keys="recipe", measures=[plume.users()], max_keys_per_user=4, budget=plume.Budget(1.1, 1e-5)
)
FIGURE = Figure("curves", "limit", "error", tuple(Point("one", x, y) for x, y in ((1, 5.0), (2, 3.0), (4, 6.0))))


def elements(html: str) -> list[str]:
    return re.findall(r"<(\w+)", html)


def words(text: str) -> str:
    """A sheet that holds a text wherever it may."""
    listing = Listing(text, [{text: text, "n": text}], frozenset((text,)), {0: "best"})
    return show_sheet(Sheet(text, text, {text: text}, [Gauge(text, 0.1, 0.2, text)], (), [listing], [text]))


def test_words_of_strangers_add_no_element_and_no_control_character() -> None:
    harmless = elements(words("harmless"))
    for key in KEYS:
        if key and "_" not in key and not re.search(r"\de-\d", key):
            shown = words(key)
            assert elements(shown) == harmless
            assert not re.search("[\x00\x1b\u202e\u2066]", shown)


def test_a_sheet_has_no_script_and_names_no_address() -> None:
    shown = show_sheet(Sheet("head", figures=[FIGURE]))
    assert "<script" not in shown
    assert not re.search(r"https?:|url\(|@import|\son\w+=", shown)


def test_small_numbers_and_names_break_only_where_they_may() -> None:
    assert sentence("delta 1e-06.") == 'delta <span class="unbroken">1e-06</span>.'
    assert heading("max_keys_per_user") == "max_<wbr>keys_<wbr>per_<wbr>user"
    assert heading("<b>") == "&lt;b&gt;"


def test_a_long_table_is_cut_and_says_so() -> None:
    shown = show_sheet(Sheet("head", listings=[Listing("", [{"n": n} for n in range(ROWS + 7)])]))
    assert shown.count("<td") == ROWS
    assert f"the first {ROWS} of {ROWS + 7} rows" in shown


def test_of_many_pictures_the_first_are_drawn() -> None:
    shown = show_sheet(Sheet("head", figures=[FIGURE] * (FIGURES + 3)))
    assert shown.count("<figure") == FIGURES
    assert f"{FIGURES} of {FIGURES + 3} pictures; report(path) has them all" in shown


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        (0.25, 0.75, [("taken", 0, 25), ("more", 25, 50)]),
        (0.25, None, [("taken", 0, 25), ("over", 25, 75)]),
        (1.5, 1.5, [("taken", 0, 100), ("more", 100, 0)]),
    ],
)
def test_a_bar_shows_what_is_taken_and_what_would_be(before: float, after: float | None, pieces: Any) -> None:
    assert list(Gauge("label", before, after, "said").pieces) == pieces


def _lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plume.report.chart.find_spec", lambda _: None)


def _cannot_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def importing(name: str, *args: Any, **more: Any) -> Any:
        if name == "vl_convert":
            raise ImportError(name)
        return load(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", importing)


def _has_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", ModuleType("vl_convert"))


@pytest.mark.parametrize("break_it", [_lacks_it, _cannot_import_it, _has_one_that_fails])
def test_without_a_way_to_draw_the_tables_are_there(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    release, expected = releasing(["x", "y"]), plume.expect(QUERY, limits=[8])
    assert "<figure" in release._repr_html_()
    assert expected._repr_html_().count("<figure") == 2
    break_it(monkeypatch)
    for shown in (release._repr_html_(), expected._repr_html_()):
        assert "<figure" not in shown
        assert "<td" in shown


def test_more_curves_than_colours_differ_in_their_dashes() -> None:
    points = tuple(Point(f"series {number}", x, number) for number in range(9) for x in (1, 2))
    drawn = draw_curves(Figure("many", "x", "y", points), WIDE_CURVES)
    assert 'stroke-dasharray="7,4"' in drawn


def test_an_axis_is_marked_where_points_are_or_at_round_numbers() -> None:
    few, many = (tuple(Point("one", 1.5 * x, x) for x in range(1, most)) for most in (4, 60))
    for points, marked in ((few, ["1.5", "3", "4.5"]), (many, ["2", "5", "10", "20", "50"])):
        drawn = draw_curves(Figure("one", "limit", "", points), NARROW_CURVES)
        assert re.findall(r">([\d.]+)</text>", drawn)[: len(marked)] == marked
