"""One run on skewed data in two executors of two gigabytes: one user with ten million rows, one key with a million users."""

import json
import sys
from typing import Any

import plume
from plume.engines.spark import Spark
from plume.engines.spark_session import start_session

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "2g",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
}
QUERY = plume.Query.paper(
    user="person",
    keys="key",
    measures=[plume.count(max_per_key=1), plume.users()],
    max_keys_per_user=64,
    budget=plume.Budget(epsilon=1.1, delta=1e-7),
)


def skewed(session: Any, rows: int) -> Any:
    """One user with so many rows, each with a key of its own, and a tenth as many users who share one key."""
    hoarder = session.range(rows).selectExpr("0L AS person", "id + 1 AS key")
    everybody = session.range(1, rows // 10 + 1).selectExpr("id AS person", "0L AS key")
    return hoarder.unionAll(everybody)


def main(rows: str) -> None:
    session = start_session(master="local-cluster[2,1,2048]", settings=SETTINGS)
    said: dict[str, Any]
    try:
        release = plume.run(QUERY, skewed(session, int(rows)), engine=Spark(session))
        said = {"rows": release.to_arrow().to_pylist()}
    except plume.PlumeError as error:
        said = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said))  # noqa: T201 - the result
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
