"""The tree of ranges that quantiles are found in: noised sums in, places out.

Separate from the mechanism because it is post-processing: all it sees is noised already.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plume.mechanisms.margins import Margins
from plume.mechanisms.scale import Floats
from plume.mechanisms.tally import Integers

# Of the trees that were tried this one has the smallest error (docs/decisions/0012-quantile-tree.md). Its 4,096 leaves are the grid of
# what is released.
BRANCHES = 4
LEVELS = 6
LEAVES = BRANCHES**LEVELS
# Children below this many standard deviations of noise count as empty: with less, noise is followed; with more, sparse tails are lost.
_MOSTLY_NOISE = 0.3


class Tree(Protocol):
    """Sums over ranges of the leaves of many keys, with noise on them; the same range has the same noise each time."""

    @property
    def keys(self) -> int:
        """How many keys there are."""

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on each range."""

    def sums(self, width: int, ranges: Integers) -> NDArray[Any]:
        """Give noised sums over ranges of `width` leaves; range number r begins at leaf number r * width."""


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


def walk(tree: Tree, ranks: Floats) -> Floats:
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
    places: Floats = (path.start + path.rank * path.width).reshape(ranks.shape)
    return places


def _children(tree: Tree, path: _Path, level: int) -> Floats:
    """Estimate what the four children of each node weigh.

    A child's own sum is improved by that of its children, and then all four by what their parent is known to weigh.
    """
    nodes, place = np.unique(path.node, return_inverse=True)
    weights = below(tree, nodes, level)
    if level < LEVELS:
        of_children = below(tree, (nodes[:, np.newaxis] * BRANCHES + np.arange(BRANCHES)).ravel(), level + 1)
        weights = (BRANCHES * weights + of_children.sum(axis=1).reshape(weights.shape)) / (BRANCHES + 1)
    weights = weights[place]
    if level > 1:
        weights += ((path.weight - weights.sum(axis=1)) / BRANCHES)[:, np.newaxis]
    return weights


def below(tree: Tree, nodes: NDArray[np.int64], level: int) -> Floats:
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


@dataclass(frozen=True)
class Edge:
    """How far the walks to the ends of intervals have come: all arrays have a place for each.

    Variances are in those of the noise of one node. docs/guarantees/intervals.md.
    """

    node: NDArray[np.int64]
    """The node, numbered among those of its level, key by key."""
    left: Floats
    """What seems to lie left of it, less what should."""
    weight: Floats
    """What the node seems to weigh."""
    left_variance: Floats
    covariance: Floats
    """Of what lies left with what each child weighs."""
    trust: float
    """How much of the difference between the node's weight and that of its children together moves each child."""


def margins(tree: Tree, shares: Floats, beyond: float, reach: float) -> Margins:
    """Bound where in [0, 1] the given shares of each key's weight, and `beyond` more, end; shares and results have a row per key.

    A place is possible if what seems to lie left of it differs from what should by at most `reach` standard deviations of noise. The
    walks take the first child whose right end is possible, and the last whose left end is. So each goes wrong only where noise reaches
    further at the end of one of the nodes that hold the place, of which there is one on each level.
    """
    root = root_of(tree, shares, beyond)
    low, high = leaf_at_end(tree, root, reach, _first), leaf_at_end(tree, root, -reach, _last)
    places = (end - root.node * LEAVES for end in (low, high + 1))
    first, last = (place.reshape(shares.shape) / LEAVES for place in places)
    return first, last


def root_of(tree: Tree, shares: Floats, beyond: float) -> Edge:
    """Begin the walks; the whole weight is the sum of four nodes, of which each is a child too."""
    key = np.broadcast_to(np.arange(tree.keys)[:, np.newaxis], shares.shape).ravel()
    share, whole = shares.ravel(), below(tree, key, level=1).sum(axis=1)
    return Edge(key, -share * whole - beyond, whole, BRANCHES * share**2, -share, trust=0.0)


def leaf_at_end(
    tree: Tree, edge: Edge, reach: float, choose: Callable[[Floats], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Walk down to a leaf; `choose` takes one of four children by the three ends between them."""
    row, number = np.arange(edge.node.size), np.arange(BRANCHES + 1)
    for level in range(1, LEVELS + 1):
        weights = below(tree, edge.node, level)
        weights += (edge.trust * (edge.weight - weights.sum(axis=1)))[:, np.newaxis]
        left = np.cumsum(np.column_stack([edge.left, weights]), axis=1)
        variance = edge.left_variance[:, np.newaxis] + 2 * np.multiply.outer(edge.covariance, number)
        variance += number - edge.trust * number**2
        inner = slice(1, BRANCHES)
        child = choose(left[:, inner] + reach * tree.deviation * np.sqrt(variance[:, inner]))
        trust = 1 / (BRANCHES + 1 - edge.trust)
        edge = Edge(
            edge.node * BRANCHES + child,
            left[row, child],
            weights[row, child],
            variance[row, child],
            trust * (edge.covariance - edge.trust * child),
            trust,
        )
    return edge.node


def _first(ends: Floats) -> NDArray[np.int64]:
    """The first child whose right end is not too far left; the last has the right end of its parent, which is not."""
    return np.where((ends >= 0).any(axis=1), np.argmax(ends >= 0, axis=1), BRANCHES - 1)


def _last(ends: Floats) -> NDArray[np.int64]:
    """The last child whose left end is not too far right; the first has the left end of its parent, which is not."""
    return np.where((ends <= 0).any(axis=1), BRANCHES - 1 - np.argmax(ends[:, ::-1] <= 0, axis=1), 0)
