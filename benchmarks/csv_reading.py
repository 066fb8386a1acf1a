"""What it costs to read CSV exactly: in one piece, beside DuckDB's guess at where records begin, on one thread and on all.

`python benchmarks/csv_reading.py --gigabytes 10` makes the file, in the temporary folder, and removes it.
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

import duckdb
from speeds import Speed, compare, time_in_turns

from plume.engines.files import find_files
from plume.engines.reading import selecting
from plume.plan.types import Kind

KINDS = {"user": Kind.TEXT, "page": Kind.TEXT, "seconds": Kind.FLOAT}
EXACT, GUESSED = "in one piece, exact", "in parallel, guessing"


BLOCK = """
    SELECT 'u' || hash(n) % 10000000 AS "user", 'page ' || hash(n, 1) % 5000 AS page, hash(n, 2) % 60000 / 1000 AS seconds,
           CASE WHEN hash(n, 3) % 10 < 3 THEN 'note, with a comma' ELSE 'plain' END AS note
    FROM range(400000) AS numbers(n)
"""


def write(path: Path, gigabytes: float) -> None:
    """Write the same 400,000 records again and again; three in ten have a comma in quotes."""
    duckdb.connect().execute(f"COPY ({BLOCK}) TO '{path}' (FORMAT csv)")
    header, _, block = path.read_bytes().partition(b"\n")
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(round(gigabytes * 10**9 / len(block))):
            file.write(block)


def read(select: str, threads: int) -> None:
    """Read all of it, as a query would."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}; SET preserve_insertion_order = false")
        connection.execute(f'SELECT count("user"), count("page"), sum(seconds) FROM ({select})').fetchall()


def main() -> None:
    """Time the ways to read in turn and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    size = f"{given.gigabytes:g}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write(path, given.gigabytes)
        exact = selecting(find_files(path), KINDS, lambda _: [])
        selects = {EXACT: exact, GUESSED: exact.replace("parallel=false", "parallel=true")}
        calls = {
            f"{way}, threads: {threads}": partial(read, select, threads)
            for threads in dict.fromkeys((1, os.cpu_count() or 1))
            for way, select in selects.items()
        }
        runs = time_in_turns(calls, given.repeats)
    speed = Speed(
        name=f"speed_csv_{size}",
        heading=f"Reading a CSV file of {size} GB on DuckDB",
        command=f"python benchmarks/csv_reading.py --gigabytes {size}",
        what="how it is read",
        against=(next(iter(calls)),),
    )
    compare(speed, runs).write()


if __name__ == "__main__":
    main()
