"""The secret order of a user's keys, compiled: the number that SQL makes of the MD5 digest of a text, and numbers as texts.

Apart from `user_loops.py` because it knows nothing of users: a text comes in, a number goes out.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plume.engines.compiled import compiled

Words = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
# An integer of Python or of numpy, which are the same once they are compiled.
Whole = Any

# This many texts are digested side by side, by instructions that work on several at once, and fewer if they are too long for a cache:
# people write texts of any length.
TEXTS, _BYTES_OF_TEXTS = 128, 2**18
# A number in decimal is up to 20 characters, with its length and a colon before it; and a text ends with up to two blocks.
LONGEST = 128
_NONE, _TEN = np.uint64(0), np.uint64(10)
COLON = 58
_MINUS, _ZERO, _END_OF_TEXT, _BYTE = 45, 48, 128, 255
_BLOCK, _LENGTH = 64, 8
# MD5 as RFC 1321 has it: 64 turns in four rounds, each with its number and its four rotations.
_DIGEST = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES = np.array([int(abs(math.sin(turn + 1)) * 2**32) for turn in range(64)], np.uint32)
_ROTATIONS = np.array([7, 12, 17, 22] * 4 + [5, 9, 14, 20] * 4 + [4, 11, 16, 23] * 4 + [6, 10, 15, 21] * 4, np.uint32)
_ROUND = 16


@compiled
def write(number: Whole, text: Bytes, at: Whole) -> Whole:
    """Write a number in decimal; gives where it ends."""
    left = np.uint64(number)
    if number < 0:
        text[at] = _MINUS
        at += 1
        left = _NONE - left
    end = at + 1
    rest = left // _TEN
    while rest:
        end += 1
        rest //= _TEN
    for place in range(end - 1, at - 1, -1):
        text[place] = _ZERO + left % _TEN
        left //= _TEN
    return end


@compiled
def room_for_texts(length: Whole) -> Bytes:
    """Make room for texts of up to some length that are digested side by side: for one at least, in whole blocks with its end."""
    width = ((length + _LENGTH) // _BLOCK + 1) * _BLOCK
    return np.zeros((max(1, min(TEXTS, _BYTES_OF_TEXTS // width)), width), np.uint8)


@compiled
def orders_of(texts: Bytes, lengths: Integers, orders: Integers) -> None:
    """Give the first 48 bits of the MD5 digest of each text as a number, as the SQL of a secret order does.

    Each text is a row, as long as `lengths` says, and has room for its end. There are up to `TEXTS`.
    """
    rows = len(lengths)
    blocks, digests = np.empty(rows, np.int64), np.empty((4, rows), np.uint32)
    words, mixed, read = np.empty((_ROUND, rows), np.uint32), np.empty((4, rows), np.uint32), texts.view(np.uint32)
    for row in range(rows):
        blocks[row] = _end(texts[row], lengths[row])
    for part in range(4):
        digests[part] = np.uint32(_DIGEST[part])
    for block in range(np.max(blocks)):
        for row in range(rows):
            for word in range(_ROUND):
                words[word, row] = read[row, block * _ROUND + word]
        mixed[:] = digests
        _mix(words, mixed)
        _add_mixed(digests, mixed, block, blocks)
    for row in range(rows):
        first, second = np.uint64(_swapped(digests[0, row])), np.uint64(_swapped(digests[1, row]))
        orders[row] = np.int64((first << np.uint64(16)) | (second >> np.uint64(16)))


@compiled
def _add_mixed(digests: Words, mixed: Words, block: Whole, blocks: Integers) -> None:
    """Add what a block made of the digest of each text that has this block."""
    for part in range(4):
        for row in range(len(blocks)):
            digests[part, row] += mixed[part, row] * np.uint32(block < blocks[row])


@compiled
def _end(text: Bytes, length: Whole) -> Whole:
    """Write what a text ends with for a digest; gives how many blocks it has."""
    blocks = (length + _LENGTH) // _BLOCK + 1
    text[length : blocks * _BLOCK] = 0
    text[length] = _END_OF_TEXT
    for place in range(_LENGTH):
        text[blocks * _BLOCK - _LENGTH + place] = ((8 * length) >> (8 * place)) & _BYTE
    return blocks


@compiled
def _swapped(word: np.uint32) -> np.uint32:
    """Read the bytes of a word the other way round."""
    halves = (word << np.uint32(16)) | (word >> np.uint32(16))
    odd = np.uint32(0x00FF00FF)
    return np.uint32(((halves & odd) << np.uint32(8)) | ((halves >> np.uint32(8)) & odd))


@compiled
def _mix(words: Words, mixed: Words) -> None:
    """Take 64 bytes of each text into what its digest is made of."""
    a, b, c, d = mixed[0], mixed[1], mixed[2], mixed[3]
    for turn in range(_ROUND):
        _choose(a, b, (b, c, d), words[turn], turn)
        a, b, c, d = d, a, b, c
    for turn in range(_ROUND, 2 * _ROUND):
        _choose(a, b, (d, b, c), words[(5 * turn + 1) % _ROUND], turn)
        a, b, c, d = d, a, b, c
    for turn in range(2 * _ROUND, 3 * _ROUND):
        _add(a, b, (c, d), words[(3 * turn + 5) % _ROUND], turn)
        a, b, c, d = d, a, b, c
    for turn in range(3 * _ROUND, 4 * _ROUND):
        _mask(a, b, (c, d), words[7 * turn % _ROUND], turn)
        a, b, c, d = d, a, b, c


@compiled
def _rotated(total: Whole, by: Whole) -> np.uint32:
    return np.uint32((total << by) | (total >> (np.uint32(32) - by)))


@compiled
def _choose(a: Words, b: Words, of: tuple[Words, Words, Words], words: Words, turn: Whole) -> None:
    """Make a turn of the first two rounds, in which bits of one word choose between those of two others."""
    bits, these, those = of
    sine, by = _SINES[turn], _ROTATIONS[turn]
    for row in range(len(a)):
        chosen = those[row] ^ (bits[row] & (these[row] ^ those[row]))
        a[row] = b[row] + _rotated(np.uint32(a[row] + chosen + words[row] + sine), by)


@compiled
def _add(a: Words, b: Words, of: tuple[Words, Words], words: Words, turn: Whole) -> None:
    """Make a turn of the third round, in which bits are added."""
    c, d = of
    sine, by = _SINES[turn], _ROTATIONS[turn]
    for row in range(len(a)):
        a[row] = b[row] + _rotated(np.uint32(a[row] + (b[row] ^ c[row] ^ d[row]) + words[row] + sine), by)


@compiled
def _mask(a: Words, b: Words, of: tuple[Words, Words], words: Words, turn: Whole) -> None:
    """Make a turn of the fourth round."""
    c, d = of
    sine, by = _SINES[turn], _ROTATIONS[turn]
    for row in range(len(a)):
        a[row] = b[row] + _rotated(np.uint32(a[row] + (c[row] ^ (b[row] | ~d[row])) + words[row] + sine), by)
