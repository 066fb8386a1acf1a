"""Two rounds of selection by thresholds, priced together with Gaussian measures: no user pays for both rounds and measures in full.

Its own file because it is mathematics alone, as `gaussian` is: numbers in, numbers out. The proofs, and why nothing here is ever too
small: docs/guarantees/two-round-weighted-gaussian.md.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from plume.privacy.gaussian import SAFETY, Floats, Novel, WorstUser, delta_of, pairs
from plume.privacy.pooled import Pooled

# What lies farther from the mean than nearly all of the noise is paid for in full, as a tiny share of delta.
_BEYOND, _SMALLEST_DELTA = 1e-6, 1e-301
# The second round is priced at ten epsilons, times these deviations squared; in between, by straight lines that lie above.
_NODES = 10
# Kinds of users whose chances of being shown alone are as close are priced as the worst of each; in cells, of which there are many, less.
_CLOSE, _CLOSE_IN_CELLS = 1.01, 1.03
# Whoever moves nothing is taken to move this little.
_LEAST_MU = 1e-6
# Into how many cells a whole account is cut, at the least and at the most; and at how many shares a search looks.
_CELLS, _MOST_CELLS, _POINTS = 64, 256, 3
# What cells may add to the delta of users who share all of their keys, which no threshold makes up for: half of what is kept back for it.
_ADDED_BY_CELLS = 1.025


@dataclass(frozen=True)
class Kinds:
    """Kinds of users: how likely none of their own keys passes a threshold, as logarithms, and how far they move all else."""

    hidden: Floats
    mu: Floats

    def adding(self, epsilons: Floats) -> Floats:
        """The largest delta of adding a user of any kind, at each epsilon."""
        hidden, passing = self.hidden[:, None], -np.expm1(self.hidden)[:, None]
        return _worst(passing + (1 - passing) * delta_of(self.mu[:, None], epsilons - hidden))

    def removing(self, epsilons: Floats) -> Floats:
        """The same for removing one."""
        return _worst(delta_of(self.mu[:, None], epsilons + self.hidden[:, None]))


@dataclass(frozen=True)
class TwoRounds:
    """A threshold on noised weights, and one for the keys that it leaves: what a user can do to keys that nobody else has."""

    first: Novel
    second: Novel
    slack: float = 0.0

    def delta(self) -> float:
        """The chance that any key of one user alone passes, in one round or the other."""
        return self.first.delta() + self.second.delta()

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> WorstUser:  # noqa: ARG002 - see below
        """Find the user of the first round with the largest delta beside measures of total mu `others`, whoever it is in the second.

        All users are looked at, however few novel keys they have: in the second round anybody may have some.
        """
        return _worst_user(self, others, epsilon)

    def following(self, others: float, epsilon: float) -> Kinds:  # noqa: ARG002 - as with `PooledRounds`
        """List what users may be in the second round, measures included."""
        return kinds_of(self.second, others)


@dataclass(frozen=True)
class PooledRounds:
    """Two thresholds on weights that are drawn from one account: what a user can do to keys that nobody else has, and to all others.

    Measures take the same share of a user's account whatever the first round releases. A user gives the square root of what they leave,
    divided by the number of keys, to each key in either round, and the noise of a round is as wide as its part of the account is small.
    """

    first: Pooled
    second: Pooled
    slack: float = 0.0

    @property
    def squared(self) -> float:
        """What a whole account moves, in squares of mu."""
        return self.first.sigma**-2 + self.second.sigma**-2

    def delta(self) -> float:
        """The chance that any key of one user alone passes, in one round or the other."""
        return self.first.delta() + self.second.delta()

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> WorstUser:  # noqa: ARG002 - as with `TwoRounds`
        """Find the user with the largest delta beside Gaussian noise of total mu `others` that accounts do not pay for.

        What measures take is cut into cells, each of which is priced by its worst corner.
        """
        return _worst_of_cells(self, others, epsilon)[1]

    def following(self, others: float, epsilon: float) -> Kinds:
        """List what users of the worst cell may be in the second round, measures included."""
        cell, _ = _worst_of_cells(self, others, epsilon)
        return self._following(cell, others)

    def in_cell(self, taken: tuple[float, float], others: float, epsilon: float) -> WorstUser:
        """Find the user with the largest delta of those of whom such shares are taken, or a worse one."""
        return _worst_kind(self._kinds(self.first, taken, 0.0), self._following(taken, others), epsilon)

    def least_delta(self, epsilon: float) -> float:
        """The delta of users who share all keys, as their cells are priced: no threshold, however high, brings it down."""
        return _delta_of_sharing(self, 0.0, epsilon, _cells_of_account(self, 0.0, epsilon))

    def _following(self, taken: tuple[float, float], others: float) -> Kinds:
        return self._kinds(self.second, taken, math.hypot(math.sqrt(taken[1] * self.squared), others))

    def _kinds(self, pooled: Pooled, taken: tuple[float, float], beside: float) -> Kinds:
        """List the users of a round; beside what measures move at the most, weights move by what is left at the most of the same users.

        As more is taken, measures move by more than weights move less. So where measures are priced too, weights are at the upper end.
        """
        low, high, fewest, most = pairs(pooled.max_keys_per_user, 0)
        fits = pooled.taken_at_least(low) <= taken[1]
        low, high, fewest, most = low[fits], high[fits], fewest[fits], most[fits]
        least = np.maximum(taken[0], pooled.taken_at_least(low))
        left = 1 - (taken[1] if beside else least)
        with np.errstate(
            all="ignore"
        ):  # thresholds so low that everything passes give infinities, which hold no budget
            hidden = np.where(most > 0, pooled.log_hidden(low, most, least), 0.0)
        shared = left * (1 - fewest / high) / pooled.sigma**2
        return worst_kinds(Kinds(hidden, np.sqrt(shared + beside**2)), close=_CLOSE_IN_CELLS)


@dataclass(frozen=True)
class FewUsers(PooledRounds):
    """The same, where only some shares that measures may take are looked at: to search, and never to rely on."""

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> WorstUser:  # noqa: ARG002 - as with `TwoRounds`
        """Find the user with the largest delta among a few."""
        least = float(self.second.taken_at_least(np.ones(1))[0])
        shares = map(float, np.linspace(least, self.second.covered, _POINTS))
        looked = (self.in_cell((share, share), others, epsilon) for share in shares)
        return max(looked, key=lambda worst: worst.delta)


@lru_cache(maxsize=64)
def _worst_of_cells(rounds: PooledRounds, others: float, epsilon: float) -> tuple[tuple[float, float], WorstUser]:
    least = float(rounds.second.taken_at_least(np.ones(1))[0])
    number = math.ceil((rounds.second.covered - least) * _cells_of_account(rounds, others, epsilon))
    ends = np.linspace(least, rounds.second.covered, 1 + number)
    cells = list(itertools.pairwise(map(float, ends))) or [(least, least)]
    deltas = ((cell, rounds.in_cell(cell, others, epsilon)) for cell in cells)
    return max(deltas, key=lambda one: one[1].delta)


def _cells_of_account(rounds: PooledRounds, others: float, epsilon: float) -> int:
    """Say into how many cells a whole account is cut, each so narrow that it adds little, unless that takes more than there may be."""
    cells, enough = _CELLS, _ADDED_BY_CELLS * float(delta_of(math.hypot(math.sqrt(rounds.squared), others), epsilon))
    while cells < _MOST_CELLS and _delta_of_sharing(rounds, others, epsilon, cells) > enough:
        cells *= 2
    return cells


def _delta_of_sharing(rounds: PooledRounds, others: float, epsilon: float, cells: int) -> float:
    """Price users who share all keys: in a cell the first round moves by what is left at the most, all else by what is taken."""
    squared = rounds.squared + others**2 + rounds.first.sigma**-2 / cells
    return float(delta_of(math.sqrt(squared), epsilon))


@lru_cache(maxsize=64)
def _worst_user(rounds: TwoRounds, others: float, epsilon: float) -> WorstUser:
    return _worst_kind(kinds_of(rounds.first, 0.0), rounds.following(others, epsilon), epsilon)


def _worst_kind(first: Kinds, second: Kinds, epsilon: float) -> WorstUser:
    spent = joint_deltas(first, second, epsilon)
    worst = int(np.argmax(spent))
    return WorstUser(float(first.mu[worst]), float(-np.expm1(first.hidden[worst])), float(spent[worst]))


def kinds_of(novel: Novel, others: float) -> Kinds:
    """List the users of whom a round reveals most, beside Gaussian measures of total mu `others`; the rest reveals less in every way.

    Whoever has the larger chance to be shown alone, or moves more, reveals more: only those count whom nobody exceeds in both.
    """
    low, high, fewest, most = pairs(novel.max_keys_per_user, 0)
    with np.errstate(all="ignore"):  # thresholds so low that everything passes give infinities, which hold no budget
        hidden = np.where(most > 0, novel.log_hidden(low, most), 0.0)
        shared = novel.weight(high) ** 2 * (high - fewest) / novel.sigma**2
    return worst_kinds(Kinds(hidden, np.sqrt(shared + others**2)))


def worst_kinds(kinds: Kinds, *, close: float = _CLOSE) -> Kinds:
    """Leave kinds of users out whom others exceed in both, and take the worst of those who are hardly apart."""
    order = np.lexsort((kinds.hidden, -kinds.mu))
    exposed, mu = -kinds.hidden[order], kinds.mu[order]
    exceeding = np.append(True, exposed[1:] > np.maximum.accumulate(exposed)[:-1])
    exposed, mu = exposed[exceeding], mu[exceeding]
    with np.errstate(divide="ignore"):  # those who are never shown
        classes = np.floor(np.log(exposed) / math.log(close))
    # Of each class the first moves most, and the last is shown most.
    _, first = np.unique(classes, return_index=True)
    last = np.append(first[1:], len(classes)) - 1
    return Kinds(-exposed[last], mu[first])


def joint_deltas(first: Kinds, second: Kinds, epsilon: float) -> Floats:
    """The delta of a round together with all that follows, for each kind of users of the first: never too small.

    Which kind a user is in the second round may depend on what the first released. So the second is priced for each epsilon by the
    worst of all kinds, and the noise of the first decides which epsilon is left to it.
    """
    moved = np.maximum(first.mu, _LEAST_MU)
    least = max(float(delta_of(math.hypot(float(moved.max()), float(second.mu.max())), epsilon)), _SMALLEST_DELTA)
    deviations = -float(ndtri(_BEYOND * least))
    reach = float(moved.max()) * (deviations + float(moved.max()))
    epsilons = np.linspace(epsilon - reach, epsilon + reach, math.ceil(_NODES * deviations**2))
    with np.errstate(all="ignore"):  # the same
        passing = -np.expm1(first.hidden)
        adding = _expected(second.adding(epsilons), epsilons, epsilon - first.hidden, moved)
        removing = _expected(second.removing(epsilons), epsilons, epsilon + first.hidden, moved)
        spent = np.maximum(passing + (1 - passing) * adding, removing) * SAFETY
    return np.where(np.isnan(spent), 1.0, spent)


def _expected(deltas: Floats, epsilons: Floats, start: Floats, mu: Floats) -> Floats:
    """What is expected of the delta that is left, for a start less the loss of a Gaussian mechanism of each mu: never too small.

    A curve of deltas is convex in e^epsilon, so lines between its points lie above it; and a line has an expectation in closed form.
    """
    # The loss that leads from the start to a node, in deviations from its mean: in the one world, and in the other.
    here = (start[:, None] - epsilons) / mu[:, None] - mu[:, None] / 2
    there = here + mu[:, None]
    chances = _between(here)
    powers = np.exp(epsilons)[:-1]
    beyond = np.exp(start)[:, None] * _between(there) - powers * chances
    along = np.clip(beyond / (powers * np.expm1(np.diff(epsilons))), 0, chances)
    lines = deltas[:-1] * chances + np.diff(deltas) * along
    # Before the first node nothing is known but that no delta is above 1; after the last, that they fall.
    expected: Floats = ndtr(-here[:, 0]) + lines.sum(axis=1) + deltas[-1] * ndtr(here[:, -1])
    return expected


def _between(falling: Floats) -> Floats:
    """The chances of a normal number to lie between neighbours, from the side on which they keep their digits."""
    above, below = ndtr(-falling), ndtr(falling)
    chances: Floats = np.where(falling[:, 1:] > 0, np.diff(above, axis=1), -np.diff(below, axis=1))
    return chances


def _worst(deltas: Floats) -> Floats:
    """The largest of each column; what is not a number is taken to be 1."""
    worst: Floats = np.where(np.isnan(deltas), 1.0, deltas).max(axis=0)
    return worst
