import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from ledgers import change, is_file, lose_release
from plume.errors import (
    BudgetError,
    BudgetExceeded,
    ColumnNotFound,
    EngineError,
    InputError,
    LedgerDamaged,
    LedgerError,
    UsageError,
)
from plume.ledger.entry import BEGINNING
from plume.noise.entropy import SystemEntropy

ROWS = pa.table({"u": [str(n) for n in range(300)], "k": ["x"] * 200 + ["y"] * 100, "v": [1.0] * 300})


def query(epsilon: float = 1, delta: float = 1e-6, **changes: Any) -> plume.Query:
    asked = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 4}
    return plume.Query(**asked | changes, budget=plume.Budget(epsilon, delta))


BUDGETS = {"searches": plume.Budget(epsilon=3, delta=1e-5)}


@pytest.fixture
def ledger(place: Path | str) -> plume.Ledger:
    return plume.Ledger.create(place, datasets=BUDGETS)


@pytest.fixture
def in_file(tmp_path: Path) -> plume.Ledger:
    return plume.Ledger.create(tmp_path / "budget.ledger", datasets=BUDGETS)


def kinds(ledger: plume.Ledger) -> list[str]:
    return [str(entry.kind) for entry in ledger.history()]


def test_a_release_is_charged_and_kept(ledger: plume.Ledger) -> None:
    release = plume.run(query(), ROWS, ledger=ledger.dataset("searches"), release_id="first")
    assert kinds(ledger) == ["dataset", "reserved", "drawing", "staged", "released"]
    assert ledger.dataset("searches").spent.epsilon == 1
    assert ledger.dataset("searches").left == 2
    assert ledger.shelf.read("first")
    assert release.receipt.release_id == "first"
    assert release.record()["ledger"]["head"] in [entry.hash for entry in ledger.history()]


def test_a_release_is_charged_before_its_first_step_and_drawn_after_it(ledger: plume.Ledger) -> None:
    seen: list[list[str]] = []
    plume.run(query(), ROWS, ledger=ledger.dataset("searches"), on_step=lambda _: seen.append(kinds(ledger)))
    assert seen[0] == ["dataset", "reserved"]
    assert seen[-1] == ["dataset", "reserved", "drawing"]


@pytest.mark.parametrize("rows", ["gone.parquet", ROWS.rename_columns(["u", "other", "v"])])
def test_what_cannot_be_opened_or_does_not_fit_is_not_charged(ledger: plume.Ledger, rows: Any) -> None:
    with pytest.raises(UsageError):
        plume.run(query(), rows, ledger=ledger.dataset("searches"))
    assert kinds(ledger) == ["dataset"]


def test_the_same_id_gives_the_same_rows_without_data_and_without_a_charge(ledger: plume.Ledger) -> None:
    first = plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    content = ledger.shelf.read("first")
    again = plume.run(query(), "gone.parquet", ledger=ledger, dataset="searches", release_id="first")
    assert again.rows.equals(first.rows, check_metadata=True)
    assert again.record() == first.record()
    assert str(again).splitlines()[:-1] == str(first).splitlines()
    assert ledger.shelf.read("first") == content
    assert kinds(ledger).count("reserved") == 1


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 2},
        {"max_keys_per_user": 5},
        {"measures": [plume.count(2)]},
        {"where": "v > 0"},
        {"public_keys": ["x"]},
    ],
)
def test_the_same_id_with_another_question_is_refused(ledger: plume.Ledger, other: dict[str, Any]) -> None:
    plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    with pytest.raises(LedgerError, match="release_id 'first' was used for another query"):
        plume.run(query(**other), ROWS, ledger=ledger, dataset="searches", release_id="first")
    assert kinds(ledger).count("reserved") == 1


def test_other_public_keys_are_another_question(ledger: plume.Ledger) -> None:
    plume.run(query(public_keys=["x"]), ROWS, ledger=ledger, dataset="searches", release_id="first")
    with pytest.raises(LedgerError, match="was used for another query"):
        plume.run(query(public_keys=["y"]), ROWS, ledger=ledger, dataset="searches", release_id="first")


