"""A report as text: what it says, and that nothing a stranger wrote becomes more than text."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.auditing.audit import Audit
from plume.auditing.finding import Finding
from plume.cautions import Caution
from plume.errors import OutputError, UsageError, printable
from plume.ledger.entry import Entry, EntryKind
from plume.ledger.history import History
from plume.ledger.room import BudgetPlan
from plume.privacy.cost import Spent
from plume.release import Receipt, Release
from plume.report.page import ROWS, make_page
from plume.tuning.need import Need, NeededNumber, TriedLimit
from plume.tuning.recommendation import TuningRow
from plume.tuning.tuning import NotPrivateTuning
from report.strangers import KEYS, answering, releasing

NAMES = [key for key in KEYS if key and "\0" not in key]


class Tags(HTMLParser):
    """The elements of a page with the names of their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag, tuple(name for name, _ in attrs)] += 1

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_there_are_enough_strange_words() -> None:
    assert len(set(KEYS)) == len(KEYS) >= 120


def test_keys_add_no_element_and_no_attribute() -> None:
    harmless = [f"harmless {number}" for number in range(len(KEYS))]
    assert Tags(make_page(releasing())).seen == Tags(make_page(releasing(harmless))).seen


def named(names: list[str]) -> str:
    """All that is shown of a release whose columns, condition and receipt have these names."""
    query = plume.Query(
        user=f"{names[0]} of user",
        keys=[f"{name} of key" for name in names],
        measures=[plume.count(1, name=name) for name in names],
        max_keys_per_user=3,
        budget=plume.Budget(1, 1e-6),
    )
    rows = pa.table({key: ["x"] for key in query.keys} | {name: [1] for name in names})
    release = Release(rows, plume.explain(query), private=True, receipt=Receipt(names[0], names[1], names[2]))
    shown = (query, release, release.explanation, *chosen_by(query), *kept(names))
    return make_page(release) + "".join(one._repr_html_() for one in shown)


def chosen_by(query: plume.Query) -> Iterator[Any]:
    """What helps to choose numbers, as it would be for this query."""
    yield plume.expect(query, users=[10])
    numbers = tuple(NeededNumber(measure.name, 1, 0.5, 1, "none") for measure in query.measures)
    limits = (TriedLimit(1, 1.0, 0.9), TriedLimit(2, None, 1.0))
    cautions = tuple(
        Caution(measure.name, f"noise drowns {measure.name}", "Raise epsilon") for measure in query.measures
    )
    yield Need(query, 500, 3, 1, 0.5, 0.5, 1, "weighted Gaussian", numbers, limits, cautions)
    tried = [TuningRow(1.0, "auto", limit, 2.0, query.measures[0].name, query.keys[0], 1, 0.1, 0.2) for limit in (1, 2)]
    yield NotPrivateTuning(query, 2, (replace(tried[0], recommended=True), tried[1]))
    yield Audit(
        query.user, "plume", tuple(Finding("A", key, passed=key == query.keys[0], trials=1) for key in query.keys)
    )


def kept(names: list[str]) -> Iterator[Any]:
    """What a ledger would show, were these the names of its datasets."""
    entries = [
        Entry(n, EntryKind.DATASET, name, None, "2026", {"epsilon": 1, "delta": 1}) for n, name in enumerate(names)
    ]
    yield History([*entries, Entry(9, EntryKind.RELEASED, names[0], names[1], names[2])], lambda _: names[-1])
    for fits in (True, False):
        after = Spent(1.0, 0.0) if fits else None
        yield BudgetPlan(names[0], Spent(1.0, 0.0), fits, after, None, plume.Budget(2), Spent(0.5, 0.0))


@pytest.mark.parametrize("start", range(0, len(NAMES), 20))
def test_names_of_columns_and_datasets_add_no_element_and_no_attribute(start: int) -> None:
    names = NAMES[start : start + 20]
    # A long name may be broken behind its underscores, harmless or not.
    harmless = [f"{re.sub('[^_]', 'h', name)}{number}" for number, name in enumerate(names)]
    assert Tags(named(names)).seen == Tags(named(harmless)).seen


def test_characters_that_turn_the_writing_are_escaped() -> None:
    page = make_page(releasing(["turned\u202egnp.exe"]))
    assert "\u202e" not in page
    assert r"turned\u202egnp.exe" in page


def test_a_page_names_no_address() -> None:
    page = make_page(releasing(["x"]))
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src &#39;none&#39;" in page


