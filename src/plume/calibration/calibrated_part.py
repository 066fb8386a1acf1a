"""A part of a query with its noise: how wide that is, how far it reaches, and what it spends."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from plume.mechanisms.margins import Blur
from plume.mechanisms.mechanism import Part
from plume.noise.correlated import CorrelatedGaussian
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.noise.noise import half_width
from plume.noise.rounded_laplace import RoundedLaplace
from plume.privacy.correlated import correlated_cost
from plume.privacy.cost import Cost, gaussian_cost, laplace_cost, rounded_laplace_cost

# The mean of the absolute value of noise of scale 1.
_OF_GAUSSIAN = 0.7978845608028654
_MEAN_ABSOLUTE = {
    DiscreteLaplace: 1.0,
    RoundedLaplace: 1.0,
    RoundedGaussian: _OF_GAUSSIAN,
    CorrelatedGaussian: _OF_GAUSSIAN,
}

Gaussian = RoundedGaussian | CorrelatedGaussian
Scaled = DiscreteLaplace | RoundedLaplace | Gaussian


@dataclass(frozen=True)
class CalibratedPart:
    """Exact integers of the plan, the noise they get, and the measures that are made of them."""

    part: Part
    columns: tuple[str, ...]
    """The plan's columns of these integers."""
    measures: tuple[str, ...]
    noise: Scaled
    """In steps of 2**-bits of the part's own."""
    max_keys_per_user: int
    bits: int
    """How much finer the plan counts than the part does."""

    def begun(self, entropy: Entropy) -> "CalibratedPart":
        """Draw what keys share of the noise, if they do: once for a run."""
        return replace(self, noise=self.noise.begun(entropy)) if isinstance(self.noise, CorrelatedGaussian) else self

    @property
    def unit(self) -> Fraction:
        """What one step of the plan is worth."""
        return self.part.unit / (1 << self.bits)

    @property
    def rounded(self) -> bool:
        """Whether it leaves the plan's finer steps after the noise, for whole numbers."""
        return self.bits > 0 or self.part.leaves > 0

    @property
    def standard_deviation(self) -> float:
        """The noise's standard deviation in the units of the part."""
        return self.noise.standard_deviation * float(self.unit)

    @property
    def moved(self) -> Fraction:
        """By how many standard deviations of its noise a user moves it at the most, in Euclidean norm, squared: exactly."""
        return self.max_keys_per_user * self.part.squared * (1 << 2 * self.bits) / self.noise.scale**2

    @property
    def mean_noise(self) -> float:
        """The mean absolute noise, in steps of the plan."""
        return float(self.noise.scale) * _MEAN_ABSOLUTE[type(self.noise)]

    @property
    def blur(self) -> Blur:
        """What lies between the exact integers of the part and the noised ones."""
        return Blur(self.noise, self.bits)

    def half_width(self, level: float) -> int | float:
        """What noise stays within, on either side, with a probability of at least `level`, in the units of what is released."""
        width = half_width(self.noise, level)
        if self.rounded:
            return math.ceil(width * self.unit + Fraction(1, 2))  # whole numbers are rounded to after the noise
        return width if self.unit == 1 else width * float(self.unit)

    def chance_within(self, error: Fraction, *, lost: Fraction = Fraction(0)) -> float:
        """Say how likely a number that lacks `lost` is released at most `error` off; one that is rounded is taken to be whole."""
        if not self.rounded:
            above, below = (math.floor((error + side * lost) / self.unit) + 1 for side in (1, -1))
            return 1 - self.noise.tail(above) - self.noise.tail(below)
        high, low = ((math.floor(error) + Fraction(1, 2) + side * lost) / self.unit for side in (1, -1))
        return 1 - self.noise.tail(math.ceil(high)) - self.noise.tail(math.floor(low) + 1)  # halves are rounded up

    @property
    def cost(self) -> Cost:
        """What releasing this part spends."""
        what = ", ".join(self.measures)
        named = what if self.part.weight == 1 else f"{what}: {self.part.name}"
        limit, scale = self.max_keys_per_user, self.noise.scale / (1 << self.bits)
        if isinstance(self.noise, CorrelatedGaussian):
            squared = self.part.squared << 2 * self.bits
            return correlated_cost(named, self.noise, squared=squared, max_keys_per_user=limit)
        if isinstance(self.noise, RoundedGaussian):
            sensitivity = math.sqrt(self.part.squared)
            return gaussian_cost(named, scale=scale, sensitivity=sensitivity, max_keys_per_user=limit)
        # Of several numbers in one key nothing is known but their epsilon together.
        alone = isinstance(self.noise, RoundedLaplace) and not self.part.spread
        price = rounded_laplace_cost if alone else laplace_cost
        return price(named, scale=scale, sensitivity=self.part.absolute, max_keys_per_user=limit)
