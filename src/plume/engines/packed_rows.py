"""Rows of users and keys, each as one integer of 64 bits: the user above the first key, which is above the others.

DuckDB packs integers, and `numbering.py` what has numbers; `passing.py` goes on from there. This module knows how, and needs no loops.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from plume.engines.text_loops import Texts

BITS = 64


@dataclass(frozen=True)
class Range:
    """The smallest value of a column, and how many bits it takes to tell all values from it."""

    low: int
    bits: int


@dataclass(frozen=True)
class PackedRows:
    """Batches of packed rows and, in their other columns, what rows carry; and what it takes to unpack them."""

    batches: list[pa.RecordBatch]
    ranges: Sequence[Range]
    """Of the user, and of each key."""
    texts: "Texts"
    """What numbers of users and keys stand for, if they are numbers of texts."""


def range_of(low: int, high: int) -> Range:
    """Give a column as many bits as tell its values; one at least, so that each column has a place."""
    return Range(low, max(1, (high - low).bit_length()))


def fit(ranges: Sequence[Range]) -> bool:
    """Return whether a user and all keys have room side by side."""
    return sum(one.bits for one in ranges) <= BITS


def shifts_of(ranges: Sequence[Range]) -> list[int]:
    """Say by how many bits each column lies above the last one."""
    return [sum(other.bits for other in ranges[place + 1 :]) for place in range(len(ranges))]
