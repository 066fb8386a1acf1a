"""Plume on DuckDB, by default or in the paper's configuration."""

import math

import timing

import plume
from plume import run  # now: on first use it would count among the seconds, which leave imports out

CONFIGURATIONS = {"default": plume.Query, "paper": plume.Query.paper}


def count(source: str, target: str, limit: int, configuration: str) -> None:
    """Count users per key."""
    query = CONFIGURATIONS[configuration](
        user="user",
        keys="key",
        measures=[plume.count(max_per_key=1)],
        max_keys_per_user=limit,
        budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
    )
    run(query, source).write_parquet(target, overwrite=True)


if __name__ == "__main__":
    timing.main(count)
