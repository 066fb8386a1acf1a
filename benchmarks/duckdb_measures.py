"""How much several measures cost beside a single count: 8 of them over 4 columns, in one query, on the paper's synthetic data.

`make bench` runs it for 10^6 users.
"""

import argparse
import math
from functools import partial
from pathlib import Path

import duckdb
from results import power
from speeds import Speed, compare, paper_data, time_in_turns

import plume

# Four value columns that are functions of user and key, so that every run has the same: money, seconds, a mark, a yes or no.
VALUES = """
    SELECT "user", "key",
           (hash("user", "key") % 10000) / 100.0 AS price,
           -ln((hash("key", "user", 1) % 1000000 + 1) / 1000001.0) * 30 AS seconds,
           CAST(hash("user", "key", 2) % 10 AS TINYINT) AS mark,
           hash("user", "key", 3) % 4 = 0 AS clicked
    FROM read_parquet('{source}')
"""
EIGHT = [
    plume.users(),
    plume.count(max_per_key=3),
    plume.sum("price", low_total=0, high_total=100),
    plume.mean("price", low=0, high=100),
    plume.stddev("seconds", low=0, high=300),
    plume.mean("mark", low=0, high=9),
    plume.sum("mark", low_total=0, high_total=9),
    plume.count(max_per_key=1, where="clicked", name="clicks"),
]
WITH_TALLIES = [
    plume.users(),
    plume.count(max_per_key=3),
    plume.sum("price", low_total=0, high_total=100),
    plume.mean("price", low=0, high=100),
    plume.stddev("seconds", low=0, high=300),
    plume.quantiles("seconds", [0.5, 0.9, 0.99], low=0, high=300),
    plume.histogram("mark", [0, 3, 6, 9]),
    plume.count(max_per_key=1, where="clicked", name="clicks"),
]

ONE = "one count"
NUMBERS = "users, count, two sums, two means, a standard deviation, a count with `where`"
TALLIES = "users, count, sum, mean, standard deviation, three quantiles, a histogram, a count with `where`"
MEASURES = {ONE: [plume.count(max_per_key=3)], NUMBERS: EIGHT, TALLIES: WITH_TALLIES}


def speed(users: int) -> Speed:
    """What is compared for so many users."""
    return Speed(
        name=f"speed_measures_{users}",
        heading=f"Several measures on DuckDB, {power(users)} users",
        command="make bench",
        what="measures",
        against=(ONE,),
        bars={(NUMBERS, ONE): 2.5},
    )


def query(measures: list[object]) -> plume.Query:
    """Ask for measures with the paper's limit and budget."""
    return plume.Query(
        user="user",
        keys="key",
        measures=measures,
        max_keys_per_user=64,
        budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
    )


def file_with_values(users: int) -> Path:
    """Make the data once."""
    plain = paper_data(users)
    path = plain.with_name(f"plume-bench-values-{users}.parquet")
    if not path.exists():
        duckdb.connect().execute(f"COPY ({VALUES.format(source=plain)}) TO '{path}' (FORMAT parquet)")
    return path


def main() -> None:
    """Time the queries in turn and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    users = int(given.users)
    path = file_with_values(users)
    calls = {name: partial(plume.run, query(measures), path) for name, measures in MEASURES.items()}
    compare(speed(users), time_in_turns(calls, given.repeats)).write()


if __name__ == "__main__":
    main()
