"""How long tuning takes beside one release: `plume.tune` with its usual grid, on the paper's synthetic data.

`make bench` runs it for 10^6 users.
"""

import argparse
from functools import partial

from duckdb_measures import file_with_values, query
from results import power
from speeds import Speed, compare, time_in_turns

import plume

COUNT, SUM = "a release of a count", "a release of a sum"
TUNING_COUNT, TUNING_SUM = "tuning this count", "tuning this sum"
BAR = 3
ASKED = {
    COUNT: query([plume.count(max_per_key=1)]),
    SUM: query([plume.sum("price", low_total=0, high_total=100)]),
}


def speed(users: int) -> Speed:
    """What is compared for so many users."""
    return Speed(
        name=f"speed_tune_{users}",
        heading=f"Tuning on DuckDB, {power(users)} users",
        command="make bench",
        what="what",
        against=(COUNT, SUM),
        bars={(TUNING_COUNT, COUNT): BAR, (TUNING_SUM, SUM): BAR},
    )


def main() -> None:
    """Time releases and tunings in turn and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    users = int(given.users)
    path = file_with_values(users)
    calls = {
        COUNT: partial(plume.run, ASKED[COUNT], path),
        TUNING_COUNT: partial(plume.tune, ASKED[COUNT], path),
        SUM: partial(plume.run, ASKED[SUM], path),
        TUNING_SUM: partial(plume.tune, ASKED[SUM], path),
    }
    compare(speed(users), time_in_turns(calls, given.repeats)).write()


if __name__ == "__main__":
    main()
