"""A ledger that was changed by hand: the database refuses, and where it was forced to, the chain tells."""

import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import plume
from ledgers import change, force, is_file, kept
from plume.errors import LedgerDamaged
from plume.ledger.charge import charge
from plume.ledger.entry import Entry, EntryKind, hash_of
from plume.ledger.price import EPSILONS, Price
from plume.ledger.store import Refused, append

PRICE = Price(EPSILONS, 0, EPSILONS, 0, 0)


def charged(place: Path | str) -> plume.Ledger:
    made = plume.Ledger.create(place, datasets={"d": plume.Budget(3)})
    for name in ("a", "b"):
        charge(made.store, "d", name, request="q", price=PRICE)
    return made


@pytest.fixture
def ledger(place: Path | str) -> plume.Ledger:
    return charged(place)


@pytest.fixture
def in_file(tmp_path: Path) -> plume.Ledger:
    return charged(tmp_path / "l")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = replace(content, '1000000000', '1') WHERE number = 2",
        "UPDATE entries SET content = replace(content, '3000000000', '9000000000') WHERE number = 1",
        "UPDATE entries SET at = '2020-01-01' WHERE number = 3",
        "UPDATE entries SET release_id = 'c' WHERE number = 3",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries WHERE number = 1",
        "UPDATE entries SET number = 5 - number WHERE number > 1",
    ],
)
def test_a_changed_ledger_is_told_by_the_chain(ledger: plume.Ledger, statement: str) -> None:
    if "5 - number" in statement:  # swap two, by way of numbers nobody has
        force(ledger, "UPDATE entries SET number = -number WHERE number > 1")
        statement = "UPDATE entries SET number = 5 + number WHERE number < 0"
    force(ledger, statement)
    with pytest.raises(LedgerDamaged, match="does not follow from the one before it"):
        ledger.verify()


@pytest.mark.parametrize(
    "content",
    ["'{}'", "'[]'", "'1'", "replace(content, 'epsilon', 'epsinon')", "replace(content, 'delta\":0', 'delta\":0.5')"],
)
@pytest.mark.parametrize("number", [1, 2])
def test_an_entry_that_holds_what_none_of_its_kind_does_is_told_in_words(
    ledger: plume.Ledger, number: int, content: str
) -> None:
    """A single flipped bit is enough."""
    force(ledger, f"UPDATE entries SET content = {content} WHERE number = {number}")
    calls: list[Callable[[], object]] = [
        ledger.verify,
        lambda: ledger.dataset("d").spent,
        ledger.recover,
        lambda: charge(ledger.store, "d", "c", request="q", price=PRICE),
    ]
    for call in calls:
        with pytest.raises(LedgerDamaged, match=r"is damaged|does not follow"):
            call()


@pytest.mark.parametrize("statement", ["DELETE FROM entries", "UPDATE entries SET at = ''"])
def test_the_database_itself_refuses_changes(ledger: plume.Ledger, statement: str) -> None:
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError), match="never"):
        change(ledger, statement)


def test_a_cut_off_ledger_and_an_old_copy_are_told_by_a_remembered_head_alone(ledger: plume.Ledger) -> None:
    old, head = ledger.head, charge(ledger.store, "d", "c", request="q", price=PRICE).hash
    force(ledger, "DELETE FROM entries WHERE release_id = 'c'")
    assert ledger.verify(old) == old
    with pytest.raises(LedgerDamaged, match="an older copy, or another ledger"):
        ledger.verify(head)


def test_another_ledger_is_told_by_a_remembered_head(ledger: plume.Ledger, new_place: Callable[[], Path | str]) -> None:
    other = plume.Ledger.create(new_place(), datasets={"d": plume.Budget(3)})
    with pytest.raises(LedgerDamaged, match="an older copy, or another ledger"):
        other.verify(ledger.head)


def of_stale_total(ledger: plume.Ledger) -> None:
    content = {"total_epsilon": EPSILONS, "total_delta": 0, "charges_before": 1}
    append(ledger.store, EntryKind.RESERVED, "d", "c", content)


def of_too_much(ledger: plume.Ledger) -> None:
    content = {"total_epsilon": 4 * EPSILONS, "total_delta": 0, "charges_before": 2}
    append(ledger.store, EntryKind.RESERVED, "d", "c", content)


