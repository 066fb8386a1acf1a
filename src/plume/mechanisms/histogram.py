"""How many values lie between public edges."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.errors import RangeError, shown
from plume.mechanisms.count import refuse_bad_max_per_key
from plume.mechanisms.measure import Form, Measure
from plume.mechanisms.mechanism import Mechanism, Part, size_of
from plume.mechanisms.rows import NUMBERS, condition, given
from plume.mechanisms.tally import NoisyTally
from plume.plan.aggregates import AddTallies, Aggregates, Collect, CountValues
from plume.plan.expressions import Bucket, Clamp, Column, Columns, Tally
from plume.plan.nodes import Size
from plume.plan.types import Kind

MOST_BUCKETS = 1024
_UNIT_BITS = 20


@dataclass(frozen=True)
class Histogram(Measure):
    """The number of values of a column per key in each of the buckets between edges.

    A user with more than `max_per_key` values in all buckets of a key together is weighted down to as many, with all their values.

    Guarantee: one user changes all buckets of one key together by at most `max_per_key`. docs/guarantees/histogram.md.
    """

    word: ClassVar[str] = "histogram"

    column: str
    edges: tuple[float, ...]
    max_per_key: int
    name: str
    where: str | None = None

    def __post_init__(self) -> None:
        refuse_bad_max_per_key(self.max_per_key)
        _refuse_bad_edges(self.edges)
        condition(self.where)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """One column per bucket, named after its edges."""
        texts = [_text(edge) for edge in self.edges]
        return {f"{self.name}_{low}_{high}": "leaves" for low, high in pairwise(texts)}

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The column."""
        return {self.column: NUMBERS}

    def combine_raw(self) -> Aggregates:
        """List the buckets of the user's values, and count them; values outside of all buckets are in neither."""
        bucket = given(self.where, Bucket(Column(self.column), self.edges))
        return {"values": CountValues(bucket), "leaves": Collect(bucket)}

    def preprocess(self) -> Columns:
        """Weight down users with many values."""
        return {"leaves": Tally(Column("leaves"), Column("values"), self.max_per_key, unit_for(self.max_per_key))}

    def combine_keyed(self) -> Aggregates:
        """Add the users' weights, bucket by bucket."""
        return {"leaves": AddTallies(Column("leaves"))}

    def parts(self) -> tuple[Part, ...]:
        """All weights of one user together."""
        unit = unit_for(self.max_per_key)
        most = self.max_per_key * unit
        return (Part("leaves", most, most**2, unit=Fraction(1, unit), leaves=len(self.edges) - 1),)

    def size(self) -> Size:
        """The values that count, which is what they weigh together."""
        return size_of(self.max_per_key, Clamp(Column("values"), 0, self.max_per_key))

    def noise(self, noised: Mapping[str, NoisyTally]) -> Mapping[str, pa.Array]:
        """Take every bucket of every key, noise and all, as the nearest whole number."""
        tally, buckets, unit = noised["leaves"], len(self.edges) - 1, unit_for(self.max_per_key)
        sums = tally.sums(1, np.arange(tally.keys * buckets)).reshape(tally.keys, buckets)
        counts = (sums + unit // 2) // unit
        return {name: pa.array(counts[:, number]) for number, name in enumerate(self.columns)}


def unit_for(limit: int) -> int:
    """What one value weighs: finer than any noise, and such that the weights of 2**40 users stay within 64 bits."""
    return 1 << (_UNIT_BITS - (limit - 1).bit_length())


def _refuse_bad_edges(edges: tuple[Any, ...]) -> None:
    if not 2 <= len(edges) <= MOST_BUCKETS + 1:  # noqa: PLR2004 - the fewest edges with something between them
        raise RangeError(
            f"edges has {len(edges)} {'edge' if len(edges) == 1 else 'edges'}; there must be from 2 to {MOST_BUCKETS + 1}."
        )
    for edge in edges:
        if isinstance(edge, bool) or not isinstance(edge, int | float) or not abs(edge) <= sys.float_info.max:
            raise RangeError(f"an edge is {shown(edge)}; edges are finite numbers.")
    if any(high <= low for low, high in pairwise(edges)):
        raise RangeError(f"edges is {list(edges)!r}; each edge must be above the one before.")


def _text(edge: float) -> str:
    return repr(float(edge)).removesuffix(".0")


@call_checked(meanings={"edges": "the list of numbers between which values are counted, such as [0, 10, 60]"})
def histogram(
    column: str, edges: Sequence[float], *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Count the values of a column per key between edges; a value on an edge is in the upper bucket, on the last edge in the last.

    Values outside of the edges are not counted. A user with more than `max_per_key` values in a key is weighted down to that number.

    >>> list(histogram("seconds", [0, 10, 60]).columns)
    ['seconds_histogram_0_10', 'seconds_histogram_10_60']
    """
    chosen = f"{column}_histogram" if name is None else name
    listed = tuple(edges) if isinstance(edges, Iterable) else (edges,)
    return Histogram(column, listed, max_per_key, name=chosen, where=where)


FORMS = (Form(histogram, "histogram(seconds, [0, 10, 60])"),)
