"""What each commit measured, line by line in `record.csv`: keys, noise, and how many times as long as the plain query; and what moved.

Only what `make bench` measures at 10^6 users is recorded. The file is small, and is committed with what changed the figures.
"""

import csv
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

RECORD = Path(__file__).with_name("record.csv")
# Ratios of medians vary by as much on a machine that others use, and the number of keys from draw to draw.
_TIMES, _KEYS = 0.1, 0.03


@dataclass(frozen=True)
class Line:
    """What one query was measured to be; of a query without privacy there are times alone."""

    commit: str
    query: str
    times: str
    """How many times as long as the plain query on the same rows and threads."""
    keys: str | int = ""
    """How many keys one run released."""
    deviation: str = ""
    """The standard deviation of the noise on its first measure."""


def this_commit() -> str:
    """Name the commit that is measured; a plus stands for changes that are not committed."""
    found = subprocess.run(["git", "describe", "--always", "--exclude=*", "--dirty=+"], capture_output=True, text=True)  # noqa: S607, PLW1510
    return found.stdout.strip() or "unknown"


def read(path: Path = RECORD) -> list[Line]:
    """Read all lines, the oldest first."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Line(**row) for row in csv.DictReader(file)]


def add(lines: Sequence[Line], path: Path = RECORD) -> list[str]:
    """Record a commit's lines, in place of those that it had before; says what moved since the commit before it."""
    commit = lines[0].commit
    others = [line for line in read(path) if line.commit != commit]
    last = [line for line in others if line.commit == others[-1].commit]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, (*others, *lines)))
    return moved({line.query: line for line in last}, {line.query: line for line in lines})


def moved(before: Mapping[str, Line], now: Mapping[str, Line]) -> list[str]:
    """Say of each query that both have what is no longer what it was."""
    found = []
    for query in before.keys() & now.keys():
        old, new = before[query], now[query]
        changes = [
            f"{what} {was} -> {is_now}"
            for what, was, is_now, slack in (
                ("times", old.times, new.times, _TIMES),
                ("keys", old.keys, new.keys, _KEYS),
                ("deviation", old.deviation, new.deviation, 0.0),
            )
            if _differ(was, is_now, slack)
        ]
        if changes:
            found.append(f"{query}: {', '.join(changes)} (since {old.commit})")
    return sorted(found)


def _differ(before: str | int, now: str | int, slack: float) -> bool:
    if "" in (before, now):
        return before != now
    return abs(float(now) - float(before)) > slack * abs(float(before))
