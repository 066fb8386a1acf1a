"""What several releases of one dataset cost together: never more than their sum, and less where their noise composes well.

Gaussian releases alone are composed in closed form, few different ones by a sum, and everything else by dp-accounting, as parts of one
release are.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plume.ledger.price import DELTAS, EPSILONS, DatasetBudget, Price
from plume.privacy.gaussian import delta_of
from plume.privacy.losses import Coordinates, Losses, Shape, epsilon_within, few_atoms, summed_delta
from plume.root import after, smallest

# Finer is slower; losses are rounded up to it, so a coarser grid costs budget and never privacy (docs/guarantees/ledger.md).
_GRID = 1e-4
_COARSEST_GRID_STEPS = 10**6
# Epsilons are searched among those that a ledger counts, to more digits than it does.
_LARGEST, _HALVINGS = 2.0**29, 60
# Above the errors of the floating-point numbers that composition is computed in.
_SAFETY = 1 + 1e-9


@dataclass(frozen=True)
class Total:
    """What was spent, in units: `epsilon` at `delta`."""

    epsilon: int
    delta: int

    def within(self, budget: DatasetBudget) -> bool:
        """Return whether a budget allows it."""
        return self.epsilon <= budget.epsilon and self.delta <= budget.delta


@dataclass(frozen=True)
class _Parts:
    """Charges taken apart: how often each epsilon was spent, one mu for all Gaussian noise, one delta."""

    epsilons: Counter[int]
    mu: float
    delta: int


def total(charges: Sequence[Price], budget: DatasetBudget) -> Total:
    """Compose charges until a way is found that the budget allows; if none is, the one that comes closest.

    Guarantee: all these releases together are (epsilon, delta)-differentially private. docs/guarantees/ledger.md.
    """
    tried = []
    for spent in _ways(charges, budget):
        if spent.within(budget):
            return spent
        tried.append(spent)
    return min(tried, key=lambda spent: spent.epsilon)


def least_total(charges: Sequence[Price], budget: DatasetBudget) -> Total:
    """Compose charges in every way, and take the one that shows the least epsilon within the budget's delta."""
    return min(_ways(charges, budget), key=lambda spent: (not spent.within(budget), spent.epsilon))


def _ways(charges: Sequence[Price], budget: DatasetBudget) -> Iterator[Total]:
    """Add charges up, then compose them by their parts and as wholes; the cheapest way first."""
    yield _sum(charges)
    # Nothing composes to less than its sum if it is alone, or if there is no delta to spare.
    if len(charges) > 1 and budget.delta:
        for stated in (_by_parts(charges), _as_wholes(charges)):
            epsilon = _epsilon(stated, budget)
            if epsilon is not None:
                yield Total(epsilon, budget.delta)


def _sum(charges: Sequence[Price]) -> Total:
    return Total(sum(charge.epsilon for charge in charges), sum(charge.delta for charge in charges))


def _as_wholes(charges: Sequence[Price]) -> _Parts:
    return _Parts(Counter(charge.epsilon for charge in charges), 0.0, sum(charge.delta for charge in charges))


def _by_parts(charges: Sequence[Price]) -> _Parts:
    return _Parts(
        Counter(charge.pure for charge in charges if charge.pure),
        math.sqrt(math.fsum((charge.mu / EPSILONS) ** 2 for charge in charges)),
        sum(charge.passing for charge in charges),
    )


def _epsilon(parts: _Parts, budget: DatasetBudget) -> int | None:
    """Find the epsilon at the budget's delta, or nothing if the chance of showing something is above that by itself."""
    left = (budget.delta - parts.delta) / DELTAS
    if left <= 0:
        return None
    epsilon = _of_gaussian(parts.mu, left) if not parts.epsilons else _of_mixture(parts, left)
    return math.ceil(epsilon * _SAFETY * EPSILONS) if math.isfinite(epsilon) else None


def _of_gaussian(mu: float, delta: float) -> float:
    return _smallest(lambda epsilon: float(delta_of(mu, epsilon)) <= delta)


def _of_mixture(parts: _Parts, delta: float) -> float:
    pure = (Coordinates(epsilon / EPSILONS, times, Shape.ANY) for epsilon, times in parts.epsilons.items())
    together = Losses(parts.mu, tuple(pure))
    if few_atoms(together):
        return _smallest(lambda epsilon: summed_delta(together, epsilon) <= delta)
    largest = max(parts.epsilons) / EPSILONS
    return epsilon_within(together, delta, interval=max(_GRID, largest / _COARSEST_GRID_STEPS))


def _smallest(holds: Callable[[float], bool]) -> float:
    """Find the smallest epsilon from which on a property holds, infinite if there is none that a ledger counts."""
    return smallest(holds, start=1.0, close=after(_HALVINGS)) if holds(_LARGEST) else math.inf
