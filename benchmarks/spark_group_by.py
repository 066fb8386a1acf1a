"""The Spark row of the speed table: a private count per key against the same query without privacy, in one session.

`make bench ENGINE=spark` for 10^6 users, `make bench ENGINE=spark USERS=1e7` for more. Both are timed in turn, after one run of each that
is not counted, from the Parquet file to the rows on the driver; every figure is a median. Ratios are the result.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duckdb_group_by import paper_query
from rich.console import Console
from rich.table import Table

import plume
from plume.engines.spark_session import start_session
from plume.synthetic import write_paper_data

# The bar of the design, by number of users.
BARS = {10**7: "10"}
# Everything else is as Spark has it; the interface of its own would only cost time.
SETTINGS = {"spark.ui.enabled": "false", "spark.driver.memory": "8g"}


def seconds(call: Callable[[], object]) -> float:
    """Time a call once."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(session: Any, path: Path, users: int, repeats: int) -> Table:
    """Time the queries in turn, so that whatever slows the machine slows all of them."""
    calls: dict[str, Callable[[], object]] = {
        "count(*), not private": lambda: plain(session, path, "count(*)"),
        "count(DISTINCT user), not private": lambda: plain(session, path, "count(DISTINCT user)"),
        "plume": lambda: plume.run(paper_query(), str(path), engine=plume.Spark(session)),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat, name in itertools.product(range(repeats + 1), calls):
        took = seconds(calls[name])
        if repeat:  # the first one compiles
            times[name].append(took)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    table = Table(title=f"count per key, L = 64, {users:,} users, Spark {session.version}, medians of {repeats}")
    for column in ("query", "seconds", "x count(*)", "bar", "x count(DISTINCT user)"):
        table.add_column(column, justify="left" if column == "query" else "right")
    count, distinct, _ = medians.values()
    for name, took in medians.items():
        bar = BARS.get(users, "") if name == "plume" else ""
        table.add_row(name, f"{took:.2f}", f"{took / count:.1f}", bar, f"{took / distinct:.2f}")
    return table


def plain(session: Any, path: Path, aggregate: str) -> object:
    """The query without privacy, in the same session."""
    return session.sql(f"SELECT key, {aggregate} FROM parquet.`{path}` GROUP BY key").toArrow()


def main() -> None:
    """Make the data once, then measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--master", default="local[*]")
    given = parser.parse_args()
    users = int(given.users)
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    console = Console(width=110)
    if not path.exists():
        console.print(f"making {users:,} users of the paper's synthetic data ...")
        write_paper_data(path, users, seed=1)
    session = start_session(master=given.master, settings=SETTINGS)
    console.print(measure(session, path, users, given.repeats))
    session.stop()


if __name__ == "__main__":
    main()
