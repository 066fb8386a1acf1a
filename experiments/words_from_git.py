"""Make a words file, for words.py, from any git repository: how often each author of commit messages used each word.

`python experiments/words_from_git.py path/to/repository words.parquet`. Authors are numbered at random; lines that only credit people,
addresses and links are left out.
"""

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

TRAILER = re.compile(r"^[A-Z][\w-]*(?:-by|-id|: ?\S+@).*$", re.MULTILINE | re.IGNORECASE)
ADDRESS = re.compile(r"\S+(?:@|://)\S+")
WORD = re.compile(r"(?<![a-z'])[a-z][a-z']{1,29}(?![a-z'])")


def messages(repository: Path) -> Iterator[tuple[str, str]]:
    """Pair each commit's author with its message."""
    command = ["git", "-C", str(repository), "log", "--all", "--no-merges", "--format=%aE%x1f%B%x1e"]
    log = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout  # noqa: S603
    for entry in log.split("\x1e"):
        author, found, message = entry.strip().partition("\x1f")
        if found:
            yield author, message


def words(message: str) -> list[str]:
    """Find the words of a message, in lower case: letters and apostrophes, 2 to 30 of them."""
    return WORD.findall(ADDRESS.sub(" ", TRAILER.sub(" ", message)).lower())


def main() -> None:
    """Count, number authors at random, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    uses = Counter((author, word) for author, message in messages(given.repository) for word in words(message))
    counted = pa.table(
        {
            "address": [author for author, _ in uses],
            "word": [word for _, word in uses],
            "uses": pa.array(uses.values(), pa.int32()),
        }
    )
    with duckdb.connect() as connection:
        connection.register("counted", counted)
        connection.execute(
            "CREATE TABLE authors AS SELECT * FROM (SELECT DISTINCT address FROM counted) ORDER BY random()"
        )
        numbered = (
            "SELECT CAST(authors.rowid AS INTEGER) AS author, word, uses FROM counted JOIN authors USING (address)"
        )
        connection.execute(f"COPY ({numbered} ORDER BY author, word) TO '{given.out}' (FORMAT parquet)")
    print(f"{len(uses):,} rows written to {given.out}")


if __name__ == "__main__":
    main()
