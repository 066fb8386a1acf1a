"""Speeds: calls timed in turn, and what is left of them in `docs/results/`: every run, a page with a table, a picture.

Seconds change from hour to hour on a machine that others use too. What slows it for a while slows all calls of one turn, so ratios of
medians are the result, and the fastest and slowest run beside them tell how far to trust these.
"""

import csv
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from results import RESULTS, Estimate, Panel, Point, Result, bars
from rich.console import Console
from rich.progress import track

from plume.errors import PlumeWarning
from plume.synthetic import write_paper_data

Runs = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Speed:
    """What is timed, and against what."""

    name: str
    heading: str
    command: str
    what: str
    """What the first column lists."""
    against: Sequence[str]
    """The calls that every call is compared with."""
    bars: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """How many times longer than another a call may take at most."""


def time_in_turns(calls: Mapping[str, Callable[[], object]], repeats: int, *, uncounted: int = 0) -> Runs:
    """Time calls in turn, several times; what compiles at first is let run before it counts."""
    turns = [(turn, name) for turn in range(-uncounted, repeats) for name in calls]
    runs = []
    with warnings.catch_warnings():
        # What is timed is asked for its speed, not for its answer.
        warnings.simplefilter("ignore", PlumeWarning)
        for turn, name in track(turns, description="timing", console=Console(stderr=True), transient=True):
            start = time.perf_counter()
            calls[name]()
            runs.append({"turn": str(turn + 1), "call": name, "seconds": f"{time.perf_counter() - start:.3f}"})
    return [run for run in runs if int(run["turn"]) > 0]


def compare(speed: Speed, runs: Runs) -> Result:
    """Make the table of medians and ratios, and its picture."""
    seconds = {name: seconds_of(runs, name) for name in dict.fromkeys(run["call"] for run in runs)}
    turns = len(next(iter(seconds.values())))
    # Runs that are kept may have been made before there was another call to compare with.
    against = [other for other in speed.against if other in seconds]
    ratios = [title for other in against for title in _titles(speed, other)]
    return Result(
        name=speed.name,
        heading=f"{speed.heading}, {f'medians of {turns}' if turns > 1 else 'one run of each'}",
        columns=[speed.what, "seconds", "fastest to slowest", *ratios],
        rows=[
            [
                name,
                f"{statistics.median(taken):.2f}",
                f"{min(taken):.2f} to {max(taken):.2f}",
                *(cell for other in against for cell in _cells(speed, name, taken, other, seconds[other])),
            ]
            for name, taken in seconds.items()
        ],
        picture=bars(
            [
                Panel(
                    "seconds",
                    [Point(name, "", Estimate.of([statistics.median(taken)])) for name, taken in seconds.items()],
                    form=",.2f",
                )
            ]
        ),
        runs=runs,
        command=speed.command,
        explained="[how fast it is](../performance.md)",
    )


def seconds_of(runs: Runs, name: str) -> list[float]:
    """Give the seconds of each run of a call."""
    return [float(run["seconds"]) for run in runs if run["call"] == name]


def _titles(speed: Speed, other: str) -> list[str]:
    bar = ["bar"] if any(against == other for _, against in speed.bars) else []
    return [f"times {other}", *bar]


def _cells(speed: Speed, name: str, taken: Sequence[float], other: str, others: Sequence[float]) -> list[str]:
    ratio = f"{statistics.median(taken) / statistics.median(others):.2f}"
    bar = speed.bars.get((name, other))
    return [ratio, "" if bar is None else f"{bar:g}"][: len(_titles(speed, other))]


def read_runs(speed: Speed) -> Runs:
    """Read the runs that a result was made of."""
    with (RESULTS / f"{speed.name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def paper_data(users: int) -> Path:
    """Make the paper's synthetic data once."""
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    if not path.exists():
        Console(stderr=True).print(f"making {users:,} users of the paper's synthetic data ...")
        write_paper_data(path, users, seed=1)
    return path


def shuffled(path: Path) -> Path:
    """Make the same rows in no order once: people's rows seldom lie together."""
    mixed = path.with_stem(f"{path.stem}-shuffled")
    if not mixed.exists():
        Console(stderr=True).print("shuffling the rows ...")
        with duckdb.connect() as connection:
            rows = f"SELECT * EXCLUDE file_row_number FROM read_parquet('{path}', file_row_number = true) ORDER BY hash(file_row_number)"
            connection.execute(f"COPY ({rows}) TO '{mixed}' (FORMAT parquet)")
    return mixed


def in_words(path: Path) -> Path:
    """Make the same rows with users and keys as people's tables have them once: ids of 36 characters, and keys of 12."""
    words = path.with_stem(f"{path.stem}-texts")
    if not words.exists():
        Console(stderr=True).print("writing users and keys as texts ...")
        with duckdb.connect() as connection:
            user = "CAST(CAST(md5(CAST(user AS VARCHAR)) AS UUID) AS VARCHAR)"
            rows = f"SELECT {user} AS user, left(md5('key ' || key), 12) AS key FROM '{path}'"
            connection.execute(f"COPY ({rows}) TO '{words}' (FORMAT parquet)")
    return words
