"""Users in parts, for a pass over more rows than memory holds: each part is read by itself, and all rows of a user are in one of them.

Apart from `duckdb_pass.py` because it knows nothing of what a pass does: rows are divided here, and what came of the parts is put together.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from plume.plan.dialect import identifier
from plume.plan.nodes import USER
from plume.plan.printing.duckdb import DUCKDB

# Parts are heaps of users that follow each other.
_HEAPS = 256
_HEAP = f"hash({identifier(USER, DUCKDB)}) % {_HEAPS}"
# Sums are 64 bits wide.
_LARGEST = 2**63 - 1


class PutsTogether(Protocol):
    """What of a session is needed here."""

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Answer a statement."""

    def keep(self, name: str, select: str) -> None:
        """Compute a step once."""

    def define(self, name: str, select: str) -> None:
        """Make a step a view."""


def divided(session: PutsTogether, rows: str, most: int) -> list[str] | None:
    """Divide the users of some rows into parts of at most `most` rows; gives a condition for each, or None if a heap has more.

    Whoever chooses ids may put many users into one heap: then SQL makes the steps, as it does for one user with that many rows.
    """
    counted = session.ask(f"SELECT {_HEAP} AS heap, count(*) FROM {identifier(rows, DUCKDB)} GROUP BY heap")
    sizes = [0] * _HEAPS
    for heap, size in counted:
        sizes[heap] = size
    if max(sizes) > most:
        return None
    firsts, size = [0], 0
    for heap, more in enumerate(sizes):
        size += more
        if size > most:
            firsts.append(heap)
            size = more
    ends = [*firsts[1:], _HEAPS]
    return [f"{_HEAP} BETWEEN {first} AND {end - 1}" for first, end in zip(firsts, ends, strict=True)]


def largest_of(keyed: pa.Table, keys: Sequence[str]) -> list[int]:
    """Say how large the sums of a part are, whatever their sign."""
    columns = [keyed[name] for name in keyed.column_names if name not in keys]
    return [max(map(abs, (pc.min(one).as_py() or 0, pc.max(one).as_py() or 0))) for one in columns]


def add_up(session: PutsTogether, name: str, parts: Sequence[str], keys: Sequence[str], sums: Sequence[str]) -> None:
    """Make a step of the sums by key in parts, which were found to fit 64 bits."""
    if len(parts) == 1:
        append(session, name, parts)
        return
    listed = ", ".join(identifier(key, DUCKDB) for key in keys)
    added = ", ".join(f"CAST(sum({one}) AS BIGINT) AS {one}" for one in (identifier(one, DUCKDB) for one in sums))
    session.keep(name, f"SELECT {listed}, {added} FROM ({_all_of(parts)}) GROUP BY {listed}")


def append(session: PutsTogether, name: str, parts: Sequence[str]) -> None:
    """Make a step of the rows of parts."""
    session.define(name, _all_of(parts))


def fit(largest: Sequence[Sequence[int]]) -> bool:
    """Return whether sums of parts add up to no more than 64 bits hold."""
    return all(sum(of_parts) <= _LARGEST for of_parts in zip(*largest, strict=True))


def _all_of(parts: Sequence[str]) -> str:
    return " UNION ALL ".join(f"SELECT * FROM {identifier(part, DUCKDB)}" for part in parts)
