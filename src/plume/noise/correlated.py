"""Gaussian noise that keys share in part: one draw for all of them, and one of each key's own.

Separate because other noise is drawn key by key. What all keys share is drawn once for a run, whatever batches rows come in.
`docs/guarantees/correlated-noise.md` holds the argument in full.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from plume.errors import PlumeBug
from plume.noise.entropy import Entropy
from plume.noise.exact import refuse_bad_scale
from plume.noise.gaussian import RoundedGaussian


@dataclass(frozen=True)
class CorrelatedGaussian:
    """Noise on one number in each of some keys: a rounded Gaussian draw that all of them share, plus one of each key's own.

    Guarantee: for numbers that one user changes in one direction only, at known keys, it is Gaussian differentially private by the price
    of `plume.privacy.correlated`, with all that rounding adds. `docs/guarantees/correlated-noise.md`.
    """

    own: Fraction
    """The scale of each key's own draw."""
    common: Fraction
    """The scale of the draw that keys share."""
    keys: int
    """The most keys that there are."""
    kind: ClassVar[str] = "correlated Gaussian"

    def __post_init__(self) -> None:
        for scale in (self.own, self.common):
            refuse_bad_scale(scale)

    @property
    def _laws(self) -> tuple[RoundedGaussian, RoundedGaussian]:
        return RoundedGaussian(self.own), RoundedGaussian(self.common)

    @property
    def scale(self) -> Fraction:
        """The scale of a rounded Gaussian as wide as the noise of one key: rounded twice, it varies by 1/12 more."""
        return Fraction(math.sqrt(self.own**2 + self.common**2 + Fraction(1, 12)))

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise of one key."""
        return math.hypot(*(law.standard_deviation for law in self._laws))

    def deviation_of_total(self) -> float:
        """The standard deviation of the noise on a total over all keys."""
        own, common = (law.standard_deviation for law in self._laws)
        return math.hypot(math.sqrt(self.keys) * own, self.keys * common)

    def tail(self, at_least: int) -> float:
        """Return Pr[X >= at_least] for the noise of one key: of scales of a hundred or more, as plans have, within a relative 1e-6."""
        return RoundedGaussian(self.scale).tail(at_least)

    def times(self, factor: int) -> "CorrelatedGaussian":
        """Give the same noise in steps that many times as fine."""
        return CorrelatedGaussian(self.own * factor, self.common * factor, self.keys)

    def begun(self, entropy: Entropy) -> "SharedDraw":
        """Draw what all keys of one run share."""
        _, common = self._laws
        return SharedDraw(self.own, self.common, self.keys, int(common.sample(1, entropy)[0]))

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Refuse: batches would draw apart what their keys must share."""
        del size, entropy
        raise PlumeBug("noise that keys share was asked for before what they share was drawn")


@dataclass(frozen=True)
class SharedDraw(CorrelatedGaussian):
    """The same noise in one run, in which what all keys share is drawn."""

    drawn: int

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw the noise of as many keys."""
        own, _ = self._laws
        return own.sample(size, entropy) + self.drawn
