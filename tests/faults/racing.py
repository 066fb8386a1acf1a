"""A program in which many processes charge one dataset at the same moment: `racing.py FOLDER ledger|naive ROUNDS PROCESSES ATTEMPTS
ALLOWED`.

Run by the tests as a process of its own, since it forks. It prints how many charges each round granted, of the ALLOWED there were.
"""

import json
import multiprocessing
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import plume
from ledgers import place_of
from plume.errors import BudgetExceeded
from plume.ledger.charge import charge
from plume.ledger.price import EPSILONS, Price

ALLOWED = int(sys.argv[6])
UNIT = Price(epsilon=EPSILONS // ALLOWED, delta=0, pure=EPSILONS // ALLOWED, mu=0, passing=0)
FORK = multiprocessing.get_context("fork")

Attempt = Callable[[Path | str, str], bool]


def make_ledger(path: Path | str) -> None:
    plume.Ledger.create(path, datasets={"d": plume.Budget(epsilon=1)})


def charge_ledger(path: Path | str, release_id: str) -> bool:
    try:
        charge(plume.Ledger(path).store, "d", release_id, request="", price=UNIT)
    except BudgetExceeded:
        return False
    return True


def count_ledger(path: Path | str) -> int:
    ledger = plume.Ledger(path)
    ledger.verify()
    return sum(entry.kind == "reserved" for entry in ledger.history())


def make_naive(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE charges (release_id TEXT UNIQUE, epsilon INTEGER)")
        connection.commit()


def charge_naive(path: Path, release_id: str) -> bool:
    """What must not be done: read the sum, compare, then insert."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        (spent,) = connection.execute("SELECT coalesce(sum(epsilon), 0) FROM charges").fetchone()
        if spent + UNIT.epsilon > EPSILONS:
            return False
        connection.execute("INSERT INTO charges VALUES (?, ?)", (release_id, UNIT.epsilon))
        connection.commit()
        return True


def count_naive(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM charges").fetchone()[0])


KINDS = {
    "ledger": (make_ledger, charge_ledger, count_ledger),
    "naive": (make_naive, charge_naive, count_naive),
}


def compete(
    path: Path | str, attempt: Attempt, names: list[str], barrier: "multiprocessing.Barrier", granted: "FORK.Value"
) -> None:
    barrier.wait()
    won = sum(attempt(path, name) for name in names)
    with granted.get_lock():
        granted.value += won


def race(path: Path | str, kind: str, processes: int, attempts: int) -> tuple[int, int]:
    """Let all processes go at once; give what they believe was granted, and what is on disk."""
    make, attempt, count = KINDS[kind]
    make(path)
    barrier, granted = FORK.Barrier(processes), FORK.Value("i", 0)
    names = [[f"r{racer}-{number}" for number in range(attempts)] for racer in range(processes)]
    racers = [FORK.Process(target=compete, args=(path, attempt, mine, barrier, granted)) for mine in names]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    if any(racer.exitcode for racer in racers):
        sys.exit("a racer failed")
    return granted.value, count(path)


if __name__ == "__main__":
    folder, kind, (rounds, processes, attempts) = Path(sys.argv[1]), sys.argv[2], map(int, sys.argv[3:6])
    print(json.dumps([race(place_of(folder, number), kind, processes, attempts) for number in range(rounds)]))
