"""The loops over packed rows before it is known whose they are, compiled: pack, partition by user, sort.

A row is one integer of 64 bits, the user above the key. Apart from `user_loops.py`, which begins where the rows of each user lie together.
"""

from typing import NamedTuple

import numpy as np

from plume.engines.compiled import compiled
from plume.engines.order_loops import Whole
from plume.engines.payload_loops import Integers, Packed
from plume.engines.text_loops import Texts

# Odd, so that multiplying by it is one-to-one modulo every power of two: neighbouring users fall into different partitions.
MIX = np.uint64(0x9E3779B97F4A7C15)
UNMIX = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
_NONE, _ONE = np.uint64(0), np.uint64(1)
# Rows are moved in pieces that fit a cache, and sorted by as many bits at a time.
_PIECE = 2**17
_DIGIT = 11
DIGITS = 2**_DIGIT
_LAST_DIGIT = np.uint64(DIGITS - 1)


class Layout(NamedTuple):
    """Where users and keys are in a packed row, and how many bits of a mixed user say which partition it is in."""

    key_bits: np.uint64
    user_mask: np.uint64
    part_shift: np.uint64
    """How many bits of a user are left within a partition."""
    user_low: np.uint64
    shifts: Packed
    masks: Packed
    lows: Packed
    texts: Texts
    """What numbers of users and keys stand for, if they are numbers of texts."""


@compiled
def pack(column: Integers, low: np.uint64, shift: np.uint64, packed: Packed) -> None:
    """Put the values of a column into their place."""
    for row in range(len(column)):
        packed[row] |= (np.uint64(column[row]) - low) << shift


@compiled
def _part(row: np.uint64, layout: Layout) -> np.uint64:
    return (((row >> layout.key_bits) * MIX) & layout.user_mask) >> layout.part_shift


@compiled
def count_parts(packed: Packed, layout: Layout, counts: Integers) -> None:
    """Count the rows of each partition."""
    for row in packed:
        counts[_part(row, layout)] += 1


@compiled
def move(packed: Packed, layout: Layout, places: Integers, moved: Packed) -> None:
    """Move rows to their partitions, in which they have the rest of their user above their key."""
    parts = len(places)
    counts, starts = np.empty(parts, np.int64), np.empty(parts, np.int64)
    buffer = np.empty(min(_PIECE, len(packed)), np.uint64)
    rest, key = (_ONE << layout.part_shift) - _ONE, (_ONE << layout.key_bits) - _ONE
    for first in range(0, len(packed), _PIECE):
        piece = packed[first : first + _PIECE]
        counts[:] = 0
        count_parts(piece, layout, counts)
        start = 0
        for part in range(parts):
            starts[part] = start
            start += counts[part]
        for row in piece:
            into = _part(row, layout)
            user = ((row >> layout.key_bits) * MIX) & rest
            buffer[starts[into]] = (user << layout.key_bits) | (row & key)
            starts[into] += 1
        for part in range(parts):
            end, place = starts[part], places[part]
            for row in range(end - counts[part], end):
                moved[place] = buffer[row]
                place += 1
            places[part] = place


@compiled
def move_payload(packed: Packed, carried: Packed, layout: Layout, places: Integers, moved: Packed) -> None:
    """Move what rows carry to the places that the rows are moved to."""
    for row in range(len(packed)):
        into = _part(packed[row], layout)
        for word in range(carried.shape[1]):
            moved[places[into], word] = carried[row, word]
        places[into] += 1


@compiled
def in_order(rows: Packed, other: Packed, first: np.uint64, bits: Whole, counts: Integers) -> Packed:
    """Sort rows by the digits of some bits from the first one on; gives the array that has them."""
    shift = first
    for _ in range(0, bits, _DIGIT):
        counts[:] = 0
        for row in rows:
            counts[(row >> shift) & _LAST_DIGIT] += 1
        if counts[(rows[0] >> shift) & _LAST_DIGIT] < len(rows):
            start = 0
            for digit in range(DIGITS):
                count = counts[digit]
                counts[digit] = start
                start += count
            for row in rows:
                digit = (row >> shift) & _LAST_DIGIT
                other[counts[digit]] = row
                counts[digit] += 1
            rows, other = other, rows
        shift += np.uint64(_DIGIT)
    return rows
