"""The loops over what rows carry beside user and key, compiled: integers of measures, packed into words, and what counts of their totals.

Apart from `user_loops.py`, which says whose rows these are: here each row, and each key of a user, is looked at by itself.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plume.engines.compiled import compiled
from plume.engines.order_loops import Whole

Packed = NDArray[np.uint64]
Integers = NDArray[np.int64]


class Payload(NamedTuple):
    """What rows carry: for each the words that its fields are packed into, and where each field is."""

    rows: Packed
    """A line of words for each row, in partitions as the rows are."""
    words: Integers
    shifts: Packed
    masks: Packed
    lows: Integers
    """What all values of a field are counted from."""
    place_bits: np.uint64
    """How many bits tell the rows of a partition apart; none, if rows carry nothing."""


class Counts(NamedTuple):
    """What counts of the totals of a user and key: numbers between bounds, each by the number of the total that it is made of."""

    of: Integers
    """Which total; below 0, where being there is all that counts."""
    values: Integers
    """The total that says of how many values it is, if it is weighted down to `limits` of them; else below 0."""
    limits: Integers
    present: Integers
    """The total that says in how many rows there was a value, if there may be none; else below 0."""
    lows: Integers
    highs: Integers


@compiled
def pack_field(column: Integers, low: Whole, word: Whole, shift: np.uint64, rows: Packed) -> None:
    """Put the values of a field into their place."""
    for row in range(len(column)):
        rows[row, word] |= (np.uint64(column[row]) - np.uint64(low)) << shift


@compiled
def number(rows: Packed, place_bits: np.uint64) -> None:
    """Put the place of each row in its partition below the row."""
    for row in range(len(rows)):
        rows[row] = (rows[row] << place_bits) | np.uint64(row)


@compiled
def take(payload: Payload, first: Whole, places: Integers, words: Packed) -> None:
    """Take the words of the rows of a partition, which begins at `first`, in the order in which these rows are now."""
    carried = payload.rows
    for word in range(carried.shape[1]):
        for row in range(len(places)):
            words[word, row] = carried[first + places[row], word]


@compiled
def add_fields(payload: Payload, words: Packed, ends: Integers, totals: Integers) -> None:
    """Count the rows of each key, which end where `ends` says, and add up their fields."""
    start = np.int64(0)
    for key in range(len(ends)):
        totals[0, key] = ends[key] - start
        start = ends[key]
    for field in range(len(payload.words)):
        of, total, low = words[payload.words[field]], totals[1 + field], payload.lows[field]
        shift, mask, start = payload.shifts[field], payload.masks[field], np.int64(0)
        for key in range(len(ends)):
            end = ends[key]
            added = (of[start] >> shift) & mask
            for row in range(start + 1, end):
                added += (of[row] >> shift) & mask
            total[key] = np.int64(added) + low * (end - start)
            start = end


@compiled
def _cut(total: Whole, parts: Whole) -> Whole:
    """Divide, and cut toward zero as SQL does."""
    return total // parts if total >= 0 else -(-total // parts)


@compiled
def _weigh_down(numbers: Integers, values: Integers, limit: Whole) -> None:
    """Weight totals of more values than the limit down, as if there were as many."""
    for row in range(len(numbers)):
        if values[row] > limit:
            numbers[row] = _cut(numbers[row] * limit, values[row])


@compiled
def _bound(numbers: Integers, low: Whole, high: Whole) -> None:
    for row in range(len(numbers)):
        numbers[row] = min(max(numbers[row], low), high)


@compiled
def _leave_out(numbers: Integers, present: Integers) -> None:
    """Let nothing count where there is no value."""
    for row in range(len(numbers)):
        if present[row] == 0:
            numbers[row] = 0


@compiled
def count(totals: Integers, keys: Whole, counts: Counts, counted: Integers) -> None:
    """Say what counts of each key of a partition."""
    for each in range(len(counts.of)):
        of, values, present, found = counts.of[each], counts.values[each], counts.present[each], counted[each, :keys]
        if of < 0:
            found[:] = 1
            continue
        found[:] = totals[of, :keys]
        if values >= 0:
            _weigh_down(found, totals[values, :keys], counts.limits[each])
        _bound(found, counts.lows[each], counts.highs[each])
        if present >= 0:
            _leave_out(found, totals[present, :keys])