def test_a_page_says_what_is_guaranteed_and_spent() -> None:
    settings = {"max_keys_per_user": 2, "budget": plume.Budget(1, 1e-6), "noise": "laplace"}
    query = plume.Query(user="u", keys="k", measures=[plume.users()], **settings)
    text = " ".join(" ".join(Tags(make_page(answering(query, k=["x"]))).text).split())
    for said in (
        "factor of at most 2.72",
        "at most δ =",
        "epsilon 0.5",
        "users",
        "at most 2 keys",
        "charged to no ledger",
    ):
        assert said in text


def test_a_page_of_a_statement_shows_it_as_it_was_written() -> None:
    statement = "SELECT '<b>', \"count\"\n FROM data -- to the letter"
    page = make_page(replace(releasing(["x"]), statement=statement))
    assert statement in "".join(Tags(page).text)
    assert "plume.Query(" not in page
    assert Tags(page).seen == Tags(make_page(replace(releasing(["x"]), statement="harmless"))).seen


def test_intervals_are_columns_of_the_table_and_no_charts() -> None:
    page = make_page(releasing(["x"]).intervals(0.9))
    assert page.count('<figure class="chart"') == 1
    assert "count_low" in page


@pytest.mark.parametrize("columns", [["k"], ["count"]])
def test_columns_that_are_left_out_are_not_missed(columns: list[str]) -> None:
    release = releasing(["x", "y"])
    page = make_page(Release(release.rows.select(columns), release.explanation, private=True))
    assert Tags(page).seen["th", ()] + Tags(page).seen["th", ("class",)] >= 1


def test_a_key_that_is_a_number_is_written_as_it_is() -> None:
    release = releasing(["x"])
    numbered = release.rows.set_column(0, "k", pa.array([2026]))
    released = Release(numbered, release.explanation, private=True)
    for page in (make_page(released), released._repr_html_()):
        assert '<td data-value="2026">2026</td>' in page
    assert "<title>2026: 100</title>" in make_page(released)


def test_a_guarantee_does_not_sound_better_than_it_is() -> None:
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.users()],
        max_keys_per_user=1,
        public_keys=["x"],
        budget=plume.Budget(1.00001),
    )
    text = " ".join(Tags(make_page(answering(query, k=["x"]))).text)
    assert "1.001" in text
    assert "2.72 (e to the power of ε = 1.001)" in text


def test_a_page_says_where_it_was_charged() -> None:
    release = releasing(["x"])
    page = make_page(
        Release(release.rows, release.explanation, private=True, receipt=Receipt("data", "id-7", "abc123"))
    )
    assert all(said in page for said in ("data", "id-7", "abc123"))


def test_a_page_of_a_test_says_not_private() -> None:
    release = releasing(["x"])
    assert "NOT PRIVATE" in make_page(Release(release.rows, release.explanation, private=False))
    assert "NOT PRIVATE" not in make_page(release)


def test_the_same_release_gives_the_same_page() -> None:
    assert make_page(releasing()) == make_page(releasing())


def test_a_large_release_shows_its_largest_rows_in_the_order_of_keys() -> None:
    keys = [f"{number:05}" for number in range(ROWS + 10)]
    rows = pa.table({"k": keys, "count": list(range(ROWS + 10))})
    page = make_page(Release(rows, releasing(["x"]).explanation, private=True))
    cells = [text for text in Tags(page).text if len(text) == 5 and text.isdigit()]
    assert cells[-ROWS:] == keys[10:]
    assert "rows of 5,010 where count is largest" in page


@pytest.mark.parametrize(
    ("measure", "kind"),
    [
        (plume.mean("v", 0, 10), pa.float64()),
        (plume.quantiles("v", [0.1, 0.5], 0, 10), pa.float64()),
        (plume.sum("v", low_total=0, high_total=1e9), pa.float64()),
        (plume.histogram("v", [0, 5, 10]), pa.int64()),
    ],
)
def test_every_kind_of_measure_has_its_page(measure: object, kind: pa.DataType) -> None:
    query = plume.Query(user="u", keys="k", measures=[measure], max_keys_per_user=2, budget=plume.Budget(50, 0.1))
    release = answering(query, k=["x"] * 40, v=pa.array([5] * 40, kind))
    page = make_page(release)
    assert all(printable(name) in page for name in release.rows_to_read.column_names)


def test_numbers_that_are_none_are_no_bars() -> None:
    rows = pa.table({"k": ["a", "b", "c"], "count": [1.5, float("nan"), float("inf")]})
    page = make_page(Release(rows, releasing(["x"]).explanation, private=True))
    assert page.count("<title>") == 1 + 2  # the page's own, and one bar for a desk and for a phone


