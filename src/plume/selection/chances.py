"""How likely a key is to be shown, by the number of its users: what strategies say of weights, said of people.

Its own file because it needs no data and no randomness: it is for whoever plans a query.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from plume.root import smallest_whole
from plume.selection.strategy import SelectionStrategy

Rounds = Sequence[SelectionStrategy]
KeysOfUser = int | Mapping[int, float]
"""In how many keys users are: all of them in as many, or a share of them in each of several numbers."""


def chance_of_users(rounds: Rounds, users: NDArray[np.int64], *, keys_of_user: KeysOfUser) -> NDArray[np.float64]:
    """Say with which probability keys with `users` users, each in `keys_of_user` keys, are shown; public keys always are.

    Users are those who count in the key after bounding. Where weights are drawn from accounts, their rows are taken to be as large as can
    be: with smaller ones more is left for weights, so the truth is this or more. In a second round they are taken to have all their keys
    left, as if the first had found none of the others: it can only have found some, so the truth is this or more there too.
    """
    shown = np.zeros(len(users)) if rounds else np.ones(len(users))
    for strategy in rounds:
        shown += (1 - shown) * strategy.chance(_weights(strategy, users, keys_of_user))
    return shown


def users_for_chance(rounds: Rounds, chance: float, *, keys_of_user: KeysOfUser) -> int:
    """Find the fewest users with which a key is shown with a probability of at least `chance`, below 1; chances never fall with users."""

    def enough(users: int) -> bool:
        return bool(chance_of_users(rounds, np.array([users]), keys_of_user=keys_of_user)[0] >= chance)

    return smallest_whole(enough, 0, 1)


def _weights(strategy: SelectionStrategy, users: NDArray[np.int64], keys_of_user: KeysOfUser) -> NDArray[np.int64]:
    """Add up what users give to a key, but the largest weights that do not count: those of users with the fewest keys."""
    if not isinstance(keys_of_user, Mapping):
        counted: NDArray[np.int64] = np.maximum(users - strategy.left_out, 0) * strategy.weight_of(keys_of_user)
        return counted
    left_out, total = np.full(len(users), float(strategy.left_out)), np.zeros(len(users))
    for keys, share in sorted(keys_of_user.items()):
        out = np.minimum(left_out, users * share)
        left_out -= out
        total += (users * share - out) * strategy.weight_of(keys)
    return np.rint(total).astype(np.int64)
