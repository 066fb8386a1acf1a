"""What a query claims about each column that it releases: which noise lies on it, in which steps, and what that noise pays for."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from plume.calibration.calibrated_part import CalibratedPart
from plume.explanation import Explanation
from plume.privacy.cost import Cost, EpsilonCost, total_mu


@dataclass(frozen=True)
class ColumnClaim:
    """A released column that is one part of the plan, noise and all."""

    column: str
    position: int
    """Which of the released columns it is."""
    part: CalibratedPart

    @property
    def step(self) -> Fraction:
        """What one step of the released numbers is worth."""
        return Fraction(1) if self.part.part.leaves else self.part.part.unit

    @property
    def deviation(self) -> float:
        """The standard deviation of its noise, in released steps."""
        return self.part.standard_deviation / float(self.step)

    def tail(self, sign: int, steps: int) -> float:
        """The probability that noise alone, with this sign, comes to at least `steps` released steps; there it is rounded half up."""
        fine = int(self.step / self.part.unit)
        reached = math.ceil((steps - Fraction(1, 2)) * fine)
        return self.part.noise.tail(reached + (1 if sign < 0 and fine > 1 else 0))


def claims(explanation: Explanation) -> tuple[ColumnClaim, ...]:
    """List the columns that are one part each; of others, such as a mean, nothing simple can be said."""
    calibrated, listed = explanation.calibrated, list[ColumnClaim]()
    names = [column for measure in calibrated.measures for column in measure.mechanism.columns]
    for measure in calibrated.measures:
        parts = {part.name: measure.covered(part) for part in measure.mechanism.parts()}
        for column, part in measure.mechanism.columns.items():
            listed += [
                ColumnClaim(column, names.index(column), one)
                for one in calibrated.parts
                if part is not None and one.columns == parts[part]
            ]
    return tuple(listed)


def paid(part: CalibratedPart) -> float:
    """What one user may change by what a part spends, in its finest steps: added up for Laplace noise, in Euclidean norm for Gaussian."""
    cost = part.cost
    return float((cost.epsilon if isinstance(cost, EpsilonCost) else cost.mu) * part.noise.scale)


def added_up(costs: Iterable[Cost]) -> tuple[float, float, float]:
    """What costs come to by the simplest formulas there are: an epsilon, a delta and, of Gaussian noise, a mu."""
    listed = list(costs)
    epsilon = math.fsum(float(cost.epsilon) for cost in listed if isinstance(cost, EpsilonCost))
    return epsilon, math.fsum(cost.shown_alone for cost in listed), total_mu(listed)
