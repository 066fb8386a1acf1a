"""A pass over the rows of each user, in this process: from packed rows to what is known of each key, and to users above the limit.

The loops are in `row_loops.py` and `user_loops.py`, and what rows carry in `payload.py`; here rows are laid out, threads get their pieces,
and columns get their names. A piece takes a fraction of a second, so whoever interrupts a run need not wait long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.engines import row_loops
from plume.engines import user_loops as loops
from plume.engines.crew import Crew, Room
from plume.engines.numbering import as_texts
from plume.engines.packed_rows import BITS, PackedRows, Range, shifts_of
from plume.engines.payload import (
    LARGEST,
    Ends,
    Field,
    counted_by,
    counts_of,
    ends_of,
    fields_of,
    payload_of,
    presence_of,
    totals_fit,
)
from plume.engines.payload import move as move_payload
from plume.engines.payload_loops import Integers, Packed
from plume.engines.row_loops import Layout
from plume.engines.text_loops import Texts
from plume.engines.user_loops import Moved, Rule, Sums
from plume.plan.nodes import USER
from plume.plan.recipe import KEYS_OF_USER, LEFT, ORDER, RECORDS, Drawn, Recipe

# As many rows as fit a cache are sorted at a time. Threads look between pieces of partitions, of about this many rows, at whether to go on.
_ROWS_OF_PART = 2**15
_ROWS_OF_PIECE = 2**20
# With more that rows carry, fewer of them fit a cache.
_FIELDS_TO_A_ROW = 4
# Sums of a key lie at the place that the key itself is, unless that takes more memory than caches and few rows are worth.
_MOST_SUMS = 2**24
_PLACES_OF_PIECE = 2**14
_FIRST_PLACES = 2**10
# A row that was moved to its partition, beside the one that it was; and rows of users above the limit, as loops list them and by column.
_BYTES_OF_MOVED, _COPIES = 16, 2
# What is found out of each row of a partition, beside what rows carry and what counts of it: as large as the rows if they are one user's.
_LINES_OF_ROW = 8


@dataclass(frozen=True)
class Passed:
    """What a pass found."""

    keyed: pa.Table
    above: pa.Table


def pass_over(recipe: Recipe, given: PackedRows, salt: str, threads: int, room: int) -> Passed | None:
    """Do what a recipe says with packed rows, which are taken from their list; None, if some are not packed, or totals leave 64 bits.

    Neither if they and what comes of them take more bytes than `room`, or if the smaller one of two keys must be found by their numbers.
    """
    batches, texts = given.batches, given.texts
    rows = sum(len(batch) for batch in batches)
    if any(batch.columns[0].null_count for batch in batches) or not _fits(recipe, rows):
        return None
    with Crew(threads) as crew:
        fields = _fields(batches, recipe, crew)
        if not totals_fit(fields, recipe, rows):
            return None
        layout = _layout(given.ranges, rows, fields, texts)
        moved = _partitioned(batches, layout, fields, crew)
        if moved is None:
            return None
        rule = _rule(recipe, fields, salt)
        left = Room(room - _bytes_beside(moved, rule, threads))
        sums, above = _added_up(recipe, layout, moved, rule, crew, left)
        if not left.is_enough or (max(texts.firsts[1:], default=-1) >= 0 and any(one.used[1] for one in sums)):
            return None
        return Passed(_keyed(recipe, layout, sums, crew), _above(recipe, fields, texts, above))


def _fits(recipe: Recipe, rows: int) -> bool:
    """Return whether no sum by key leaves 64 bits: a user's records of a key are as many rows, and a weight goes with at least one."""
    weight = 2**20 if isinstance(recipe.weight, Drawn) else recipe.weight.weight_of(1)
    most = max(weight, *(one.largest for one in recipe.contributions), 1)
    return max(rows, 1) * most <= LARGEST


def _fields(batches: Sequence[pa.RecordBatch], recipe: Recipe, crew: Crew) -> tuple[Field, ...]:
    """Find the fields of what rows carry, of the very values that are packed."""

    def found(batch: pa.RecordBatch) -> list[Ends]:
        return [ends_of(column) for column in batch.columns[1:]]

    ends = crew.each(partial(found, batch) for batch in batches if len(batch))
    return fields_of(list(zip(*ends, strict=True)) or [[(0, 0, False)]] * len(recipe.added))


