"""What `max_keys_per_user` means, in the one sentence that explanations, reports, ledgers, the help and the pages share.

It stands alone, and imports nothing, since `plume --help` reads it.
"""

MEANING = (
    "The limit on keys per user: users above it are cut to it; "
    "with Gaussian noise, unless the pipeline runtime_optimized selects the keys, they count in up to four times "
    "as many keys, clipped together to the norm of the limit."
)


def describe_limit(limit: int | str, user: str, *, clipped_from: int | str | None) -> str:
    """Say the same of one plan, which cuts users above the limit or clips them from up to `clipped_from` keys."""
    above = (
        "are cut to it"
        if clipped_from is None
        else f"count in up to {clipped_from} keys, clipped together to the norm of {keys_in_words(limit)}"
    )
    return f"{name_limit(limit, user)}; users above it {above}"


def name_limit(limit: int | str, user: str) -> str:
    """Name the limit where what becomes of users above it is not known, or is said elsewhere."""
    return f"limit of {keys_in_words(limit)} per {user}"


def keys_in_words(limit: int | str) -> str:
    """Write a number of keys, or what stands for one."""
    return f"{limit} key" if limit == 1 else f"{limit} keys"
