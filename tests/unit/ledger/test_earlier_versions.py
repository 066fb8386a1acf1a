"""A ledger outlives versions: what 0.1.0 wrote is read, charged and answered as then, and a question keeps its hash.

`written_by_0_1_0/` is a ledger of version 0.1.0 with five releases and one that was reserved and then killed, about made-up visits.
"""

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.errors import LedgerError
from plume.far_dates import python_rows
from plume.ledger.charged_plan import ever_explained
from plume.ledger.entry import EntryKind
from plume.ledger.price import Price
from plume.ledger.publishing import price_for
from plume.ledger.request import Request, recorded
from plume.statement.answering import ask

ROWS = pa.table(
    {"u": [str(n) for n in range(3000)], "k": ["x", "y", "z"] * 1000, "v": [float(n % 60) for n in range(3000)]}
)
BUDGET = plume.Budget(1, 1e-6)
HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = u) "


def plain(**changes: Any) -> plume.Query:
    settings = {
        "user": "u",
        "keys": "k",
        "measures": [plume.count(2, where="v > 3"), plume.users(), plume.mean("v", 0, 60)],
        "max_keys_per_user": 2,
        "budget": BUDGET,
        "where": "v < 59",
    }
    return plume.Query(**(settings | changes))


QUERIES = {
    "plain": plain(),
    "public": plain(measures=[plume.users()], max_keys_per_user=1, where=None, public_keys=["x", "q"]),
    "chosen": plain(measures=[plume.sum("v", 0, "auto")], max_keys_per_user="auto", where=None),
}


@pytest.fixture
def ledger(tmp_path: Path) -> plume.Ledger:
    shutil.copytree(Path(__file__).parent / "written_by_0_1_0", tmp_path / "copy")
    return plume.Ledger(tmp_path / "copy" / "visits.ledger")


def test_a_ledger_of_0_1_0_is_whole_and_is_charged_on(ledger: plume.Ledger) -> None:
    ledger.verify()
    before = ledger.dataset("visits").spent.epsilon
    plume.run(plain(), ROWS, ledger=ledger.dataset("visits"), release_id="new")
    assert ledger.dataset("visits").spent.epsilon > before
    ledger.verify()


@pytest.mark.parametrize("name", QUERIES)
def test_a_release_of_0_1_0_is_given_again(ledger: plume.Ledger, name: str) -> None:
    content = ledger.shelf.released(name).read_bytes()
    entries = len(ledger.history())
    release = plume.run(QUERIES[name], ROWS, ledger=ledger.dataset("visits"), release_id=name)
    assert release.receipt is not None
    assert release.receipt.release_id == name
    assert ledger.shelf.released(name).read_bytes() == content
    assert len(ledger.history()) == entries


@pytest.mark.parametrize("name", ["plain", "chosen"])
def test_it_is_given_again_when_plans_are_printed_otherwise(
    ledger: plume.Ledger, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plume.Explanation, "sql", lambda *_: "otherwise")
    entries = len(ledger.history())
    assert len(plume.run(QUERIES[name], ROWS, ledger=ledger.dataset("visits"), release_id=name)) == 3
    assert len(ledger.history()) == entries


