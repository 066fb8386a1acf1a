"""A pass over the rows of each user, in this process: from packed rows to what is known of each key, and to users above the limit.

The loops are in `user_loops.py`; here rows are laid out, threads get their pieces, and columns get their names. A piece takes a fraction of
a second, so whoever interrupts a run need not wait long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.engines import user_loops as loops
from plume.engines.crew import Crew, Room
from plume.engines.numbering import Numbered, as_texts
from plume.engines.text_loops import Texts
from plume.engines.user_loops import Integers, Layout, Packed, Rule, Sums
from plume.plan.nodes import USER
from plume.plan.one_pass import KEYS_OF_USER, LEFT, ORDER, RECORDS, Drawn, Recipe

_BITS = 64
# As many rows as fit a cache are sorted at a time. Threads look between pieces of partitions, of about this many rows, at whether to go on.
_ROWS_OF_PART = 2**15
_ROWS_OF_PIECE = 2**20
# Sums of a key lie at the place that the key itself is, unless that takes more memory than caches and few rows are worth.
_MOST_PLACES = 2**22
_FIRST_PLACES = 2**10
# A row that was moved to its partition, beside the one that it was; and rows of users above the limit, as loops list them and by column.
_BYTES_OF_MOVED, _COPIES = 16, 2
# Sums are added up in 64 bits.
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Passed:
    """What a pass found."""

    keyed: pa.Table
    above: pa.Table


@dataclass(frozen=True)
class _Range:
    """The smallest value of a column, and how many bits it takes to tell all values from it."""

    low: int
    bits: int


def pass_over(recipe: Recipe, given: Numbered, salt: str, threads: int, room: int) -> Passed | None:
    """Do what a recipe says with rows of users and keys, which are taken from their list; None, if they do not fit 64 bits.

    Neither if they and what comes of them take more bytes than `room`.
    """
    batches, texts = given.batches, given.texts
    rows = sum(len(batch) for batch in batches)
    if any(column.null_count for batch in batches for column in batch.columns) or not _fits(recipe, rows):
        return None
    with Crew(threads) as crew:
        ranges = _ranges(batches, len(recipe.keys) + 1, crew)
        if sum(one.bits for one in ranges) > _BITS:
            return None
        layout = _layout(ranges, rows, texts)
        moved, starts = _partitioned(batches, layout, crew)
        left = Room(room - _BYTES_OF_MOVED * rows)
        sums, above = _added_up(recipe, layout, (moved, starts), salt, crew, left)
    if not left.is_enough:
        return None
    if any(one.used[1] for one in sums) and max(texts.firsts[1:], default=-1) >= 0:
        return None  # which of two keys is the smaller one, their numbers do not say
    return Passed(_keyed(recipe, layout, sums), _above(recipe, texts, above))


def _fits(recipe: Recipe, rows: int) -> bool:
    """Return whether no sum leaves 64 bits: a user's records of a key are as many rows, and a weight goes with at least one.

    The squares of a user's numbers of records, which accounts are charged by, add up to no more than the square of all rows.
    """
    weight = 2**20 if isinstance(recipe.weight, Drawn) else recipe.weight.weight_of(1)
    most = max(weight, rows if recipe.charges else 1, *(one.factor for one in recipe.contributions), 1)
    return rows * most <= _LARGEST


def _ranges(batches: Sequence[pa.RecordBatch], columns: int, crew: Crew) -> list[_Range]:
    """Find the range of each column: of the very values that are packed, so that none lies outside."""
    ends = crew.each(partial(_ends, batch) for batch in batches if len(batch))
    if not ends:
        return [_Range(0, 1)] * columns
    lows, highs = np.array(ends).transpose(1, 2, 0)
    return [
        _Range(int(low.min()), max(1, (int(high.max()) - int(low.min())).bit_length()))
        for low, high in zip(lows, highs, strict=True)
    ]


def _ends(batch: pa.RecordBatch) -> tuple[list[np.int64], list[np.int64]]:
    values = list(map(_values, batch.columns))
    return [column.min() for column in values], [column.max() for column in values]


def _values(column: pa.Array) -> Integers:
    found: Integers = column.to_numpy(zero_copy_only=True)
    return found


def _layout(ranges: Sequence[_Range], rows: int, texts: Texts) -> Layout:
    """Put the user above the keys, the first key above the others, and users into partitions that fit a cache."""
    user, *keys = ranges
    shifts = [sum(key.bits for key in keys[place + 1 :]) for place in range(len(keys))]
    parts = min(user.bits, (rows // _ROWS_OF_PART).bit_length())
    return Layout(
        key_bits=np.uint64(sum(key.bits for key in keys)),
        user_mask=_mask(user.bits),
        part_shift=np.uint64(user.bits - parts),
        user_low=_unsigned(user.low),
        shifts=np.array(shifts, np.uint64),
        masks=np.array([_mask(key.bits) for key in keys], np.uint64),
        lows=np.array([_unsigned(key.low) for key in keys], np.uint64),
        texts=texts,
    )


def _mask(bits: int) -> np.uint64:
    return np.uint64(2**bits - 1)


def _unsigned(value: int) -> np.uint64:
    return np.uint64(value % 2**_BITS)


def _partitioned(batches: list[pa.RecordBatch], layout: Layout, crew: Crew) -> tuple[Packed, Integers]:
    """Pack rows, and move those of each partition together; each batch is let go once it is packed."""
    parts = (int(layout.user_mask) >> int(layout.part_shift)) + 1
    counts = np.zeros((len(batches), parts), np.int64)
    packed = crew.each(partial(_packed, batches, place, layout, counts[place]) for place in range(len(batches)))
    starts = np.zeros(parts + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    moved = np.empty(starts[-1], np.uint64)
    crew.each(partial(_move, packed, place, layout, places[place], moved) for place in range(len(packed)))
    return moved, starts


def _packed(batches: list[pa.RecordBatch], place: int, layout: Layout, counts: Integers) -> Packed:
    user, *keys = map(_values, batches[place].columns)
    batches[place] = None
    packed = np.zeros(len(user), np.uint64)
    loops.pack(user, layout.user_low, layout.key_bits, packed)
    for number, key in enumerate(keys):
        loops.pack(key, layout.lows[number], layout.shifts[number], packed)
    loops.count_parts(packed, layout, counts)
    return packed


def _move(packed: list[Packed], place: int, layout: Layout, places: Integers, moved: Packed) -> None:
    rows, packed[place] = packed[place], np.empty(0, np.uint64)
    loops.move(rows, layout, places, moved)


def _added_up(
    recipe: Recipe, layout: Layout, rows: tuple[Packed, Integers], salt: str, crew: Crew, left: Room
) -> tuple[list[Sums], list[Integers]]:
    """Add up all partitions, in as many sums as there are threads; some are left out when nothing is left of the room."""
    moved, starts = rows
    free: SimpleQueue[Sums] = SimpleQueue()
    for _ in range(crew.number):
        free.put(_no_sums(len(recipe.contributions), int(layout.key_bits), len(moved)))
    rule, nothing = _rule(recipe, salt), np.empty((0, 0), np.int64)

    def add(parts: tuple[int, int]) -> Integers:
        if not left.is_enough:
            return nothing
        sums = free.get()
        try:
            sums, above = loops.add_up(moved, starts, parts, layout, rule, sums)
        finally:
            free.put(sums)  # other threads wait for it, also where memory ran out in this one
        left.take(_COPIES * above.nbytes)
        return above

    above = crew.each(partial(add, piece) for piece in _pieces(starts))
    return [free.get() for _ in range(crew.number)], above


def _pieces(starts: Integers) -> list[tuple[int, int]]:
    """Divide partitions into pieces of about as many rows."""
    if not starts[-1]:
        return []
    wanted = np.arange(0, starts[-1], _ROWS_OF_PIECE)
    firsts = np.unique(np.searchsorted(starts, wanted, side="right") - 1)
    ends = [*firsts[1:], len(starts) - 1]
    return [(int(first), int(end)) for first, end in zip(firsts, ends, strict=True)]


def _no_sums(contributions: int, key_bits: int, rows: int) -> Sums:
    """Make room for sums, at the places that keys themselves are if these are not too many, and else where keys are looked up."""
    direct = 2**key_bits <= min(_MOST_PLACES, max(_FIRST_PLACES, 4 * rows))
    size = 2**key_bits if direct else _FIRST_PLACES
    keys: NDArray[np.uint64] = np.zeros(0 if direct else size, np.uint64)
    return Sums(keys, np.zeros((size, 1 + contributions), np.int64), np.zeros(2, np.int64))


def _rule(recipe: Recipe, salt: str) -> Rule:
    weight = recipe.weight
    weights = [] if isinstance(weight, Drawn) else [weight.weight_of(keys) for keys in range(weight.most + 1)]
    return Rule(
        limit=recipe.limit,
        kept=recipe.kept,
        most_keys=weight.most,
        weights=np.array(weights, np.int64),
        factors=np.array([one.factor for one in recipe.contributions], np.int64),
        highs=np.array([one.high for one in recipe.contributions], np.int64),
        rates=np.array([charge.rate for _, charge in recipe.charges], np.float64),
        mosts=np.array([charge.most for _, charge in recipe.charges], np.float64),
        charged=np.array([counted.high for counted, _ in recipe.charges], np.int64),
        salt=np.frombuffer(salt.encode(), np.uint8),
    )


def _keyed(recipe: Recipe, layout: Layout, found: Sequence[Sums]) -> pa.Table:
    """Put sums of all threads together, and take packed keys apart."""
    keys, sums = _together(found)
    parts = zip(layout.shifts, layout.masks, layout.lows, strict=True)
    numbers = [(((keys >> shift) & mask) + low).view(np.int64) for shift, mask, low in parts]
    arrays = [as_texts(column, layout.texts, 1 + place) for place, column in enumerate(numbers)]
    arrays += [pa.array(column.copy()) for column in sums.T]
    return pa.table(arrays, names=list(recipe.keyed))


def _together(found: Sequence[Sums]) -> tuple[Packed, Integers]:
    """Add up what threads found of the same keys."""
    if not len(found[0].keys):
        total = sum((one.sums for one in found[1:]), found[0].sums)
        places = np.flatnonzero(total[:, 0])
        return places.astype(np.uint64), total[places]
    used = [one.sums[:, 0] != 0 for one in found]
    keys, places = np.unique(
        np.concatenate([one.keys[at] for one, at in zip(found, used, strict=True)]), return_inverse=True
    )
    total = np.zeros((len(keys), found[0].sums.shape[1]), np.int64)
    np.add.at(total, places, np.concatenate([one.sums[at] for one, at in zip(found, used, strict=True)]))
    return keys, total


def _above(recipe: Recipe, texts: Texts, found: Sequence[Integers]) -> pa.Table:
    """Name the columns of rows of users above the limit."""
    order = [USER, *recipe.keys, RECORDS, KEYS_OF_USER, LEFT, ORDER]
    nothing = np.empty((0, len(order)), np.int64)
    columns = {
        name: pa.chunked_array([_values_of(rows, order.index(of), texts) for rows in (nothing, *found)])
        for name, of in recipe.above
    }
    return pa.table(columns)


def _values_of(rows: Integers, column: int, texts: Texts) -> pa.Array:
    numbers = rows[:, column].copy()
    return as_texts(numbers, texts, column) if column < len(texts.firsts) else pa.array(numbers)
