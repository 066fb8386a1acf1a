"""What it costs to read CSV exactly: in one piece, beside DuckDB's guess at where records begin and beside Arrow, on one thread and on all.

It makes the files in the temporary folder, and removes them. Where one file is read in one piece, several are read side by side.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
from speeds import Speed, compare, time_in_turns

from plume.engines.files import find_files
from plume.engines.reading import selecting
from plume.plan.types import Kind

KINDS = {"user": Kind.TEXT, "page": Kind.TEXT, "seconds": Kind.FLOAT}
EXACT, GUESSED = "in one piece, exact", "in parallel, guessing"
FILES = 8
SPLIT = f"in {FILES} files, each in one piece, exact"
# Arrow finds where records end before it shares them out, so it is exact as well; but a record larger than a block ends its reading.
BLOCKS = {"by Arrow, blocks of 1 MiB, exact up to there": 1 << 20, "by Arrow, blocks of 32 MiB, exact": 32 << 20}


BLOCK = """
    SELECT 'u' || hash(n) % 10000000 AS "user", 'page ' || hash(n, 1) % 5000 AS page, hash(n, 2) % 60000 / 1000 AS seconds,
           CASE WHEN hash(n, 3) % 10 < 3 THEN 'note, with a comma' ELSE 'plain' END AS note
    FROM range(400000) AS numbers(n)
"""


def write(path: Path, gigabytes: float) -> Path:
    """Write the same 400,000 records again and again; three in ten have a comma in quotes."""
    duckdb.connect().execute(f"COPY ({BLOCK}) TO '{path}' (FORMAT csv)")
    header, _, block = path.read_bytes().partition(b"\n")
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(round(gigabytes * 10**9 / len(block))):
            file.write(block)
    return path


def read(select: str, threads: int) -> None:
    """Read all of it, as a query would."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}; SET preserve_insertion_order = false")
        connection.execute(f'SELECT count("user"), count("page"), sum(seconds) FROM ({select})').fetchall()


def read_by_arrow(path: Path, block: int, threads: int) -> None:
    """Read the same with Arrow, whose batches DuckDB adds up."""
    pa.set_cpu_count(threads)
    batches = pc.open_csv(
        path,
        read_options=pc.ReadOptions(use_threads=threads > 1, block_size=block),
        parse_options=pc.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip"),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(KINDS, pa.string()), include_columns=list(KINDS), strings_can_be_null=True
        ),
    )
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.register("batches", batches)
        connection.execute(
            'SELECT count("user"), count("page"), sum(TRY_CAST(seconds AS DOUBLE)) FROM batches'
        ).fetchall()


def called(way: str, threads: int) -> str:
    """Name a way to read."""
    return f"{way}, {threads} thread{'s'[: threads - 1]}"


def speed(gigabytes: int) -> Speed:
    """What is compared for a file of this size."""
    return Speed(
        name=f"speed_csv_{gigabytes}",
        heading=f"Reading a CSV file of {gigabytes} GB on DuckDB",
        command=f"PYTHONPATH=experiments .venv/bin/python benchmarks/csv_reading.py --gigabytes {gigabytes}",
        what="how it is read",
        against=(called(EXACT, 1),),
    )


def main() -> None:
    """Time the ways to read in turn and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "rows.csv", given.gigabytes)
        parts = [write(Path(folder) / f"part_{part}.csv", given.gigabytes / FILES) for part in range(FILES)]
        exact, split = (selecting(find_files(files), KINDS, lambda _: []) for files in (path, parts))
        ways: dict[str, Callable[[int], None]] = {
            EXACT: partial(read, exact),
            SPLIT: partial(read, split),
            GUESSED: partial(read, exact.replace("parallel=false", "parallel=true")),
            **{way: partial(read_by_arrow, path, block) for way, block in BLOCKS.items()},
        }
        calls = {
            called(way, threads): partial(reading, threads)
            for threads in dict.fromkeys((1, os.cpu_count() or 1))
            for way, reading in ways.items()
        }
        runs = time_in_turns(calls, given.repeats)
    compare(speed(given.gigabytes), runs).write()


if __name__ == "__main__":
    main()
