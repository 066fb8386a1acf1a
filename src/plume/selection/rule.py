"""How a strategy is scaled for a budget: what each module of a strategy offers beside the strategy itself, under the name `RULE`.

Calibration asks the rule of a strategy. It knows by name only the strategies that `"auto"` takes, and the one whose released number is a
measure. So a new strategy is one module here, which implements what `strategy.py`
describes and ends with its `RULE`, its name in `STRATEGIES` of `plume/settings.py`, and one page in docs/guarantees/. Its threshold comes
from `threshold.py`; `laplace_threshold.py` is the shortest example. One that weighs users in a new way must also be known to
`auditing/invariants.py`, and one that `"auto"` may take to `calibration/calibrated_query.py`. It gets a row in docs/api.md and a line in
`SELECTIONS` of `tests/strategies.py` and in `STRATEGIES` of `tests/unit/privacy/test_recomposition.py`.

A strategy of two rounds searches both of its thresholds by `threshold.py`, in `_smallest_thresholds` of its own module.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import cast

from plume.errors import PlumeBug
from plume.plan.nodes import Size
from plume.privacy.losses import Shape
from plume.selection.strategy import SelectionStrategy
from plume.settings import STRATEGIES

# Where noise and thresholds are not priced together: docs/guarantees/tight-composition.md.
DELTA_OF_THRESHOLDS = 0.4
"""Which part of delta thresholds get."""

Rounds = tuple[SelectionStrategy, ...]
SigmaOf = Callable[[Fraction], float]
"""The standard deviation of Gaussian noise, for a user with one key, that costs a part of selection's share."""


@dataclass(frozen=True)
class Bounded:
    """What every strategy is scaled for, beside what it may spend."""

    max_keys_per_user: int
    min_users: int


@dataclass(frozen=True)
class EpsilonBudget(Bounded):
    """An epsilon and a delta of selection's own, for all keys of a user together; epsilons of measures are added to it."""

    epsilon: Fraction
    delta: float


@dataclass(frozen=True)
class Measured:
    """All that measures of one size move, by their noise as it will be drawn."""

    size: Size
    squared: Fraction
    """In squares of mu, of a user with as many keys as the limit, each as large as can be."""
    limit: int
    least: int
    """A square that no row of any user falls below."""


@dataclass(frozen=True)
class JointBudget(Bounded):
    """A budget that selection has together with Gaussian measures."""

    sigma_of: SigmaOf
    others: float
    """The mu of everything but selection."""
    epsilon: float
    delta: float
    measured: Callable[[], tuple[Measured, ...]]
    """What the measures move, size by size."""


@dataclass(frozen=True)
class ComposedBudget(Bounded):
    """Noise of a size that dp-accounting composed with that of measures, and what thresholds may spend of delta."""

    sigma_of: SigmaOf
    epsilon_of_key: Fraction
    delta: float


@dataclass(frozen=True)
class Rule:
    """How the noise and the thresholds of a strategy are found, round by round, in each way of composing that it knows."""

    composed: Callable[[ComposedBudget], Rounds] | None = None
    """Not of a strategy that is charged to accounts, priced with Gaussian measures only, nor of one that only adds epsilons up."""
    by_epsilon: Callable[[EpsilonBudget], Rounds] | None = None
    """Only of strategies without Gaussian noise."""
    jointly: Callable[[JointBudget], Rounds] | None = None
    """Only of strategies with Gaussian noise."""
    shape: Shape | None = None
    """What is known of the loss of one key; Gaussian noise has none but its own."""
    delta_kept_back: float = 0.0
    """Which part of delta Gaussian noise is not scaled for, where no threshold, however high, could do with the rest of it."""
    keys: Callable[[int], int] = lambda max_keys_per_user: max_keys_per_user
    """In how many keys each user counts when keys are selected, by the limit of measures."""
    weight: Callable[[int], Fraction] = lambda max_keys_per_user: Fraction(1)  # noqa: ARG005
    """What selection weighs when the budget is shared out, where all measures together weigh 1 and nothing else is said."""
    releases_users: bool = False
    """Whether the number that it compares is released as `users()`, which is noised and paid together with it."""

    @property
    def is_charged_to_accounts(self) -> bool:
        """Whether it can be scaled together with Gaussian measures only."""
        return self.composed is None and self.by_epsilon is None

    @property
    def gaussian(self) -> bool:
        """Whether its noise is Gaussian."""
        return self.jointly is not None


def rule_of(strategy: str) -> Rule:
    """Find the rule of a strategy by its name."""
    if strategy not in STRATEGIES:
        raise PlumeBug(f"no strategy is called {strategy!r}")
    return cast("Rule", import_module(f"plume.selection.{strategy}").RULE)


def one_gaussian_round(jointly: Callable[..., SelectionStrategy], alone: Callable[..., SelectionStrategy]) -> Rule:
    """Make the rule of a strategy with Gaussian noise and one round, from what scales it with measures and without them."""
    whole = Fraction(1)
    return Rule(
        composed=lambda given: (
            alone(given.max_keys_per_user, sigma=given.sigma_of(whole), delta=given.delta, min_users=given.min_users),
        ),
        jointly=lambda given: (
            jointly(
                given.max_keys_per_user,
                sigma=given.sigma_of(whole),
                others=given.others,
                epsilon=given.epsilon,
                delta=given.delta,
                min_users=given.min_users,
            ),
        ),
    )
