"""Quantiles from noised counts in a tree of ranges: any number of them for one price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.errors import RangeError
from plume.mechanisms.count import refuse_bad_limit
from plume.mechanisms.histogram import unit_for
from plume.mechanisms.mechanism import Part, size_of
from plume.mechanisms.rows import condition, given
from plume.mechanisms.scale import Bound, Floats, Scale, scale_between
from plume.mechanisms.tally import NoisyTally
from plume.plan.expressions import (
    AddTallies,
    Aggregates,
    Clamp,
    Collect,
    Column,
    Columns,
    CountValues,
    Expression,
    Tally,
)
from plume.plan.nodes import Size
from plume.plan.types import Kind

# Of the trees tried in algorithms 4.2 this one has the smallest error. Its 4,096 leaves are the grid of what is released.
BRANCHES = 4
LEVELS = 6
LEAVES = BRANCHES**LEVELS
# Children below so many standard deviations of noise count as empty: with less, noise is followed; with more, sparse tails are lost.
_MOSTLY_NOISE = 0.3
# How far from the end, in standard deviations of noise, a rank is taken for the smallest or largest value: with less, one empty node in
# twenty on the far side would look heavy enough to hold it.
_FROM_THE_END = 4


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Quantiles of a column per key, each value moved into [low, high].

    A user with more than `max_per_key` values in a key is weighted down to as many, with all their values.

    Guarantee: on each level of the tree one user changes all nodes of one key together by at most `max_per_key`.
    docs/guarantees/quantiles.md.
    """

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
        refuse_bad_limit(self.max_per_key)
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
    def value_columns(self) -> Mapping[str, frozenset[Kind]]:
        """The column."""
        return {self.column: self.scale.kinds}

    @property
    def condition(self) -> Expression | None:
        """Which records count."""
        return condition(self.where)

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
        """The values that count: on each level of the tree they weigh so much together."""
        return size_of(self.max_per_key, Clamp(Column("values"), 0, self.max_per_key))

    def noise(self, noised: Mapping[str, NoisyTally]) -> Mapping[str, pa.Array]:
        """Walk down the noised tree to each quantile."""
        tree = noised["leaves"]
        found = walk(tree, self.ranks(tree))
        values = self.scale.low + found * (self.scale.high - self.scale.low)
        return {name: self.scale.release(values[:, number]) for number, name in enumerate(self.names)}

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

    def ranks(self, tree: NoisyTally) -> Floats:
        """Step back from the end by as many values as noise amounts to, of those there seem to be."""
        values = _below(tree, np.arange(tree.keys), level=1).sum(axis=1)
        back = np.minimum(_FROM_THE_END * tree.deviation / np.maximum(values, 1), 1 / 2)
        (end,) = self.quantiles
        ranks: Floats = np.abs(end - back)[:, np.newaxis]
        return ranks


@dataclass(frozen=True)
class _Path:
    """How far the walks to many ranks have come: all arrays have a place for each."""

    node: NDArray[np.int64]
    """The node, numbered among those of its level, key by key."""
    weight: Floats
    """What the node seems to weigh."""
    rank: Floats
    """The share of its weight that lies below."""
    start: Floats
    width: Floats
    going: NDArray[np.bool_]
    """Whether there was anything to go down to, so far."""


def walk(tree: NoisyTally, ranks: Floats) -> Floats:
    """Find where in [0, 1] the given shares of each key's values end; ranks and result have a row per key.

    All walk down together, level by level, so that a node is looked at once. Children that are mostly noise count as empty. Where
    all are, the walk ends, and the rank says where within the node.
    """
    key = np.broadcast_to(np.arange(tree.keys)[:, np.newaxis], ranks.shape).ravel()
    nothing, whole = np.zeros(key.size), np.ones(key.size)
    path = _Path(key, nothing, ranks.ravel(), nothing, whole, np.ones(key.size, dtype=bool))
    for level in range(1, LEVELS + 1):
        weights = _children(tree, path, level)
        path = _descend(path, np.where(weights < _MOSTLY_NOISE * tree.deviation, 0, weights))
    found: Floats = (path.start + path.rank * path.width).reshape(ranks.shape)
    return found


