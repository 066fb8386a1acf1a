"""How long tuning takes beside one release: `plume.tune` with its usual grid, on the paper's synthetic data.

`.venv/bin/python benchmarks/tune.py`. A release and a tuning of the same query take turns, so that whatever else the machine does meets
both. The ratio of the medians is the result; seconds are there to check it.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from duckdb_measures import file_with_values
from rich.console import Console
from rich.table import Table

import plume

BAR = 3
MEASURES = {
    "count(max_per_key=1)": plume.count(max_per_key=1),
    "sum(price, 0, 100)": plume.sum("price", low_total=0, high_total=100),
}


def seconds(call: Callable[[], object]) -> float:
    """Time a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def turns(query: plume.Query, path: Path, repeats: int) -> tuple[float, float]:
    """Time releases and tunings in turn, and take their medians."""
    calls = (lambda: plume.run(query, path), lambda: plume.tune(query, path))
    times = [tuple(seconds(call) for call in calls) for _ in range(repeats)]
    release, tuning = (statistics.median(taken) for taken in zip(*times, strict=True))
    return release, tuning


def main() -> None:
    """Time both for each measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    path = file_with_values(int(given.users))
    table = Table(title=f"a release and a tuning, {int(given.users):,} users, medians of {given.repeats}")
    for column in ("measure", "settings tried", "release", "tuning", "x release", "bar"):
        table.add_column(column, justify="left" if column == "measure" else "right")
    for name, measure in MEASURES.items():
        query = plume.Query(
            user="user",
            keys="key",
            measures=measure,
            max_keys_per_user=64,
            budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
        )
        tried = len(plume.tune(query, path).tried)
        release, tuning = turns(query, path, given.repeats)
        table.add_row(name, f"{tried}", f"{release:.2f}", f"{tuning:.2f}", f"{tuning / release:.2f}", f"{BAR}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
