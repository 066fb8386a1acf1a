"""One account for each user over selection and measures: what measures do not need goes into the weights of keys.

Its own file because it is mathematics alone, as `gaussian` is: numbers in, numbers out. The proofs: docs/guarantees/pooled-gaussian.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from plume.errors import RangeError
from plume.privacy.gaussian import Floats, WorstUser, delta_of, pairs

# What an account holds, in whole units; and 2**20 steps of weight, squared, are STEPS times that.
ACCOUNT = 2**30
STEPS = 2**10
# Selection must keep at least this share of the account of users who fill all measures.
LEAST_SHARE = Fraction(1, 1000)
# By how much the largest delta found may be above the largest there is, and above what another look finds.
_CLOSE = 1e-8
_TIMES, _PIECES = 20, 4
# Where deltas are so small that floating-point numbers cannot be told apart that closely, no cutting ends: then it is this many cells.
_MOST_CELLS = 2**17
# The rows of cells that say how much of the account is taken; the others are those of `pairs`.
_LEAST_TAKEN, _MOST_TAKEN = 4, 5


@dataclass(frozen=True)
class Charge:
    """What measures of one size take from the account of a user: in proportion to the sum of their keys' squared sizes, up to a share."""

    share: Fraction
    """Of the whole account, of a user who fills the measures."""
    whole: int
    """The sum of squares from which on a user pays all of it: as many keys as the limit, each as large as can be."""
    least: int
    """A square that no key of a user falls below: 1 where being there at all counts for one, else 0."""

    @property
    def most(self) -> int:
        """The most that is taken, in whole units."""
        return math.ceil(ACCOUNT * self.share)

    @property
    def rate(self) -> float:
        """What each square costs, in units."""
        return float(ACCOUNT * self.share / self.whole)

    def taken(self, squares: int) -> int:
        """Say what is taken for a sum of squares: never less than the exact amount, whatever floating-point numbers err by."""
        return int(min(math.floor(float(squares) * self.rate) + 2.0, float(self.most)))

    def at_least(self, keys: Floats) -> Floats:
        """The least that is taken from a user with that number of keys, as a share of the account; rounded down."""
        filled: Floats = np.minimum(1, keys * (self.least / self.whole)) * (float(self.share) * (1 - 1e-12))
        return filled


@dataclass(frozen=True)
class Pooled:
    """A threshold on weights that are drawn from accounts: what a user can do to keys that nobody else has, and to all others.

    A user of whom a share q of the account is taken by measures gives the square root of (1 - q) / t to each of t keys; `sigma` and
    `threshold` are in units of the weight of a user with one key of whom nothing is taken.
    """

    sigma: float
    threshold: float
    max_keys_per_user: int
    charges: tuple[Charge, ...]
    slack: float = 4 * _CLOSE
    """How far two looks at the same users may be apart, at most."""

    @property
    def covered(self) -> float:
        """The largest share of an account that measures take."""
        return math.fsum(charge.most for charge in self.charges) / ACCOUNT

    def taken_at_least(self, keys: Floats) -> Floats:
        """What measures take from any user with that number of keys."""
        nothing: Floats = np.zeros_like(keys)
        return sum((charge.at_least(keys) for charge in self.charges), nothing)

    def delta(self) -> float:
        """The chance that any key of one user alone passes."""
        keys = np.arange(1, self.max_keys_per_user + 1, dtype=np.float64)
        with np.errstate(divide="ignore"):  # a threshold so low that everything passes
            return float(np.max(-np.expm1(self.log_hidden(keys, keys, self.taken_at_least(keys)))))

    def log_hidden(self, keys: Floats, novel: Floats, taken: Floats) -> Floats:
        """The logarithm of the chance that none of `novel` keys of a user with `keys` keys passes; `taken` is a share of the account."""
        weight = np.sqrt((1 - taken) / keys)
        hidden: Floats = novel * np.log1p(-ndtr((weight - self.threshold) / self.sigma))
        return hidden

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> WorstUser:
        """Find the user with the largest delta beside Gaussian noise of total mu `others` that accounts do not pay for.

        Whatever is between, no user spends more than what is found: docs/guarantees/pooled-gaussian.md.
        """
        return _worst(self, others, epsilon, fewest_novel)

    def users(self, fewest_novel: int) -> Floats:
        """List all kinds of users as cells: ranges of their keys, of novel ones among these, and of what measures take."""
        low, high, fewest, most = pairs(self.max_keys_per_user, fewest_novel)
        least = self.taken_at_least(low)
        # Where no key is novel, it makes no difference what is taken: all of the account moves what others have as well.
        return np.stack([low, high, fewest, most, least, np.where(most > 0, self.covered, least)])


