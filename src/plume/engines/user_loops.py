"""The loops over the rows of each user, compiled: drop what is double, add up, charge, split, order, add up by key.

The loops raise on no data, and add integers only; docs/guarantees/bounding.md says why what comes out is what the steps of the plan say.
Rows are packed and sorted by `row_loops.py` beside this file, what they carry is in `payload_loops.py`, the order in `order_loops.py`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plume.engines.compiled import compiled
from plume.engines.order_loops import LONGEST, Bytes, Whole, orders_of, room_for_texts
from plume.engines.payload_loops import Counts, Integers, Packed, Payload, add_fields, count, number, take
from plume.engines.row_loops import DIGITS, MIX, UNMIX, Layout, in_order
from plume.engines.text_loops import write_measured, write_values

Floats = NDArray[np.float64]

# As account_sql.py and privacy/pooled.py have them.
_ACCOUNT, _STEPS = 2**30, 2**10
# Sums of squares are not added up further: by then a charge takes all that it can take.
_MOST_SQUARES = np.int64(2**62)
# Of users above the limit, beside keys and totals: the user, the number of keys, what is left of the account, the order.
COLUMNS_BESIDE_KEYS = 4
_ONE, _HALF = np.uint64(1), 32
# Where the place of a key in the secret order would be, which is not below 0.
NO_ORDER = -1


class Moved(NamedTuple):
    """Rows in their partitions, each of which begins where the one before ends, and what they carry."""

    rows: Packed
    starts: Integers
    payload: Payload


class Rule(NamedTuple):
    """What becomes of a user's keys."""

    limit: int
    """Users with more keys are above the limit."""
    kept: int
    """How many keys of these users count, the first ones in their secret order."""
    cut_above: int
    """Users with more keys have them put in this order; those of others are all at one place of it, before all others."""
    most_keys: int
    """Over how many keys a weight is spread at the most."""
    weights: Integers
    """The weight by number of keys, from 0 on; nothing, if weights are drawn from accounts."""
    counts: Counts
    """What counts of each key of a user: contributions come first, in their order."""
    contributions: int
    charged: Integers
    rates: Floats
    mosts: Floats
    """Each charge: which count its squares are of, its rate, and the most it takes."""
    salt: Bytes
    """What every text begins with that is hashed for the secret order."""


class Users(NamedTuple):
    """The users of a partition: their keys, each once, with its totals; where those of each user end, and what is known of the user."""

    rows: Packed
    totals: Integers
    """A line for each total, with a place for each key; the first is the number of records."""
    counted: Integers
    """A line for each count."""
    ends: Integers
    left: Integers
    weights: Integers


class Space(NamedTuple):
    """Room for the rows of a partition while it is found out what is known of its users."""

    other: Packed
    digits: Integers
    places: Integers
    lasts: Integers
    words: Packed
    totals: Integers
    counted: Integers
    ends: Integers
    left: Integers
    weights: Integers


class Listed(NamedTuple):
    """Rows of users above the limit, of which `found` are there; and texts that begin with the salt, for what is hashed."""

    rows: Integers
    """A line for each column."""
    found: Whole
    texts: Bytes
    salted: Whole


class Sums(NamedTuple):
    """What was added up: a row for each key, at the place that the key itself is, or where `keys` has it."""

    keys: Packed
    sums: Integers
    used: Integers
    """How many places are taken, counted where `keys` has them only; and how often a key came first by being the smaller one."""


@compiled
def _gather(rows: Packed, lasts: Integers, places: Integers, ends: Integers, bits: tuple[Whole, Whole]) -> Whole:
    """Leave each key of each user once; gives the number of users. `ends` says where the keys of each user end.

    `lasts` says where the rows of each key ended, and `places` where each row was, in as many bits below it as come first in `bits`; then
    come those of the key.
    """
    place_bits, key_bits = bits
    last, users, end = (_ONE << place_bits) - _ONE, 0, 0
    for row in range(len(rows)):
        this = rows[row] >> place_bits
        places[row] = np.int64(rows[row] & last)
        if not end or rows[end - 1] != this:
            if end and rows[end - 1] >> key_bits != this >> key_bits:
                ends[users] = end
                users += 1
            rows[end] = this
            end += 1
        lasts[end - 1] = row + 1
    ends[users] = end
    return users + 1


