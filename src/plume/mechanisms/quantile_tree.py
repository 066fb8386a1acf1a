"""The tree of ranges that quantiles are found in: noised sums in, places out.

Separate from the mechanism because it is post-processing: all it sees is noised already.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plume.mechanisms.margins import Margins
from plume.mechanisms.scale import Floats
from plume.mechanisms.tally import NoisyTally

# Of the trees that were tried this one has the smallest error (docs/decisions/0012-quantile-tree.md). Its 4,096 leaves are the grid of
# what is released.
BRANCHES = 4
LEVELS = 6
LEAVES = BRANCHES**LEVELS
# Children below so many standard deviations of noise count as empty: with less, noise is followed; with more, sparse tails are lost.
_MOSTLY_NOISE = 0.3


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
    weights = below(tree, nodes, level)
    if level < LEVELS:
        of_children = below(tree, (nodes[:, np.newaxis] * BRANCHES + np.arange(BRANCHES)).ravel(), level + 1)
        weights = (BRANCHES * weights + of_children.sum(axis=1).reshape(weights.shape)) / (BRANCHES + 1)
    weights = weights[place]
    if level > 1:
        weights += ((path.weight - weights.sum(axis=1)) / BRANCHES)[:, np.newaxis]
    return weights


def below(tree: NoisyTally, nodes: NDArray[np.int64], level: int) -> Floats:
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
class _Aim:
    """What the walks to the ends of intervals look for: all arrays have a place for each."""

    tree: NoisyTally
    key: NDArray[np.int64]
    share: Floats
    wanted: Floats
    """What should lie left of the place."""


def margins(tree: NoisyTally, shares: Floats, beyond: float, reach: float) -> Margins:
    """Bound where in [0, 1] the given shares of each key's weight, and `beyond` more, end; shares and results have a row per key.

    A place is possible if what seems to lie left of it differs from what should by at most `reach` standard deviations of noise. The
    walks take the first child whose right end is possible, and the last whose left end is. So each goes wrong only where noise reaches
    further at the end of one of the nodes that hold the place, of which there is one on each level.
    """
    key = np.broadcast_to(np.arange(tree.keys)[:, np.newaxis], shares.shape).ravel()
    wanted = shares.ravel() * below(tree, key, level=1).sum(axis=1) + beyond
    aim = _Aim(tree, key, shares.ravel(), wanted)
    low, high = _leaf(aim, reach, _first), _leaf(aim, -reach, _last)
    return (low / LEAVES).reshape(shares.shape), ((high + 1) / LEAVES).reshape(shares.shape)


def _leaf(aim: _Aim, reach: float, choose: Callable[[Floats], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Walk down to a leaf, numbered among those of its key; `choose` takes one of four children by the three ends between them."""
    node, left = aim.key, np.zeros(aim.key.size)
    first = others = np.zeros(aim.key.size, np.int64)
    inner, row = np.arange(1, BRANCHES), np.arange(aim.key.size)
    for level in range(1, LEVELS + 1):
        weights = below(aim.tree, node, level)
        reached = np.concatenate([np.zeros((row.size, 1)), np.cumsum(weights, axis=1)], axis=1) + left[:, np.newaxis]
        # Left of an end lie so many nodes of level 1, which are in the whole weight too, and so many of other levels.
        of_first, of_others = (first, others + inner[:, np.newaxis]) if level > 1 else (inner[:, np.newaxis], others)
        spread = np.sqrt((1 - aim.share) ** 2 * of_first + aim.share**2 * (BRANCHES - of_first) + of_others).T
        child = choose(reached[:, 1:BRANCHES] - aim.wanted[:, np.newaxis] + reach * aim.tree.deviation * spread)
        node, left = node * BRANCHES + child, reached[row, child]
        first, others = (first, others + child) if level > 1 else (child, others)
    leaf: NDArray[np.int64] = node - aim.key * LEAVES
    return leaf


def _first(ends: Floats) -> NDArray[np.int64]:
    """The first child whose right end is not too far left; the last has the right end of its parent, which is not."""
    return np.where((ends >= 0).any(axis=1), np.argmax(ends >= 0, axis=1), BRANCHES - 1)


def _last(ends: Floats) -> NDArray[np.int64]:
    """The last child whose left end is not too far right; the first has the left end of its parent, which is not."""
    return np.where((ends <= 0).any(axis=1), BRANCHES - 1 - np.argmax(ends[:, ::-1] <= 0, axis=1), 0)
