"""A report as people see it, in a real Chromium: nothing is fetched, nothing complains, and strangers' words stay words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import plume
from browsers import launch
from plume.auditing.audit import Audit
from plume.auditing.finding import Finding
from plume.errors import printable
from plume.release import Release
from plume.synthetic import recipe_searches
from report.strangers import KEYS, releasing

MANY = [f"key {number:03}" for number in range(60)]
DESK, PHONE = (1280, 900), (390, 844)
# A page that sets text and tables as notebooks do.
NOTEBOOK = """<style>
body { margin: 8px; font: 14px sans-serif; color: #000; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #fff; } }
.cell table { table-layout: fixed; } .cell td, .cell th { text-align: right; white-space: normal; padding: 0.5em; }
.cell ul, .cell ol { padding-left: 2em; }
</style>"""
INKS = {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}
# How large each text of the pictures is, once they are fitted to the page; those that are not shown are left out.
SIZES = """texts => texts.filter(text => text.getClientRects().length).map(text => {
  const picture = text.ownerSVGElement;
  return parseFloat(getComputedStyle(text).fontSize) * picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
})"""
# In how many lines the text of each cell is set.
LINES = """cells => cells.map(cell => {
  const range = new Range();
  range.selectNodeContents(cell);
  return range.getClientRects().length;
})"""


# Which texts of a picture lie upon each other.
OVERLAPPING = """pictures => pictures.flatMap(picture => {
  const texts = [...picture.querySelectorAll('text')].filter(text => text.textContent && text.getClientRects().length);
  const boxes = texts.map(text => text.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return texts.flatMap((text, one) => texts.filter((_, other) => one < other && meet(boxes[one], boxes[other]))
    .map(other => `${text.textContent} | ${other.textContent}`));
})"""


@dataclass
class Opened:
    """A page, and all it did beside being shown."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_text_contents()

    def column(self, number: int) -> list[str]:
        return self.texts(f"table.rows tbody td:nth-child({number})")


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = launch(playwright)
        yield started
        started.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    contexts = []

    def opened(release: Release, *, size: tuple[int, int] = DESK, **settings: object) -> Opened:
        release.report(tmp_path / "report.html", overwrite=True)
        width, height = size
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **settings))
        seen = Opened(contexts[-1].new_page())
        seen.page.on("console", lambda message: seen.said.append(message.text))
        seen.page.on("pageerror", lambda error: seen.said.append(str(error)))
        seen.page.on("dialog", lambda dialog: (seen.said.append(dialog.message), dialog.dismiss()))
        seen.page.on("request", lambda request: seen.asked_for.append(request.url))
        seen.page.goto((tmp_path / "report.html").as_uri())
        return seen

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_silent_and_fetches_nothing(show: Open, size: tuple[int, int], scheme: str) -> None:
    opened = show(releasing(), size=size, color_scheme=scheme)
    assert opened.said == []
    assert [url.split(":")[0] for url in opened.asked_for] == ["file"]


@pytest.mark.parametrize(("size", "shown"), [(DESK, "wide"), (PHONE, "narrow")], ids=["desk", "phone"])
def test_the_twenty_largest_values_are_bars_with_error_bars(show: Open, size: tuple[int, int], shown: str) -> None:
    page = show(releasing(MANY), size=size).page
    bars = page.locator(f".chart .{shown} .layer_0_marks path")
    errors = page.locator(f".chart .{shown} [class*=layer_1_] line")
    widths = [bar.bounding_box()["width"] for bar in bars.all()]
    assert (len(widths), errors.count()) == (20, 20)
    assert widths == sorted(widths, reverse=True)
    assert widths[19] == pytest.approx(widths[0] * 41 / 60, rel=0.01)
    assert all(error.bounding_box()["width"] > 2 for error in errors.all())


def test_a_bar_tells_its_name_and_value(show: Open) -> None:
    opened = show(releasing(MANY))
    assert opened.texts(".wide .layer_0_marks path title")[:2] == ["key 000: 6,000", "key 001: 5,900"]


