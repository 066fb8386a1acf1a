"""What a plan spends, read off the noise it really draws and not off the budget it was given.

Separate from calibration on purpose: a mistake there must not be repeated here.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from plume.errors import BudgetExceeded, PlumeBug
from plume.privacy.budget import Budget
from plume.privacy.gaussian import Novel, Threshold, delta_of, joint_delta
from plume.privacy.losses import (
    LEAST_DELTA,
    Coordinates,
    Losses,
    Shape,
    composed_delta,
    composed_epsilon,
    epsilon_with_curves,
    losses_of,
)
from plume.privacy.pooled import Pooled
from plume.privacy.two_rounds import PooledRounds, TwoRounds

# Noise and thresholds are rounded so that their delta is at most the one asked for; the float that states it may err by an ulp or two.
_FLOAT_SLACK = 1e-12
# Two selections of a kind are two rounds of one.
_ROUNDS = 2


@dataclass(frozen=True)
class EpsilonCost:
    """What numbers or choices with an epsilon reveal about one user: Laplace noise, exact coins."""

    what: str
    epsilon: Fraction
    """Of all coordinates together, added up."""
    coordinates: int = 1
    """Over how many independent numbers or choices epsilon is spread evenly."""
    shape: Shape = Shape.ANY
    """What is known of each coordinate beside its epsilon."""
    delta: float = 0.0

    @property
    def shown_alone(self) -> float:
        """The chance that a key of one user alone is shown, or anything else that no noise covers."""
        return self.delta

    @property
    def each(self) -> Coordinates:
        """What the coordinates reveal one by one."""
        return Coordinates(float(self.epsilon / self.coordinates), self.coordinates, self.shape)


@dataclass(frozen=True)
class GaussianCost:
    """What Gaussian noise reveals about one user, and beside it the chance that something is shown which noise does not cover."""

    what: str
    mu: float
    delta: float = 0.0

    @property
    def shown_alone(self) -> float:
        """The chance that a key of one user alone is shown, or anything else that no noise covers."""
        return self.delta


@dataclass(frozen=True)
class GaussianSelectionCost:
    """What a threshold on weights with Gaussian noise reveals about one user, who never pays for noise and threshold both in full."""

    what: str
    mu: float
    novel: Novel
    """What a user can do to keys that nobody else has."""

    @property
    def shown_alone(self) -> float:
        """The chance that a key of one user alone is shown."""
        return self.novel.delta()


@dataclass(frozen=True)
class GaussianRoundCost:
    """What one of two thresholds on weights with Gaussian noise reveals about one user, who never pays for both rounds in full.

    The price of both is that of `TwoRounds`; where other noise is drawn as well, noise and threshold are priced apart.
    """

    what: str
    mu: float
    novel: Novel
    """What a user can do in this round to keys that nobody else has."""

    @property
    def shown_alone(self) -> float:
        """The chance that a key of one user alone is shown in this round."""
        return self.novel.delta()


@dataclass(frozen=True)
class PooledCost:
    """What a threshold on weights reveals that are drawn from accounts, together with the measures that accounts are charged for.

    A user never pays for selection and measures both in full: all of it is at most `mu`, and what measures cost is not added to that.
    """

    what: str
    mu: float
    """Of whole accounts, selection and measures together; of two rounds each has its part of them."""
    novel: Pooled
    """What a user can do to keys that nobody else has, and to all others."""

    @property
    def shown_alone(self) -> float:
        """The chance that a key of one user alone is shown."""
        return self.novel.delta()

    @property
    def covered(self) -> float:
        """What measures may cost in squares of mu, at the most."""
        return self.mu**2 * float(sum(charge.share for charge in self.novel.charges))


Cost = EpsilonCost | GaussianCost | GaussianSelectionCost | GaussianRoundCost | PooledCost
"""What one part of a measure, one round of selection or one choice reveals about one user; `what` names it."""


@dataclass(frozen=True)
class Spent:
    """What all parts of a release together spend."""

    epsilon: float
    delta: float


def laplace_cost(what: str, *, scale: Fraction, sensitivity: int, max_keys_per_user: int) -> EpsilonCost:
    """Price Laplace noise where one user changes `max_keys_per_user` keys by `sensitivity` each: its L1 sensitivity over its scale."""
    return EpsilonCost(what, max_keys_per_user * sensitivity / scale, coordinates=max_keys_per_user)


def rounded_laplace_cost(what: str, *, scale: Fraction, sensitivity: int, max_keys_per_user: int) -> EpsilonCost:
    """Price rounded Laplace noise, which reveals what the continuous law does, and so has its shape beside its epsilon."""
    cost = laplace_cost(what, scale=scale, sensitivity=sensitivity, max_keys_per_user=max_keys_per_user)
    return replace(cost, shape=Shape.LAPLACE)


def gaussian_cost(what: str, *, scale: Fraction, sensitivity: float, max_keys_per_user: int) -> GaussianCost:
    """Price Gaussian noise by its L2 sensitivity over its standard deviation."""
    return GaussianCost(what, math.sqrt(max_keys_per_user) * sensitivity / float(scale))


def total_epsilon(costs: Iterable[Cost]) -> Fraction:
    """Add up the epsilons."""
    return sum((cost.epsilon for cost in costs if isinstance(cost, EpsilonCost)), Fraction())


def total_mu(costs: Iterable[Cost]) -> float:
    """Add up Gaussian noise, in squares; what accounts of users pay for is there once."""
    listed = tuple(costs)
    pooled = [cost for cost in listed if isinstance(cost, PooledCost)]
    others = [cost for cost in listed if not isinstance(cost, EpsilonCost | PooledCost)]
    return math.hypot(_uncovered(pooled, others), *(cost.mu for cost in pooled))


def _uncovered(
    pooled: Iterable[PooledCost], others: Iterable[GaussianCost | GaussianSelectionCost | GaussianRoundCost]
) -> float:
    """Add up the Gaussian noise that no account pays for."""
    squares = math.fsum(cost.mu**2 for cost in others)
    covered = math.fsum(cost.covered for cost in pooled)
    # Both are the same where accounts pay for all of it, but for the last digits.
    return math.sqrt(squares - covered) if squares > covered * (1 + _FLOAT_SLACK) else 0.0


def total_shown_alone(costs: Iterable[Cost]) -> float:
    """Add up the chances that something is shown which no noise covers."""
    return math.fsum(cost.shown_alone for cost in costs)


def spend(costs: Iterable[Cost], budget: Budget) -> Spent:
    """Compose costs, at the budget's epsilon unless adding epsilons up gives less.

    Epsilons add up (Plume section 3.1) and Gaussian parts add up in squares, both by formula. Parts of different kinds, and many small
    epsilons that come to too much when they are added up, are composed by dp-accounting.
    """
    listed = tuple(costs)
    with_epsilon = [isinstance(cost, EpsilonCost) for cost in listed]
    if all(with_epsilon):
        return _spend_epsilons(listed, budget)
    if any(with_epsilon):
        return _compose(listed, budget)
    passing = math.fsum(cost.delta for cost in listed if isinstance(cost, GaussianCost))
    return Spent(budget.epsilon, passing + _gaussian_delta(listed, budget.epsilon))


def _spend_epsilons(costs: tuple[Cost, ...], budget: Budget) -> Spent:
    pure = total_epsilon(costs)
    added = Spent(float(pure), total_shown_alone(costs))
    if pure <= budget.exact_epsilon or added.delta >= budget.delta:
        return added
    composed = _compose(costs, budget)
    return composed if composed.delta <= budget.delta else added


def _compose(costs: tuple[Cost, ...], budget: Budget) -> Spent:
    return Spent(budget.epsilon, total_shown_alone(costs) + composed_delta(losses(costs), budget.epsilon))


def recompose(costs: Iterable[Cost], budget: Budget) -> Spent:
    """Let dp-accounting find the epsilon of costs at the budget's delta, however they were composed before.

    Of Gaussian selection with Gaussian measures it composes two users: the one whose keys are all shared, and the one who costs most;
    where there are two rounds, it composes the first with all that users may be in the second.
    Where thresholds take all of delta, or there is none, the smallest delta is used that dp-accounting can compose with.
    """
    listed = tuple(costs)
    everything, (selections, _) = losses(listed), _apart(listed)
    if len(selections) == 1 and not everything.coordinates:
        epsilons = (
            composed_epsilon(everything, budget.delta, budget.epsilon),
            _epsilon_of_worst(selections[0], _beside(listed), budget),
        )
        return Spent(max(epsilons), budget.delta)
    passing = total_shown_alone(listed)
    left = max(budget.delta - passing, 2 * LEAST_DELTA)
    return Spent(composed_epsilon(everything, left, budget.epsilon), max(budget.delta, passing + left))


def _epsilon_of_worst(selection: Threshold, others: float, budget: Budget) -> float:
    """Let dp-accounting find the epsilon of the user about whom selection and measures reveal most."""
    worst = selection.worst(others=others, epsilon=budget.epsilon)
    if isinstance(selection, TwoRounds | PooledRounds):
        follows = selection.following(others, budget.epsilon)
        return epsilon_with_curves(worst.mu, worst.shown_alone, follows, budget.delta, near=budget.epsilon)
    return composed_epsilon(Losses(worst.mu, ()), budget.delta - worst.shown_alone, budget.epsilon)


def losses(costs: Iterable[Cost]) -> Losses:
    """List what costs reveal apart from their deltas."""
    listed = tuple(costs)
    return losses_of(total_mu(listed), (cost.each for cost in listed if isinstance(cost, EpsilonCost)))


def _gaussian_delta(costs: tuple[Cost, ...], epsilon: float) -> float:
    selections, others = _apart(costs)
    match selections:
        case []:
            return float(delta_of(total_mu(others), epsilon))
        case [novel]:
            return joint_delta(novel, others=_beside(costs), epsilon=epsilon)
        case _:
            raise PlumeBug("a plan selects keys more than once, which has no price yet")


def _apart(costs: tuple[Cost, ...]) -> tuple[list[Threshold], list[Cost]]:
    """Separate selections whose noise and threshold are priced as one from everything else; two rounds are one selection."""
    selections: list[Threshold] = [cost.novel for cost in costs if isinstance(cost, GaussianSelectionCost)]
    weighted = [cost.novel for cost in costs if isinstance(cost, GaussianRoundCost)]
    pooled = [cost.novel for cost in costs if isinstance(cost, PooledCost)]
    selections += [TwoRounds(weighted[0], weighted[1])] if len(weighted) == _ROUNDS else weighted
    selections += [PooledRounds(pooled[0], pooled[1])] if len(pooled) == _ROUNDS else pooled
    selecting = GaussianSelectionCost | GaussianRoundCost | PooledCost
    return selections, [cost for cost in costs if not isinstance(cost, selecting)]


def _beside(costs: tuple[Cost, ...]) -> float:
    """Add up the Gaussian noise that is priced beside the one selection there is, and not in it."""
    pooled = [cost for cost in costs if isinstance(cost, PooledCost)]
    return _uncovered(pooled, (cost for cost in costs if isinstance(cost, GaussianCost)))


def adds_up(costs: Iterable[Cost]) -> bool:
    """Return whether nothing is known of the parts but epsilons, which add up."""
    return all(isinstance(cost, EpsilonCost) and cost.shape is Shape.ANY for cost in costs)


def shares_spent(costs: Iterable[Cost]) -> dict[str, float]:
    """Say which share of the whole each part spends: of epsilon where epsilons add up, else of the squares that noise adds up in."""
    listed = tuple(costs)
    if adds_up(listed):
        sizes = {cost.what: float(total_epsilon([cost])) for cost in listed}
    else:
        sizes = {cost.what: _square(cost) for cost in listed}
    return {what: size / math.fsum(sizes.values()) for what, size in sizes.items()}


def _square(cost: Cost) -> float:
    if isinstance(cost, EpsilonCost):
        # Laplace noise of the same standard deviation as Gaussian noise reveals twice its square of mu.
        return float(cost.epsilon**2) / cost.coordinates / 2
    return cost.mu**2 - (cost.covered if isinstance(cost, PooledCost) else 0.0)


def refuse_overspending(costs: Iterable[Cost], budget: Budget) -> None:
    """Raise BudgetExceeded if the costs come to more than the budget."""
    listed = tuple(costs)
    spent = spend(listed, budget)
    if spent.epsilon <= budget.epsilon and spent.delta <= budget.delta * (1 + _FLOAT_SLACK):
        return
    parts = ", ".join(f"{cost.what} {_priced(cost)}" for cost in listed)
    raise BudgetExceeded(
        f"this plan spends epsilon = {spent.epsilon:.6g} and delta = {spent.delta:.3g} "
        f"of {budget.epsilon:.6g} and {budget.delta:.3g}: {parts}."
    )


def _priced(cost: Cost) -> str:
    return f"{float(cost.epsilon):.4g}" if isinstance(cost, EpsilonCost) else f"mu = {cost.mu:.4g}"
