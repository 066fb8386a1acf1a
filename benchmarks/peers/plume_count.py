"""Plume on DuckDB, by default or in the paper's configuration."""

import math

import timing

import plume

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
    plume.run(query, source).write_parquet(target)


if __name__ == "__main__":
    timing.main(count)