@compiled
def _weigh(users: Users, rule: Rule) -> None:
    """Say what measures leave of the account of each user, and what weight the user gives to each key."""
    rates, mosts, charged, weights, counted = rule.rates, rule.mosts, rule.charged, rule.weights, users.counted
    start = 0
    for user in range(len(users.ends)):
        end, left = users.ends[user], np.int64(_ACCOUNT)
        for charge in range(len(rates)):
            squares, size = np.int64(0), charged[charge]
            for row in range(start, end):
                squares = min(squares + counted[size, row] * counted[size, row], _MOST_SQUARES)
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
    place = ((key * MIX) >> np.uint64(_HALF)) & last
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
    rows, counted, totals, keys, used = users.rows, users.counted, sums.sums, sums.keys, sums.used
    contributions, limit = rule.contributions, rule.limit
    ends, weights = users.ends, users.weights
    key_mask, start, is_direct = (_ONE << layout.key_bits) - _ONE, np.int64(0), len(keys) == 0
    for user in range(len(ends)):
        end, weight = ends[user], weights[user]
        if end - start <= limit:
            for row in range(start, end):
                key = rows[row] & key_mask
                place = key if is_direct else _place(key, keys, totals, used)
                totals[place, 0] += weight
                for each in range(contributions):
                    totals[place, 1 + each] += counted[each, row]
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
    """Write the place of each key of a user in the secret order into the last of rows, which have the parts of the keys already."""
    texts, most, known = listed.texts, len(listed.texts), layout.texts
    ends, orders = np.empty(most, np.int64), np.empty(most, np.int64)
    ends[0] = listed.salted
    write_measured(np.full(1, user), 0, known, texts, ends)
    begin, parts = ends[0], len(layout.shifts)
    for row in range(1, min(most, len(keys))):
        for place in range(listed.salted, begin):
            texts[row, place] = texts[0, place]
    for first in range(0, len(keys), most):
        written = min(most, len(keys) - first)
        ends[:written] = begin
        for part in range(parts):
            values = rows[1 + part, first : first + written]
            if part < parts - 1:
                write_measured(values, 1 + part, known, texts, ends)
            else:
                write_values(values, 1 + part, known, texts, ends)
        orders_of(texts[:written], ends[:written], orders)
        rows[-1, first : first + written] = orders[:written]


@compiled
def _take_apart(keys: Packed, layout: Layout, rows: Integers) -> None:
    """Write the parts of each key into rows, after that of the user."""
    for part in range(len(layout.shifts)):
        shift, mask, low, values = layout.shifts[part], layout.masks[part], layout.lows[part], rows[1 + part]
        for row in range(len(keys)):
            values[row] = np.int64(((keys[row] >> shift) & mask) + low)


@compiled
def _list_above(part: Whole, users: Users, layout: Layout, rule: Rule, sums: Sums, listed: Listed) -> Listed:
    """List the rows of users above the limit, and add their weights to the keys that come first."""
    columns, key_mask = len(layout.shifts), (_ONE << layout.key_bits) - _ONE
    ends, found = users.ends, listed.found
    numbers = ends.copy()
    numbers[1:] -= ends[:-1]
    # Not a loop over all users, each turn of which would hold what is listed and let it go.
    for user in np.flatnonzero(numbers > rule.limit):
        end, keys_of_user = ends[user], numbers[user]
        start = end - keys_of_user
        rows, keys = listed.rows[:, found : found + keys_of_user], users.rows[start:end] & key_mask
        mixed = (np.uint64(part) << layout.part_shift) | (users.rows[start] >> layout.key_bits)
        known = np.int64(((mixed * UNMIX) & layout.user_mask) + layout.user_low)
        rows[0] = known
        _take_apart(keys, layout, rows)
        if keys_of_user > rule.cut_above:
            _order(known, keys, layout, listed, rows)
        else:
            rows[-1] = NO_ORDER
        rows[1 + columns : -3] = users.totals[:, start:end]
        rows[-3] = keys_of_user
        rows[-2] = users.left[user]
        _add_first(keys, rows[-1], users.weights[user], rule.kept, sums)
        found += keys_of_user
    return Listed(listed.rows, found, listed.texts, listed.salted)


