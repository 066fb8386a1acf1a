"""What accounts cost: the default from two keys per user on, pooled Gaussian selection, beside weighted Gaussian selection.

`PYTHONPATH=experiments .venv/bin/python benchmarks/accounts.py --users 1e6`, with the extra `fast` and without it, in turn. Processor
seconds are told beside seconds, since they hardly depend on what else the machine does.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from duckdb_group_by import without_the_extra
from rich.console import Console
from rich.table import Table
from speeds import paper_data

import plume
from plume.errors import PlumeWarning

# At most so many times as long as without accounts.
_BAR = 1.15


def calls(path: Path, limit: int) -> dict[str, Callable[[], object]]:
    """One count per key, selected in both ways, with the extra and without it."""
    found: dict[str, Callable[[], object]] = {}
    for name, settings in {"weighted": {"selection": "weighted_gaussian"}, "pooled": {}}.items():
        query = plume.Query(
            user="user",
            keys="key",
            measures=[plume.count(max_per_key=1)],
            max_keys_per_user=limit,
            budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
            **settings,
        )
        found[name] = partial(plume.run, query, path)
        found[f"{name}, without the extra"] = partial(without_the_extra, query, path)
    return found


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Give the seconds and the processor seconds, of all threads, that a call takes."""
    start, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - processor


def main() -> None:
    """Time in turn, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--limit", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    asked = calls(paper_data(int(given.users)), given.limit)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlumeWarning)
        for turn in range(-1, given.repeats):
            for name, call in asked.items():
                taken = timed(call)
                if turn >= 0:  # loops are compiled and files are in memory by then
                    runs[name].append(taken)
    table = Table("selection", "seconds", "processor seconds", "times weighted", f"by processor, at most {_BAR}")
    for name, taken in runs.items():
        others = runs[name.replace("pooled", "weighted")]
        medians = [[statistics.median(one) for one in zip(*of, strict=True)] for of in (taken, others)]
        ratios = [f"{one / other:.2f}" for one, other in zip(*medians, strict=True)]
        table.add_row(name, *(f"{one:.2f}" for one in medians[0]), *ratios)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
