"""How much several measures cost beside a single count: 8 of them over 4 columns, in one query, on the paper's synthetic data.

`make bench` runs it for 10^6 users. Both queries read the same file; runs alternate, so that whatever else the machine does meets both.
The ratio of the medians is the result; seconds are there to check it.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

import plume
from plume.synthetic import write_paper_data

BAR = 2.5
# Four value columns that are functions of user and key, so that every run has the same: money, seconds, a mark, a yes or no.
VALUES = """
    SELECT "user", "key",
           (hash("user", "key") % 10000) / 100.0 AS price,
           -ln((hash("key", "user", 1) % 1000000 + 1) / 1000001.0) * 30 AS seconds,
           CAST(hash("user", "key", 2) % 10 AS TINYINT) AS mark,
           hash("user", "key", 3) % 4 = 0 AS clicked
    FROM read_parquet('{source}')
"""
COUNT = [plume.count(max_per_key=3)]
NUMBERS = [
    plume.users(),
    plume.count(max_per_key=3),
    plume.sum("price", low_total=0, high_total=100),
    plume.mean("price", low=0, high=100),
    plume.stddev("seconds", low=0, high=300),
    plume.mean("mark", low=0, high=9),
    plume.sum("mark", low_total=0, high_total=9),
    plume.count(max_per_key=1, where="clicked", name="clicks"),
]
TALLIES = [
    plume.users(),
    plume.count(max_per_key=3),
    plume.sum("price", low_total=0, high_total=100),
    plume.mean("price", low=0, high=100),
    plume.stddev("seconds", low=0, high=300),
    plume.quantiles("seconds", [0.5, 0.9, 0.99], low=0, high=300),
    plume.histogram("mark", [0, 3, 6, 9]),
    plume.count(max_per_key=1, where="clicked", name="clicks"),
]


def query(measures: list[object]) -> plume.Query:
    """Ask for measures with the paper's limit and budget."""
    return plume.Query(
        user="user",
        keys="key",
        measures=measures,
        max_keys_per_user=64,
        budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
    )


def seconds(measures: list[object], path: Path) -> float:
    """Time one run, from the file to the rows."""
    start = time.perf_counter()
    plume.run(query(measures), path)
    return time.perf_counter() - start


def file_with_values(users: int) -> Path:
    """Make the data once."""
    folder = Path(tempfile.gettempdir())
    plain, path = folder / f"plume-bench-{users}.parquet", folder / f"plume-bench-values-{users}.parquet"
    if not plain.exists():
        write_paper_data(plain, users, seed=1)
    if not path.exists():
        duckdb.connect().execute(f"COPY ({VALUES.format(source=plain)}) TO '{path}' (FORMAT parquet)")
    return path


def main() -> None:
    """Time both queries in turn and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    users = int(given.users)
    path = file_with_values(users)
    runs = [[seconds(measures, path) for measures in (COUNT, NUMBERS, TALLIES)] for _ in range(given.repeats)]
    one, numbers, tallies = (statistics.median(times) for times in zip(*runs, strict=True))
    table = Table(title=f"measures per query, L = 64, {users:,} users, medians of {given.repeats}")
    for column in ("measures", "seconds", "x one count", "bar"):
        table.add_column(column, justify="left" if column == "measures" else "right")
    table.add_row("one count", f"{one:.2f}", "1.00", "")
    table.add_row("8 over 4 columns", f"{numbers:.2f}", f"{numbers / one:.2f}", f"{BAR}")
    table.add_row("8 with quantiles and a histogram", f"{tallies:.2f}", f"{tallies / one:.2f}", f"{BAR}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