def test_a_report_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="could not be written"):
        releasing(["x"]).report(tmp_path / "nowhere" / "report.html")
    releasing(["x"]).report(str(tmp_path / "report.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_without_the_extra_a_report_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plume.report.chart.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="run pip install vl-convert-python"):
        releasing(["x"]).report(tmp_path / "report.html")
    assert "count" in releasing(["x"])._repr_html_()


@pytest.mark.parametrize(("limit", "times"), [(3, 0), ("auto", 1)])
def test_a_report_says_which_numbers_were_chosen_from_noised_data(limit: object, times: int) -> None:
    settings = {"user": "u", "keys": "k", "measures": plume.users(), "budget": plume.Budget(1, 1e-6)}
    query = plume.Query(**settings, max_keys_per_user=limit)
    release = plume.run(query, pa.table({"u": list(range(2_000)), "k": ["x"] * 2_000}))
    text = " ".join(Tags(make_page(release)).text)
    assert "Chosen by the analyst without looking at the data" in text
    assert text.count('except for the numbers left to "auto". Those were chosen from noised numbers') == times


def asking(*measures: object) -> plume.Query:
    return plume.Query(user="u", keys="k", measures=list(measures), max_keys_per_user=1, budget=plume.Budget(1, 1e-6))


def noisy_release(*measures: object) -> Release:
    """Three keys, of which the last has a mean that is noise, and larger than the others'."""
    query = asking(*measures)
    rows = {"k": ["small", "large", "noise"], "users": [100, 900, 30], "v_mean": [2.0, 1.0, 9.0]}
    names = [*query.released_columns]
    table = pa.table({name: rows[name] for name in names} | {"v_mean_reliable": [True, True, False]})
    margins = pa.table({"v_mean_low": [1.9, 0.9, 0.0], "v_mean_high": [2.1, 1.1, 10.0]})
    return Release(table, plume.explain(query), private=True, margins=margins)


def charted(page: str, name: str) -> list[str]:
    """The names of the bars in a column's chart, in their order."""
    figure = next(part for part in page.split("<figure")[1:] if f"<figcaption>{name}" in part)
    titles = figure.split('class="narrow"')[0].split("<title>")[1:]
    return [title.split(":")[0] for title in titles]


def test_a_chart_of_means_leaves_noise_out_and_begins_with_the_keys_of_the_most_users() -> None:
    page = make_page(noisy_release(plume.users(), plume.mean("v", 0, 10)))
    assert charted(page, "v_mean") == ["large", "small"]
    assert charted(page, "users") == ["large", "small", "noise"]
    assert "the 2 keys of 3 where users is largest" in page
    assert "left out where it is too noisy, in 1 key<" in page


def test_where_no_users_are_counted_the_largest_reliable_means_come_first() -> None:
    assert charted(make_page(noisy_release(plume.mean("v", 0, 10))), "v_mean") == ["small", "large"]


def test_tables_say_too_noisy_and_leave_out_the_columns_behind_it() -> None:
    release = noisy_release(plume.users(), plume.mean("v", 0, 10))
    for shown in (make_page(release), release._repr_html_()):
        assert shown.count(">too noisy</td>") == 1
        assert "<th>v_mean_reliable" not in shown
        assert 'data-value="9.0"' not in shown


def test_a_heading_names_four_columns_at_most() -> None:
    assert "<h1>count, more_<wbr>1, more_<wbr>2, more_<wbr>3 <span>" in make_page(releasing(measures=4))
    assert "<h1>count, more_<wbr>1, more_<wbr>2 and 2 more <span>" in make_page(releasing(measures=5))


def test_what_is_to_be_repeated_imports_what_it_uses() -> None:
    query = asking(plume.mean("day", date(2026, 1, 1), date(2026, 12, 31)))
    rows = pa.table({"k": ["x"], "day_mean": [date(2026, 5, 1)], "day_mean_reliable": [True]})
    assert "<code>import datetime\n\nimport plume\n" in make_page(Release(rows, plume.explain(query), private=True))
    assert "<code>import plume\n" in make_page(releasing())


def test_noise_by_which_a_quantile_is_found_is_not_taken_for_its_error() -> None:
    query = asking(plume.median("v", 0, 60))
    explanation = plume.explain(query)
    assert "v_median (numbers of values): " in str(explanation)
    assert "v_median (numbers of values)" in str(plume.expect(query))
    rows = pa.table({"k": ["x"], "v_median": [1.5], "v_median_reliable": [True]})
    assert "median (numbers of values)<" in make_page(Release(rows, explanation, private=True))


def test_noise_on_a_total_of_many_is_written_without_an_exponent() -> None:
    explanation = plume.explain(asking(plume.sum("v", 0, 1e6)))
    release = Release(pa.table({"k": ["x"], "v_sum": [1.5]}), explanation, private=True)
    assert re.search(r"v_sum <small>± \d,\d{3},\d{3}</small>", make_page(release))
    assert re.search(r"standard deviation \d,\d{3},\d{3}\n", str(explanation))
