"""The Spark row of the speed table: a private count per key against the same query without privacy, in one session.

`make bench ENGINE=spark` for 10^6 users, `make bench ENGINE=spark USERS=1e7` for more. All are timed after one run of each that compiles
and is not counted, from the Parquet file to the rows on the driver.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duckdb_group_by import COUNT, DISTINCT, queries
from results import power
from speeds import Speed, compare, paper_data, time_in_turns

import plume
from plume.engines.spark_session import start_session

# The bar that was set beforehand, by number of users.
BARS = {10**7: {("plume", COUNT): 10}}
# What anybody would set for a batch job on one machine; all queries have it. Everything else is as Spark has it.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "8g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.shuffle.compress": "false",
}


def speed(users: int) -> Speed:
    """What is compared for so many users."""
    return Speed(
        name=f"speed_spark_{users}",
        heading=f"Count per key on Spark, {power(users)} users",
        command=f"make bench ENGINE=spark USERS={users:.0e}".replace("+0", ""),
        what="query",
        against=(COUNT, DISTINCT),
        bars=BARS.get(users, {}),
    )


def plain(session: Any, path: Path, aggregate: str) -> Callable[[], object]:
    """The query without privacy, in the same session."""
    return lambda: session.sql(f"SELECT key, {aggregate} FROM parquet.`{path}` GROUP BY key").toArrow()


def main() -> None:
    """Time the queries in turn and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--master", default="local[*]")
    given = parser.parse_args()
    users = int(given.users)
    path = paper_data(users)
    session = start_session(master=given.master, settings=SETTINGS)
    calls: dict[str, Callable[[], object]] = {
        COUNT: plain(session, path, COUNT),
        DISTINCT: plain(session, path, DISTINCT),
        "plume": lambda: plume.run(queries()["plume"], str(path), engine=plume.Spark(session)),
    }
    compare(speed(users), time_in_turns(calls, given.repeats, uncounted=1)).write()
    session.stop()


if __name__ == "__main__":
    main()