STATEMENTS = {
    "statement": f"{HEAD} k, COUNT(DISTINCT u) AS n FROM visits GROUP BY k",
    "computed": f"{HEAD} LOWER(k) AS k, COUNT(DISTINCT u) AS n FROM visits GROUP BY 1",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_of_0_1_0_is_given_again(ledger: plume.Ledger, name: str) -> None:
    spent = ledger.dataset("visits").spent
    release = plume.sql(STATEMENTS[name], tables={"visits": ROWS}, ledger=ledger.dataset("visits"), release_id=name)
    assert release.rows.column_names == ["k", "n"]
    assert ledger.dataset("visits").spent == spent


def test_a_statement_that_computes_cannot_be_compared_if_it_is_printed_otherwise(
    ledger: plume.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plume.Explanation, "sql", lambda *_: "otherwise")
    text = STATEMENTS["computed"]
    with pytest.raises(LedgerError, match="or by a version of Plume that cannot be compared; choose another one"):
        plume.sql(text, tables={"visits": ROWS}, ledger=ledger.dataset("visits"), release_id="computed")


def test_what_0_1_0_reserved_is_released_at_its_price(ledger: plume.Ledger) -> None:
    spent = ledger.dataset("visits").spent
    plume.run(plain(), ROWS, ledger=ledger.dataset("visits"), release_id="reserved")
    assert ledger.dataset("visits").spent == spent
    assert ledger.history()[-1].kind == EntryKind.RELEASED


def test_what_0_1_0_reserved_is_drawn_as_it_was_planned_then(ledger: plume.Ledger) -> None:
    charged = next(entry for entry in ledger.history() if entry.release_id == "reserved").price
    for _ in range(2):  # drawn, and then read again
        release = plume.run(plain(), ROWS, ledger=ledger.dataset("visits"), release_id="reserved")
        assert price_for(release.explanation) == charged
        assert [facts["strategy"] for facts in release.explanation.selection] == ["weighted Gaussian"]
        assert release.explanation.query == plain()
    assert [facts["strategy"] for facts in plume.explain(plain()).selection] == ["pooled Gaussian"]


@pytest.mark.parametrize("name", ["plain", "statement"])
def test_rows_of_0_1_0_have_the_intervals_of_the_noise_that_was_drawn(ledger: plume.Ledger, name: str) -> None:
    """The default draws less noise, or other noise, than it did then."""
    dataset = ledger.dataset("visits")
    if name == "plain":
        release = plume.run(QUERIES[name], ROWS, ledger=dataset, release_id=name)
    else:
        release = plume.sql(STATEMENTS[name], tables={"visits": ROWS}, ledger=dataset, release_id=name)
    record = recorded(ledger.shelf.released(name).read_bytes())
    assert [noise.standard_deviation for noise in release.noise] == [
        one["standard_deviation"] for one in record["noise"]
    ]
    assert [facts["strategy"] for facts in release.explanation.selection] == [
        one["strategy"] for one in record["selection"]
    ]


EARLIER: dict[str, tuple[plume.Query, str]] = {
    "weights": (plain(), "weighted Gaussian"),
    "two keys": (plain(measures=[plume.users()]), "truncated geometric"),
    "many keys": (plain(max_keys_per_user=100), "weighted Gaussian"),
}


def reserve(ledger: plume.Ledger, query: plume.Query, price: Price) -> None:
    """Leave a release as a process does that is killed when it has charged."""
    with ledger.dataset("visits").claimed("killed", digest_for("visits", query)) as claim:
        claim.reserve(price)


def digest_for(dataset: str, query: plume.Query) -> str:
    return Request(plume.explain(query), dataset).digest


@pytest.fixture
def empty(tmp_path: Path) -> plume.Ledger:
    return plume.Ledger.create(tmp_path / "new.ledger", datasets={"visits": plume.Budget(10, 1e-3)})


@pytest.mark.parametrize("name", EARLIER)
def test_what_was_charged_for_an_earlier_default_is_drawn_at_that_price(name: str, empty: plume.Ledger) -> None:
    query, strategy = EARLIER[name]
    planned = [
        one
        for one in ever_explained(plume.explain(query))
        if [facts["strategy"] for facts in one.selection] == [strategy]
    ]
    reserve(empty, query, price_for(planned[0]))
    spent = empty.dataset("visits").spent
    for _ in range(2):
        release = plume.run(query, ROWS, ledger=empty.dataset("visits"), release_id="killed")
        assert release.explanation.plan == planned[0].plan
        assert price_for(release.explanation) != price_for(plume.explain(query))
    assert empty.dataset("visits").spent == spent


def test_what_was_charged_for_more_than_today_needs_is_drawn_as_today(empty: plume.Ledger) -> None:
    today = price_for(plume.explain(plain()))
    reserve(empty, plain(), replace(today, mu=today.mu + 1))
    release = plume.run(plain(), ROWS, ledger=empty.dataset("visits"), release_id="killed")
    assert price_for(release.explanation) == today


@pytest.mark.parametrize("part", ["epsilon", "delta", "mu", "passing"])
def test_what_was_charged_for_less_than_any_version_draws_is_refused(part: str, empty: plume.Ledger) -> None:
    today = price_for(plume.explain(plain()))
    reserve(empty, plain(), replace(today, **{part: getattr(today, part) - 1}))
    entries = len(empty.history())
    with pytest.raises(
        LedgerError, match="for less than what this version would draw; finish it with that version, or"
    ):
        plume.run(plain(), ROWS, ledger=empty.dataset("visits"), release_id="killed")
    assert len(empty.history()) == entries  # nothing was drawn
    empty.abandon("killed")


OTHERS: dict[str, dict[str, Any]] = {
    "budget": {"budget": plume.Budget(1.01, 1e-6)},
    "delta": {"budget": plume.Budget(1, 1.1e-6)},
    "limit": {"max_keys_per_user": 3},
    "measure": {"measures": [plume.count(3, where="v > 3"), plume.users(), plume.mean("v", 0, 60)]},
    "condition of a measure": {"measures": [plume.count(2, where="v > 4"), plume.users(), plume.mean("v", 0, 60)]},
    "where": {"where": "v < 58"},
    "keys": {"keys": ["k", "w"]},
    "min_users": {"min_users": 5},
    "noise": {"noise": "laplace"},
    "selection": {"selection": "laplace_threshold"},
    "shares": {"shares": {"users": 2}},
    "composition": {"composition": "basic"},
    "public keys": {"public_keys": ["x"]},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("printed", ["as then", "otherwise"])
def test_another_question_under_an_id_of_0_1_0_is_refused(
    ledger: plume.Ledger, other: str, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if printed == "otherwise":
        monkeypatch.setattr(plume.Explanation, "sql", lambda *_: "otherwise")
    with pytest.raises(LedgerError, match="release_id 'plain' was used for another query"):
        plume.run(plain(**OTHERS[other]), ROWS, ledger=ledger.dataset("visits"), release_id="plain")


@pytest.mark.parametrize("other", OTHERS)
def test_another_question_has_another_hash(other: str) -> None:
    assert digest(plain(**OTHERS[other])) != digest(plain())


def digest(query: plume.Query) -> str:
    return Request(plume.explain(query), "visits").digest


EVERY_MEASURE = [
    plume.count(2, where="v > 3"),
    plume.count("auto", column="v", name="c"),
    plume.users(),
    plume.sum("v", 0, 10.5),
    plume.mean("day", date(2020, 1, 1), date(2026, 1, 1)),
    plume.variance("v", -1, 1),
    plume.stddev("v", 0, 60, max_per_key=2),
    plume.quantiles("v", [0.5, 0.9], 0, 60),
    plume.minimum("v", 0, 60, name="least"),
    plume.maximum("v", 0, 60),
    plume.histogram("v", [0, 10, 60]),
    plume.vector_sum(["v", "w"], norm=3),
]


def test_the_form_of_a_question_never_changes() -> None:
    """These hashes are in people's ledgers. If this fails, what is hashed must become a form of its own, beside the old one."""
    everything = plain(
        keys=["k", "w"],
        measures=EVERY_MEASURE,
        min_users=3,
        shares={"selection": 2, "users": 0.5},
        noise="gaussian",
        selection="weighted_gaussian",
        public_keys=None,
    )
    assert [digest(query) for query in (*QUERIES.values(), everything)] == DIGESTS


def test_a_statement_without_group_by_is_given_again_without_the_key_that_it_had(tmp_path: Path) -> None:
    """It was released for the one key of a constant, which stands in the file."""
    shutil.copytree(Path(__file__).parent / "written_with_a_constant_key", tmp_path / "copy")
    ledger = plume.Ledger(tmp_path / "copy" / "visits.ledger")
    text = f"{HEAD}COUNT(DISTINCT u) AS n, AVG(v, contribution_bounds_per_row => (0, 60)) AS m FROM visits"
    spent = ledger.dataset("visits").spent
    assert pq.read_schema(ledger.shelf.released("total")).names[0] == "key_1"
    release = plume.sql(text, tables={"visits": ROWS}, ledger=ledger.dataset("visits"), release_id="total")
    assert release.rows.to_pylist() == [{"n": 2999, "m": pytest.approx(29.5331, abs=1e-4), "m_reliable": True}]
    assert ledger.dataset("visits").spent == spent


def test_a_statement_without_group_by_has_the_hashes_it_always_had() -> None:
    """The second is the one that 0.1.0 made."""
    text = f"{HEAD}COUNT(DISTINCT user_id) AS n FROM searches"
    rows = pa.table({"user_id": ["a"], "recipe": ["x"], "seconds": [1.0]})
    text = text.replace(
        "delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = u)",
        "delta = 1e-5, privacy_unit_column = user_id)",
    )
    asked = ask(text, engine=plume.DuckDB(), tables={"searches": rows})
    request = Request(plume.explain(asked.query), "d", asked.data)
    assert request.digest == "1:2d85dd3381027c3608b9b48c1236e889db694be1d505f88174c64e6f369b9463"
    assert request._as_in_0_1_0 == "e2b0741cc084ec58c94f3136d664d63b9f633c7e3ec23ca2b0e0c2cdffc6db84"


def test_spaces_and_comments_of_a_statement_are_not_asked(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("visits", plume.Budget(10, 1e-3))
    for text in (
        f"{HEAD} LOWER(k) AS k, COUNT(DISTINCT u) AS n FROM visits WHERE v <> 7 GROUP BY 1",
        f"{HEAD} /* which page */ LOWER( k )   AS k,\nCOUNT(DISTINCT u) AS n FROM visits WHERE v <> 7 GROUP BY 1 -- or so",
    ):
        plume.sql(text, tables={"visits": ROWS}, ledger=ledger.dataset("visits"), release_id="one")
    assert [entry.kind for entry in ledger.history()].count(EntryKind.RESERVED) == 1
    for text, tables in (
        (f"{HEAD} LOWER(k) AS k, COUNT(DISTINCT u) AS n FROM visits WHERE v <> 8 GROUP BY 1", {"visits": ROWS}),
        (
            f"{HEAD} LOWER(k) AS k, COUNT(DISTINCT u) AS n FROM visits WHERE v <> 7 GROUP BY 1",
            {"visits": plume.private(ROWS, unit="u")},
        ),
    ):
        with pytest.raises(LedgerError, match="was used for another query"):
            plume.sql(text, tables=tables, ledger=ledger.dataset("visits"), release_id="one")


def test_how_a_result_is_sorted_and_cut_is_not_asked(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("visits", plume.Budget(10, 1e-3))
    text = f"{HEAD} LOWER(k) AS k, COUNT(DISTINCT u) AS n FROM visits GROUP BY 1"
    for ending in ("", " ORDER BY n DESC", " ORDER BY k LIMIT 2", " LIMIT 1 OFFSET 1"):
        plume.sql(text + ending, tables={"visits": ROWS}, ledger=ledger.dataset("visits"), release_id="one")
    assert [entry.kind for entry in ledger.history()].count(EntryKind.RESERVED) == 1


def test_public_keys_are_told_apart_wherever_they_lie(tmp_path: Path) -> None:
    """Folders, patterns, files of the same bytes that are read otherwise, and dates that look like text."""
    for name, keys in (("one", ["x"]), ("other", ["y", "z"])):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"k": keys}), tmp_path / name / "keys.parquet")
    (tmp_path / "keys.json").write_text('{"k":"a"}{"k":"b"}')
    (tmp_path / "keys.jsonl").write_text('{"k":"a"}{"k":"b"}')
    far = pa.array([3_000_000], pa.int32()).view(pa.date32())
    lists: list[Any] = [
        *(tmp_path / name for name in ("one", "other", "keys.json", "keys.jsonl")),
        *(tmp_path / name / "*.parquet" for name in ("one", "other")),
        pa.table({"k": far}),
        pa.table({"k": [python_rows(pa.table({"k": far}))[0]["k"]]}),
    ]
    found = [digest(plain(public_keys=keys)) for keys in lists]
    # A folder and a pattern that mean the same file are the same question.
    assert len(set(found)) == len(found) - 2


DIGESTS = [
    "1:bbb2f3664a3339c8e70a9464fb3a84110ab8a92ff5a30e0a7169a5b21f6b3a42",
    "1:5796aa7d8d9edb692b6b9f8b2f47b3623ba63ae8fc93a347fa0e4dd010f04bd7",
    "1:cf7358159f077eb4ca35e75e3795e0b887d9f9867bd0c48bfef1cdaa0d0fdc10",
    "1:238b17099806a28aecd90420a20d2c12571a3337fde8db2429abbadcbe66c359",
]
