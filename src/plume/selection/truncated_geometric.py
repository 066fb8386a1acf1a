"""Keep a key with a probability that depends on its users: the optimal strategy of Desfontaines, Voss, Gipson and Mandayam, 2020.

Separate from the thresholds because it adds no noise: the chances themselves are made private, as integers in units of 2**-128.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import mpmath
import numpy as np
from numpy.typing import NDArray

from plume.errors import BoundError, BudgetError, RangeError
from plume.noise.entropy import Entropy
from plume.plan.expressions import Expression, Literal
from plume.privacy.cost import EpsilonCost
from plume.privacy.losses import Shape
from plume.selection.rule import ComposedBudget, EpsilonBudget, Rounds, Rule

LARGEST_TABLE = 2**20

_WORD_BITS = 64
_CERTAIN = 1 << 2 * _WORD_BITS  # chances are integers in units of 2**-128
_GROWTH_BITS = 256
_PRECISION_BITS = 512
_MARGIN_BITS = 300  # far above what mpmath may err by in its 512 bits, far below what 256 bits can tell
_LARGEST_EPSILON = Fraction(100)  # e**100 is above 2**128: with more, no integer in the table would change
_KEYS_AT_ONCE = 2**15  # the arrays of one piece fit in a core's cache


class _PerThread(threading.local):
    """Exact arithmetic for one thread alone: mpmath changes a context's precision while it computes."""

    def __init__(self) -> None:
        self.exact = mpmath.MPContext()
        self.exact.prec = _PRECISION_BITS


_own = _PerThread()


