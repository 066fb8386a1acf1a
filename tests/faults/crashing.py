"""A program that makes releases and is killed while it does; afterwards it looks at what the ledger says.

Run by the tests as a process of its own, since it forks: `crashing.py FOLDER points ROUNDS` or `crashing.py FOLDER random KILLS SEED`.
It prints what it saw as JSON and ends with 1 at the first violation.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Self

import pyarrow as pa

import plume
from ledgers import is_file, kept, leftovers, place_of, settle
from plume.engines.duckdb import DuckDB
from plume.ledger import charge as charging
from plume.ledger import claim as claims
from plume.ledger import postgresql, sqlite, store
from plume.ledger import shelf as shelves
from plume.ledger.entry import EntryKind
from plume.ledger.postgresql import TableShelf
from plume.ledger.store import entries_of
from plume.noise.entropy import SystemEntropy

ROWS = pa.table({"u": [str(n) for n in range(60)], "k": ["x", "y", "z"] * 20})
# The paper's noise is planned fastest; at this budget all three keys pass, so that noise is drawn three times.
QUERY = plume.Query.paper(
    user="u",
    keys="k",
    measures=[plume.count(2), plume.users()],
    max_keys_per_user=3,
    budget=plume.Budget(epsilon=100, delta=1e-6),
)
ENGINE = DuckDB(threads=1)

# The state a kill at each point must leave behind, and what the same release id must then do.
POINTS = {
    "before reserving": (None, "released"),
    "inside the transaction that reserves": (None, "released"),
    "with the charge written, but not committed": (None, "released"),
    "after reserving": ("reserved", "released"),
    "before drawing": ("reserved", "released"),
    "after drawing is written down": ("drawing", "lost"),
    "between two draws": ("drawing", "lost"),
    "with half a file staged": ("drawing", "lost"),
    "before staging is written down": ("drawing", "lost"),
    "before the file gets its name": ("staged", "released"),
    "before releasing is written down": ("staged", "released"),
    "after releasing": ("released", "released"),
}


SENTENCES = {"is lost": 10, "this release needs": 11, "by another process": 12}


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def die_around(owner: Any, name: str, *, when: Callable[..., bool], after: bool = False) -> None:
    """Make a function kill the process before or after a call."""
    original = getattr(owner, name)

    def deadly(*args: Any, **settings: Any) -> Any:
        chosen = when(*args)
        if chosen and not after:
            die()
        result = original(*args, **settings)
        if chosen:
            die()
        return result

    setattr(owner, name, deadly)


def die_with_half_a_file() -> None:
    opened = os.fdopen

    def open_deadly(descriptor: int, mode: str) -> Any:
        file = opened(descriptor, mode)

        class Half:
            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None: ...

            def write(self, content: bytes) -> None:
                file.write(content[: len(content) // 2])
                file.flush()
                die()

        return Half()

    shelves.os.fdopen = open_deadly


def die_after(statement: str, value: object = None) -> None:
    """Die when a statement has run and its transaction has not ended."""
    for book in (sqlite._File, postgresql._Session):
        die_around(
            book,
            "execute",
            when=lambda _book, what, *values: what.startswith(statement) and (value is None or value in values),
            after=True,
        )


def entry(kind: EntryKind) -> Callable[..., bool]:
    return lambda _path, what, *_: what == kind


def second_draw() -> Callable[..., bool]:
    sizes: list[int] = []

    def is_second(_self: object, size: int) -> bool:
        sizes.extend([size] if size > 2 else [])
        return len(sizes) == 2

    return is_second


ARMS: dict[str, Callable[[], None]] = {
    "before reserving": lambda: die_around(charging, "append", when=entry(EntryKind.RESERVED)),
    "inside the transaction that reserves": lambda: die_around(
        store, "hash_of", when=lambda one: one.kind == EntryKind.RESERVED, after=True
    ),
    "with the charge written, but not committed": lambda: die_after("INSERT INTO entries", "reserved"),
    "after reserving": lambda: die_around(charging, "append", when=entry(EntryKind.RESERVED), after=True),
    "before drawing": lambda: die_around(claims, "append", when=entry(EntryKind.DRAWING)),
    "after drawing is written down": lambda: die_around(claims, "append", when=entry(EntryKind.DRAWING), after=True),
    "between two draws": lambda: die_around(SystemEntropy, "words", when=second_draw()),
    "with half a file staged": die_with_half_a_file,
    "before staging is written down": lambda: die_around(claims, "append", when=entry(EntryKind.STAGED)),
    "before the file gets its name": lambda: die_around(shelves.FolderShelf, "publish", when=lambda *_: True),
    "before releasing is written down": lambda: die_around(claims, "append", when=entry(EntryKind.RELEASED)),
    "after releasing": lambda: die_around(claims, "append", when=entry(EntryKind.RELEASED), after=True),
}


ARMS_OF_DATABASES = {
    "with half a file staged": lambda: die_after("INSERT INTO releases"),
    "before the file gets its name": lambda: die_around(TableShelf, "is_staged", when=lambda *_: True),
}


def spy(ledger: plume.Ledger, release_id: str, log: Path) -> None:
    """Write down who draws, how much, and what the ledger says at that moment."""
    original = SystemEntropy.words

    def watched(self: SystemEntropy, size: int) -> Any:
        if size:
            found = entries_of(ledger.store, release_id)
            line = {"id": release_id, "process": os.getpid(), "words": size, "state": found[-1].kind if found else None}
            descriptor = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            os.write(descriptor, (json.dumps(line) + "\n").encode())
            os.close(descriptor)
        return original(self, size)

    SystemEntropy.words = watched


def watch_steps(moment: tuple[int, int] | None = None) -> list[int]:
    """Count a run's function calls between the entries that it writes, and die at a moment: a step and a call within it."""
    calls, original = [0], claims.append

    def append_and_step(*args: Any, **settings: Any) -> Any:
        result = original(*args, **settings)
        calls.append(0)
        return result

    def count(*_: object) -> None:
        calls[-1] += 1
        if (len(calls) - 1, calls[-1]) == moment:
            die()

    claims.append = charging.append = append_and_step
    sys.setprofile(count)
    return calls


