"""The loops over packed rows, compiled: partition by user, sort, drop what is double, count, split, order, add up.

A row is one integer of 64 bits, the user above the key. The loops raise on no data, and add integers only; docs/guarantees/bounding.md
says why what comes out is what the steps of the plan say. The secret order is in `order_loops.py` beside this file.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plume.engines.compiled import compiled
from plume.engines.order_loops import LONGEST, WORDS, Bytes, Whole, order_of
from plume.engines.text_loops import Texts, write_measured, write_value

Packed = NDArray[np.uint64]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Odd, so that multiplying by it is one-to-one modulo every power of two: neighbouring users fall into different partitions.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_UNMIX = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
_NONE, _ONE = np.uint64(0), np.uint64(1)
# Rows are moved in pieces that fit a cache, and sorted by as many bits at a time.
_PIECE = 2**17
_DIGIT = 11
DIGITS = 2**_DIGIT
_LAST_DIGIT = np.uint64(DIGITS - 1)
# As account_sql.py and privacy/pooled.py have them.
_ACCOUNT, _STEPS = 2**30, 2**10
# Of users above the limit: the user, the number of records, of keys, what is left of the account, the order.
COLUMNS_BESIDE_KEYS = 5
_FIRST_ROWS = 1024
_HALF = 32


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


class Rule(NamedTuple):
    """What becomes of a user's keys."""

    limit: int
    """Users with more keys are above the limit."""
    kept: int
    """How many keys of these users count, the first ones in their secret order."""
    most_keys: int
    """Over how many keys a weight is spread at the most."""
    weights: Integers
    """The weight by number of keys, from 0 on; nothing, if weights are drawn from accounts."""
    factors: Integers
    highs: Integers
    """Each contribution: how many records count at the most, and the factor they are multiplied by."""
    rates: Floats
    mosts: Floats
    charged: Integers
    """Each charge: its rate, the most it takes, and how many records of a key count at the most."""
    salt: Bytes
    """What every text begins with that is hashed for the secret order."""


class Users(NamedTuple):
    """The users of a partition: their keys, each once, with its records; where those of each user end, and what is known of the user."""

    rows: Packed
    records: Packed
    ends: Integers
    left: Integers
    weights: Integers


class Listed(NamedTuple):
    """Rows of users above the limit, of which `found` are there; and a text that begins with the salt, for what is hashed."""

    rows: Integers
    found: Whole
    text: Bytes
    salted: Whole


class Sums(NamedTuple):
    """What was added up: a row for each key, at the place that the key itself is, or where `keys` has it."""

    keys: Packed
    sums: Integers
    used: Integers
    """How many places are taken, counted where `keys` has them only; and how often a key came first by being the smaller one."""


@compiled
def pack(column: Integers, low: np.uint64, shift: np.uint64, packed: Packed) -> None:
    """Put the values of a column into their place."""
    for row in range(len(column)):
        packed[row] |= (np.uint64(column[row]) - low) << shift


@compiled
def _part(row: np.uint64, layout: Layout) -> np.uint64:
    return (((row >> layout.key_bits) * _MIX) & layout.user_mask) >> layout.part_shift


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
            user = ((row >> layout.key_bits) * _MIX) & rest
            buffer[starts[into]] = (user << layout.key_bits) | (row & key)
            starts[into] += 1
        for part in range(parts):
            end, place = starts[part], places[part]
            for row in range(end - counts[part], end):
                moved[place] = buffer[row]
                place += 1
            places[part] = place


@compiled
def _sorted(rows: Packed, other: Packed, bits: Whole, counts: Integers) -> tuple[Packed, Packed]:
    """Sort rows by the digits of their lowest bits; gives the array that has them, and the other one."""
    shift = _NONE
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
    return rows, other


@compiled
def _gather(rows: Packed, records: Packed, ends: Integers, key_bits: np.uint64) -> Whole:
    """Leave each key of each user once, and count its records; gives the number of users. `ends` says where the keys of each user end."""
    users, end = 0, 0
    for row in range(len(rows)):
        this = rows[row]
        if end and rows[end - 1] == this:
            records[end - 1] += _ONE
            continue
        if end and rows[end - 1] >> key_bits != this >> key_bits:
            ends[users] = end
            users += 1
        rows[end] = this
        records[end] = _ONE
        end += 1
    ends[users] = end
    return users + 1


