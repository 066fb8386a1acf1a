"""The DuckDB rows of the speed table: a private count per key against the same query without privacy, in one run.

`make bench` for 10^6 users, `make bench USERS=1e7` for more. Baselines run at DuckDB's defaults, after imports; every figure is the
median of several runs, each from the Parquet file to the rows. Ratios are the result; seconds are there to check them.
"""

import argparse
import itertools
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

import plume
from plume.synthetic import write_paper_data

BASELINES = {"count(*), not private": "count(*)", "count(DISTINCT user), not private": "count(DISTINCT user)"}
PIPELINES = ("plume", "runtime_optimized", "naive")
# The bars of the design, by number of users.
BARS = {10**6: "9", 10**7: "12"}
DISTINCT_BARS = {10**7: "1.6"}


def paper_query() -> plume.Query:
    """The paper's count: at most one record per user and key, at most 64 keys."""
    return plume.Query.paper(
        user="user",
        keys="key",
        measures=[plume.count(max_per_key=1)],
        max_keys_per_user=64,
        budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
    )


def timed(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time calls in turn, several times, and take each one's median: what slows the machine for a while slows all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def plain(path: Path, aggregate: str) -> Callable[[], object]:
    """The query without privacy, on a connection with DuckDB's defaults."""
    connection = duckdb.connect()
    return lambda: connection.sql(f"SELECT key, {aggregate} FROM '{path}' GROUP BY key").to_arrow_table()


def peak_memory(path: Path) -> float:
    """Peak memory of one private run in a process of its own, in GB."""
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import duckdb_group_by as b; b.run_once({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603 - our own
    return float(done.stdout)


def run_once(path: str) -> None:
    """Run privately once and print the peak memory of this process in GB."""
    plume.run(paper_query(), path)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def measure(path: Path, users: int, repeats: int) -> Table:
    """Time everything and compare."""
    baselines = {name: plain(path, aggregate) for name, aggregate in BASELINES.items()}
    private = {name: lambda name=name: plume.run(paper_query(), path, pipeline=name) for name in PIPELINES}
    seconds = timed(baselines | private, repeats)
    count, distinct = (seconds[name] for name in BASELINES)
    table = Table(title=f"count per key, L = 64, {users:,} users, medians of {repeats}")
    for column in ("query", "seconds", "x count(*)", "bar", "x count(DISTINCT user)", "bar "):
        table.add_column(column, justify="left" if column == "query" else "right")
    for name, taken in seconds.items():
        bars = (BARS.get(users, ""), DISTINCT_BARS.get(users, "")) if name == "plume" else ("", "")
        table.add_row(name, f"{taken:.2f}", f"{taken / count:.1f}", bars[0], f"{taken / distinct:.2f}", bars[1])
    return table


def shares_of_time(path: Path) -> str:
    """Which share of a private run each step takes, of those that take any."""
    marks: list[tuple[str, float]] = []
    plume.run(paper_query(), path, on_step=lambda step: marks.append((step, time.perf_counter())))
    marks.append(("", time.perf_counter()))
    whole = marks[-1][1] - marks[0][1]
    shares = {step: (end - start) / whole for (step, start), (_, end) in itertools.pairwise(marks)}
    return ", ".join(f"{step} {share:.0%}" for step, share in shares.items() if share > 0.01)  # noqa: PLR2004


def main() -> None:
    """Make the data once, then measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    users = int(given.users)
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    console = Console(width=110)
    if not path.exists():
        console.print(f"making {users:,} users of the paper's synthetic data ...")
        write_paper_data(path, users, seed=1)
    console.print(measure(path, users, given.repeats))
    console.print(f"time by step: {shares_of_time(path)}")
    console.print(f"peak memory of one private run: {peak_memory(path):.2f} GB")


if __name__ == "__main__":
    main()
