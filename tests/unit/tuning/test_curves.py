"""Pages of curves: what they show, and that they are pictures and text only."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import plume
from plume.report.chart import WIDE_CURVES, Figure, Point, draw_curves
from plume.synthetic import recipe_searches

QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.users(), plume.count(2)],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=1.1, delta=1e-5),
)
STRANGE = "</text><script>alert(1)</script>"


def page_of_expectation(query: plume.Query, folder: Path) -> str:
    path = folder / "expected.html"
    plume.expect(query, limits=[8], epsilons=[2.0]).report(path)
    return path.read_text()


def page_of_tuning(query: plume.Query, folder: Path) -> str:
    written = plume.tune(query, recipe_searches(500, seed=1), limits=[2], epsilons=[9.0]).report(folder / "tuned.html")
    assert written.name == "tuned.NOT-PRIVATE.html"
    return written.read_text()


def test_a_page_of_what_to_expect_shows_chances_by_epsilon_and_noise_by_measure(tmp_path: Path) -> None:
    captions = re.findall("<figcaption>(.*?)</figcaption>", page_of_expectation(QUERY, tmp_path))
    assert captions == [
        "The chance that a key is shown, by its number of users, at epsilon = 1.1",
        "The chance that a key is shown, by its number of users, at epsilon = 2",
        "Noise on users, by the limit",
        "Noise on count, by the limit",
    ]


def test_chances_on_a_page_have_no_exponents(tmp_path: Path) -> None:
    cells = re.findall('<td class="number">(.*?)</td>', page_of_expectation(QUERY, tmp_path))
    assert {"0", "1"} <= set(cells)
    assert [one for one in cells if "e-" in one] == []


def test_with_one_limit_there_is_nothing_to_compare(tmp_path: Path) -> None:
    plume.expect(QUERY).report(tmp_path / "one.html")
    assert (tmp_path / "one.html").read_text().count("<figure") == 1


def test_a_page_of_tuning_shows_errors_losses_and_keys_and_says_not_private_twice(tmp_path: Path) -> None:
    page = page_of_tuning(QUERY, tmp_path)
    assert [caption.split()[0] for caption in re.findall("<figcaption>(.*?)</figcaption>", page)] == [
        "Error",
        "Error",
        "What",
        "What",
        "Keys",
    ]
    assert len(re.findall('class="warning".*NOT PRIVATE', page)) == 2
    assert page.count('<tr class="marked">') == 2 * 2


@pytest.mark.parametrize("make", [page_of_expectation, page_of_tuning])
def test_names_of_strangers_stay_text_and_nothing_may_run(make, tmp_path: Path) -> None:
    strange = replace(QUERY, measures=[plume.users(name=STRANGE), plume.count(2)])
    page = make(strange, tmp_path)
    assert "<script" not in page
    assert "script-src &#39;none&#39;" in page
    assert not re.search(r"\s(on\w+|style|href|xlink:href)=(?!\"data:,\")", page)


def test_curves_are_shapes_and_text_and_marks_stand_out() -> None:
    points = tuple(Point(STRANGE, x, y, marked=x == 2) for x, y in ((1, 5.0), (2, 3.0), (4, 6.0)))
    figure = Figure("error", "limit", STRANGE, points)
    drawn = draw_curves(figure, WIDE_CURVES)
    assert set(re.findall(r"<(\w+)", drawn)) <= {"svg", "g", "path", "line", "text", "title"}
    unmarked = tuple(replace(point, marked=False) for point in points)
    plain = draw_curves(replace(figure, points=unmarked), WIDE_CURVES)
    assert drawn.count("<path") == plain.count("<path") + 1


def test_a_tuning_in_a_notebook_says_not_private_above_and_below() -> None:
    shown = plume.tune(QUERY, recipe_searches(500, seed=1), limits=[2])._repr_html_()
    assert len(re.findall("NOT PRIVATE: computed from the data", shown)) == 2
    assert shown.count('<tr class="best">') == 2
    assert shown.count("<figure") == 4


def test_an_expectation_in_a_notebook_has_the_tables_that_print_shows() -> None:
    expected = plume.expect(QUERY, limits=[8])
    titles = re.findall('<p class="title">(.*?)</p>', expected._repr_html_())
    assert len(titles) == 5
    assert all(title in str(expected) for title in titles)


def test_public_keys_have_no_curve_of_chances(tmp_path: Path) -> None:
    expected = plume.expect(replace(QUERY, public_keys=["apple pie"]), limits=[8])
    expected.report(tmp_path / "public.html")
    for shown in (expected._repr_html_(), (tmp_path / "public.html").read_text()):
        assert [caption.split()[0] for caption in re.findall("<figcaption>(.*?)</figcaption>", shown)] == ["Noise"] * 2
