"""Users and keys that are texts, as numbers for a pass: each different text gets one, in the order in which threads come upon them.

The loops are in `text_loops.py`; here threads take rows as they come and share shelves of texts, and numbers turn into texts again.
Which text has which number says nothing and is never shown: a pass tells users and keys apart by it, and orders them by their texts.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from threading import Lock

import numpy as np
import pyarrow as pa

from plume.engines import row_loops
from plume.engines import text_loops as loops
from plume.engines.crew import Crew, Room
from plume.engines.packed_rows import BITS, PackedRows, Range, fit, range_of, shifts_of
from plume.engines.text_loops import Column, Integers, Packed, Shelf, Texts

# Threads seldom wait for each other where there are several times as many shelves.
_SHELVES_PER_THREAD = 4
_FIRST_SLOTS, _FIRST_WORDS = 2**6, 2**8
# What is at the place at which no text is.
_NO_LENGTH = 2**64 - 1


def numbered(
    batches: Iterator[pa.RecordBatch], are_texts: Sequence[bool], salt: str, threads: int, room: int
) -> PackedRows | None:
    """Number the texts of rows in their first columns, and pack them.

    None, if some are missing, if all different ones take more bytes than `room`, or if numbers do not fit 64 bits.
    """
    bits = (_SHELVES_PER_THREAD * threads - 1).bit_length()
    columns = [_Shelves(salt, place, bits) if is_text else None for place, is_text in enumerate(are_texts)]
    taken, left = _Taken(batches), Room(room)
    with Crew(threads) as crew:
        found = crew.each([partial(_take, taken, turn, columns, left) for turn in range(threads)])
        numbers = [batch for several in found for batch in several]
        ranges = _ranges(numbers, len(columns), crew)
        if not left.is_enough or not fit(ranges):
            return None
        crew.each(partial(_pack, numbers, place, ranges) for place in range(len(numbers)))
    return PackedRows(numbers, ranges, _texts(columns))


def no_texts(columns: int) -> Texts:
    """Say of columns that each has numbers of its own."""
    return _texts([None] * columns)


def as_texts(numbers: Integers, texts: Texts, column: int) -> pa.Array:
    """Give the texts that numbers of a column stand for, or the numbers, if they stand for themselves."""
    first = texts.firsts[column]
    if first < 0:
        return pa.array(numbers)
    ends = np.zeros(len(numbers) + 1, np.int64)
    loops.list_lengths(numbers, first, texts, ends)
    text = np.empty(ends[-1], np.uint8)
    loops.list_texts(numbers, first, texts, ends, text)
    return pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(text))


class _Taken:
    """Batches that several threads take, each of them once."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._lock = batches, Lock()

    def next(self) -> pa.RecordBatch | None:
        with self._lock:
            return next(self._batches, None)


class _Shelves:
    """The texts of one column, on shelves at which one thread works at a time."""

    def __init__(self, salt: str, column: int, bits: int) -> None:
        secret = hashlib.sha256(f"numbers of texts, {column}, {salt}".encode()).digest()
        self._secret = np.frombuffer(secret[:16], np.uint64)
        self.bits, self.shelves = bits, [_empty_shelf() for _ in range(2**bits)]
        self._locks = [Lock() for _ in self.shelves]

    def numbers(self, column: pa.Array, turn: int, left: Room) -> Integers:
        """Give each text its number. Threads begin at different shelves, by whose turn it is."""
        texts, number = _column(column), len(self.shelves)
        loops.hash_texts(texts, *self._secret)
        ends, rows = np.zeros(number, np.int64), np.empty(len(column), np.int32)
        loops.sort_by_shelf(texts.hashes, self.bits, ends, rows)
        numbers = np.empty(len(column), np.int64)
        for shelf in range(number):
            at = (shelf + turn * _SHELVES_PER_THREAD) % number
            own = rows[ends[at - 1] if at else 0 : ends[at]]
            with self._locks[at]:
                before = self.shelves[at]
                after = loops.number_texts(before, texts, own, numbers, np.array([self.bits, at]))
                self.shelves[at] = after
            left.take(_size(after) - _size(before))
        return numbers


