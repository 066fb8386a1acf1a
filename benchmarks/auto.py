"""The table of docs/choosing.md: how far off a release is with max_keys_per_user = "auto", against every limit tried in turn.

`.venv/bin/python benchmarks/auto.py` on the paper's synthetic data, made up, 10^6 users; `--words FILE` on real words that authors used.
Errors of single runs are noisy, so limits are compared by their mean error over `--runs` releases; each run with "auto" stands for itself.
"""

import argparse
import time
from pathlib import Path
from statistics import fmean

import duckdb
from accuracy import BUDGET, Task, synthetic, words

import plume

LIMITS = {"synthetic": [16, 23, 32, 39, 46, 54, 64, 91, 128], "words": [64, 128, 182, 216, 256, 305, 363, 512]}


def error(task: Task, connection: duckdb.DuckDBPyConnection, limit: int | str) -> tuple[float, plume.Release, float]:
    """Release once; give the mean absolute error over released keys, the release, and the seconds it took."""
    started = time.perf_counter()
    query = plume.Query(**task.asked, max_keys_per_user=limit, budget=BUDGET)
    release = plume.run(query, task.path)
    seconds = time.perf_counter() - started
    connection.register("release", release.to_arrow().rename_columns(["key", "released"]))
    [(found,)] = connection.execute("SELECT avg(abs(released - exact)) FROM release JOIN truth USING (key)").fetchall()
    return found, release, seconds


def main() -> None:
    """Sweep the limits, release with "auto" many times, and print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6, help="how many users are made up")
    parser.add_argument(
        "--words", type=Path, help="a Parquet file with author, word and uses, in place of made-up users"
    )
    parser.add_argument("--limits", type=int, nargs="+", help="the limits to try")
    parser.add_argument("--runs", type=int, default=3, help="releases per limit")
    parser.add_argument("--auto", type=int, default=20, help="releases with auto")
    given = parser.parse_args()
    task = words(given.words) if given.words else synthetic(int(given.users))
    limits = given.limits or LIMITS["words" if given.words else "synthetic"]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE truth AS {task.truth}")
        print("| max_keys_per_user | keys released | mean absolute error | seconds |\n|---|---|---|---|", flush=True)
        errors = {}
        for limit in limits:
            found = [error(task, connection, limit) for _ in range(given.runs)]
            errors[limit] = fmean(one[0] for one in found)
            print(
                f"| {limit} | {len(found[0][1]):,} | {errors[limit]:.1f} | {min(one[2] for one in found):.1f} |",
                flush=True,
            )
        best = min(errors.values())
        worst = 0.0
        for number in range(given.auto):
            off, release, seconds = error(task, connection, "auto")
            worst = max(worst, off / best)
            chosen = release.chosen["max_keys_per_user"]
            print(
                f"| auto {number + 1}: {chosen} | {len(release):,} | {off:.1f} ({off / best - 1:+.1%}) | {seconds:.1f} |",
                flush=True,
            )
    print(f"worst of {given.auto}: {worst - 1:+.1%} against the best limit")


if __name__ == "__main__":
    main()
