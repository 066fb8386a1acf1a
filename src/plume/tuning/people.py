"""Numbers of users and of their keys, as they are given: checked, brought into one form, and said in words.

Its own file because `expect` and `need` assume the same of people.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from plume.errors import BoundError, UsageError, shown
from plume.query import LARGEST_BOUND
from plume.selection.chances import KeysOfUser

MOST_USERS = 10**12
# What shares that are given with few digits may add up to beside 1.
_ROUNDING = 0.001


def refuse_bad_number(name: str, number: Any, most: int) -> None:
    """Refuse what is not a whole number up to the most."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise BoundError(f"{name} holds {shown(number)}; it must be a whole number from 1 to {most}.")


def refuse_no_list(example: str, **given: Any) -> None:
    """Refuse what is not a list of things to try, such as a single one; a text would be taken for its letters."""
    for name, listed in given.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise UsageError(f"{name} is {shown(listed)}; it must be a list, such as {example}.")


def is_number(value: Any) -> bool:
    """Return whether it is a number, which True is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def shares_of_users(given: Any) -> tuple[tuple[int, float], ...]:
    """Give the numbers of keys that users are in, from small to large, and the shares of the users who are in as many."""
    shares = list(given.items()) if isinstance(given, Mapping) else [(given, 1)]
    for keys, share in shares:
        refuse_bad_number("keys_of_user", keys, LARGEST_BOUND)
        if not is_number(share) or not 0 < share <= 1:
            raise BoundError(
                f"keys_of_user gives {keys} keys to {shown(share)} of the users; it must be a share above 0, up to 1."
            )
    if not shares or not math.isclose(total := math.fsum(share for _, share in shares), 1, abs_tol=_ROUNDING):
        what = f"add up to {total:g}" if shares else "are empty"
        raise BoundError(
            f"the shares of users in keys_of_user {what}; they must add up to 1, such as {{5: 0.9, 100: 0.1}}."
        )
    return tuple(sorted((keys, share / total) for keys, share in shares))


def described_keys(keys_of_user: KeysOfUser) -> str:
    """Say in how many keys users are."""
    if not isinstance(keys_of_user, Mapping):
        return f"each in {many(keys_of_user, 'key')}"
    return ", ".join(f"{share:.4g} of them in {many(keys, 'key')}" for keys, share in keys_of_user.items())


def many(number: int, what: str) -> str:
    """Write a number of something."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
