"""`plume need`: options in, the smallest budget out."""

from collections.abc import Mapping
from typing import Any

from plume.cli.asking import make_query
from plume.cli.output import print_result
from plume.errors import BoundError, shown
from plume.tuning.goal import KeysOfUser
from plume.tuning.need import need

# Every query has an epsilon; which one does not matter here.
_ANY_EPSILON = 1.0


def print_need(options: Mapping[str, Any]) -> None:
    """Print what accuracy costs: what people read, or what programs do."""
    found = need(
        make_query({**options, "epsilon": _ANY_EPSILON}),
        users=options["users"],
        error=options["error"],
        absolute=dict(options["absolute"]),
        totals=dict(options["totals"]),
        chance=options["chance"],
        keys_of_user=_keys_of_user(options["keys_of_user"]),
        values_of_user=options["values_of_user"],
        limits=options["limits"],
    )
    print_result(found, options["layout"])


def _keys_of_user(text: str | None) -> KeysOfUser | None:
    """Read one number of keys, or several with the shares of users who have them."""
    if text is None:
        return None
    try:
        if ":" not in text:
            return int(text)
        pairs = [part.split(":") for part in text.split(",")]
        return {int(keys): float(share) for keys, share in pairs}
    except ValueError:
        pass
    raise BoundError(
        f"--keys-of-user is {shown(text)}; it must be a number such as 20, or shares of users, such as 5:0.9,20:0.1."
    )
