"""A ledger that was changed by hand: the database refuses, and where it was forced to, the chain tells."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import plume
from plume.errors import LedgerDamaged
from plume.ledger.charge import EPSILONS, Charge
from plume.ledger.claim import reserve
from plume.ledger.entry import Kind
from plume.ledger.store import Refused, append

CHARGE = Charge(EPSILONS, 0, EPSILONS, 0, 0)


@pytest.fixture
def ledger(tmp_path: Path) -> plume.Ledger:
    made = plume.Ledger.create(tmp_path / "l")
    made.add_dataset("d", plume.Budget(3))
    for name in ("a", "b"):
        reserve(made.path, "d", name, request="q", charge=CHARGE)
    return made


def force(ledger: plume.Ledger, statement: str) -> None:
    """Change the file as somebody would who takes the triggers out first, and puts them back."""
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, text in triggers:
            connection.execute(text)


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


@pytest.mark.parametrize("statement", ["DELETE FROM entries", "UPDATE entries SET at = ''"])
def test_the_database_itself_refuses_changes(ledger: plume.Ledger, statement: str) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection, pytest.raises(sqlite3.IntegrityError, match="never"):
        connection.execute(statement)


def test_a_cut_off_ledger_and_an_old_copy_are_told_by_a_remembered_head_alone(
    ledger: plume.Ledger, tmp_path: Path
) -> None:
    shutil.copy(ledger.path, tmp_path / "copy")
    old, head = ledger.head, reserve(ledger.path, "d", "c", request="q", charge=CHARGE).hash
    shutil.copy(tmp_path / "copy", ledger.path)
    assert ledger.verify(old) == old
    with pytest.raises(LedgerDamaged, match="an older copy, or another ledger"):
        ledger.verify(head)


def test_another_ledger_is_told_by_a_remembered_head(ledger: plume.Ledger, tmp_path: Path) -> None:
    other = plume.Ledger.create(tmp_path / "other")
    other.add_dataset("d", plume.Budget(3))
    with pytest.raises(LedgerDamaged, match="an older copy, or another ledger"):
        other.verify(ledger.head)


def of_stale_total(ledger: plume.Ledger) -> None:
    content = {"total_epsilon": EPSILONS, "total_delta": 0, "charges_before": 1}
    append(ledger.path, Kind.RESERVED, "d", "c", content)


def of_too_much(ledger: plume.Ledger) -> None:
    content = {"total_epsilon": 4 * EPSILONS, "total_delta": 0, "charges_before": 2}
    append(ledger.path, Kind.RESERVED, "d", "c", content)


@pytest.mark.parametrize(
    "wrong",
    [
        of_stale_total,
        of_too_much,
        lambda ledger: append(ledger.path, Kind.STAGED, "d", "a", {}),
        lambda ledger: append(ledger.path, Kind.RELEASED, "d", "a", {}),
        lambda ledger: append(ledger.path, Kind.LOST, "d", "a", {}),
        lambda ledger: append(ledger.path, Kind.DRAWING, "d", "c", {}),
        lambda ledger: [append(ledger.path, Kind.DRAWING, "d", "a", {}) for _ in range(2)],
        lambda ledger: append(ledger.path, Kind.DATASET, "d", None, {"epsilon": 1, "delta": 0}),
    ],
)
def test_the_database_itself_refuses_wrong_entries(
    ledger: plume.Ledger, wrong: Callable[[plume.Ledger], object]
) -> None:
    with pytest.raises(Refused, match=r"limit of the dataset|moves forward only|UNIQUE"):
        wrong(ledger)
    ledger.verify()


def test_a_damaged_file_is_told(ledger: plume.Ledger) -> None:
    content = bytearray(ledger.path.read_bytes())
    content[4096:20000] = bytes(20000 - 4096)
    ledger.path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="damaged"):
        ledger.verify()
