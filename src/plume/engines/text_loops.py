"""Texts as numbers, compiled: each different text gets a number of its own, found by a keyed hash and by comparing every byte.

People choose their ids and what they write, so the hash is SipHash-1-3 with a key that is drawn for each run: nobody can make texts that
land in one place. It only says where to look. Whether two texts are equal is said by their bytes, so no two get one number.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plume.engines.compiled import compiled
from plume.engines.order_loops import COLON, Bytes, Whole, write

Packed = NDArray[np.uint64]
Integers = NDArray[np.int64]
Starts = NDArray[np.int32]

_NONE, _ONE, _EIGHT, _WORD, _LAST_BYTE = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(64), np.uint64(255)
_HALF, _PLACE = np.uint64(32), np.uint64(2**32 - 1)
_KIND, _CONTINUES = np.uint8(0xC0), np.uint8(0x80)
_LENGTH_SHIFT = np.uint64(56)
_BYTES = 8
# The four words that SipHash begins with, and the one that ends it.
_INITIAL = tuple(map(np.uint64, (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)))
_FINAL = np.uint64(0xFF)


class Shelf(NamedTuple):
    """Texts that are numbered, those whose hashes begin alike: a table to find them in, and the texts one after the other.

    A text is stored as its length in bytes and its bytes in whole words. The table has the hash of each, and its number above the place
    that it is at, which is not 0.
    """

    slots: Packed
    store: Packed
    used: Integers
    """How many texts there are, and where the next one goes."""


class Column(NamedTuple):
    """The texts of some rows as Arrow has them, and their hashes."""

    starts: Starts
    data: Bytes
    hashes: Packed


class Texts(NamedTuple):
    """All texts by their numbers: those of several columns one after the other."""

    store: Packed
    places: Integers
    firsts: Integers
    """Where the places of each column begin; -1 for a column that has numbers of its own."""
    longest: Integers
    """The bytes of the longest text of each column."""


@compiled
def _word(data: Bytes, at: np.uint64) -> np.uint64:
    word = np.uint64(data[at])
    word |= np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
    return word | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)


@compiled
def _turned(word: np.uint64, by: Whole) -> np.uint64:
    return (word << np.uint64(by)) | (word >> (_WORD - np.uint64(by)))


@compiled
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a, c = a + b, c + d
    b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
    a, c = _turned(a, 32) + d, c + b
    b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
    return a, b, _turned(c, 32), d


@compiled
def _take_in(
    word: np.uint64, a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a, b, c, d = _round(a, b, c, d ^ word)
    return a ^ word, b, c, d


@compiled
def hash_texts(texts: Column, first: np.uint64, second: np.uint64) -> None:
    """Hash the text of each row by SipHash-1-3."""
    starts, data, hashes = texts
    for row in range(len(hashes)):
        at, end = np.uint64(starts[row]), np.uint64(starts[row + 1])
        word = (end - at) << _LENGTH_SHIFT
        a, b, c, d = first ^ _INITIAL[0], second ^ _INITIAL[1], first ^ _INITIAL[2], second ^ _INITIAL[3]
        whole = end - ((end - at) & np.uint64(7))
        while at < whole:
            a, b, c, d = _take_in(_word(data, at), a, b, c, d)
            at += _EIGHT
        shift = _NONE
        while at < end:
            word |= np.uint64(data[at]) << shift
            shift += _EIGHT
            at += _ONE
        a, b, c, d = _take_in(word, a, b, c, d)
        c ^= _FINAL
        for _ in range(3):
            a, b, c, d = _round(a, b, c, d)
        hashes[row] = a ^ b ^ c ^ d


@compiled
def sort_by_shelf(hashes: Packed, bits: Whole, ends: Integers, rows: Starts) -> None:
    """List rows by the shelf that their text belongs to, and say where those of each shelf end; `ends` begins as zeros."""
    shift = _WORD - np.uint64(bits)
    for one in hashes:
        ends[one >> shift] += 1
    start = np.int64(0)
    for shelf in range(len(ends)):
        count = ends[shelf]
        ends[shelf] = start
        start += count
    for row in range(len(hashes)):
        shelf = hashes[row] >> shift
        rows[ends[shelf]] = row
        ends[shelf] += 1


@compiled
def _find(slots: Packed, hashes: Packed, rows: Starts, found: Packed) -> None:
    """Find where a text is that has the hash of each row: gives its number and place, or nothing."""
    last = np.uint64(len(slots) - 1)
    for row in rows:
        slot = hashes[row] & last
        while slots[slot, 1] != _NONE and slots[slot, 0] != hashes[row]:
            slot = (slot + _ONE) & last
        found[row] = slots[slot, 1]


@compiled
def _list_others(store: Packed, texts: Column, rows: Starts, found: Packed, others: Starts) -> Whole:
    """List the rows whose texts differ in any byte from those that were found for them; gives how many these are."""
    # Written out: a call that arrays are given to takes as long as comparing them.
    starts, data, number = texts.starts, texts.data, 0
    for row in rows:
        at, end, place = np.uint64(starts[row]), np.uint64(starts[row + 1]), found[row] & _PLACE
        differs = store[place] ^ (end - at)
        if differs == _NONE and end - at >= _EIGHT:
            last = end - _EIGHT
            while at < last:
                place += _ONE
                differs |= store[place] ^ _word(data, at)
                at += _EIGHT
            differs |= store[place + _ONE] ^ _word(data, last)
        elif differs == _NONE:
            word = store[place + _ONE]
            while at < end:
                differs |= (word & _LAST_BYTE) ^ np.uint64(data[at])
                word >>= _EIGHT
                at += _ONE
        others[number] = row
        number += differs != _NONE
    return number


@compiled
def _words(length: Whole) -> Whole:
    """Say how many words a text takes with its length."""
    return np.int64(1) + max(np.int64(1), (np.int64(length) + np.int64(7)) // np.int64(8))


@compiled
def _with_room(shelf: Shelf, starts: Starts, rows: Starts) -> Shelf:
    """Give a shelf with room for the texts of rows, should all of them be new."""
    slots, store, used = shelf
    end = used[1]
    for row in rows:
        end += _words(starts[row + 1] - starts[row])
    if end > len(store):
        longer = np.empty(2 * end, np.uint64)
        longer[: used[1]] = store[: used[1]]
        store = longer
    size = len(slots)
    while size < 2 * (used[0] + len(rows)):
        size *= 2
    if size > len(slots):
        slots, last = np.zeros((size, 2), np.uint64), np.uint64(size - 1)
        for old in range(len(shelf.slots)):
            if shelf.slots[old, 1] != _NONE:
                slot = shelf.slots[old, 0] & last
                while slots[slot, 1] != _NONE:
                    slot = (slot + _ONE) & last
                slots[slot, 0], slots[slot, 1] = shelf.slots[old, 0], shelf.slots[old, 1]
    return Shelf(slots, store, used)


@compiled
def _put(store: Packed, place: np.uint64, data: Bytes, at: np.uint64, end: np.uint64) -> None:
    """Store a text: one of at least eight bytes with the last eight in its last word, so that words alone are compared."""
    store[place] = end - at
    place += _ONE
    if end - at >= _EIGHT:
        while at + _EIGHT < end:
            store[place] = _word(data, at)
            place += _ONE
            at += _EIGHT
        store[place] = _word(data, end - _EIGHT)
    else:
        store[place] = _NONE
        for byte in range(end - at):
            store[place] |= np.uint64(data[at + byte]) << (_EIGHT * byte)


@compiled
def _add_new(shelf: Shelf, texts: Column, rows: Starts, found: Packed) -> Whole:
    """Add the texts of rows that were not found; leaves the rows that must look again in the list, and gives how many these are.

    They are those of a text that another row just added, and those of a text whose hash another text has: it takes the next one.
    """
    slots, store, used = shelf
    starts, data, hashes = texts
    last, left = np.uint64(len(slots) - 1), 0
    for row in rows:
        if found[row] != _NONE:
            hashes[row] += _ONE
        slot = hashes[row] & last
        while slots[slot, 1] != _NONE and slots[slot, 0] != hashes[row]:
            slot = (slot + _ONE) & last
        if slots[slot, 1] != _NONE or found[row] != _NONE:
            rows[left] = row
            left += 1
        else:
            place, at, end = used[1], np.uint64(starts[row]), np.uint64(starts[row + 1])
            _put(store, np.uint64(place), data, at, end)
            slots[slot, 0], slots[slot, 1] = hashes[row], (np.uint64(used[0]) << _HALF) | np.uint64(place)
            found[row] = slots[slot, 1]
            used[0] += 1
            used[1] += _words(end - at)
    return left


@compiled
def number_texts(shelf: Shelf, texts: Column, rows: Starts, numbers: Integers, shape: Integers) -> Shelf:
    """Give the texts of rows their numbers; `shape` is by how many bits they are above the number of the shelf, and that number."""
    found, others = numbers.view(np.uint64), np.empty(len(rows) + 1, np.int32)
    _find(shelf.slots, texts.hashes, rows, found)
    others = others[: _list_others(shelf.store, texts, rows, found, others)]
    while len(others):
        shelf = _with_room(shelf, texts.starts, others)
        others = others[: _add_new(shelf, texts, others, found)]
        _find(shelf.slots, texts.hashes, others, found)
        others = others[: _list_others(shelf.store, texts, others, found, others)]
    for row in rows:
        numbers[row] = (np.int64(found[row] >> _HALF) << shape[0]) | shape[1]
    return shelf


@compiled
def list_places(store: Packed, used: Integers, begin: Whole, places: Integers, shape: Integers) -> Whole:
    """Say where each text of a shelf is, if its store begins at a place; gives the bytes of the longest."""
    place, longest = np.int64(1), np.int64(0)
    for number in range(used[0]):
        places[(number << shape[0]) | shape[1]] = begin + place
        longest = max(longest, np.int64(store[place]))
        place += _words(store[place])
    return longest


@compiled
def write_text(store: Packed, place: Whole, text: Bytes, at: Whole) -> Whole:
    """Write a text; gives where it ends."""
    length = np.int64(store[place])
    end = at + length
    if length < _BYTES:
        word = store[place + 1]
        for byte in range(length):
            text[at + byte] = (word >> np.uint64(8 * byte)) & _LAST_BYTE
        return end
    while at < end:
        place += 1
        word, begin = store[place], min(at, end - _BYTES)
        for byte in range(_BYTES):
            text[begin + byte] = (word >> np.uint64(8 * byte)) & _LAST_BYTE
        at += _BYTES
    return end


@compiled
def _characters(text: Bytes, begin: Whole, end: Whole) -> Whole:
    """Count the characters of a text, as SQL does: every byte but those that continue a character."""
    found = np.int64(0)
    for place in range(begin, end):
        found += (text[place] & _KIND) != _CONTINUES
    return found


@compiled
def write_values(numbers: Integers, column: Whole, texts: Texts, written: Bytes, ends: Integers) -> None:
    """Write what numbers of a column stand for, each where the text in its row ends so far."""
    # Taken out of their tuple here, since what a loop takes out of one is counted by numba each time.
    first, store, places = texts.firsts[column], texts.store, texts.places
    if first < 0:
        for row in range(len(numbers)):
            ends[row] = write(numbers[row], written[row], ends[row])
        return
    for row in range(len(numbers)):
        ends[row] = write_text(store, places[first + numbers[row]], written[row], ends[row])


@compiled
def write_measured(numbers: Integers, column: Whole, texts: Texts, written: Bytes, ends: Integers) -> None:
    """Write how long what each number stands for is, a colon, and that."""
    begins = ends.copy()
    write_values(numbers, column, texts, written, ends)
    for row in range(len(numbers)):
        end = write(_characters(written[row], begins[row], ends[row]), written[row], begins[row])
        written[row, end] = COLON
        ends[row] = end + 1
    write_values(numbers, column, texts, written, ends)


@compiled
def list_lengths(numbers: Integers, first: Whole, texts: Texts, ends: Integers) -> None:
    """Say where each text ends, if they are written one after the other; the first end is that of nothing."""
    for row in range(len(numbers)):
        ends[row + 1] = ends[row] + np.int64(texts.store[texts.places[first + numbers[row]]])


@compiled
def list_texts(numbers: Integers, first: Whole, texts: Texts, ends: Integers, text: Bytes) -> None:
    """Write texts one after the other."""
    store, places = texts.store, texts.places
    for row in range(len(numbers)):
        write_text(store, places[first + numbers[row]], text, ends[row])
