"""The tables and the picture of docs/accuracy.md: what strategies keep and how far they are off.

`.venv/bin/python benchmarks/accuracy.py` on the paper's synthetic data, made up, 10^6 users; `--words FILE` on real words that authors
used. The truth may be looked at, since the one is made up and the other public. What a strategy is off by has two parts: noise, and
what users above the limit lose.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import plume
from plume.synthetic import write_paper_data

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
STRATEGIES = {
    "paper: Laplace threshold": {"selection": "laplace_threshold", "composition": "basic"},
    "Laplace threshold": {"selection": "laplace_threshold"},
    "truncated geometric": {"selection": "truncated_geometric"},
    "Gaussian threshold": {"selection": "gaussian_threshold"},
    "default: weighted Gaussian": {},
    "weighted Gaussian in two rounds": {"selection": "two_round_weighted_gaussian"},
}


@dataclass(frozen=True)
class Task:
    """Something to ask of a file, and the exact answer as SQL with the columns `key` and `exact`."""

    path: Path
    asked: dict[str, Any]
    truth: str

    def release(self, limit: int, **strategy: str) -> plume.Release:
        """Ask it privately."""
        return plume.run(plume.Query(**self.asked, max_keys_per_user=limit, budget=BUDGET, **strategy), self.path)


def synthetic(users: int) -> Task:
    """How many users each key has, in the paper's synthetic data."""
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    if not path.exists():
        write_paper_data(path, users, seed=1)
    truth = f"SELECT key, count(DISTINCT user) AS exact FROM '{path}' GROUP BY key"
    return Task(path, {"user": "user", "keys": "key", "measures": [plume.users(name="released")]}, truth)


def words(path: Path) -> Task:
    """How often each word is used, at most 8 times by each author: the paper's task on its Reddit data."""
    measure = plume.sum("uses", low_total=0, high_total=8, name="released")
    truth = f"SELECT word AS key, sum(least(uses, 8)) AS exact FROM '{path}' GROUP BY word"
    return Task(path, {"user": "author", "keys": "word", "measures": [measure]}, truth)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    limit: int
    strategy: str
    noise: str
    keys: int
    absolute_error: float
    relative_error: float
    error_on_papers_keys: float
    standard_deviation: float

    def __str__(self) -> str:
        errors = f"{self.absolute_error:.1f} | {self.relative_error:.1%} | {self.error_on_papers_keys:.1f}"
        return f"| {self.limit} | {self.strategy} | {self.noise} | {self.keys:,} | {errors} | {self.standard_deviation:.1f} |"


def compare(task: Task, limit: int) -> Iterator[Row]:
    """Release with every strategy and compare with the truth, each over its own keys and over those of the first."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE truth AS {task.truth}")
        for name, strategy in STRATEGIES.items():
            release = task.release(limit, **strategy)
            connection.register("release", release.to_arrow().rename_columns(["key", "released"]))
            connection.execute("CREATE TABLE IF NOT EXISTS first AS SELECT key FROM release")
            yield _row(connection, limit, name, release)


def _row(connection: duckdb.DuckDBPyConnection, limit: int, strategy: str, release: plume.Release) -> Row:
    errors = "SELECT key, abs(released - exact) AS error, exact FROM release JOIN truth USING (key)"
    [(absolute, relative, common)] = connection.execute(
        f"SELECT avg(error), avg(error / exact), avg(error) FILTER (key IN (SELECT key FROM first)) FROM ({errors})"
    ).fetchall()
    noise = release.noise[0]
    return Row(limit, strategy, noise.kind, len(release), absolute, relative, common, noise.standard_deviation)


def draw(rows: list[Row], title: str) -> str:
    """Draw keys and errors as two groups of bars, in grey and one colour that show on light and dark pages alike."""
    keys = _bars("keys released", [(row.strategy, row.keys, f"{row.keys:,}") for row in rows], left=230)
    errors = [(row.strategy, row.absolute_error, f"{row.absolute_error:.1f}") for row in rows]
    label = f"{title}, at most {rows[0].limit} keys each, ε = ln 3, δ = 10⁻⁵"
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 226" font-family="sans-serif" font-size="13" role="img">',
            f"<title>Keys released and mean absolute error of {len(rows)} strategies; {label}</title>",
            '<g fill="#808080">',
            *(
                f'<text x="220" y="{50 + 28 * line}" text-anchor="end">{row.strategy}</text>'
                for line, row in enumerate(rows)
            ),
            f'<text x="10" y="216" font-size="11">{label}</text>',
            *keys,
            *_bars("mean absolute error", errors, left=505),
            "</g>",
            "</svg>\n",
        ]
    )


def _bars(title: str, values: list[tuple[str, float, str]], left: int) -> list[str]:
    longest = max(value for _, value, _ in values)
    lines = [f'<text x="{left}" y="22" font-weight="bold">{title}</text>']
    for line, (strategy, value, written) in enumerate(values):
        width, colour = max(1, round(180 * value / longest)), "#d9822b" if strategy.startswith("default") else "#808080"
        lines.append(f'<rect x="{left}" y="{36 + 28 * line}" width="{width}" height="18" fill="{colour}"/>')
        lines.append(f'<text x="{left + width + 6}" y="{50 + 28 * line}">{written}</text>')
    return lines


def main() -> None:
    """Release with every strategy, for each limit, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6, help="how many users are made up")
    parser.add_argument(
        "--words", type=Path, help="a Parquet file with author, word and uses, in place of made-up users"
    )
    parser.add_argument("--limits", type=int, nargs="+", default=[64], help="how many keys one user may have")
    parser.add_argument(
        "--picture", type=Path, help="where to draw the numbers of the first limit, a file ending in .svg"
    )
    given = parser.parse_args()
    task = words(given.words) if given.words else synthetic(int(given.users))
    print("| L | strategy | noise | keys released | mean absolute error | mean relative error | ", end="")
    print("mean absolute error on the paper's keys | standard deviation of the noise |")
    print("|---|---|---|---|---|---|---|---|")
    tables = [list(compare(task, limit)) for limit in given.limits]
    for rows in tables:
        print(*rows, sep="\n")
    if given.picture:
        given.picture.write_text(
            draw(tables[0], given.words.name if given.words else f"{int(given.users):,} users"), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
