"""What notebooks and `print` show of ledgers: budgets as bars, releases and history in words."""

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.ledger.price import Price

ROWS = pa.table({"u": [str(n) for n in range(300)], "k": ["x"] * 300})


def query(epsilon: float = 1) -> plume.Query:
    return plume.Query(
        user="u", keys="k", measures=[plume.users()], max_keys_per_user=4, budget=plume.Budget(epsilon, 1e-6)
    )


@pytest.fixture
def ledger(tmp_path: Path) -> plume.Ledger:
    made = plume.Ledger.create(tmp_path / "budget.ledger", datasets={"searches": plume.Budget(epsilon=3, delta=1e-5)})
    plume.run(query(), ROWS, ledger=made.dataset("searches"), release_id="first")
    return made


def text(shown: Any) -> str:
    body = shown._repr_html_().partition("</style>")[2]
    return " ".join(re.sub("<[^>]*>", " ", body).split())


def widths(shown: Any, kind: str) -> list[str]:
    return re.findall(f'<rect class="{kind}" x="[^"]*" width="([^"]*)"', shown._repr_html_())


def test_a_ledger_shows_how_full_its_budgets_are(ledger: plume.Ledger) -> None:
    assert widths(ledger, "taken") == ["33.33"]
    assert "searches epsilon 1 of 3 is spent, 2 is left when added up, at delta 1e-05" in text(ledger)
    assert ledger.head in text(ledger)


def test_a_ledger_without_a_dataset_says_how_to_add_one(tmp_path: Path) -> None:
    assert "no dataset yet" in text(plume.Ledger.create(tmp_path / "empty.ledger"))


def test_a_ledger_shows_what_is_unfinished(ledger: plume.Ledger) -> None:
    with ledger.dataset("searches").claimed("second", "q") as claim:
        claim.reserve(Price(10**9, 0, 10**9, 0, 0))
    assert "Release second is reserved" in text(ledger)


def test_a_dataset_shows_its_releases_in_words(ledger: plume.Ledger) -> None:
    shown = text(ledger.dataset("searches"))
    assert re.search(r"first released 1 1e-06 \S+ \S+ users by k, limit of 4 keys per u", shown)


def test_only_the_latest_releases_of_a_dataset_are_shown(ledger: plume.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    plume.run(query(0.1), ROWS, ledger=ledger.dataset("searches"), release_id="second")
    monkeypatch.setattr("plume.ledger.notebook._LATEST", 1)
    shown = text(ledger.dataset("searches"))
    assert "releases, the latest 1 of 2" in shown
    assert "first" not in shown


def test_a_plan_shows_what_would_be_spent(ledger: plume.Ledger) -> None:
    plan = ledger.dataset("searches").plan(query())
    assert (plan.budget.epsilon, plan.spent.epsilon) == (3, 1)
    assert (widths(plan, "taken"), widths(plan, "over")) == (["33.33"], [])
    assert float(widths(plan, "more")[0]) > 0
    assert "It fits" in text(plan)


def test_a_plan_that_does_not_fit_shows_so(ledger: plume.Ledger) -> None:
    plan = ledger.dataset("searches").plan(query(5))
    assert widths(plan, "over") == ["66.67"]
    assert "It does not fit" in text(plan)


def test_history_is_told_in_words_in_print_and_in_notebooks(ledger: plume.Ledger) -> None:
    history = ledger.history()
    told = [
        "may spend epsilon 3 and delta 1e-05",
        "first was charged epsilon 1 and delta 1e-06",
        "first began to draw noise",
        "first was written",
        "first was released: users by k, limit of 4 keys per u",
    ]
    assert [line.partition("searches: ")[2] for line in str(history).splitlines()] == told
    assert repr(history) == str(history)
    assert [words for words in told if words not in text(history)] == []


def test_history_is_a_tuple_that_can_be_copied(ledger: plume.Ledger) -> None:
    history = ledger.history()
    assert isinstance(history, tuple)
    assert history == tuple(history) == pickle.loads(pickle.dumps(history)) == copy.deepcopy(history)  # noqa: S301
    assert str(pickle.loads(pickle.dumps(history))) == str(history)  # noqa: S301


def test_a_history_of_nothing_says_so(tmp_path: Path) -> None:
    history = plume.Ledger.create(tmp_path / "empty.ledger").history()
    assert str(history) == "nothing has happened yet"
    assert "Nothing has happened yet." in text(history)


def test_a_ledger_that_is_gone_says_so_in_place_of_an_error(ledger: plume.Ledger) -> None:
    dataset = ledger.dataset("searches")
    ledger.path.unlink()
    for shown in (ledger, dataset):
        assert 'class="warning"' in shown._repr_html_()


def test_a_released_file_that_was_changed_is_said_to_be(ledger: plume.Ledger) -> None:
    ledger.shelf.released("first").write_bytes(b"other")
    assert "its file is missing or was changed" in text(ledger.history())


def test_the_name_of_a_file_is_escaped(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "<b>\u202ex.ledger")
    assert "<b>" not in ledger._repr_html_()
    assert "\u202e" not in ledger._repr_html_()
