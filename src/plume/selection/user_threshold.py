"""A threshold on the noised number of a key's users: what strategies share that differ only in their noise and its price."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.noise.noise import Distribution, tails
from plume.plan.expressions import Expression, Literal


@dataclass(frozen=True)
class UserThreshold:
    """Keep a key if its users, plus noise, reach the threshold. With `min_users` above 1, keys with fewer users are never kept."""

    max_keys_per_user: int
    noise: Distribution
    threshold: int
    min_users: int = 1
    name: str = "threshold"
    counts_all_keys: bool = False
    left_out: int = 0
    account: None = None

    @property
    def users_for_even_chance(self) -> float:
        """With how many users a key is kept half the time."""
        return self.threshold

    def weight(self, keys_of_user: Expression) -> Expression:  # noqa: ARG002 - other strategies weigh by it
        """One user counts one."""
        return Literal(1)

    def weight_of(self, keys: int) -> int:  # noqa: ARG002 - other strategies weigh by it
        """One."""
        return 1

    def chance(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance that noise makes up for what is missing."""
        kept: NDArray[np.float64] = tails(self.noise, self.threshold - weights) * (weights >= self.min_users)
        return kept

    def keep(self, weights: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Draw noise for every key, then compare."""
        noised = weights + self.noise.sample(len(weights), entropy)
        kept: NDArray[np.bool_] = (noised >= self.threshold) & (weights >= self.min_users)
        return kept

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
        return {
            "strategy": self.name,
            "counted": "its users",
            "threshold": self.threshold,
            "noise": self.noise.kind,
            "standard_deviation": self.noise.standard_deviation,
            "min_users": self.min_users,
        }