@pytest.mark.parametrize(
    "wrong",
    [
        of_stale_total,
        of_too_much,
        lambda ledger: append(ledger.store, EntryKind.STAGED, "d", "a", {}),
        lambda ledger: append(ledger.store, EntryKind.RELEASED, "d", "a", {}),
        lambda ledger: append(ledger.store, EntryKind.LOST, "d", "a", {}),
        lambda ledger: append(ledger.store, EntryKind.DRAWING, "d", "c", {}),
        lambda ledger: [append(ledger.store, EntryKind.DRAWING, "d", "a", {}) for _ in range(2)],
        lambda ledger: append(ledger.store, EntryKind.DATASET, "d", None, {"epsilon": 1, "delta": 0}),
    ],
)
def test_the_database_itself_refuses_wrong_entries(
    ledger: plume.Ledger, wrong: Callable[[plume.Ledger], object]
) -> None:
    with pytest.raises(Refused, match=r"limit of the dataset|moves forward only|UNIQUE|unique"):
        wrong(ledger)
    ledger.verify()


def test_a_damaged_file_is_told(in_file: plume.Ledger) -> None:
    content = bytearray(in_file.path.read_bytes())
    content[4096:20000] = bytes(20000 - 4096)
    in_file.path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="damaged"):
        in_file.verify()


SCHEMA_CHANGES = {
    "file": [
        "DROP TRIGGER limits_hold",
        "DROP TRIGGER releases_move_forward",
        "DROP TRIGGER entries_follow_each_other",
        "DROP TRIGGER entries_never_change",
        "DROP TRIGGER entries_never_go",
        "DROP INDEX one_limit_per_dataset",
        "DROP INDEX each_kind_once_per_release",
        "DROP INDEX by_dataset",
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN SELECT 1; END",
        "CREATE TABLE more (x)",
        "CREATE VIEW more AS SELECT 1",
        "ALTER TABLE entries ADD COLUMN more TEXT",
    ],
    "database": [
        *(
            f"DROP TRIGGER {name} ON entries"
            for name in ("entries_are_checked", "entries_never_change", "entries_never_go")
        ),
        *(
            f"DROP TRIGGER {name} ON releases"
            for name in ("rows_come_once_drawn", "rows_never_change", "rows_go_if_lost")
        ),
        "DROP TRIGGER lost_rows_go ON entries",
        "ALTER TABLE entries DISABLE TRIGGER entries_are_checked",
        "ALTER TABLE entries ENABLE TRIGGER entries_are_checked",
        "ALTER TABLE entries ENABLE REPLICA TRIGGER entries_are_checked",
        "DROP INDEX one_limit_per_dataset",
        "DROP INDEX each_kind_once_per_release",
        "DROP INDEX by_dataset",
        "ALTER TABLE entries DROP CONSTRAINT entries_previous_key",
        "ALTER TABLE entries ALTER hash DROP NOT NULL",
        "ALTER TABLE entries SET UNLOGGED",
        "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE entries ADD COLUMN more text",
        'ALTER TABLE entries ALTER dataset TYPE text COLLATE pg_catalog."default"',
        "ALTER TABLE entries ALTER kind SET DEFAULT 'lost'",
        "ALTER FUNCTION check_entry() SECURITY DEFINER",
        "ALTER FUNCTION check_entry() RESET search_path",
        "CREATE OR REPLACE FUNCTION last_kind(of_release text) RETURNS text LANGUAGE sql AS 'SELECT NULL'",
        "CREATE FUNCTION count(text) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
        "CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.textne)",
        "CREATE RULE more AS ON INSERT TO entries DO INSTEAD NOTHING",
        "CREATE TRIGGER more AFTER INSERT ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse('')",
        "CREATE TABLE more (x int)",
        "CREATE TABLE more () INHERITS (entries)",
        "CREATE VIEW more AS SELECT 1",
    ],
}


