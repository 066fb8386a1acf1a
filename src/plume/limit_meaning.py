"""What `max_keys_per_user` means, in the one sentence that explanations, reports, the help and the pages share.

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
        else f"count in up to {clipped_from} keys, clipped together to the norm of {limit} keys"
    )
    return f"limit of {limit} keys per {user}; users above it {above}"