def test_a_page_fits_a_phone(show: Open) -> None:
    page = show(releasing(measures=3), size=PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    assert [page.locator(f".chart .{layout}").first.is_visible() for layout in ("wide", "narrow")] == [False, True]


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_names_of_what_was_spent_stand_in_one_line(show: Open, size: tuple[int, int]) -> None:
    page = show(releasing(), size=size).page
    assert "together with" in page.locator(".spending .price").first.text_content()
    assert set(page.locator(".spending .part").evaluate_all(LINES)) == {1}
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


def test_a_page_is_light_by_day_and_dark_by_night(show: Open) -> None:
    grounds = [
        show(releasing(MANY), color_scheme=scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert grounds == ["rgb(246, 245, 249)", "rgb(19, 18, 23)"]


def test_a_click_sorts_by_number_and_another_the_other_way(show: Open) -> None:
    opened = show(releasing(MANY))
    opened.page.get_by_role("button", name="count").click()
    assert opened.column(2)[:3] == ["6,000", "5,900", "5,800"]
    opened.page.get_by_role("button", name="count").click()
    assert opened.column(2)[:3] == ["100", "200", "300"]
    assert opened.column(1)[0] == "key 059"


def test_a_click_sorts_by_key(show: Open) -> None:
    opened = show(releasing([*reversed(MANY)]))
    assert opened.column(1)[0] == "key 059"
    opened.page.get_by_role("columnheader", name="k", exact=False).first.get_by_role("button").click()
    assert opened.column(1)[:2] == ["key 000", "key 001"]


def test_pages_lead_through_all_rows(show: Open) -> None:
    opened = show(releasing(MANY))
    seen = opened.column(1)
    while opened.page.locator("#next").is_enabled():
        opened.page.locator("#next").click()
        seen += opened.column(1)
    assert seen == MANY
    assert opened.texts("#range") == ["51 to 60 of 60"]


def test_a_key_is_found(show: Open) -> None:
    opened = show(releasing(MANY))
    opened.page.locator("#find").fill("KEY 01")
    assert opened.column(1) == MANY[10:20]


def test_tabs_choose_the_measure(show: Open) -> None:
    page = show(releasing(MANY, measures=2)).page
    page.get_by_role("tab", name="more_1").click()
    assert [page.locator(f"#chart-{number}").is_visible() for number in (1, 2)] == [False, True]


def test_strangers_words_are_shown_as_words(show: Open) -> None:
    opened = show(releasing())
    seen = opened.column(1)
    while opened.page.locator("#next").is_enabled():
        opened.page.locator("#next").click()
        seen += opened.column(1)
    assert len(KEYS) >= 120
    assert seen == [printable(key) for key in KEYS]
    assert (
        opened.page.locator("script, img, iframe, a, base, link, style").count() == 3
    )  # one script, one style, one icon
    assert opened.said == []


def test_what_would_be_injected_all_the_same_does_not_run(show: Open) -> None:
    opened = show(releasing(MANY))
    opened.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')")
    opened.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 2'}))"
    )
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in line for line in opened.said)


def test_without_scripts_all_rows_and_charts_are_there(show: Open) -> None:
    opened = show(releasing(MANY, measures=2), java_script_enabled=False)
    assert opened.column(1) == MANY
    assert opened.page.locator(".chart:visible").count() == 2


def test_a_release_without_keys_says_so(show: Open) -> None:
    opened = show(releasing([]))
    assert "No keys were selected" in opened.texts("#values")[0]
    assert opened.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_notebooks_show_strangers_words_as_words(browser: Browser, scheme: str) -> None:
    release = releasing(KEYS[:10])
    page = browser.new_page(color_scheme=scheme)
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    query = release.explanation.calibrated.query
    page.set_content("".join(shown._repr_html_() for shown in (query, release, release.explanation)))
    assert page.locator("table.rows td:first-child").all_text_contents() == list(KEYS[:10])
    assert (said, page.locator("script").count()) == ([], 0)
    page.close()


@pytest.fixture(scope="module")
def curves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of a query with three measures: what to expect of it, and what was tried."""
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.users(), plume.count(2), plume.sum("seconds", 0, 60)],
        max_keys_per_user=4,
        budget=plume.Budget(epsilon=1.1, delta=1e-5),
    )
    folder = tmp_path_factory.mktemp("curves")
    plume.expect(query, limits=[8]).report(folder / "expect.html")
    large = replace(query, measures=(plume.sum("seconds", 0, 3e4), plume.sum("cents", 0, 5e9)))
    plume.expect(large, limits=[8]).report(folder / "large.html")
    tuned = plume.tune(query, recipe_searches(500, seed=1), limits=[2]).report(folder / "tune.html")
    return {"expect": folder / "expect.html", "large": folder / "large.html", "tune": tuned}


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["expect", "tune"])
def test_no_number_or_word_of_figures_is_broken(
    browser: Browser, curves: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(curves[name].as_uri())
    lines = page.locator(".figures td").evaluate_all(LINES)
    assert set(lines) <= {0, 1}
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    page.close()


@pytest.mark.parametrize("name", ["expect", "tune"])
def test_all_columns_of_figures_fit_a_desk(browser: Browser, curves: dict[str, Path], name: str) -> None:
    page = browser.new_page(viewport={"width": DESK[0], "height": DESK[1]})
    page.goto(curves[name].as_uri())
    assert page.locator(".wide-table").evaluate("box => box.scrollWidth <= box.clientWidth")
    page.close()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["expect", "large", "tune"])
def test_no_texts_of_curves_lie_upon_each_other(
    browser: Browser, curves: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(curves[name].as_uri())
    assert page.locator(".curves svg").evaluate_all(OVERLAPPING) == []
    page.close()


@pytest.mark.parametrize("size", [DESK, PHONE, (740, 900)], ids=["desk", "phone", "tablet"])
@pytest.mark.parametrize("name", ["expect", "tune"])
def test_letters_of_curves_are_large_enough(
    browser: Browser, curves: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(curves[name].as_uri())
    sizes = page.locator(".curves text").evaluate_all(SIZES)
    assert len(sizes) > 10
    assert min(sizes) >= 10
    page.close()


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a notebook shows of everything that shows itself, in one page."""
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.users(), plume.count(2), plume.mean("seconds", 0, 60), plume.median("seconds", 0, 60)],
        max_keys_per_user=4,
        budget=plume.Budget(epsilon=1.1, delta=1e-6),
    )
    counts = replace(query, measures=(plume.users(), plume.count(2)))
    budgets = {"searches": plume.Budget(3, 1e-5), "a dataset with a long name": plume.Budget(1, 1e-6)}
    ledger = plume.Ledger.create(tmp_path_factory.mktemp("notebook") / "budget.ledger", datasets=budgets)
    dataset, people = ledger.dataset("searches"), recipe_searches(2_000, seed=1)
    release = plume.run(query, people, ledger=dataset, release_id="monday")
    findings = (Finding("C", "values of one user in 2 known keys, as asked", passed=False, trials=10**6, claimed=1.1),)
    shown = (
        *(query, release, release.explanation, plume.expect(counts, limits=[16], epsilons=[2])),
        *(plume.tune(counts, people, limits=[1, 16]), plume.need(counts, users=500, error=0.05)),
        *(Audit("users per recipe", "plume", findings), ledger, dataset, dataset.plan(query), ledger.history()),
    )
    return f"<!doctype html>{NOTEBOOK}<body class='cell'>{''.join(one._repr_html_() for one in shown)}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_notebook_fits_and_breaks_no_number(browser: Browser, cells: str, size: tuple[int, int], scheme: str) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.set_content(cells)
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    assert set(page.locator("td.number, .unbroken").evaluate_all(LINES)) == {0, 1}
    assert min(page.locator(".pictures text").evaluate_all(SIZES)) >= 10
    inks = "inks => [...new Set(inks.map(ink => getComputedStyle(ink).fill))]"
    assert page.locator(".pictures text").evaluate_all(inks) == [INKS[scheme]]
    assert [page.locator(".warning").first.is_visible(), asked_for] == [True, []]
    page.close()