def _children(tree: NoisyTally, path: _Path, level: int) -> Floats:
    """Estimate what the four children of each node weigh.

    A child's own sum is improved by that of its children, and then all four by what their parent is known to weigh.
    """
    nodes, place = np.unique(path.node, return_inverse=True)
    weights = _below(tree, nodes, level)
    if level < LEVELS:
        of_children = _below(tree, (nodes[:, np.newaxis] * BRANCHES + np.arange(BRANCHES)).ravel(), level + 1)
        weights = (BRANCHES * weights + of_children.sum(axis=1).reshape(weights.shape)) / (BRANCHES + 1)
    weights = weights[place]
    if level > 1:
        weights += ((path.weight - weights.sum(axis=1)) / BRANCHES)[:, np.newaxis]
    return weights


def _below(tree: NoisyTally, nodes: NDArray[np.int64], level: int) -> Floats:
    """Noised sums of the four children of nodes, which are on that level."""
    children = nodes[:, np.newaxis] * BRANCHES + np.arange(BRANCHES)
    return tree.sums(LEAVES // BRANCHES**level, children).astype(np.float64)


def _descend(path: _Path, weights: Floats) -> _Path:
    """Go to the child in which each rank lies."""
    reached = np.cumsum(weights, axis=1)
    wanted = path.rank * reached[:, -1]
    child = np.argmax((reached >= wanted[:, np.newaxis]) & (weights > 0), axis=1)
    row = np.arange(child.size)
    weight, before = weights[row, child], (reached - weights)[row, child]
    going = path.going & (weight > 0)
    rank = np.clip((wanted - before) / np.where(going, weight, 1), 0, 1)
    width = np.where(going, path.width / BRANCHES, path.width)
    return _Path(
        path.node * BRANCHES + child,
        weight,
        np.where(going, rank, path.rank),
        np.where(going, path.start + child * width, path.start),
        width,
        going,
    )


def _refuse_bad_quantiles(quantiles: tuple[Any, ...]) -> None:
    if not quantiles:
        raise RangeError("quantiles is empty; name at least one, such as 0.5.")
    for quantile in quantiles:
        if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile < 1:
            raise RangeError(
                f"a quantile is {quantile!r}; it must be a number above 0 and below 1, such as 0.5; or use minimum and maximum."
            )


def quantiles(  # noqa: PLR0913 - what quantiles are of, which, and three named settings
    column: str,
    quantiles: Sequence[float],
    low: Bound,
    high: Bound,
    *,
    max_per_key: int = 1,
    name: str | None = None,
    where: str | None = None,
) -> Quantiles:
    """Find quantiles of a column per key; each value is moved into [low, high], which are numbers, dates or moments.

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


def median(
    column: str, low: Bound, high: Bound, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Quantiles:
    """Find the median of a column per key: the quantile 0.5, called `<column>_median`.

    >>> median("seconds", low=0, high=60).name
    'seconds_median'
    """
    chosen = f"{column}_median" if name is None else name
    return Quantiles(
        column=column,
        low=low,
        high=high,
        quantiles=(0.5,),
        max_per_key=max_per_key,
        name=chosen,
        names=(chosen,),
        where=where,
    )


def minimum(
    column: str, low: Bound, high: Bound, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Extreme:
    """Find about the smallest value of a column per key, called `<column>_minimum`.

    The true minimum is one user's own value, which no private answer can show. This is a low quantile, at the rank of four standard
    deviations of noise. In a key of many values that is near the minimum of what is common; rare smaller values stay hidden, on purpose.

    >>> minimum("seconds", low=0, high=60).name
    'seconds_minimum'
    """
    chosen = f"{column}_minimum" if name is None else name
    return Extreme(
        column=column,
        low=low,
        high=high,
        quantiles=(0.0,),
        max_per_key=max_per_key,
        name=chosen,
        names=(chosen,),
        where=where,
    )


def maximum(
    column: str, low: Bound, high: Bound, *, max_per_key: int = 1, name: str | None = None, where: str | None = None
) -> Extreme:
    """Find about the largest value of a column per key, called `<column>_maximum`.

    The true maximum is one user's own value, which no private answer can show. This is a high quantile, at the rank of four standard
    deviations of noise from the end. In a key of many values that is near the maximum of what is common; rare larger values stay
    hidden, on purpose.

    >>> maximum("seconds", low=0, high=60).name
    'seconds_maximum'
    """
    chosen = f"{column}_maximum" if name is None else name
    return Extreme(
        column=column,
        low=low,
        high=high,
        quantiles=(1.0,),
        max_per_key=max_per_key,
        name=chosen,
        names=(chosen,),
        where=where,
    )