@dataclass(frozen=True)
class AtEnds(Pooled):
    """The same, where only users are looked at of whom measures take the least or the most: for a search, which is quicker with fewer.

    No curve was found that is largest in between. What a search finds is then looked at as a whole.
    """

    def worst(self, *, others: float, epsilon: float, fewest_novel: int = 0) -> WorstUser:
        """Find the one of them with the largest delta."""
        return _Look(self, others, epsilon).worst(np.concatenate(_ends(self.users(fewest_novel)), axis=1))


@lru_cache(maxsize=256)
def _worst(pooled: Pooled, others: float, epsilon: float, fewest_novel: int) -> WorstUser:
    """Look at all users once, whoever asks: what is planned is priced again when it is explained, checked and run."""
    cells = pooled.users(fewest_novel)
    look, found, closed = _Look(pooled, others, epsilon), 0.0, list[Floats]()
    for _ in range(_TIMES):
        spent, *at_ends = np.split(look.spent(np.concatenate([cells, *_ends(cells)], axis=1)), 3)
        found = max(found, float(np.max(at_ends)))
        uncertain = spent > found * (1 + _CLOSE)
        if not uncertain.all():
            worst = int(np.argmax(np.where(uncertain, -1.0, spent)))
            closed.append(cells[:, worst : worst + 1])
        cells = _cut(cells[:, uncertain])
        if not uncertain.any() or cells.shape[1] > _MOST_CELLS:
            break
    return look.worst(np.concatenate([*closed, cells], axis=1))


@dataclass(frozen=True)
class _Look:
    """How much is revealed about the users of a cell, at most: from `low` to `high` keys, and so on.

    The worst corner: most novel keys of the largest weight, which falls with what is taken, and most shared weight and measures together,
    which grow with it.
    """

    pooled: Pooled
    others: float
    epsilon: float

    def moved(self, cells: Floats) -> Floats:
        _, high, fewest, _, _, most_taken = cells
        shared = (1 - most_taken) * (1 - fewest / high) + most_taken
        mu: Floats = np.sqrt(shared / self.pooled.sigma**2 + self.others**2)
        return mu

    def hidden(self, cells: Floats) -> Floats:
        low, _, _, most, least_taken, _ = cells
        return self.pooled.log_hidden(low, most, least_taken)

    def spent(self, cells: Floats) -> Floats:
        with np.errstate(
            all="ignore"
        ):  # thresholds so low that everything passes give infinities, which hold no budget
            mu, hidden = self.moved(cells), self.hidden(cells)
            passing = -np.expm1(hidden)
            adding = passing + (1 - passing) * delta_of(mu, self.epsilon - hidden)
            removing = delta_of(mu, self.epsilon + hidden)
            spent = np.maximum(adding, removing)
        return np.where(np.isnan(spent), 1.0, spent)

    def worst(self, cells: Floats) -> WorstUser:
        spent = self.spent(cells)
        worst = int(np.argmax(spent))
        one = cells[:, worst : worst + 1]
        with np.errstate(all="ignore"):
            shown = float(-np.expm1(self.hidden(one))[0])
        return WorstUser(float(self.moved(one)[0]), shown, float(spent[worst]))


def _ends(cells: Floats) -> list[Floats]:
    """Give the users at both ends of cells: exactly that much is taken of them."""
    return [cells[[0, 1, 2, 3, end, end]] for end in (_LEAST_TAKEN, _MOST_TAKEN)]


def _cut(cells: Floats) -> Floats:
    """Cut cells into pieces, by what is taken."""
    least, most = cells[_LEAST_TAKEN], cells[_MOST_TAKEN]
    # The last one ends where the cell does, to the last digit.
    ends = [least, *(least + (most - least) * (piece / _PIECES) for piece in range(1, _PIECES)), most]
    pieces = [np.stack([*cells[:_LEAST_TAKEN], low, high]) for low, high in pairwise(ends)]
    return np.concatenate(pieces, axis=1)


def left(charges: tuple[Charge, ...], squares: tuple[int, ...]) -> int:
    """Say how many units measures leave of the account of a user with these sums of squares, one for each charge."""
    return ACCOUNT - sum(charge.taken(total) for charge, total in zip(charges, squares, strict=True))


def weight(units: int, keys: int) -> int:
    """Say how many steps of weight a user with `units` left gives to each of a number of keys: the root of an equal part, cut down."""
    return math.isqrt(STEPS * units // keys)


def refuse_too_little_for_selection(charges: tuple[Charge, ...]) -> None:
    """Refuse accounts of which measures take nearly everything: no threshold would be high enough for those who fill them."""
    remaining = 1 - sum((charge.share for charge in charges), Fraction())
    if remaining < LEAST_SHARE:
        raise RangeError(
            f"selection has a share of {max(0.0, float(remaining)):.3g} of the budget; with pooled weights it needs "
            f"{float(LEAST_SHARE):g} or more; give 'selection' a larger share with shares=."
        )
