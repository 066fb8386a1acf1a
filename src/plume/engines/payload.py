"""What rows carry through a pass beside user and key: integers of measures, laid out in as few words as their values take.

The loops are in `payload_loops.py`; here columns become fields, and it is made sure beforehand that no total leaves 64 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plume.engines import payload_loops as loops
from plume.engines import row_loops
from plume.engines.payload_loops import Counts, Integers, Packed, Payload
from plume.engines.row_loops import Layout
from plume.plan.aggregates import Sum
from plume.plan.recipe import Counted, Recipe

_WORD = 64
# As many words as fit a cache are packed at a time.
_ROWS_AT_A_TIME = 2**14
# Totals are added up in 64 bits.
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Field:
    """A column of what rows carry: its values, of which NULL is 0, or whether there is one."""

    column: int
    low: int
    high: int
    of_presence: bool = False
    word: int = 0
    shift: int = 0

    @property
    def bits(self) -> int:
        """How many bits it takes to tell all values from the smallest one; one at least, so that each field has a place."""
        return max(1, (self.high - self.low).bit_length())

    def values(self, column: pa.Array) -> Integers:
        """Give what rows have in the field."""
        if self.of_presence:
            column = pc.is_valid(column).cast(pa.uint8())
        elif column.null_count:
            column = column.fill_null(0)
        found: Integers = column.to_numpy(zero_copy_only=True)
        return found


Ends = tuple[int, int, bool]
"""The smallest value of a column, the largest, and whether some are NULL, which counts as 0."""


def ends_of(column: pa.Array) -> Ends:
    """Find the range of a column of a batch: of the very values that are packed."""
    found = pc.min_max(column).as_py()
    if column.null_count:
        low, high = found["min"] or 0, found["max"] or 0
        return min(low, 0), max(high, 0), True
    return found["min"], found["max"], False


def fields_of(ends: Sequence[Sequence[Ends]]) -> tuple[Field, ...]:
    """Give columns their fields, from the ends that batches found; those of presence come last, for columns with NULL."""
    columns = [(min(low), max(high), any(null)) for low, high, null in (zip(*one, strict=True) for one in ends)]
    values = [Field(number, low, high) for number, (low, high, _) in enumerate(columns)]
    presence = [Field(number, 0, 1, of_presence=True) for number, (_, _, null) in enumerate(columns) if null]
    return _placed((*values, *presence))


def _placed(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Put fields into words, the widest first, each where there is room."""
    room: list[int] = []
    placed = dict[int, Field]()
    for number in sorted(range(len(fields)), key=lambda number: -fields[number].bits):
        field = fields[number]
        word = next((word for word, left in enumerate(room) if left >= field.bits), len(room))
        if word == len(room):
            room.append(_WORD)
        placed[number] = replace(field, word=word, shift=_WORD - room[word])
        room[word] -= field.bits
    return tuple(placed[number] for number in range(len(fields)))


def totals_fit(fields: Sequence[Field], recipe: Recipe, rows: int) -> bool:
    """Return whether no total of all rows leaves 64 bits, neither as it is nor times the limit that it is weighted down to."""
    names = [name for name, _ in recipe.added]
    limits = [max(one.limit for one in counted_by(recipe) if one.of in {None, name}) for name in names]
    return all(rows * max(abs(field.low), abs(field.high)) * limits[field.column] <= LARGEST for field in fields)


def move(
    rows: Packed,
    columns: Sequence[pa.Array],
    fields: Sequence[Field],
    layout: Layout,
    places: Integers,
    payload: Payload,
) -> None:
    """Pack what the rows of a batch carry, a piece at a time, and move it to the places that the rows are moved to."""
    values = [field.values(columns[field.column]) for field in fields]
    for first in range(0, len(rows) if fields else 0, _ROWS_AT_A_TIME):
        piece = slice(first, first + _ROWS_AT_A_TIME)
        words = np.zeros((len(rows[piece]), _words(fields)), np.uint64)
        for field, of in zip(fields, values, strict=True):
            loops.pack_field(of[piece], np.int64(field.low), field.word, np.uint64(field.shift), words)
        row_loops.move_payload(rows[piece], words, layout, places, payload.rows)


def _words(fields: Sequence[Field]) -> int:
    return max((field.word + 1 for field in fields), default=0)


def payload_of(fields: Sequence[Field], rows: int, longest: int) -> Payload:
    """Make room for what rows carry once they are partitioned, when it is known how many rows the longest partition has."""
    return Payload(
        rows=np.empty((rows if fields else 0, _words(fields)), np.uint64),
        words=np.array([field.word for field in fields], np.int64),
        shifts=np.array([field.shift for field in fields], np.uint64),
        masks=np.array([2**field.bits - 1 for field in fields], np.uint64),
        lows=np.array([field.low for field in fields], np.int64),
        place_bits=np.uint64(longest.bit_length() if fields else 0),
    )


def counted_by(recipe: Recipe) -> tuple[Counted, ...]:
    """List what counts of a key without its factor: of contributions all in their order, then of charges what is not among these."""
    contributed = tuple(replace(counted, factor=1) for counted in recipe.contributions)
    return (*contributed, *dict.fromkeys(counted for counted, _ in recipe.charges if counted not in contributed))


def counts_of(recipe: Recipe, fields: Sequence[Field]) -> Counts:
    """Say of which totals what counts is made; the first total is the number of records, and after it come those of fields."""
    added = [name for name, _ in recipe.added]
    totals = {name: 1 + added.index(name) if name in added else 0 for name, _ in recipe.aggregates}
    present = presence_of(recipe, fields)
    counted = counted_by(recipe)
    return Counts(
        of=np.array([-1 if one.of is None else totals[one.of] for one in counted], np.int64),
        values=np.array([-1 if one.values is None else totals[one.values] for one in counted], np.int64),
        limits=np.array([one.limit for one in counted], np.int64),
        present=np.array([present.get(one.of or "", -1) for one in counted], np.int64),
        lows=np.array([one.low for one in counted], np.int64),
        highs=np.array([one.high for one in counted], np.int64),
    )


def presence_of(recipe: Recipe, fields: Sequence[Field]) -> dict[str, int]:
    """Say for totals that may be of no value at all which total counts these values."""
    return {
        recipe.added[field.column][0]: 1 + number
        for number, field in enumerate(fields)
        if field.of_presence and isinstance(recipe.added[field.column][1], Sum)
    }