def test_the_same_id_for_another_dataset_is_refused(ledger: plume.Ledger) -> None:
    ledger.add_dataset("others", plume.Budget(1, 1e-5))
    plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    with pytest.raises(LedgerError, match="was used for another query or dataset"):
        plume.run(query(), ROWS, ledger=ledger, dataset="others", release_id="first")


def test_without_an_id_every_run_is_a_release_of_its_own(ledger: plume.Ledger) -> None:
    ids = {plume.run(query(), ROWS, ledger=ledger.dataset("searches")).receipt.release_id for _ in range(2)}
    assert len(ids) == 2


def test_a_release_that_does_not_fit_says_what_is_needed_and_what_is_left(ledger: plume.Ledger) -> None:
    plume.run(query(2.5), ROWS, ledger=ledger, dataset="searches", release_id="first")
    needed = r"needs epsilon 2 and delta 9e-06; dataset 'searches' has epsilon 0\.5 and delta 9e-06 left of epsilon 3"
    with pytest.raises(BudgetExceeded, match=needed):
        plume.run(query(2, 9e-6), ROWS, ledger=ledger, dataset="searches", release_id="second")
    assert kinds(ledger).count("reserved") == 1


def test_gaussian_releases_fit_more_often_than_their_sum_says(ledger: plume.Ledger) -> None:
    for number in range(4):
        plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id=f"r{number}")
    spent = ledger.dataset("searches").spent
    assert 1 < spent.epsilon < 3
    ledger.verify()


@pytest.mark.parametrize(
    ("bad", "data", "error"),
    [
        ({"keys": "absent"}, ROWS, ColumnNotFound),
        ({"user": "absent"}, ROWS, ColumnNotFound),
        ({"where": "absent > 1"}, ROWS, ColumnNotFound),
        ({}, "absent.parquet", InputError),
        ({}, object(), InputError),
        ({"public_keys": "absent.csv"}, ROWS, InputError),
    ],
)
def test_what_is_refused_before_reading_is_not_charged(ledger: plume.Ledger, bad: Any, data: Any, error: type) -> None:
    with pytest.raises(error, match=r"absent|object"):
        plume.run(query(**bad), data, ledger=ledger, dataset="searches", release_id="first")
    assert kinds(ledger) == ["dataset"]


