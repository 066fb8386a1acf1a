"""Quantiles from noised counts in a tree of ranges: any number of them for one price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.errors import RangeError, shown
from plume.mechanisms.count import refuse_bad_max_per_key
from plume.mechanisms.histogram import unit_for
from plume.mechanisms.margins import LEVEL, Blur, Margins
from plume.mechanisms.measure import PER_ROW, Form, Measure, SqlForm
from plume.mechanisms.mechanism import Mechanism, Part, size_of
from plume.mechanisms.quantile_tree import LEAVES, LEVELS, below, margins, walk
from plume.mechanisms.rows import condition, given
from plume.mechanisms.scale import Bound, Floats, Scale, scale_between
from plume.mechanisms.tally import NoisyTally
from plume.plan.aggregates import AddTallies, Aggregates, Collect, CountValues
from plume.plan.expressions import Clamp, Column, Columns, Tally
from plume.plan.nodes import Size
from plume.plan.types import Kind

_Kind = TypeVar("_Kind", bound="Quantiles")

# How far from the end, in standard deviations of noise, a rank is taken for the smallest or largest value: with less, one empty node in
# twenty on the far side would look heavy enough to hold it.
_FROM_THE_END = 4


@dataclass(frozen=True, kw_only=True)
class Quantiles(Measure):
    """Quantiles of a column per key, each value clamped to [low, high].

    A user with more than `max_per_key` values in a key is weighted down to as many, with all their values.

    Guarantee: on each level of the tree one user changes all nodes of one key together by at most `max_per_key`.
    docs/guarantees/quantiles.md.
    """

    word: ClassVar[str] = "quantiles"
    alone: ClassVar[Mapping[float, str]] = {0.5: "median"}
    """The functions that make one quantile, in a column of the measure's own name."""

    column: str
    low: Bound
    high: Bound
    quantiles: tuple[float, ...]
    max_per_key: int
    name: str
    names: tuple[str, ...]
    """What the released columns are called, one for each quantile."""
    where: str | None = None

    def __post_init__(self) -> None:
        refuse_bad_max_per_key(self.max_per_key)
        scale_between(self.low, self.high)
        condition(self.where)

    @property
    def scale(self) -> Scale:
        """The values' bounds."""
        return scale_between(self.low, self.high)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The quantiles, which are computed from many nodes of the tree."""
        return dict.fromkeys(self.names)

    @property
    def extent(self) -> float:
        """The range."""
        return self.scale.high - self.scale.low

    @property
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The column."""
        return {self.column: self.scale.kinds}

    def combine_raw(self) -> Aggregates:
        """List the leaves of the user's values, and count them."""
        values, leaf = self.scale.read(self.column), self.scale.leaf(self.column, LEAVES)
        return {"values": CountValues(given(self.where, values)), "leaves": Collect(given(self.where, leaf))}

    def preprocess(self) -> Columns:
        """Weight down users with many values."""
        return {"leaves": Tally(Column("leaves"), Column("values"), self.max_per_key, unit_for(self.max_per_key))}

    def combine_keyed(self) -> Aggregates:
        """Add the users' weights, leaf by leaf."""
        return {"leaves": AddTallies(Column("leaves"))}

    def parts(self) -> tuple[Part, ...]:
        """All weights of one user together, once for each level of the tree."""
        unit = unit_for(self.max_per_key)
        most = self.max_per_key * unit
        return (Part("leaves", LEVELS * most, LEVELS * most**2, unit=Fraction(1, unit), leaves=LEAVES),)

    def size(self) -> Size:
        """The values that count, which is what they weigh together on each level of the tree."""
        return size_of(self.max_per_key, Clamp(Column("values"), 0, self.max_per_key))

    def noise(self, noised: Mapping[str, NoisyTally]) -> Mapping[str, pa.Array]:
        """Walk down the noised tree to each quantile."""
        tree = noised["leaves"]
        return self._released(walk(tree, self.ranks(tree)))

    def _released(self, places: Floats) -> dict[str, pa.Array]:
        """Turn places in [0, 1] into values, a column for each quantile."""
        values = self.scale.low + places * (self.scale.high - self.scale.low)
        return {name: self.scale.release(values[:, number]) for number, name in enumerate(self.names)}

    def margins(
        self, noised: Mapping[str, NoisyTally], blurs: Mapping[str, Blur]
    ) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """Walk down the noised tree to the ends of each interval."""
        del blurs
        low, high = map(self._released, self.places_between(noised["leaves"]))
        return {name: (low[name], high[name]) for name in self.names}

    def places_between(self, tree: NoisyTally) -> Margins:
        """Bound where in [0, 1] the quantiles lie."""
        return margins(tree, self.ranks(tree), 0, _reach(tree))

    def call(self) -> tuple[str, dict[str, Any]]:
        """Name the function that makes it: one that makes a single column of the measure's own name, or `quantiles`."""
        arguments = super().call()[1]
        alone, rank = arguments.pop("names") == (self.name,), self.quantiles[0]
        if alone and rank in self.alone:
            del arguments["quantiles"]
            return self.alone[rank], arguments
        return "quantiles", arguments | {"name": self.name.removesuffix("_quantiles")}

    def ranks(self, tree: NoisyTally) -> Floats:
        """Say for each key which shares of its values lie below what is asked for."""
        return np.tile(np.array(self.quantiles), (tree.keys, 1))


