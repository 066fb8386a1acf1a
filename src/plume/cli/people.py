"""What is said of users on the command line, for `plume expect` and `plume need`."""

from plume.errors import BoundError, shown
from plume.selection.chances import KeysOfUser


def read_keys_of_user(text: str | None) -> KeysOfUser | None:
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
