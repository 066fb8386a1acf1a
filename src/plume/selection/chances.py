"""How likely a key is to be shown, by the number of its users: what strategies say of weights, said of people.

Its own file because it needs no data and no randomness: it is for whoever plans a query.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from plume.root import smallest_whole
from plume.selection.strategy import SelectionStrategy

Rounds = Sequence[SelectionStrategy]


def chance_of_users(rounds: Rounds, users: NDArray[np.int64], *, keys_of_user: int) -> NDArray[np.float64]:
    """Say with which probability keys with `users` users, each in `keys_of_user` keys, are shown; public keys always are.

    Users are those who count in the key after bounding. In a second round they are taken to have all their keys left, as if the first had
    found none of the others: it can only have found some, which leaves more weight to this key, so the truth is this or more.
    """
    shown = np.zeros(len(users)) if rounds else np.ones(len(users))
    for strategy in rounds:
        weights = np.maximum(users - strategy.left_out, 0) * strategy.weight_of(keys_of_user)
        shown += (1 - shown) * strategy.chance(weights)
    return shown


def users_for_chance(rounds: Rounds, chance: float, *, keys_of_user: int) -> int:
    """Find the fewest users with which a key is shown with a probability of at least `chance`, below 1; chances never fall with users."""

    def enough(users: int) -> bool:
        return bool(chance_of_users(rounds, np.array([users]), keys_of_user=keys_of_user)[0] >= chance)

    return smallest_whole(enough, 0, 1)