def test_a_failure_while_reading_leaves_the_release_reserved_and_the_same_id_goes_on(
    ledger: plume.Ledger, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.parquet"
    # Whole numbers, which are first read by the run itself; text is read once before, to see that all of it can be.
    rows = pa.concat_tables([ROWS.set_column(0, "u", pa.array(range(300)))] * 100)
    pq.write_table(rows, bad, compression="zstd", use_dictionary=False)
    content = bad.read_bytes()
    bad.write_bytes(content.replace(bytes.fromhex("28b52ffd"), bytes(4), 1))  # where what was packed begins
    with pytest.raises(EngineError, match="withheld"):
        plume.run(query(), bad, ledger=ledger, dataset="searches", release_id="first")
    assert kinds(ledger) == ["dataset", "reserved"]
    plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    assert kinds(ledger).count("reserved") == 1
    assert kinds(ledger)[-1] == "released"


def test_a_failure_while_drawing_loses_the_release(ledger: plume.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def fail_later(self: SystemEntropy, size: int) -> Any:
        drawn.append(size)
        if len(drawn) > 2:
            raise OSError("no more randomness")
        return words(self, size)

    words = SystemEntropy.words
    with monkeypatch.context() as patch:
        patch.setattr(SystemEntropy, "words", fail_later)
        with pytest.raises(EngineError, match="withheld"):
            plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    assert kinds(ledger)[-1] == "drawing"
    with pytest.raises(LedgerError, match="release 'first' is lost: its budget is spent"):
        plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    assert kinds(ledger)[-1] == "lost"
    assert ledger.dataset("searches").spent.epsilon == 1


def test_an_empty_table_is_released_and_charged_like_any_other(ledger: plume.Ledger) -> None:
    release = plume.run(query(), ROWS.slice(0, 0), ledger=ledger, dataset="searches", release_id="first")
    assert (len(release), kinds(ledger)[-1]) == (0, "released")


def test_a_lost_file_is_told_and_never_drawn_anew(ledger: plume.Ledger) -> None:
    plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    lose_release(ledger, "first")
    with pytest.raises(LedgerDamaged, match="the file of release 'first' is missing or was changed"):
        plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    with pytest.raises(LedgerDamaged, match="missing or was changed"):
        ledger.verify()


def test_a_release_that_another_process_makes_is_let_be(ledger: plume.Ledger) -> None:
    with ledger.shelf.lock("first"):
        with pytest.raises(LedgerError, match="being made by another process"):
            plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
        with ledger.dataset("searches").claimed("second", "q") as claim:
            claim.reserve(plume_charge())
            claim.begin_drawing()
            assert ledger.recover() == {"second": "being made by another process"}
    assert ledger.recover() == {"second": "lost"}


def test_what_fails_while_a_release_is_made_keeps_its_own_words(ledger: plume.Ledger) -> None:
    with pytest.raises(ValueError, match="of the caller"), ledger.dataset("searches").claimed("first", "q"):
        raise ValueError("of the caller")
    with ledger.shelf.lock("first"):
        assert ledger.unfinished() == {}


def plume_charge() -> Any:
    from plume.ledger.price import Price  # noqa: PLC0415

    return Price(10**9, 10**9, 0, 10**8, 0)


def test_abandoning_keeps_the_spend_and_ends_the_id(ledger: plume.Ledger) -> None:
    with ledger.dataset("searches").claimed("first", "q") as claim:
        claim.reserve(plume_charge())
    ledger.abandon("first")
    assert ledger.dataset("searches").spent.epsilon == 1
    with pytest.raises(LedgerError, match="release 'first' is abandoned; only a reserved one"):
        ledger.abandon("first")
    with pytest.raises(LedgerError, match="the ledger has no release 'second'"):
        ledger.abandon("second")


@pytest.mark.parametrize("release_id", ["", "a/b", "..", "ä", "x" * 65, "a b", "a\n", 7, "a.b"])
def test_an_id_that_is_no_file_name_is_refused(ledger: plume.Ledger, release_id: Any) -> None:
    with pytest.raises(LedgerError, match=r"release_id is .*; it must be 1 to 64"):
        plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id=release_id)
    assert kinds(ledger) == ["dataset"]


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"release_id": "first"}, UsageError, "release_id is given without a ledger"),
        ({"dataset": "searches"}, LedgerError, "ledger is a NoneType and dataset is 'searches'"),
        ({"ledger": "budget.ledger", "dataset": "searches"}, LedgerError, "ledger is a str"),
        ({"ledger": 7}, LedgerError, "ledger is an int"),
    ],
)
def test_half_a_ledger_is_refused(settings: dict[str, Any], error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        plume.run(query(), ROWS, **settings)


def test_a_ledger_needs_its_dataset_named(ledger: plume.Ledger) -> None:
    with pytest.raises(LedgerError, match="ledger is a Ledger and dataset is None"):
        plume.run(query(), ROWS, ledger=ledger)
    with pytest.raises(LedgerError, match="no dataset 'other'; it has 'searches'"):
        plume.run(query(), ROWS, ledger=ledger, dataset="other")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 7])
def test_a_bad_name_of_a_dataset_is_refused(ledger: plume.Ledger, name: Any) -> None:
    with pytest.raises(LedgerError, match="the dataset's name is"):
        ledger.add_dataset(name, plume.Budget(1))


def test_a_dataset_has_one_budget_for_ever(ledger: plume.Ledger) -> None:
    with pytest.raises(LedgerError, match="in the ledger already; its budget cannot be changed"):
        ledger.add_dataset("searches", plume.Budget(100, 1e-5))
    with pytest.raises(BudgetError, match=r"budget is 1; it must be a plume\.Budget"):
        ledger.add_dataset("more", 1)
    assert ledger.dataset("searches").budget == plume.Budget(3, 1e-5)


