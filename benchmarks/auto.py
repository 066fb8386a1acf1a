"""The tables of docs/choosing.md: how far off releases are with numbers left open, against every number tried in turn.

`.venv/bin/python benchmarks/auto.py` on the paper's synthetic data, made up, 10^6 users; `--words FILE` on real words that authors used;
`--bounds FILE` on these words with `high_total` left open in place of `max_keys_per_user`; `--both FILE` with both; `--totals NAME` on
made-up totals of 2*10^5 users, lognormal, uniform or constant. The truth may be looked at, since the one is made up and the other public.
Errors of single runs are noisy, so numbers are compared by their mean error over `--runs` releases; each run with "auto" stands for itself.
"""

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb

import plume
from plume.synthetic import write_paper_data

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
# How many words of one author count while bounds are tried.
WORDS_LIMIT = 216
# What a user spends in a key, of which two hashes make numbers that are evenly spread between 0 and 1.
_FIRST, _SECOND = (f'(hash("user", "key", {number}) % 1000000 + 1) / 1000001.0' for number in (1, 2))
TOTALS = {
    "lognormal": f"5 * exp(sqrt(-2 * ln({_FIRST})) * cos(2 * pi() * {_SECOND}))",
    "uniform": f"20.0 * {_FIRST}",
    "constant": "5.0",
}


@dataclass(frozen=True)
class Task:
    """Something to ask of a file with a number or two left open, the exact answer as SQL with `key` and `exact`, and numbers to try."""

    path: Path
    ask: Callable[[Any], plume.Query]
    truth: str
    tried: tuple[Any, ...]


def synthetic(users: int) -> Task:
    """How many users each key has, in the paper's synthetic data."""
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    if not path.exists():
        write_paper_data(path, users, seed=1)

    def ask(limit: int | str) -> plume.Query:
        return plume.Query(user="user", keys="key", measures=plume.users(), max_keys_per_user=limit, budget=BUDGET)

    truth = f"SELECT key, count(DISTINCT user) AS exact FROM '{path}' GROUP BY key"
    return Task(path, ask, truth, (16, 23, 32, 39, 46, 54, 64, 91, 128))


def words(path: Path) -> Task:
    """How often each word is used, at most 8 times by each author: the paper's task on its Reddit data."""

    def ask(limit: int | str) -> plume.Query:
        measure = plume.sum("uses", low_total=0, high_total=8)
        return plume.Query(user="author", keys="word", measures=measure, max_keys_per_user=limit, budget=BUDGET)

    truth = f"SELECT word AS key, sum(least(uses, 8)) AS exact FROM '{path}' GROUP BY word"
    return Task(path, ask, truth, (64, 128, 182, 216, 256, 305, 363, 512))


def bounds(path: Path) -> Task:
    """How often each word is used, as often as may be."""

    def ask(high: int | str) -> plume.Query:
        measure = plume.sum("uses", low_total=0, high_total=high)
        return plume.Query(user="author", keys="word", measures=measure, max_keys_per_user=WORDS_LIMIT, budget=BUDGET)

    truth = f"SELECT word AS key, sum(uses) AS exact FROM '{path}' GROUP BY word"
    return Task(path, ask, truth, (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256))


def totals(name: str, limit: int) -> Task:
    """How much is spent in each key, by totals alike for all users and keys of the synthetic data."""
    plain, path = (Path(tempfile.gettempdir()) / f"plume-bench-{one}.parquet" for one in ("spent", f"spent-{name}"))
    if not plain.exists():
        write_paper_data(plain, 200_000, seed=1)
    spent = f'SELECT "user", "key", {TOTALS[name]} AS spent FROM (SELECT DISTINCT "user", "key" FROM \'{plain}\')'
    duckdb.sql(f"COPY ({spent}) TO '{path}' (FORMAT parquet)")

    def ask(high: int | str) -> plume.Query:
        measure = plume.sum("spent", low_total=0, high_total=high)
        return plume.Query(user="user", keys="key", measures=measure, max_keys_per_user=limit, budget=BUDGET)

    truth = f"SELECT key, sum(spent) AS exact FROM '{path}' GROUP BY key"
    return Task(path, ask, truth, (4, 6, 8, 12, 16, 24, 32, 48))


def both(path: Path) -> Task:
    """How often each word is used, with neither number known."""

    def ask(numbers: tuple[int, int] | str) -> plume.Query:
        limit, high = (numbers, numbers) if isinstance(numbers, str) else numbers
        measure = plume.sum("uses", low_total=0, high_total=high)
        return plume.Query(user="author", keys="word", measures=measure, max_keys_per_user=limit, budget=BUDGET)

    truth = f"SELECT word AS key, sum(uses) AS exact FROM '{path}' GROUP BY word"
    return Task(path, ask, truth, tuple(itertools.product((216, 363, 512, 724, 1024), (8, 16, 24, 32, 48))))


def error(task: Task, connection: duckdb.DuckDBPyConnection, number: Any) -> tuple[float, plume.Release, float]:
    """Release once; give the mean absolute error over released keys, the release, and the seconds it took."""
    started = time.perf_counter()
    release = plume.run(task.ask(number), task.path)
    seconds = time.perf_counter() - started
    connection.register("release", release.to_arrow().rename_columns(["key", "released"]))
    [(found,)] = connection.execute("SELECT avg(abs(released - exact)) FROM release JOIN truth USING (key)").fetchall()
    return found, release, seconds


def main() -> None:
    """Try the numbers, release with "auto" many times, and print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6, help="how many users are made up")
    for name in ("words", "bounds", "both"):
        parser.add_argument(f"--{name}", type=Path, help="a Parquet file with author, word and uses, in place of those")
    parser.add_argument("--totals", choices=TOTALS, help="made-up totals, in place of the synthetic data")
    parser.add_argument("--limit", type=int, default=32, help="max_keys_per_user of --totals")
    parser.add_argument("--tried", type=int, nargs="+", help="the numbers to try")
    parser.add_argument("--runs", type=int, default=3, help="releases per number")
    parser.add_argument("--auto", type=int, default=20, help="releases with auto")
    given = parser.parse_args()
    files = {words: given.words, bounds: given.bounds, both: given.both}
    task = next((make(path) for make, path in files.items() if path), None)
    task = task or (totals(given.totals, given.limit) if given.totals else synthetic(int(given.users)))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE truth AS {task.truth}")
        print("| number | keys released | mean absolute error | seconds |\n|---|---|---|---|", flush=True)
        errors = {}
        for number in given.tried or task.tried:
            found = [error(task, connection, number) for _ in range(given.runs)]
            errors[number] = fmean(one[0] for one in found)
            seconds = min(one[2] for one in found)
            print(f"| {number} | {len(found[0][1]):,} | {errors[number]:.1f} | {seconds:.1f} |", flush=True)
        best, ratios = min(errors.values()), []
        for run in range(given.auto):
            off, release, seconds = error(task, connection, "auto")
            ratios.append(off / best)
            chosen = ", ".join(f"{number:g}" for number in release.chosen.values())
            said = f"| auto {run + 1}: {chosen} | {len(release):,} | {off:.1f} ({off / best - 1:+.1%})"
            print(f"{said} | {seconds:.1f} |", flush=True)
    print(f"worst of {given.auto}: {max(ratios) - 1:+.1%} against the best number; mean {fmean(ratios) - 1:+.1%}")


if __name__ == "__main__":
    main()
