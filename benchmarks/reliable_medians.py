"""How many medians of real words are reliable, and how many of these are off by more than their interval.

`.venv/bin/python benchmarks/reliable_medians.py FILE` on a Parquet file with `author`, `word` and `uses`: how often an author used a word.
The words are public, so the truth may be looked at. It is the median of all authors of a word, each use moved into the range, so that
what the limit of words per author cut away counts as an error too. Beside it stand words whose median is the same by a hundredth of the
authors more or less: at the others, bounding alone can move the median by a whole use.
"""

import argparse
from dataclasses import dataclass

import duckdb

import plume
from plume.mechanisms.mechanism import Mechanism

BUDGET = plume.Budget(epsilon=2.0, delta=1e-5)
WORDS_PER_AUTHOR = 64
HIGH = 100
MANY_AUTHORS = 1_000

_TRUTH = """SELECT word AS key, count(*) AS authors, quantile_disc(least(uses, {high}), [0.49, 0.5, 0.51]) AS medians
FROM read_parquet(?) GROUP BY word"""


@dataclass(frozen=True)
class Found:
    """A released word: its authors, whether its median is reliable, whether it lies in its interval, and whether the truth is plain."""

    authors: int
    reliable: bool
    held: bool
    plain: bool


def release(path: str, selection: str, *others: Mechanism) -> list[Found]:
    """Release the median of each word, and look it up."""
    query = plume.Query(
        user="author",
        keys="word",
        measures=[*others, plume.median("uses", 0, HIGH, name="median")],
        max_keys_per_user=WORDS_PER_AUTHOR,
        budget=BUDGET,
        selection=selection,
    )
    rows = plume.run(query, path).intervals().to_arrow().to_pylist()
    truth = {key: found for key, *found in duckdb.execute(_TRUTH.format(high=HIGH), [path]).fetchall()}
    return [_found(row, *truth[row["word"]]) for row in rows]


def _found(row: dict[str, float], authors: int, medians: list[int]) -> Found:
    below, middle, above = medians
    held = row["median_low"] <= middle <= row["median_high"]
    return Found(authors, bool(row["median_reliable"]), held, below == above)


def _share(found: list[bool]) -> str:
    return f"{sum(found):,} of {len(found):,} ({sum(found) / max(len(found), 1):.1%})"


def main() -> None:
    """Print the figures of a few releases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--selection", default="auto")
    arguments = parser.parse_args()
    for others in ((), (plume.users(),)):
        for _ in range(arguments.runs):
            found = release(arguments.file, arguments.selection, *others)
            reliable = [one for one in found if one.reliable]
            print("median" + "".join(f" and {other.name}" for other in others))
            print(f"  words released: {len(found):,}")
            print(f"  reliable, of all: {_share([one.reliable for one in found])}")
            many = [one.reliable for one in found if one.authors > MANY_AUTHORS]
            print(f"  reliable, of words with more than {MANY_AUTHORS:,} authors: {_share(many)}")
            print(f"  off by more than their interval, of the reliable: {_share([not one.held for one in reliable])}")
            plain = [not one.held for one in reliable if one.plain]
            print(f"  the same, of those with a plain median: {_share(plain)}")


if __name__ == "__main__":
    main()