def test_a_ledger_is_never_made_by_the_way(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no ledger '.*'; make one with"):
        plume.Ledger(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_takes_no_others_place(ledger: plume.Ledger, place: Path | str) -> None:
    with pytest.raises(LedgerError, match=r"exists already|has a ledger already"):
        plume.Ledger.create(place)
    assert ledger.datasets() == ("searches",)


def test_what_sqlite_says_is_not_kept_behind_our_own_words(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerDamaged) as caught:
        plume.Ledger(tmp_path / "l")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello " * 1000)
    with pytest.raises(LedgerDamaged, match="is not a Plume ledger, or is damaged"):
        plume.Ledger(tmp_path / "text")
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(LedgerError, match="is not a Plume ledger"):
        plume.Ledger(tmp_path / "other")


def test_a_newer_ledger_is_told(ledger: plume.Ledger, place: Path | str) -> None:
    newer = (
        "PRAGMA user_version = 2" if is_file(ledger) else "COMMENT ON SCHEMA plume_ledger IS 'Plume ledger, version 2'"
    )
    change(ledger, newer)
    with pytest.raises(LedgerError, match="is a ledger of version 2; this Plume reads version 1"):
        plume.Ledger(place)


def test_files_are_for_their_owner_only(in_file: plume.Ledger) -> None:
    before = os.umask(0)
    try:
        plume.run(query(), ROWS, ledger=in_file, dataset="searches", release_id="first")
    finally:
        os.umask(before)
    places = [in_file.path, in_file.shelf.folder, in_file.shelf.released("first")]
    assert [oct(place.stat().st_mode & 0o777) for place in places] == ["0o600", "0o700", "0o600"]
    assert [path.name for path in in_file.shelf.folder.iterdir()] == ["first.parquet"]


def test_an_empty_ledger_has_a_head(place: Path | str) -> None:
    assert plume.Ledger.create(place).verify() == BEGINNING


READING_BACK = """
import os, sys
import plume
query = plume.Query(user="u", keys="k", measures=[plume.users()], max_keys_per_user=4, budget=plume.Budget(1, 1e-6))
ledger = plume.Ledger(sys.argv[1])
plume.explain(query)
before = os.listdir("/proc/self/task")
plume.run(query, "gone.parquet", ledger=ledger, dataset="searches", release_id="first")
print(len(os.listdir("/proc/self/task")) - len(before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted where Linux lists them")
def test_reading_a_release_back_starts_no_thread_that_could_outlive_python(
    place: Path | str, ledger: plume.Ledger
) -> None:
    """A thread of Arrow's that gives bytes of Python's back while Python ends aborts the process."""
    plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    command = [sys.executable, "-c", READING_BACK, str(place)]
    assert subprocess.check_output(command, text=True) == "0\n"  # noqa: S603


def test_a_repeated_release_says_when_it_was_released(ledger: plume.Ledger) -> None:
    first = plume.run(query(), ROWS, ledger=ledger, dataset="searches", release_id="first")
    again = plume.run(query(), "gone.parquet", ledger=ledger, dataset="searches", release_id="first")
    assert (first.released_before, again.released_before) == (None, ledger.history()[-1].at)
    said = (
        "release first of searches was released at "
        + ledger.history()[-1].at[:19].replace("T", " ")
        + " UTC; these are its rows."
    )
    assert said in str(again)
    assert said in again._repr_html_()
    assert "these are its rows" not in str(first) + first._repr_html_()


def test_what_was_asked_is_told_in_words(ledger: plume.Ledger) -> None:
    plume.run(query(where="v > 0"), ROWS, ledger=ledger, dataset="searches", release_id="first")
    assert ledger.question("first") == "users by k where v > 0, limit of 4 keys per u"
    lose_release(ledger, "first")
    assert ledger.question("first") == "its file is missing or was changed"


def test_what_was_asked_commands_no_terminal(ledger: plume.Ledger) -> None:
    asked = query(where="k <> '\x1b[2J\u202e'")
    plume.run(asked, ROWS, ledger=ledger, dataset="searches", release_id="first")
    assert ledger.question("first") == "users by k where k <> '\\x1b[2J\\u202e', limit of 4 keys per u"