def release(ledger: plume.Ledger, release_id: str, log: Path, arm: Callable[[], Any] = bool) -> int:
    """Make a release in a process of its own, and return that process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        spy(ledger, release_id, log)
        arm()
        plume.run(QUERY, ROWS, engine=ENGINE, ledger=ledger, dataset="d", release_id=release_id)
        code = 0
    except plume.PlumeError as error:
        code = next((code for words, code in SENTENCES.items() if words in str(error)), 1)
    finally:
        os._exit(code)


def outcome(child: int) -> int:
    """Wait for a process; give its exit code, or minus the signal that ended it."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def state(ledger: plume.Ledger, release_id: str) -> str | None:
    found = entries_of(ledger.store, release_id)
    return str(found[-1].kind) if found else None


def require(holds: bool, what: str, **facts: Any) -> None:  # noqa: FBT001
    if not holds:
        print(json.dumps({"violation": what} | facts, default=str))
        sys.exit(1)


def check(ledger: plume.Ledger, log: Path) -> None:
    """No overspending, no second draw, no draw without spending, no file that is not released, and a whole chain."""
    ledger.verify()
    entries = ledger.history()
    charged = Counter(entry.release_id for entry in entries if entry.kind == EntryKind.RESERVED)
    require(all(times == 1 for times in charged.values()), "charged twice", charged=charged)
    drawn = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    noise = [one for one in drawn if one["state"] == "drawing"]
    # All else is the secret order of keys: two words, before anything is charged.
    others = [one for one in drawn if one["state"] != "drawing"]
    require(all(one["words"] == 2 for one in others), "noise was drawn outside of drawing", others=others)
    processes = {one["id"]: set[int]() for one in noise}
    for one in noise:
        processes[one["id"]].add(one["process"])
    require(all(len(found) == 1 for found in processes.values()), "noise was drawn twice", processes=processes)
    require(set(processes) <= set(charged), "noise was drawn without a charge")
    released = {entry.release_id for entry in entries if entry.kind == EntryKind.RELEASED}
    staged = {entry.release_id for entry in entries if entry.kind == EntryKind.STAGED}
    files = set(kept(ledger))
    require(released <= files <= staged, "files and entries differ", released=released, files=files)


