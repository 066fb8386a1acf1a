"""The table and the picture of docs/accuracy.md: what strategies keep and how far they are off, on the paper's synthetic data.

`.venv/bin/python benchmarks/accuracy.py` for 10^6 users; `--picture docs/accuracy.svg` also draws. The data are made up, so the truth
may be looked at. What a strategy is off by has two parts: noise, and what users above the limit lose.
"""

import argparse
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb

import plume
from plume.synthetic import write_paper_data

STRATEGIES = {
    "paper: Laplace threshold": {"selection": "laplace_threshold", "composition": "basic"},
    "truncated geometric": {"selection": "truncated_geometric", "composition": "basic"},
    "Gaussian threshold": {"selection": "gaussian_threshold"},
    "default: weighted Gaussian": {},
}
LIMIT = 64


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    strategy: str
    noise: str
    keys: int
    absolute_error: float
    relative_error: float
    error_on_papers_keys: float
    standard_deviation: float

    def __str__(self) -> str:
        errors = f"{self.absolute_error:.1f} | {self.relative_error:.1%} | {self.error_on_papers_keys:.1f}"
        return f"| {self.strategy} | {self.noise} | {self.keys:,} | {errors} | {self.standard_deviation:.1f} |"


def ask(settings: dict[str, str]) -> plume.Query:
    """How many users each key has, of at most 64 keys of each user."""
    return plume.Query(
        user="user",
        keys="key",
        measures=[plume.users()],
        max_keys_per_user=LIMIT,
        budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
        **settings,
    )


def compare(releases: dict[str, plume.Release], path: Path) -> list[Row]:
    """Compare releases with the truth, each over its own keys and over those of the first."""
    truth = f"SELECT key, count(DISTINCT user) AS exact FROM '{path}' GROUP BY key"
    first = next(iter(releases.values())).to_arrow()
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE truth AS {truth}")
        connection.register("first", first)
        return [_row(connection, strategy, release) for strategy, release in releases.items()]


def _row(connection: duckdb.DuckDBPyConnection, strategy: str, release: plume.Release) -> Row:
    connection.register("released", release.to_arrow())
    errors = "SELECT key, abs(users - exact) AS error, exact FROM released JOIN truth USING (key)"
    [(absolute, relative, common)] = connection.execute(
        f"SELECT avg(error), avg(error / exact), avg(error) FILTER (key IN (SELECT key FROM first)) FROM ({errors})"
    ).fetchall()
    noise = release.noise[0]
    return Row(strategy, noise.kind, len(release), absolute, relative, common, noise.standard_deviation)


def draw(rows: list[Row], users: int) -> str:
    """Draw keys and errors as two groups of bars, in grey and one colour that show on light and dark pages alike."""
    keys = _bars("keys released", [(row.strategy, row.keys, f"{row.keys:,}") for row in rows], left=190)
    errors = [(row.strategy, row.absolute_error, f"{row.absolute_error:.1f}") for row in rows]
    label = f"{users:,} users, at most {LIMIT} keys each, ε = ln 3, δ = 10⁻⁵"
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 170" font-family="sans-serif" font-size="13" role="img">',
            f"<title>Keys released and mean absolute error of {len(rows)} strategies; {label}</title>",
            '<g fill="#808080">',
            *(
                f'<text x="180" y="{50 + 28 * line}" text-anchor="end">{row.strategy}</text>'
                for line, row in enumerate(rows)
            ),
            f'<text x="10" y="160" font-size="11">{label}</text>',
            *keys,
            *_bars("mean absolute error", errors, left=465),
            "</g>",
            "</svg>\n",
        ]
    )


def _bars(title: str, values: list[tuple[str, float, str]], left: int) -> list[str]:
    longest = max(value for _, value, _ in values)
    lines = [f'<text x="{left}" y="22" font-weight="bold">{title}</text>']
    for line, (strategy, value, written) in enumerate(values):
        width, colour = max(1, round(190 * value / longest)), "#d9822b" if strategy.startswith("default") else "#808080"
        lines.append(f'<rect x="{left}" y="{36 + 28 * line}" width="{width}" height="18" fill="{colour}"/>')
        lines.append(f'<text x="{left + width + 6}" y="{50 + 28 * line}">{written}</text>')
    return lines


def main() -> None:
    """Make the data once, then release with every strategy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=float, default=1e6)
    parser.add_argument("--picture", type=Path, help="where to draw the same numbers, a file ending in .svg")
    given = parser.parse_args()
    users = int(given.users)
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    if not path.exists():
        write_paper_data(path, users, seed=1)
    rows = compare({name: plume.run(ask(settings), path) for name, settings in STRATEGIES.items()}, path)
    print("| strategy | noise | keys released | mean absolute error | mean relative error | ", end="")
    print("mean absolute error on the paper's keys | standard deviation of the noise |")
    print("|---|---|---|---|---|---|---|")
    print(*rows, sep="\n")
    if given.picture:
        given.picture.write_text(draw(rows, users), encoding="utf-8")


if __name__ == "__main__":
    main()
