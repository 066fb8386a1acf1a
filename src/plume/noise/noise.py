"""What every kind of noise offers; its own file, so that whoever adds noise need not know which kind it is."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy


class Noise(Protocol):
    """A distribution over the integers, centred at zero, that can be drawn from exactly."""

    @property
    def kind(self) -> str:
        """The distribution's name, as people know it."""

    @property
    def standard_deviation(self) -> float:
        """The standard deviation, in grid units."""

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw `size` independent values."""
