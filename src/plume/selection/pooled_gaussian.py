"""Weights that users draw from an account: what their measures do not need goes into selection.

Most users fill a small part of what measures pay for. Pooled Gaussian selection keeps more keys than weighted Gaussian selection, with less
noise on measures.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from plume.plan.expressions import Clamp, Column, Expression, PooledWeight
from plume.plan.nodes import Account, Size
from plume.privacy.cost import PooledCost
from plume.privacy.gaussian import noise_for
from plume.privacy.pooled import AtEnds, Charge, Pooled, left, refuse_too_little_for_selection, weight
from plume.selection.rule import JointBudget, Measured, Rounds, Rule
from plume.selection.threshold import on_grid, raised, smallest_threshold
from plume.selection.weighted_gaussian import UNIT, WeightedGaussian, noise_of

LEFT = "left_of_account"
# Weights hardly depend on how many keys count, while measures need more noise for more keys; so at least these count in selection.
_KEYS_WHEN_SELECTING = 64
# From this limit on nearly nobody fills the measures, and they gain more from a larger share than selection loses
# (docs/decisions/0078-which-default.md).
_MANY_KEYS = 64


@dataclass(frozen=True, kw_only=True)
class PooledGaussian(WeightedGaussian):
    """Keep a key if the weights its users give it, plus Gaussian noise, reach the threshold.

    A user of whose account n of 2**30 units are left gives floor(sqrt(2**10 n / t)) to each of t keys, so that the squares of all these
    weights and what measures take come to at most 2**40 together.

    Guarantee: together with the measures that the account is charged for, docs/guarantees/pooled-gaussian.md.
    """

    pool: Account
    name: str = "pooled Gaussian"

    @property
    def account(self) -> Account:
        """What each user may spend on weights and measures together."""
        return self.pool

    @property
    def what(self) -> str:
        """What its cost is called."""
        return "selection"

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What measures take, size by size."""
        return tuple(charge for _, charge in self.pool.charges)

    @property
    def cost(self) -> PooledCost:
        """What it spends, together with the measures."""
        sigma = float(self.noise.scale) / UNIT
        # Rounded noise reaches the threshold exactly if the noise before rounding comes within half a step of it.
        threshold = (self.threshold - 0.5) / UNIT
        return PooledCost(self.what, mu=1 / sigma, novel=Pooled(sigma, threshold, self.max_keys_per_user, self.charges))

    @property
    def users_for_even_chance(self) -> float:
        """With how many users, each with as many keys as count and nothing but the largest rows, a key is kept half the time."""
        return self.threshold / self.weight_of(self.max_keys_per_user) + self.left_out

    def weight(self, keys_of_user: Expression) -> Expression:
        """Spread what is left of the account over the keys that count."""
        return PooledWeight(Column(self.pool.column), Clamp(keys_of_user, 1, self.max_keys_per_user))

    def weight_of(self, keys: int) -> int:
        """Work out the least that a user with that number of keys gives to each: if all rows are as large as can be."""
        squares = tuple(keys * size.squared for size, _ in self.pool.charges)
        return weight(left(self.charges, squares), min(max(keys, 1), self.max_keys_per_user))

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
        most = float(sum(charge.share for charge in self.charges))
        return super().facts() | {
            "counted": "its users' weights, √(a/t) each of a user with t keys and a part a of the account left,",
            "account": (
                f"each user has one account for selection and measures; measures take at most {100 * most:.3g} % of it, "
                "in proportion to the squared sizes of all rows of the user, and what they leave goes into the weights "
                f"of up to {self.max_keys_per_user} keys"
            ),
        }


def pooled_gaussian(given: JointBudget) -> PooledGaussian:
    """Charge the measures to accounts, and find the lowest threshold for weights that are drawn from what is left."""
    noise = noise_of(noise_for(given.epsilon, given.delta))
    sigma = float(noise.scale) / UNIT
    charged = charged_to_accounts(given, UNIT**2 / noise.scale**2)
    charges = tuple(charge for _, charge in charged)
    threshold = lowest_threshold(sigma, given.max_keys_per_user, charges, given.epsilon, given.delta)
    return PooledGaussian(
        given.max_keys_per_user,
        noise,
        threshold=on_grid(threshold, unit=UNIT),
        min_users=given.min_users,
        pool=Account(LEFT, charged),
    )


@lru_cache(maxsize=256)
def lowest_threshold(sigma: float, limit: int, charges: tuple[Charge, ...], epsilon: float, delta: float) -> float:
    """Search once for what is explained first and run then: among few users, and then look at all of them."""
    budget = {"others": 0.0, "epsilon": epsilon, "delta": delta}
    lowest = smallest_threshold(lambda threshold: AtEnds(sigma, threshold, limit, charges), **budget)
    return raised(lambda threshold: Pooled(sigma, threshold, limit, charges), lowest.threshold, **budget).threshold


def charged_to_accounts(given: JointBudget, squared: Fraction) -> tuple[tuple[Size, Charge], ...]:
    """Charge the measures to accounts that move this much, in squares of mu."""
    charged = tuple((one.size, _charge(one, squared=squared)) for one in given.measured())
    refuse_too_little_for_selection(tuple(charge for _, charge in charged))
    return charged


def _charge(measured: Measured, *, squared: Fraction) -> Charge:
    """Charge measures by what they really move, of all that a user may move, exactly."""
    return Charge(measured.squared / squared, measured.limit * measured.size.squared, measured.least)


def weight_of_selection(max_keys_per_user: int) -> Fraction:
    """What selection weighs beside all measures together."""
    return Fraction(1, 3) if max_keys_per_user >= _MANY_KEYS else Fraction(1)


def _jointly(given: JointBudget) -> Rounds:
    return (pooled_gaussian(given),)


def keys_when_selecting(max_keys_per_user: int) -> int:
    """In how many keys each user counts when keys are selected: never in fewer than in the measures."""
    return max(_KEYS_WHEN_SELECTING, max_keys_per_user)


RULE = Rule(jointly=_jointly, keys=keys_when_selecting, weight=weight_of_selection)
