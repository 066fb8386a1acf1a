"""Runs on data with a canary in it, on Spark, in a process of its own so that all it prints can be read. Started by test_canary.py."""

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import plume
from plume.engines.spark import Spark
from privacy.test_canary import CANARY, asked, complained, damaged, rows, told
from sparks import start

# In the table t, one row has the canary in column c, and a number to look for in column n.
NUMBER = 7.777123e300
FRAMES: dict[str, str] = {
    "a user": "SELECT coalesce(c, u) AS u, k, v FROM t",
    "a key": "SELECT u, coalesce(c, k) AS k, v FROM t",
    "a cast of a key": "SELECT u, CAST(coalesce(c, '1') AS INT) AS k, v FROM t",
    "a cast of a value": "SELECT u, k, CAST(coalesce(c, '1') AS DOUBLE) AS v FROM t",
    "a cast of a user": "SELECT CAST(coalesce(c, '1') AS BIGINT) AS u, k, v FROM t",
    "an error that is raised": "SELECT u, k, if(c IS NULL, v, raise_error(c)) AS v FROM t",
    "a date": "SELECT u, to_date(coalesce(c, '2026-01-31')) AS k, v FROM t",
    "an element that is not there": "SELECT u, k, element_at(array(v), if(c IS NULL, 1, length(c))) AS v FROM t",
    "a value that overflows": "SELECT u, k, CAST(coalesce(n, 1) AS INT) AS v FROM t",
}


def raising(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise ValueError(CANARY)


def cases(session: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    session.createDataFrame(pa.table(rows(c=CANARY, n=NUMBER))).createOrReplaceTempView("t")
    made: dict[str, Callable[[], Any]] = {
        name: lambda select=select: session.sql(select) for name, select in FRAMES.items()
    }
    path = folder / "r.parquet"
    pq.write_table(pa.table(rows(user=CANARY)), path, compression="NONE")
    return made | {
        "an Arrow table": lambda: pa.table(rows(key=CANARY)),
        "Python that raises": lambda: (
            session.table("t").select("u", "k", "v").mapInArrow(raising, "u string, k string, v double")
        ),
        "a damaged file": lambda: str(damaged(path, 40)),
        "a file of text": lambda: _text(folder / "x.parquet"),
    }


def _text(path: Path) -> str:
    path.write_text(CANARY)
    return str(path)


def main(kind: str) -> None:
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    session = start(kind)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases(session, Path(folder)).items():
            try:
                said = list(told(plume.run(asked(), make(), engine=Spark(session)), Path(folder)))
            except plume.PlumeError as error:
                failed += 1
                said = list(complained(error))
            leaks = [text for text in said if CANARY.encode() in text or b"777123" in text]
            print("leak" if leaks else "clean", name)  # noqa: T201 - the result
    print("failed", failed)  # noqa: T201
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