@dataclass(frozen=True)
class TruncatedGeometric:
    """Keep a key with the largest probability that its number of users may have.

    Guarantee: if each user is in at most `max_keys_per_user` keys, the kept keys are (cost.epsilon, cost.delta)-differentially private.
    With `min_users` above 1, keys with fewer users are never kept. docs/guarantees/truncated-geometric.md.
    """

    max_keys_per_user: int
    epsilon: Fraction
    """For all keys of a user together, as delta is."""
    delta: float
    min_users: int = 1
    name: str = "truncated geometric"
    counts_all_keys: bool = False
    left_out: int = 0
    account: None = None

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction):
            raise TypeError(f"epsilon is a {type(self.epsilon).__name__}; it must be an exact Fraction.")
        if self.epsilon <= 0:
            raise BudgetError(f"epsilon is {self.epsilon}; it must be above 0.")
        if not 0 < self.delta < 1:
            raise BudgetError(f"delta is {self.delta}; selecting keys needs one above 0 and below 1.")
        if self.max_keys_per_user < 1 or self.min_users < 1:
            raise BoundError(
                f"max_keys_per_user is {self.max_keys_per_user} and min_users is {self.min_users}; both must be at least 1."
            )
        self._table()  # what cannot be tabulated is refused before any data is read

    @property
    def cost(self) -> EpsilonCost:
        """What it spends: epsilon, and the delta that the integers in the table need beside it."""
        return EpsilonCost("selection", self.epsilon, delta=self._table().delta, coordinates=self.max_keys_per_user)

    @property
    def users_for_even_chance(self) -> float:
        """With how many users a key is kept half the time."""
        return self._table().users_for_even_chance + self.min_users - 1

    def weight(self, keys_of_user: Expression) -> Expression:  # noqa: ARG002 - other strategies weigh by it
        """One user counts one."""
        return Literal(1)

    def weight_of(self, keys: int) -> int:  # noqa: ARG002 - other strategies weigh by it
        """One."""
        return 1

    def chance(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the table says."""
        return self._table().chance(weights - (self.min_users - 1))

    def keep(self, weights: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Throw one exact coin for every key.

        Keys are counted from `min_users - 1` on, which keeps the sensitivity of the count (docs/guarantees/truncated-geometric.md).
        """
        table = self._table()
        kept = np.empty(len(weights), dtype=np.bool_)
        for start in range(0, len(weights), _KEYS_AT_ONCE):
            piece = slice(start, start + _KEYS_AT_ONCE)
            kept[piece] = table.keep(weights[piece] - (self.min_users - 1), entropy)
        return kept

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
        table = self._table()
        return {
            "strategy": self.name,
            "users_for_even_chance": self.users_for_even_chance,
            "users_for_certainty": len(table.high) + self.min_users - 1,
            "min_users": self.min_users,
        }

    def _table(self) -> "ChanceTable":
        return tabulate(self.max_keys_per_user, epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class ChanceTable:
    """The chance of a key with 0, 1, 2, ... users to be kept, in units of 2**-128; beyond its end all keys are kept."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    delta: float
    """What the chances spend beside epsilon, over all keys of a user."""

    @property
    def users_for_even_chance(self) -> int:
        """The fewest users with which a key is kept at least half the time."""
        return int(np.searchsorted(self.high, np.uint64(_CERTAIN >> _WORD_BITS + 1)))

    def chance(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the chances as floating-point numbers, for people: coins are thrown by the integers."""
        row = np.clip(users, 0, len(self.high) - 1)
        tabled = self.high[row] * 2.0**-_WORD_BITS + self.low[row] * 2.0 ** (-2 * _WORD_BITS)
        return np.where(users >= len(self.high), 1.0, tabled)

    def keep(self, users: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Compare 128 random bits per key, its high word drawn first, with the key's chance.

        Of the 2**128 equally likely numbers, exactly as many are below the chance as it says.
        """
        words = entropy.words(2 * len(users))
        high, low = words[0::2], words[1::2]
        row = np.clip(users, 0, len(self.high) - 1)
        chance = self.high[row]
        below = (high < chance) | ((high == chance) & (low < self.low[row]))
        kept: NDArray[np.bool_] = below | (users >= len(self.high))
        return kept


@lru_cache(maxsize=16)
def tabulate(max_keys_per_user: int, *, epsilon: Fraction, delta: float) -> ChanceTable:
    """Fill a table of chances so that `max_keys_per_user` of them together spend at most epsilon and delta."""
    growth, novel = _growth(epsilon / max_keys_per_user), _novel_chance(max_keys_per_user, delta)
    chances = _chances(growth, novel) if _may_fit(epsilon / max_keys_per_user, novel) else []
    if not 0 < len(chances) <= LARGEST_TABLE:
        raise RangeError(
            f"selecting keys by {TruncatedGeometric.name} with max_keys_per_user = {max_keys_per_user}, epsilon = {float(epsilon):.3g} "
            f"and delta = {delta:.3g} needs a table of more than {LARGEST_TABLE} chances; "
            "lower max_keys_per_user, raise epsilon or delta, or select keys by a threshold."
        )
    high = np.array([chance >> _WORD_BITS for chance in chances], dtype=np.uint64)
    low = np.array([chance & (1 << _WORD_BITS) - 1 for chance in chances], dtype=np.uint64)
    for words in (high, low):
        words.setflags(write=False)  # every strategy with this budget shares them
    return ChanceTable(high, low, _delta_of(_needed([*chances, _CERTAIN], growth), max_keys_per_user))


def _may_fit(epsilon: Fraction, novel: int) -> bool:
    """Return whether a table could be small enough, by the closed form, before a long one is filled."""
    if not novel:
        return False
    _, uncertain = turning_points(epsilon=epsilon, delta=novel / _CERTAIN)
    return uncertain <= LARGEST_TABLE + LARGEST_TABLE // 8


def _chances(growth: int, novel: int) -> list[int]:
    """List the chances below certainty, each the largest that the one before it allows.

    Let g = growth / 2**256, at most e^ε, d = novel, and C = 2**128. From a chance p follows the largest integer p' <= C with

        p' <= g·p + d          (a key shows up)       and       C - p <= g·(C - p') + d          (a key stays away).

    The first asks p' <= floor(g·p) + d. The second asks C - p' >= ceil((C - p - d) / g). Both are decided on integers, so they
    hold exactly, with g and hence with e^ε. As g >= 1, both allow p' >= p + d where that is below C: chances never fall, and so
    p <= g·p' + d and C - p' <= g·(C - p) + d hold as well. Rounding unrounded chances down would break the first: p' must
    follow from the rounded p, not from the one before rounding.
    """
    chances: list[int] = []
    chance = 0
    while chance < _CERTAIN and len(chances) <= LARGEST_TABLE:
        chances.append(chance)
        shown = (growth * chance >> _GROWTH_BITS) + novel
        hidden = -((chance + novel - _CERTAIN << _GROWTH_BITS) // growth)
        chance = min(shown, _CERTAIN - max(hidden, 0))
    return chances


def _needed(chances: Sequence[int], growth: int) -> int:
    """Find the least `novel` with which neighbours in a list of chances keep both inequalities, whoever made the list."""
    return max(
        max(
            after - (growth * before >> _GROWTH_BITS), _CERTAIN - before - (growth * (_CERTAIN - after) >> _GROWTH_BITS)
        )
        for before, after in pairwise(chances)
    )


def _growth(epsilon: Fraction) -> int:
    """Return e^ε in units of 2**-256, rounded down."""
    exact = _own.exact
    capped = min(epsilon, _LARGEST_EPSILON)
    power = exact.exp(exact.mpf(capped.numerator) / capped.denominator)
    # An epsilon too small to be told from 0 grows nothing; 1 is still at most e^ε.
    return max(_floor(exact.ldexp(power, _GROWTH_BITS)), 1 << _GROWTH_BITS)


def _novel_chance(max_keys_per_user: int, delta: float) -> int:
    """Return 1 - (1 - δ)^(1/L) in units of 2**-128, rounded down."""
    exact = _own.exact
    return _floor(-exact.expm1(exact.log1p(-exact.mpf(delta)) / max_keys_per_user) * _CERTAIN)


def _delta_of(novel: int, max_keys_per_user: int) -> float:
    """Return 1 - (1 - novel)^L, rounded up; since that is at most the delta asked for, which is a float, so is its rounding."""
    exact = _own.exact
    spent = -exact.expm1(max_keys_per_user * exact.log1p(-exact.mpf(novel) / _CERTAIN))
    stated = float(spent)
    return stated if stated >= spent else math.nextafter(stated, 1.0)


def _floor(number: mpmath.mpf) -> int:
    """Round down a number that was computed with 512 bits, and by so much more that their rounding is outweighed."""
    return int(number - number * _own.exact.ldexp(1, -_MARGIN_BITS))


@lru_cache(maxsize=16)
def turning_points(*, epsilon: Fraction, delta: float) -> tuple[int, int]:
    """Return up to how many users a key's chance grows geometrically, and up to how many it may be below 1."""
    exact = _own.exact
    step = exact.mpf(epsilon.numerator) / epsilon.denominator
    growing = 1 + int(exact.log1p(exact.tanh(step / 2) * (1 / exact.mpf(delta) - 1)) / step)
    chance = delta * exact.expm1(growing * step) / exact.expm1(step)
    return growing, growing + int(exact.log1p(exact.expm1(step) / delta * (1 - chance)) / step)


def _by_epsilon(given: EpsilonBudget) -> Rounds:
    return (TruncatedGeometric(given.max_keys_per_user, given.epsilon, given.delta, given.min_users),)


def _composed(given: ComposedBudget) -> Rounds:
    limit = given.max_keys_per_user
    return (TruncatedGeometric(limit, limit * given.epsilon_of_key, given.delta, given.min_users),)


RULE = Rule(_composed, by_epsilon=_by_epsilon, shape=Shape.ANY)