@compiled
def _weigh(users: Users, rule: Rule) -> None:
    """Say what measures leave of the account of each user, and what weight the user gives to each key."""
    rates, mosts, charged, weights = rule.rates, rule.mosts, rule.charged, rule.weights
    start = 0
    for user in range(len(users.ends)):
        end, left = users.ends[user], np.int64(_ACCOUNT)
        for charge in range(len(rates)):
            squares, high = np.int64(0), charged[charge]
            for row in range(start, end):
                counted = min(np.int64(users.records[row]), high)
                squares += counted * counted
            taken = min(np.float64(squares) * rates[charge], mosts[charge])
            left -= np.int64(min(math.floor(taken) + 2.0, mosts[charge]))
        keys = min(end - start, rule.most_keys)
        users.left[user] = left
        if len(weights):
            users.weights[user] = weights[keys]
        else:
            users.weights[user] = np.int64(math.floor(math.sqrt(np.float64(left * _STEPS // keys))))
        start = end


@compiled
def _place(key: np.uint64, keys: Packed, sums: Integers, used: Integers) -> Whole:
    """Find the place of a key, or the free one it gets; whoever asks adds a weight there, so that it is free no more."""
    last = np.uint64(len(keys) - 1)
    place = ((key * _MIX) >> np.uint64(_HALF)) & last
    while sums[place, 0] != 0 and keys[place] != key:
        place = (place + _ONE) & last
    if sums[place, 0] == 0:
        keys[place] = key
        used[0] += 1
    return place


@compiled
def _with_room(sums: Sums, more: Whole) -> Sums:
    """Give sums in which half of the places stay free when some more keys come in."""
    size = len(sums.keys)
    if not size or 2 * (sums.used[0] + more) <= size:
        return sums
    while size < 2 * (sums.used[0] + more):
        size *= 2
    wider = Sums(np.zeros(size, np.uint64), np.zeros((size, sums.sums.shape[1]), np.int64), np.zeros(2, np.int64))
    wider.used[1] = sums.used[1]
    for place in range(len(sums.keys)):
        if sums.sums[place, 0] != 0:
            wider.sums[_place(sums.keys[place], wider.keys, wider.sums, wider.used)] = sums.sums[place]
    return wider


@compiled
def _add(users: Users, layout: Layout, rule: Rule, sums: Sums) -> None:
    """Add the weights and the contributions of users within the limit to their keys."""
    # Taken out of their tuples here, since what a loop takes out of one is counted by numba each time.
    rows, records, totals, keys, used = users.rows, users.records, sums.sums, sums.keys, sums.used
    factors, highs, limit = rule.factors, rule.highs, rule.limit
    key_mask, start, is_direct = (_ONE << layout.key_bits) - _ONE, np.int64(0), len(keys) == 0
    for user in range(len(users.ends)):
        end, weight = users.ends[user], users.weights[user]
        if end - start <= limit:
            for row in range(start, end):
                key = rows[row] & key_mask
                place = key if is_direct else _place(key, keys, totals, used)
                totals[place, 0] += weight
                for number in range(len(factors)):
                    totals[place, 1 + number] += factors[number] * min(np.int64(records[row]), highs[number])
        start = end


@compiled
def _add_first(keys: Packed, orders: Integers, weight: Whole, kept: Whole, sums: Sums) -> None:
    """Add the weight of a user above the limit to the `kept` keys that come first in the secret order, and of equals the smaller ones."""
    last, equals = np.max(orders), len(keys)
    if len(keys) > kept:
        last = np.partition(orders, kept - 1)[kept - 1]
        equals = kept - np.sum(orders < last)
        sums.used[1] += np.sum(orders == last) > equals
    for row in range(len(keys)):
        if orders[row] < last or (orders[row] == last and equals > 0):
            key = keys[row]
            place = _place(key, sums.keys, sums.sums, sums.used) if len(sums.keys) else key
            sums.sums[place, 0] += weight
            equals -= orders[row] == last


@compiled
def _order(user: Whole, keys: Packed, layout: Layout, listed: Listed, rows: Integers) -> None:
    """Write the parts of each key of a user into rows, and last their place in the secret order."""
    digest, parts, text, texts = np.empty(WORDS, np.uint32), len(layout.shifts), listed.text, layout.texts
    begin = write_measured(user, 0, texts, text, listed.salted)
    for row in range(len(keys)):
        at = begin
        for part in range(parts):
            value = np.int64(((keys[row] >> layout.shifts[part]) & layout.masks[part]) + layout.lows[part])
            rows[row, 1 + part] = value
            last = part == parts - 1
            at = (
                write_value(value, 1 + part, texts, text, at)
                if last
                else write_measured(value, 1 + part, texts, text, at)
            )
        rows[row, parts + COLUMNS_BESIDE_KEYS - 1] = order_of(text, at, digest)


@compiled
def _with_rows(listed: Listed, more: Whole) -> Listed:
    """Give a list with room for some more rows."""
    needed = listed.found + more
    if needed <= len(listed.rows):
        return listed
    longer = np.empty((2 * needed, listed.rows.shape[1]), np.int64)
    longer[: listed.found] = listed.rows[: listed.found]
    return Listed(longer, listed.found, listed.text, listed.salted)


@compiled
def _list_above(part: Whole, users: Users, layout: Layout, rule: Rule, sums: Sums, listed: Listed) -> Listed:
    """List the rows of users above the limit, and add their weights to the keys that come first."""
    columns, key_mask, start = len(layout.shifts), (_ONE << layout.key_bits) - _ONE, np.int64(0)
    for user in range(len(users.ends)):
        end = users.ends[user]
        count = end - start
        if count > rule.limit:
            listed = _with_rows(listed, count)
            rows, keys = listed.rows[listed.found : listed.found + count], users.rows[start:end] & key_mask
            mixed = (np.uint64(part) << layout.part_shift) | (users.rows[start] >> layout.key_bits)
            known = np.int64(((mixed * _UNMIX) & layout.user_mask) + layout.user_low)
            rows[:, 0] = known
            _order(known, keys, layout, listed, rows)
            for row in range(count):
                rows[row, columns + 1] = np.int64(users.records[start + row])
            rows[:, columns + 2] = count
            rows[:, columns + 3] = users.left[user]
            _add_first(keys, rows[:, columns + 4].copy(), users.weights[user], rule.kept, sums)
            listed = Listed(listed.rows, listed.found + count, listed.text, listed.salted)
        start = end
    return listed


@compiled
def add_up(
    moved: Packed, starts: Integers, parts: tuple[int, int], layout: Layout, rule: Rule, sums: Sums
) -> tuple[Sums, Integers]:
    """Add up the users of some partitions by key, and list the rows of those above the limit."""
    columns, longest = len(layout.shifts), np.int64(0)
    for part in range(parts[0], parts[1]):
        longest = max(longest, starts[part + 1] - starts[part])
    other, (ends, left, weights) = np.empty(longest, np.uint64), np.empty((3, longest), np.int64)
    text = np.zeros(len(rule.salt) + LONGEST * (columns + 2) + np.sum(layout.texts.longest), np.uint8)
    text[: len(rule.salt)] = rule.salt
    listed = Listed(np.empty((_FIRST_ROWS, columns + COLUMNS_BESIDE_KEYS), np.int64), np.int64(0), text, len(rule.salt))
    counts, bits = np.empty(DIGITS, np.int64), np.int64(layout.part_shift + layout.key_bits)
    for part in range(parts[0], parts[1]):
        given = moved[starts[part] : starts[part + 1]]
        if len(given):
            rows, records = _sorted(given, other[: len(given)], bits, counts)
            users = Users(rows, records, ends[: _gather(rows, records, ends, layout.key_bits)], left, weights)
            _weigh(users, rule)
            sums = _with_room(sums, users.ends[-1])
            _add(users, layout, rule, sums)
            listed = _list_above(part, users, layout, rule, sums, listed)
    return sums, listed.rows[: listed.found].copy()
