"""What `max_keys_per_user` means, in the one sentence that explanations, reports, ledgers, the help and the pages share.

It stands alone, and imports nothing, since `plume --help` reads it.
"""

MEANING = (
    "The limit on keys per user: users above it are cut to it; "
    "with Gaussian noise, unless the pipeline runtime_optimized selects the keys, they count in all of their keys, "
    "shrunk together to the Euclidean norm of the limit."
)


def describe_limit(limit: int | str, user: str, *, clips: bool) -> str:
    """Say the same of one plan, which cuts users above the limit or clips them."""
    shrunk = f"count in all of their keys, shrunk together to the Euclidean norm of {keys_in_words(limit)}"
    above = shrunk if clips else "are cut to it"
    return f"{name_limit(limit, user)}; users above it {above}"


def name_limit(limit: int | str, user: str) -> str:
    """Name the limit where what becomes of users above it is not known, or is said elsewhere."""
    return f"limit of {keys_in_words(limit)} per {user}"


def keys_in_words(limit: int | str) -> str:
    """Write a number of keys, or what stands for one."""
    return f"{limit} key" if limit == 1 else f"{limit} keys"
