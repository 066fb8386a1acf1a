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
# An integer of Python or of numpy, which are the same once they are compiled.
Whole = Any

# Of a digest and of a block that is taken into it.
WORDS = 4 + 16
# A number in decimal is up to 20 characters, with its length and a colon before it; and a text ends with up to two blocks.
LONGEST = 128
_NONE, _TEN, _BYTE = np.uint64(0), np.uint64(10), np.uint64(255)
COLON = 58
_MINUS, _ZERO, _END_OF_TEXT = 45, 48, 128
_BLOCK, _LENGTH = 64, 8
_DIGEST = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES = np.array([int(abs(math.sin(turn + 1)) * 2**32) for turn in range(64)], np.uint32)


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
def _turn(mixed: np.uint32, add: np.uint32, by: Whole, plus: np.uint32) -> np.uint32:
    total = np.uint32(mixed + add)
    return np.uint32(plus + np.uint32((total << np.uint32(by)) | (total >> np.uint32(32 - by))))


@compiled
def _digest_block(text: Bytes, at: Whole, digest: Words) -> None:
    """Take 64 bytes into a digest, in the first four words: MD5 as RFC 1321 has it. The others have room for the bytes as words."""
    words = digest[4:]
    for word in range(16):
        place = at + 4 * word
        words[word] = (
            np.uint32(text[place])
            | np.uint32(text[place + 1]) << np.uint32(8)
            | np.uint32(text[place + 2]) << np.uint32(16)
            | np.uint32(text[place + 3]) << np.uint32(24)
        )
    a, b, c, d = digest[0], digest[1], digest[2], digest[3]
    for i in range(0, 16, 4):
        a = _turn(np.uint32(a + (d ^ (b & (c ^ d)))), np.uint32(words[i] + _SINES[i]), 7, b)
        d = _turn(np.uint32(d + (c ^ (a & (b ^ c)))), np.uint32(words[i + 1] + _SINES[i + 1]), 12, a)
        c = _turn(np.uint32(c + (b ^ (d & (a ^ b)))), np.uint32(words[i + 2] + _SINES[i + 2]), 17, d)
        b = _turn(np.uint32(b + (a ^ (c & (d ^ a)))), np.uint32(words[i + 3] + _SINES[i + 3]), 22, c)
    for i in range(16, 32, 4):
        a = _turn(np.uint32(a + (c ^ (d & (b ^ c)))), np.uint32(words[(5 * i + 1) & 15] + _SINES[i]), 5, b)
        d = _turn(np.uint32(d + (b ^ (c & (a ^ b)))), np.uint32(words[(5 * i + 6) & 15] + _SINES[i + 1]), 9, a)
        c = _turn(np.uint32(c + (a ^ (b & (d ^ a)))), np.uint32(words[(5 * i + 11) & 15] + _SINES[i + 2]), 14, d)
        b = _turn(np.uint32(b + (d ^ (a & (c ^ d)))), np.uint32(words[(5 * i) & 15] + _SINES[i + 3]), 20, c)
    for i in range(32, 48, 4):
        a = _turn(np.uint32(a + (b ^ c ^ d)), np.uint32(words[(3 * i + 5) & 15] + _SINES[i]), 4, b)
        d = _turn(np.uint32(d + (a ^ b ^ c)), np.uint32(words[(3 * i + 8) & 15] + _SINES[i + 1]), 11, a)
        c = _turn(np.uint32(c + (d ^ a ^ b)), np.uint32(words[(3 * i + 11) & 15] + _SINES[i + 2]), 16, d)
        b = _turn(np.uint32(b + (c ^ d ^ a)), np.uint32(words[(3 * i + 14) & 15] + _SINES[i + 3]), 23, c)
    for i in range(48, 64, 4):
        a = _turn(np.uint32(a + (c ^ (b | ~d))), np.uint32(words[(7 * i) & 15] + _SINES[i]), 6, b)
        d = _turn(np.uint32(d + (b ^ (a | ~c))), np.uint32(words[(7 * i + 7) & 15] + _SINES[i + 1]), 10, a)
        c = _turn(np.uint32(c + (a ^ (d | ~b))), np.uint32(words[(7 * i + 14) & 15] + _SINES[i + 2]), 15, d)
        b = _turn(np.uint32(b + (d ^ (c | ~a))), np.uint32(words[(7 * i + 21) & 15] + _SINES[i + 3]), 21, c)
    digest[0] += a
    digest[1] += b
    digest[2] += c
    digest[3] += d


@compiled
def order_of(text: Bytes, length: Whole, digest: Words) -> Whole:
    """Give the first 48 bits of the MD5 digest of a text as a number, as the SQL of a secret order does; `text` has room for its end."""
    blocks = (length + _LENGTH) // _BLOCK + 1
    for place in range(length, blocks * _BLOCK):
        text[place] = 0
    text[length] = _END_OF_TEXT
    for place in range(_LENGTH):
        text[blocks * _BLOCK - _LENGTH + place] = (np.uint64(8 * length) >> np.uint64(8 * place)) & _BYTE
    digest[0], digest[1], digest[2], digest[3] = _DIGEST
    for block in range(blocks):
        _digest_block(text, block * _BLOCK, digest)
    order = _NONE
    for place in range(6):
        byte = (np.uint64(digest[place // 4]) >> np.uint64(8 * (place % 4))) & _BYTE
        order = (order << np.uint64(8)) | byte
    return np.int64(order)