@compiled
def _space(longest: Whole, payload: Payload, rule: Rule) -> Space:
    """Make room for the longest partition."""
    places, lasts, ends, left, weights = np.empty((5, longest), np.int64)
    return Space(
        other=np.empty(longest, np.uint64),
        digits=np.empty(DIGITS, np.int64),
        places=places,
        lasts=lasts,
        words=np.empty((payload.rows.shape[1], longest), np.uint64),
        totals=np.empty((1 + len(payload.words), longest), np.int64),
        counted=np.empty((len(rule.counts.of), longest), np.int64),
        ends=ends,
        left=left,
        weights=weights,
    )


@compiled
def _listed(rows: Whole, columns: Whole, layout: Layout, rule: Rule) -> Listed:
    """Make room for as many rows; it takes memory only where rows are written."""
    # Beside what a text or a number is, its length and a colon; a text is where its length will be, before that is known.
    texts = room_for_texts(len(rule.salt) + LONGEST * (1 + len(layout.shifts)) + np.sum(layout.texts.longest))
    texts[:, : len(rule.salt)] = rule.salt
    return Listed(np.empty((columns, rows), np.int64), np.int64(0), texts, len(rule.salt))


@compiled
def _users(given: Packed, first: Whole, layout: Layout, payload: Payload, rule: Rule, space: Space) -> Users:
    """Find out what is known of the users of a partition, whose rows carry what begins at `first`."""
    if len(payload.words):
        number(given, payload.place_bits)
    bits = np.int64(layout.part_shift + layout.key_bits)
    rows = in_order(given, space.other[: len(given)], payload.place_bits, bits, space.digits)
    found = _gather(rows, space.lasts, space.places, space.ends, (payload.place_bits, layout.key_bits))
    keys = space.ends[found - 1]
    take(payload, first, space.places[: len(given)], space.words)
    add_fields(payload, space.words, space.lasts[:keys], space.totals)
    count(space.totals, keys, rule.counts, space.counted)
    users = Users(rows, space.totals, space.counted, space.ends[:found], space.left, space.weights)
    _weigh(users, rule)
    return users


@compiled
def add_up(moved: Moved, parts: tuple[int, int], layout: Layout, rule: Rule, sums: Sums) -> tuple[Sums, Integers]:
    """Add up the users of some partitions by key, and list the rows of those above the limit, a line for each column."""
    starts, payload, longest = moved.starts, moved.payload, np.int64(0)
    for part in range(parts[0], parts[1]):
        longest = max(longest, starts[part + 1] - starts[part])
    space, columns = _space(longest, payload, rule), len(layout.shifts) + COLUMNS_BESIDE_KEYS + 1 + len(payload.words)
    listed = _listed(starts[parts[1]] - starts[parts[0]], columns, layout, rule)
    for part in range(parts[0], parts[1]):
        given = moved.rows[starts[part] : starts[part + 1]]
        if len(given):
            users = _users(given, starts[part], layout, payload, rule, space)
            sums = _with_room(sums, users.ends[-1])
            _add(users, layout, rule, sums)
            listed = _list_above(part, users, layout, rule, sums, listed)
    return sums, listed.rows[:, : listed.found]
