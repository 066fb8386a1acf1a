"""The DuckDB rows of the speed table: a private count per key against the same query without privacy, in one run.

`make bench` for 10^6 users, `make bench USERS=1e7` for more. Runs with the extra `fast`, which is there, and without it; on rows as they
were made, in blocks of users, on rows in no order, and on users and keys that are texts; on one thread, and on four for each processor,
beside the plain query on as many. Loops are compiled before anything is timed. Baselines run at DuckDB's defaults, after imports; every
call goes from the Parquet file to the rows.
"""

import argparse
import itertools
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import duckdb
from record import Line, add, this_commit
from results import power
from rich.console import Console
from speeds import Runs, Speed, compare, in_words, paper_data, seconds_of, shuffled, time_in_turns

import plume
from plume.engines import compiled

COUNT, DISTINCT = "count(*)", "count(DISTINCT user)"
OTHER_PIPELINES = ("runtime_optimized", "naive")
SQL, SHUFFLED, TEXTS = "without the extra", "shuffled rows", "text ids"
THREADS = {"1 thread": 1, "4 threads per processor": 4 * (os.cpu_count() or 1)}
RECORDED_USERS = 10**6
# The bars that were set beforehand, by number of users: what takes at most how many times as long as what.
OF_A_PASS = {
    ("plume", COUNT): 4,
    ("plume, default", COUNT): 4,
    (f"plume, {SHUFFLED}", f"{COUNT}, {SHUFFLED}"): 4,
    (f"plume, default, {SHUFFLED}", f"{COUNT}, {SHUFFLED}"): 4,
    (f"plume, {TEXTS}", f"{COUNT}, {TEXTS}"): 5.5,
    (f"plume, default, {TEXTS}", f"{COUNT}, {TEXTS}"): 6.5,
}
BARS = {
    10**6: {**OF_A_PASS, (f"plume, {SQL}", COUNT): 9},
    10**7: {
        **OF_A_PASS,
        ("plume", DISTINCT): 1.1,
        (f"plume, {SQL}", COUNT): 12,
        (f"plume, {SQL}", DISTINCT): 1.6,
    },
}


def speed(users: int) -> Speed:
    """What is compared for so many users."""
    return Speed(
        name=f"speed_duckdb_{users}",
        heading=f"Count per key on DuckDB, {power(users)} users",
        command=f"make bench USERS={users:.0e}".replace("+0", ""),
        what="query",
        against=(COUNT, DISTINCT, f"{COUNT}, {SHUFFLED}", f"{COUNT}, {TEXTS}"),
        bars=BARS.get(users, {}),
    )


def queries() -> dict[str, plume.Query]:
    """The paper's count: at most one record per user and key, at most 64 keys; and the same as anybody would ask it."""
    asked = {
        "user": "user",
        "keys": "key",
        "measures": [plume.count(max_per_key=1)],
        "max_keys_per_user": 64,
        "budget": plume.Budget(epsilon=math.log(3), delta=1e-5),
    }
    return {"plume": plume.Query.paper(**asked), "plume, default": plume.Query(**asked)}


def plain(path: Path, aggregate: str, **settings: int) -> Callable[[], object]:
    """The query without privacy, on a connection with DuckDB's defaults but for what is given."""
    connection = duckdb.connect(config=dict(settings))
    return lambda: connection.sql(f"SELECT key, {aggregate} FROM '{path}' GROUP BY key").to_arrow_table()


def without_the_extra(query: plume.Query, path: Path) -> None:
    """Run privately as where numba is not installed."""
    with patch.object(compiled, "is_there", lambda: False):
        plume.run(query, path)


def calls(path: Path) -> dict[str, Callable[[], object]]:
    """Everything that is timed."""
    paper = queries()["plume"]
    found = {aggregate: plain(path, aggregate) for aggregate in (COUNT, DISTINCT)}
    for name, query in queries().items():
        found[name] = partial(plume.run, query, path)
        found[f"{name}, {SQL}"] = partial(without_the_extra, query, path)
    found |= {name: partial(plume.run, paper, path, pipeline=name) for name in OTHER_PIPELINES}
    for rows, other in ((SHUFFLED, shuffled(path)), (TEXTS, in_words(path))):
        found[f"{COUNT}, {rows}"] = plain(other, COUNT)
        found |= {f"{name}, {rows}": partial(plume.run, query, other) for name, query in queries().items()}
    return found | on_threads(path)


def on_threads(path: Path) -> dict[str, Callable[[], object]]:
    """The same on fewer and on more threads than there are processors."""
    found: dict[str, Callable[[], object]] = {}
    for name, number in THREADS.items():
        found[f"{COUNT}, {name}"] = plain(path, COUNT, threads=number)
        for which, query in queries().items():
            found[f"{which}, {name}"] = partial(plume.run, query, path, engine=plume.DuckDB(threads=number))
    return found


def recorded(path: Path, runs: Runs) -> list[Line]:
    """What this commit is remembered by: what one run of each query released, and how long all took beside the plain query alike."""
    seconds = {name: statistics.median(seconds_of(runs, name)) for name in dict.fromkeys(run["call"] for run in runs)}
    commit, released = this_commit(), {name: plume.run(query, path) for name, query in queries().items()}
    return [
        Line(
            commit,
            name,
            f"{taken / seconds[plain_beside(name)]:.2f}",
            *((len(released[name]), f"{released[name].noise[0].standard_deviation:.6g}") if name in released else ()),
        )
        for name, taken in seconds.items()
        if name != plain_beside(name)
    ]


def plain_beside(name: str) -> str:
    """Name the plain query on the same rows and threads."""
    alike = next((f", {what}" for what in (SHUFFLED, TEXTS, *THREADS) if name.endswith(what)), "")
    return f"{COUNT}{alike}"


def peak_memory(path: Path) -> float:
    """Peak memory of one private run in a process of its own, in GB."""
    done = subprocess.run([sys.executable, __file__, "--memory-of", path], check=True, capture_output=True, text=True)  # noqa: S603 - our own
    return float(done.stdout)


def run_once(path: str) -> None:
    """Run privately once and print the peak memory of this process in GB."""
    plume.run(queries()["plume"], path)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def shares_of_time(path: Path) -> str:
    """Which share of a private run each step takes, of those that take any."""
    marks: list[tuple[str, float]] = []
    plume.run(queries()["plume"], path, on_step=lambda step: marks.append((step, time.perf_counter())))
    marks.append(("", time.perf_counter()))
    whole = marks[-1][1] - marks[0][1]
    shares = {step: (end - start) / whole for (step, start), (_, end) in itertools.pairwise(marks)}
    return ", ".join(f"{step} {share:.0%}" for step, share in shares.items() if share > 0.01)  # noqa: PLR2004


def main() -> None:
    """Measure, write the result, and say where time and memory went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", help="run once on this file, and print the peak memory")
    given = parser.parse_args()
    if given.memory_of:
        run_once(given.memory_of)
        return
    users = int(given.users)
    path, console = paper_data(users), Console(width=110)
    runs = time_in_turns(calls(path), given.repeats, uncounted=1)
    compare(speed(users), runs).write()
    if users == RECORDED_USERS:
        changes = add(recorded(path, runs))
        console.print(
            "\n".join(("moved since the last record:", *changes)) if changes else "nothing moved since the last record"
        )
    console.print(f"time by step: {shares_of_time(path)}")
    console.print(f"peak memory of one private run: {peak_memory(path):.2f} GB")


if __name__ == "__main__":
    main()