def _empty_shelf() -> Shelf:
    slots: Packed = np.zeros((_FIRST_SLOTS, 2), np.uint64)
    store: Packed = np.empty(_FIRST_WORDS, np.uint64)
    store[0] = _NO_LENGTH
    return Shelf(slots, store, np.array([0, 1]))


def _size(shelf: Shelf) -> int:
    """Say how many bytes a shelf takes; its texts are put together with those of others before it is let go."""
    return shelf.slots.nbytes + 2 * shelf.store.nbytes


def _column(column: pa.Array) -> Column:
    """Look at a column of texts as the loops do."""
    _, starts, data = column.buffers()
    begin = column.offset
    return Column(
        np.frombuffer(starts, np.int32)[begin : begin + len(column) + 1],
        np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8),
        np.empty(len(column), np.uint64),
    )


def _take(batches: _Taken, turn: int, columns: Sequence[_Shelves | None], left: Room) -> list[pa.RecordBatch]:
    """Number what comes until nothing does."""
    found: list[pa.RecordBatch] = []
    while left.is_enough and (batch := batches.next()) is not None:
        if any(column.null_count for column in batch.columns[: len(columns)]):
            left.refuse()
        elif len(batch):
            arrays = [
                column if shelves is None else pa.array(shelves.numbers(column, turn, left))
                for column, shelves in zip_longest(batch.columns, columns)
            ]
            found.append(pa.RecordBatch.from_arrays(arrays, names=batch.schema.names))
    return found


def _ranges(batches: Sequence[pa.RecordBatch], columns: int, crew: Crew) -> list[Range]:
    """Find the range of each column: of the very values that are packed, so that none lies outside."""
    ends = crew.each(partial(_ends, batch.columns[:columns]) for batch in batches)
    if not ends:
        return [range_of(0, 0)] * columns
    lows, highs = np.array(ends).transpose(1, 2, 0)
    return [range_of(int(low.min()), int(high.max())) for low, high in zip(lows, highs, strict=True)]


def _ends(columns: Sequence[pa.Array]) -> tuple[list[np.int64], list[np.int64]]:
    values = list(map(_values, columns))
    return [column.min() for column in values], [column.max() for column in values]


def _values(column: pa.Array) -> Integers:
    found: Integers = column.to_numpy(zero_copy_only=True)
    return found


def _pack(batches: list[pa.RecordBatch], place: int, ranges: Sequence[Range]) -> None:
    """Pack the users and keys of a batch, beside which what rows carry stays as it is."""
    columns, names = batches[place].columns, batches[place].schema.names
    packed = np.zeros(len(batches[place]), np.uint64)
    for column, one, shift in zip(columns, ranges, shifts_of(ranges), strict=False):
        row_loops.pack(_values(column), np.uint64(one.low % 2**BITS), np.uint64(shift), packed)
    carried = len(ranges)
    batches[place] = pa.RecordBatch.from_arrays(
        [pa.array(packed), *columns[carried:]], names=["packed", *names[carried:]]
    )


def _texts(columns: Sequence[_Shelves | None]) -> Texts:
    """Put the texts of all columns one after the other."""
    listed = [[] if column is None else column.shelves for column in columns]
    room = [len(shelves) * max((int(shelf.used[0]) for shelf in shelves), default=0) for shelves in listed]
    store = np.empty(sum(int(shelf.used[1]) for shelves in listed for shelf in shelves), np.uint64)
    places, begin = np.zeros(sum(room), np.int64), 0
    firsts = [sum(room[:place]) if shelves else -1 for place, shelves in enumerate(listed)]
    longest = np.zeros(len(columns), np.int64)
    for number, shelves in enumerate(listed):
        for place, (_, own, used) in enumerate(shelves):
            shape = np.array([(len(shelves) - 1).bit_length(), place])
            found = loops.list_places(own, used, begin, places[firsts[number] :], shape)
            longest[number] = max(longest[number], found)
            store[begin : begin + used[1]] = own[: used[1]]
            begin += int(used[1])
    return Texts(store, places, np.array(firsts), longest)