@dataclass(frozen=True, kw_only=True)
class Extreme(Quantiles):
    """The smallest or the largest value, as well as noise lets them be known: quantiles near 0 or 1.

    `quantiles` is (0.0,) or (1.0,). The rank that is taken is four standard deviations of noise away from that end, since nearer to it
    noise alone would decide.

    Guarantee: that of quantiles. docs/guarantees/quantiles.md.
    """

    word: ClassVar[str] = "extreme"
    alone: ClassVar[Mapping[float, str]] = {0.0: "minimum", 1.0: "maximum"}

    def ranks(self, tree: NoisyTally) -> Floats:
        """Step back from the end by as many values as noise amounts to, of those there seem to be."""
        values = below(tree, np.arange(tree.keys), level=1).sum(axis=1)
        back = np.minimum(_FROM_THE_END * tree.deviation / np.maximum(values, 1), 1 / 2)
        (end,) = self.quantiles
        ranks: Floats = np.abs(end - back)[:, np.newaxis]
        return ranks

    def places_between(self, tree: NoisyTally) -> Margins:
        """Bound where four standard deviations from the end lie; a key that may have hardly more is not bounded."""
        (end,) = self.quantiles
        shares = np.full((tree.keys, 1), end)
        low, high = margins(tree, shares, (1 - 2 * end) * _FROM_THE_END * tree.deviation, _reach(tree))
        values = below(tree, np.arange(tree.keys), level=1).sum(axis=1)
        # The rank is at most the median. The sum of four nodes has twice the noise of one.
        small = (values < 2 * (_FROM_THE_END + _reach(tree)) * tree.deviation)[:, np.newaxis]
        return np.where(small, 0, low), np.where(small, 1, high)


def _reach(tree: NoisyTally) -> float:
    """How far noise must reach for a walk to go wrong on any level with a chance that leaves LEVEL."""
    return Blur(tree.noise).reach(1 - (1 - LEVEL) / LEVELS)


def _refuse_bad_quantiles(quantiles: tuple[Any, ...]) -> None:
    if not quantiles:
        raise RangeError("quantiles is empty; name at least one, such as 0.5.")
    for quantile in quantiles:
        if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile < 1:
            raise RangeError(
                f"a quantile is {shown(quantile)}; it must be a number above 0 and below 1, such as 0.5; or use minimum and maximum."
            )


@call_checked(meanings={"quantiles": "the list of quantiles, each from 0 to 1, such as [0.5, 0.99]"})
def quantiles(  # noqa: PLR0913 - what quantiles are of, which, and three named settings
    column: str,
    quantiles: Sequence[float],
    low: Bound,
    high: Bound,
    *,
    max_per_key: int = 1,
    name: str | None = None,
    where: str | None = None,
) -> Mechanism:
    """Find quantiles of a column per key; each value is clamped to [low, high], which are numbers, dates or timestamps.

    Any number of them costs as much as one. Their columns are called `<column>_p50`, `<column>_p99_9` and so on.

    >>> list(quantiles("seconds", [0.5, 0.999], low=0, high=60).columns)
    ['seconds_p50', 'seconds_p99_9']
    """
    listed = tuple(quantiles) if isinstance(quantiles, list | tuple) else (quantiles,)
    _refuse_bad_quantiles(listed)
    prefix = column if name is None else name
    return Quantiles(
        column=column,
        low=low,
        high=high,
        quantiles=listed,
        max_per_key=max_per_key,
        name=f"{prefix}_quantiles",
        names=tuple(f"{prefix}_p{_percent(quantile)}" for quantile in listed),
        where=where,
    )


def _percent(quantile: float) -> str:
    return f"{(Decimal(repr(quantile)) * 100).normalize():f}".replace(".", "_")


def _single(kind: type[_Kind], quantile: float, name: str, **settings: Any) -> _Kind:
    """Make a measure of one column, which is called as the measure is."""
    return kind(quantiles=(quantile,), name=name, names=(name,), **settings)


@call_checked()
def median(
    column: str, low: Bound, high: Bound, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Find the median of a column per key: the quantile 0.5, called `<column>_median`.

    >>> median("seconds", low=0, high=60).name
    'seconds_median'
    """
    chosen = f"{column}_median" if name is None else name
    return _single(Quantiles, 0.5, chosen, column=column, low=low, high=high, max_per_key=max_per_key, where=where)


@call_checked()
def minimum(
    column: str, low: Bound, high: Bound, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Find about the smallest value of a column per key, called `<column>_minimum`.

    The true minimum is one user's own value, which no private answer can show. This is a low quantile, at the rank of four standard
    deviations of noise. In a key of many values that is near the minimum of what is common; rare smaller values stay hidden, on purpose.

    >>> minimum("seconds", low=0, high=60).name
    'seconds_minimum'
    """
    chosen = f"{column}_minimum" if name is None else name
    return _single(Extreme, 0.0, chosen, column=column, low=low, high=high, max_per_key=max_per_key, where=where)


@call_checked()
def maximum(
    column: str, low: Bound, high: Bound, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Mechanism:
    """Find about the largest value of a column per key, called `<column>_maximum`.

    The true maximum is one user's own value, which no private answer can show. This is a high quantile, at the rank of four standard
    deviations of noise from the end. In a key of many values that is near the maximum of what is common; rare larger values stay
    hidden, on purpose.

    >>> maximum("seconds", low=0, high=60).name
    'seconds_maximum'
    """
    chosen = f"{column}_maximum" if name is None else name
    return _single(Extreme, 1.0, chosen, column=column, low=low, high=high, max_per_key=max_per_key, where=where)


FORMS = (
    Form(quantiles, "quantiles(seconds, [0.5, 0.99], 0, 60)", SqlForm("PERCENTILE_CONT", (PER_ROW,))),
    Form(median, "median(seconds, 0, 60)"),
    Form(minimum, "minimum(seconds, 0, 60)", alias="min"),
    Form(maximum, "maximum(seconds, 0, 60)", alias="max"),
)