@pytest.fixture(
    params=[(kind, change) for kind, changes in SCHEMA_CHANGES.items() for change in changes],
    ids=lambda given: given[1],
)
def weakened(request: pytest.FixtureRequest, tmp_path: Path) -> plume.Ledger:
    kind, statement = request.param
    made = charged(tmp_path / "l" if kind == "file" else request.getfixturevalue("new_database")())
    change(made, statement)
    return made


def test_a_ledger_with_other_tables_indexes_or_triggers_is_told(weakened: plume.Ledger) -> None:
    with pytest.raises(LedgerDamaged, match="tables, indexes or triggers are not the ones it was made with"):
        weakened.verify()


def test_a_ledger_with_other_tables_indexes_or_triggers_is_not_charged(weakened: plume.Ledger) -> None:
    before = weakened.head
    with pytest.raises(LedgerDamaged, match="tables, indexes or triggers are not the ones it was made with"):
        charge(weakened.store, "d", "c", request="q", price=PRICE)
    assert weakened.head == before


@pytest.mark.parametrize("kind", [EntryKind.DRAWING, EntryKind.ABANDONED])
def test_a_release_in_a_ledger_without_its_triggers_does_not_go_on(ledger: plume.Ledger, kind: EntryKind) -> None:
    change(
        ledger,
        "DROP TRIGGER releases_move_forward" if is_file(ledger) else "DROP TRIGGER entries_are_checked ON entries",
    )
    with pytest.raises(LedgerDamaged, match="triggers are not the ones it was made with"):
        append(ledger.store, kind, "d", "a", {})


def test_every_flipped_letter_of_a_trigger_is_told(in_file: plume.Ledger) -> None:
    """Each twentieth byte; SQLite itself would run most of these triggers without a word."""
    content = in_file.path.read_bytes()
    triggers = [found.start() for found in re.finditer(rb"CREATE TRIGGER", content)]
    places = range(min(triggers), content.index(b"END", max(triggers)), 20)
    assert len(places) > 50
    for place in places:
        in_file.path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(LedgerDamaged, match=r"damaged|not the ones it was made with"):
            in_file.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = replace(content, '1000000000', '1') WHERE number = 2",
        "UPDATE entries SET content = replace(content, '3000000000', '9000000000') WHERE number = 1",
        "DELETE FROM entries WHERE number = 2",
    ],
)
def test_a_ledger_with_a_broken_chain_is_not_charged(ledger: plume.Ledger, statement: str) -> None:
    force(ledger, statement)
    before = ledger.head
    with pytest.raises(LedgerDamaged, match="does not follow from the one before it"):
        charge(ledger.store, "d", "c", request="q", price=PRICE)
    assert ledger.head == before


def test_a_ledger_with_a_broken_chain_gets_no_dataset(ledger: plume.Ledger) -> None:
    force(ledger, "UPDATE entries SET at = '2020-01-01' WHERE number = 3")
    with pytest.raises(LedgerDamaged, match="does not follow from the one before it"):
        ledger.add_dataset("more", plume.Budget(1))


def test_a_run_on_a_ledger_with_a_broken_chain_releases_nothing(ledger: plume.Ledger) -> None:
    force(ledger, "UPDATE entries SET at = '2020-01-01' WHERE number = 2")
    query = plume.Query(
        user="u", keys="k", measures=[plume.users()], max_keys_per_user=1, budget=plume.Budget(1), public_keys=["x"]
    )
    with pytest.raises(LedgerDamaged, match="entry 2 does not follow"):
        plume.run(query, pa.table({"u": ["1"], "k": ["x"]}), ledger=ledger, dataset="d", release_id="c")
    assert not kept(ledger)


def test_an_entry_out_of_order_is_told_even_where_its_hash_is_right(ledger: plume.Ledger) -> None:
    """What somebody can do who knows how to hash: here a release that is drawn without being reserved."""
    last = ledger.history()[-1]
    made = Entry(last.number + 1, EntryKind.DRAWING, "d", "c", last.at, {}, last.hash)
    made = replace(made, hash=hash_of(made))
    force(
        ledger,
        f"INSERT INTO entries VALUES ({made.number}, 'drawing', 'd', 'c', '{made.at}', '{{}}', '{made.previous}', '{made.hash}')",
    )
    with pytest.raises(LedgerDamaged, match="entry 4 is out of order"):
        ledger.verify()
