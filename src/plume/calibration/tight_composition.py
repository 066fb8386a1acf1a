"""Noise of any kinds, composed tightly: one size for all parts, as small as their privacy losses together allow.

Separate from the two families with formulas, `calibrated_query`, because here nothing is known but what dp-accounting composes. What it
finds is scaled noise and rounds of selection; whose they are is not its business. docs/guarantees/tight-composition.md holds the proof.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from plume.calibration.shares import Shares
from plume.errors import PlumeBug
from plume.mechanisms.mechanism import Part
from plume.noise.gaussian import RoundedGaussian
from plume.noise.rounded_laplace import RoundedLaplace
from plume.privacy.budget import Budget
from plume.privacy.gaussian import SAFETY
from plume.privacy.losses import Coordinates, Losses, Shape, estimated_noise, losses_of, noise_within
from plume.privacy.scales import drawable
from plume.selection.rule import DELTA_OF_THRESHOLDS, ComposedBudget, rule_of
from plume.selection.strategy import SelectionStrategy


@dataclass(frozen=True)
class Tight:
    """The parts of a query, and what they may spend together.

    Noise of size s means a standard deviation of s for a whole share and a user who changes one unit: that of a part with a share of w,
    of which a user changes L keys by C each, is s·C·√(L/w), whichever kind it is: docs/guarantees/tight-composition.md.
    """

    budget: Budget
    max_keys_per_user: int
    shares: Shares
    selection: str | None
    """The strategy's name; None if keys are public."""
    noise: str
    min_users: int = 1
    spread: tuple[bool, ...] = ()
    """Of which parts one user changes several numbers in one key; none, if it is not said."""

    def smallest_size(self) -> float:
        """The smallest size of noise whose losses, composed by dp-accounting, leave the budget enough for thresholds."""
        return _smallest_size(self)

    def estimated_size(self) -> float:
        """A size that is at most hardly above the smallest one, found without dp-accounting; not enough noise to be drawn."""
        return estimated_noise(self.losses, epsilon=self.budget.epsilon, delta=self.delta_of_noise)

    def losses(self, size: float) -> Losses:
        """What noise of one size reveals."""
        gaussian, others = Fraction(), list[Coordinates]()
        for share, shape in self._parts():
            if shape is None:
                gaussian += share
            else:
                others.append(Coordinates(self._epsilon(size, share), self.max_keys_per_user, shape))
        return losses_of(math.sqrt(gaussian) / size, others)

    def noise_for(self, part: Part, share: Fraction, *, size: float) -> RoundedLaplace | RoundedGaussian:
        """Scale noise for a part of a measure."""
        if self.noise == "laplace":
            return RoundedLaplace(drawable(part.absolute / self._exact_epsilon(size, share)))
        sigma = SAFETY * size * math.sqrt(part.squared) * math.sqrt(self.max_keys_per_user / share)
        return RoundedGaussian(drawable(Fraction(sigma)))

    def rounds(self, size: float) -> tuple[SelectionStrategy, ...]:
        """Select keys with noise of this size, and thresholds that spend their own part of delta."""
        if self.selection is None:
            return ()
        share, composed = self.shares.selection, rule_of(self.selection).composed
        if composed is None:
            raise PlumeBug(f"{self.selection} is not composed with other noise than Gaussian")
        return composed(
            ComposedBudget(
                self.max_keys_per_user,
                self.min_users,
                sigma_of=lambda part: SAFETY * size / math.sqrt(share * part),
                epsilon_of_key=self._exact_epsilon(size, share),
                delta=self._delta_of_thresholds,
            )
        )

    def _parts(self) -> list[tuple[Fraction, Shape | None]]:
        """The share of each part and the shape of its loss; Gaussian parts have none but their own."""
        selection = [(self.shares.selection, rule_of(self.selection).shape)] if self.selection else []
        spread = self.spread or (False,) * len(self.shares.measures)
        return [*selection, *zip(self.shares.measures, map(self._shape, spread), strict=True)]

    def _shape(self, spread: bool) -> Shape | None:  # noqa: FBT001 - what is known of a part
        if self.noise != "laplace":
            return None
        # What is spread over several numbers has their epsilon together, and nothing else is known of it.
        return Shape.ANY if spread else Shape.LAPLACE

    def _epsilon(self, size: float, share: Fraction) -> float:
        """What one key of a user may reveal: that of Laplace noise with the standard deviation of this size."""
        return math.sqrt(2 * share / self.max_keys_per_user) / size

    def _exact_epsilon(self, size: float, share: Fraction) -> Fraction:
        return Fraction(self._epsilon(size, share) / SAFETY)

    @property
    def delta_of_noise(self) -> float:
        """What thresholds leave of delta."""
        return self.budget.delta - self._delta_of_thresholds

    @property
    def _delta_of_thresholds(self) -> float:
        return DELTA_OF_THRESHOLDS * self.budget.delta if self.selection else 0.0


@lru_cache
def _smallest_size(tight: Tight) -> float:
    """Search once for what is explained first and run then."""
    return noise_within(tight.losses, epsilon=tight.budget.epsilon, delta=tight.delta_of_noise)