def _bytes_beside(moved: Moved, rule: Rule, threads: int) -> int:
    """Say how many bytes are taken beside what loops list: by rows that were moved, and by what threads find out of a partition."""
    carried = moved.payload
    lines = _LINES_OF_ROW + carried.rows.shape[1] + len(carried.words) + len(rule.counts.of)
    longest = int(np.diff(moved.starts).max())
    return int(_BYTES_OF_MOVED * len(moved.rows) + carried.rows.nbytes + 8 * threads * lines * longest)


def _layout(ranges: Sequence[Range], rows: int, fields: Sequence[Field], texts: Texts) -> Layout:
    """Put the user above the keys, the first key above the others, and users into partitions that fit a cache with all they carry."""
    user, *keys = ranges
    parts = min(user.bits, (rows * (1 + len(fields) // _FIELDS_TO_A_ROW) // _ROWS_OF_PART).bit_length())
    return Layout(
        key_bits=np.uint64(sum(key.bits for key in keys)),
        user_mask=_mask(user.bits),
        part_shift=np.uint64(user.bits - parts),
        user_low=_unsigned(user.low),
        shifts=np.array(shifts_of(keys), np.uint64),
        masks=np.array([_mask(key.bits) for key in keys], np.uint64),
        lows=np.array([_unsigned(key.low) for key in keys], np.uint64),
        texts=texts,
    )


def _mask(bits: int) -> np.uint64:
    return np.uint64(2**bits - 1)


def _unsigned(value: int) -> np.uint64:
    return np.uint64(value % 2**BITS)


def _partitioned(batches: list[pa.RecordBatch], layout: Layout, fields: Sequence[Field], crew: Crew) -> Moved | None:
    """Move the rows of each partition together; each batch is let go when it can be. None, if places do not fit 64 bits."""
    parts = (int(layout.user_mask) >> int(layout.part_shift)) + 1
    counts = np.zeros((len(batches), parts), np.int64)
    crew.each(
        partial(row_loops.count_parts, _packed(batch), layout, line)
        for batch, line in zip(batches, counts, strict=True)
    )
    starts = np.zeros(parts + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    payload = payload_of(fields, int(starts[-1]), int(counts.sum(axis=0).max()))
    if int(payload.place_bits) + int(layout.part_shift) + int(layout.key_bits) > BITS:
        return None
    moved = Moved(np.empty(starts[-1], np.uint64), starts, payload)
    crew.each(partial(_move, batches, place, layout, fields, places[place], moved) for place in range(len(batches)))
    return moved


def _packed(batch: pa.RecordBatch) -> Packed:
    found: Packed = batch.columns[0].to_numpy(zero_copy_only=True)
    return found


def _move(
    batches: list[pa.RecordBatch],
    place: int,
    layout: Layout,
    fields: Sequence[Field],
    places: Integers,
    moved: Moved,
) -> None:
    batch, batches[place] = batches[place], None
    rows = _packed(batch)
    move_payload(rows, batch.columns[1:], fields, layout, places.copy(), moved.payload)
    row_loops.move(rows, layout, places, moved.rows)


def _added_up(
    recipe: Recipe, layout: Layout, moved: Moved, rule: Rule, crew: Crew, left: Room
) -> tuple[list[Sums], list[Integers]]:
    """Add up all partitions, in as many sums as there are threads; some are left out when nothing is left of the room."""
    free: SimpleQueue[Sums] = SimpleQueue()
    for _ in range(crew.number):
        free.put(_no_sums(len(recipe.contributions), int(layout.key_bits), len(moved.rows)))

    nothing = np.empty((0, 0), np.int64)

    def add(parts: tuple[int, int]) -> Integers:
        if not left.is_enough:
            return nothing
        sums = free.get()
        try:
            sums, above = loops.add_up(moved, parts, layout, rule, sums)
        finally:
            free.put(sums)  # other threads wait for it, also where memory ran out in this one
        left.take(_COPIES * above.nbytes)
        return above

    above = crew.each(partial(add, piece) for piece in _pieces(moved.starts))
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
    direct = 2**key_bits * (1 + contributions) <= _MOST_SUMS and 2**key_bits <= max(_FIRST_PLACES, 4 * rows)
    size = 2**key_bits if direct else _FIRST_PLACES
    keys: NDArray[np.uint64] = np.zeros(0 if direct else size, np.uint64)
    return Sums(keys, np.zeros((size, 1 + contributions), np.int64), np.zeros(2, np.int64))


def _rule(recipe: Recipe, fields: Sequence[Field], salt: str) -> Rule:
    weight, counted = recipe.weight, counted_by(recipe)
    weights = [] if isinstance(weight, Drawn) else [weight.weight_of(keys) for keys in range(weight.most + 1)]
    return Rule(
        limit=recipe.limit,
        kept=recipe.kept,
        cut_above=recipe.cut_above,
        most_keys=weight.most,
        weights=np.array(weights, np.int64),
        counts=counts_of(recipe, fields),
        contributions=len(recipe.contributions),
        charged=np.array([counted.index(one) for one, _ in recipe.charges], np.int64),
        rates=np.array([charge.rate for _, charge in recipe.charges], np.float64),
        mosts=np.array([charge.most for _, charge in recipe.charges], np.float64),
        salt=np.frombuffer(salt.encode(), np.uint8),
    )


def _keyed(recipe: Recipe, layout: Layout, found: Sequence[Sums], crew: Crew) -> pa.Table:
    """Put sums of all threads together, take packed keys apart, and multiply contributions by their factors."""
    together = _same_places(found, crew) if len(found[0].keys) == 0 else [_by_key(found)]
    factors = [1, *(one.factor for one in recipe.contributions)]
    columns: list[list[pa.Array]] = [[] for _ in recipe.keyed]
    for keys, sums in together:
        parts = zip(layout.shifts, layout.masks, layout.lows, strict=True)
        numbers = [(((keys >> shift) & mask) + low).view(np.int64) for shift, mask, low in parts]
        arrays = [as_texts(values, layout.texts, 1 + place) for place, values in enumerate(numbers)]
        arrays += [pa.array(total * factor) for total, factor in zip(sums.T, factors, strict=True)]
        for column, array in zip(columns, arrays, strict=True):
            column.append(array)
    return pa.table([pa.chunked_array(column) for column in columns], names=list(recipe.keyed))


def _same_places(found: Sequence[Sums], crew: Crew) -> list[tuple[Packed, Integers]]:
    """Add up what threads found at the places of keys, in pieces that fit a cache."""

    def add(first: int) -> tuple[Packed, Integers]:
        total = found[0].sums[first : first + _PLACES_OF_PIECE]
        for other in found[1:]:
            total += other.sums[first : first + _PLACES_OF_PIECE]
        places = np.flatnonzero(total[:, 0])
        return (places + first).astype(np.uint64), total[places]

    return crew.each(partial(add, first) for first in range(0, len(found[0].sums), _PLACES_OF_PIECE))


def _by_key(found: Sequence[Sums]) -> tuple[Packed, Integers]:
    """Add up what threads found of the same keys, each at a place of its own."""
    used = [one.sums[:, 0] != 0 for one in found]
    keys, places = np.unique(
        np.concatenate([one.keys[at] for one, at in zip(found, used, strict=True)]), return_inverse=True
    )
    total = np.zeros((len(keys), found[0].sums.shape[1]), np.int64)
    np.add.at(total, places, np.concatenate([one.sums[at] for one, at in zip(found, used, strict=True)]))
    return keys, total


def _above(recipe: Recipe, fields: Sequence[Field], texts: Texts, found: Sequence[Integers]) -> pa.Table:
    """Name the columns of rows of users above the limit; a total of no value at all is NULL, and so is a place in no order."""
    added = [name for name, _ in recipe.added]
    first, beside = 1 + len(recipe.keys), 1 + len(fields)
    order = [USER, *recipe.keys, RECORDS, *added, *[""] * (len(fields) - len(added)), KEYS_OF_USER, LEFT, ORDER]
    present = presence_of(recipe, fields)
    listed = (np.empty((first + beside + 3, 0), np.int64), *found)
    columns = {}
    missing = {of: (first + line, 0) for of, line in present.items()}
    if recipe.cut_above > recipe.limit:
        missing[ORDER] = (-1, loops.NO_ORDER)
    for name, of in recipe.above:
        number, absent = order.index(of), missing.get(of)
        columns[name] = pa.chunked_array(
            [
                as_texts(rows[number], texts, number) if number < first else _column(rows, number, absent)
                for rows in listed
            ]
        )
    return pa.table(columns)


def _column(rows: Integers, number: int, absent: tuple[int, int] | None) -> pa.Array:
    """Give a line of numbers, which are NULL where another line, if there is one, has what says so."""
    return pa.array(rows[number], mask=None if absent is None else rows[absent[0]] == absent[1])
