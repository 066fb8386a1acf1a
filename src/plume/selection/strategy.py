"""What a selection strategy is: the paper's DP_RETAIN_KEY (Plume section 4.2)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plume.noise.entropy import Entropy
from plume.plan.expressions import Expression
from plume.plan.nodes import Account
from plume.privacy.cost import Cost


class SelectionStrategy(Protocol):
    """Which keys may be shown, decided from the sum of the weights that users give to each of their keys."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def max_keys_per_user(self) -> int:
        """To how many keys one user may give weight."""

    @property
    def counts_all_keys(self) -> bool:
        """Whether the weight depends on how many keys the user has, so that everybody's keys must be counted."""

    @property
    def left_out(self) -> int:
        """How many of the largest weights that a key is given do not count."""

    @property
    def account(self) -> Account | None:
        """What each user's weight is drawn from, if measures are charged to the same account."""

    @property
    def cost(self) -> Cost:
        """What it spends, worked out from the noise and threshold it holds."""

    @property
    def users_for_even_chance(self) -> float:
        """With how many users a key is kept half the time, each of them in as many keys as count."""

    def weight(self, keys_of_user: Expression) -> Expression:
        """Say what a user gives to each of their keys, as an integer."""

    def weight_of(self, keys: int) -> int:
        """Work out the weight that a user gives to each of their keys."""

    def chance(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Say for each key with which probability `keep` keeps it."""

    def keep(self, weights: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Decide for each key, once, whether it may be shown."""

    def facts(self) -> dict[str, str | float | int]:
        """List what a reader of a release should know."""