def new_ledger(folder: Path, number: int, epsilon: float) -> tuple[plume.Ledger, Path]:
    ledger = plume.Ledger.create(place_of(folder, number), datasets={"d": plume.Budget(epsilon=epsilon, delta=1e-3)})
    return ledger, folder / f"{number}.draws"


def at_points(folder: Path, rounds: int) -> dict[str, int]:
    seen = Counter[str]()
    for number in range(rounds):
        ledger, log = new_ledger(folder, number, 10**6)
        for place, (point, (expected, then)) in enumerate(POINTS.items()):
            name = f"r{place}"
            arms = ARMS if is_file(ledger) else ARMS | ARMS_OF_DATABASES
            require(outcome(release(ledger, name, log, arms[point])) == -signal.SIGKILL, "not killed", point=point)
            settle(ledger)
            require(state(ledger, name) == expected, "wrong state", point=point, found=state(ledger, name))
            check(ledger, log)
            # Half of the time recovery comes first, twice; it must make no difference to what follows.
            if number % 2:
                once = ledger.recover().get(name)
                require(once in (None, "reserved", "lost", "released"), "odd recovery", found=once)
                require(ledger.recover().get(name) in (None, "reserved"), "a second recovery did something")
            code = outcome(release(ledger, name, log))
            require(code == {"released": 0, "lost": 10}[then], "wrong retry", point=point, code=code)
            require(state(ledger, name) == then, "wrong end", point=point, found=state(ledger, name))
            check(ledger, log)
            settle(ledger)
            require(not leftovers(ledger), "what was staged was left", leftovers=leftovers(ledger))
            seen[point] += 1
    return dict(seen)


def twins(folder: Path, rounds: int) -> dict[str, int]:
    """Let two processes make the same release at the same moment."""
    seen = Counter[str]()
    ledger, log = new_ledger(folder, 0, 10**6)
    for number in range(rounds):
        children = [release(ledger, f"r{number}", log) for _ in range(2)]
        seen.update({0: "released", 12: "busy"}.get(outcome(child), "failed") for child in children)
        check(ledger, log)
    return dict(seen)


def at_random(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill at random moments; the budget is so small that the ledger refuses some releases as well.

    Three kills of ten come from outside after a random time, wherever the process then is: inside DuckDB, inside SQLite.
    The others come at a random call of a random step, which does not depend on how busy the machine is.
    """
    dice, seen, name = random.Random(seed), Counter[str](), ""  # noqa: S311
    seconds, calls = _whole_run(folder)
    for number in range(kills):
        if number % 25 == 0:
            ledger, log = new_ledger(folder, number, 900)
        if not name or state(ledger, name) in ("released", "lost") or number % 25 == 0:
            name = f"r{number}"
        if dice.random() < 0.3:
            child = release(ledger, name, log)
            time.sleep(dice.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
        else:
            step = dice.randrange(len(calls))
            moment = step, dice.randint(1, calls[step])
            child = release(ledger, name, log, lambda moment=moment: watch_steps(moment))
        code = outcome(child)
        settle(ledger)
        check(ledger, log)
        seen[f"{'killed' if code == -signal.SIGKILL else code}: {state(ledger, name)}"] += 1
        if code == 11:
            name = ""
        if dice.random() < 0.2:
            ledger.recover()
            check(ledger, log)
    return dict(seen)


def _whole_run(folder: Path) -> tuple[float, list[int]]:
    """How long a release takes, and how many calls it makes in each step."""
    ledger, log = new_ledger(folder, -1, 10**6)
    began = time.monotonic()
    require(outcome(release(ledger, "timed", log)) == 0, "a release failed")
    seconds = time.monotonic() - began
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        calls = watch_steps()
        plume.run(QUERY, ROWS, engine=ENGINE, ledger=ledger, dataset="d", release_id="counted")
        sys.setprofile(None)
        os.write(tell, json.dumps(calls).encode())
        os._exit(0)
    require(outcome(child) == 0, "a release failed")
    return seconds, json.loads(os.read(told, 4096))


if __name__ == "__main__":
    plume.explain(QUERY)  # what can be done before forking need not be done in each child
    where, how, times, *seeds = sys.argv[1:]
    ways = {"points": at_points, "twins": twins, "random": at_random}
    print(json.dumps(ways[how](Path(where), int(times), *map(int, seeds))))
