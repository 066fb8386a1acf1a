"""Keys known in advance: free, and complete. Checked here, since a list with holes or repetitions is not what the caller meant."""

from contextlib import suppress

import pyarrow as pa

from plume.errors import PublicKeysError


def check_public_keys(keys: pa.Table) -> None:
    """Refuse an empty list, NULLs and duplicates; keys are public, so they may be counted."""
    if keys.num_rows == 0:
        raise PublicKeysError("public_keys is empty; list at least one key.")
    if any(column.null_count for column in keys.columns):
        raise PublicKeysError("public_keys holds NULL, which is no key; remove it.")
    if any(pa.types.is_floating(column.type) for column in keys.columns):
        raise PublicKeysError("public_keys holds floating-point numbers, which are no keys; cast or bin them first.")
    distinct = _distinct(keys)
    if distinct < keys.num_rows:
        raise PublicKeysError(f"public_keys holds {keys.num_rows - distinct} duplicates; list each key once.")


def _distinct(keys: pa.Table) -> int:
    with suppress(pa.ArrowNotImplementedError):
        return int(keys.group_by(keys.column_names).aggregate([]).num_rows)
    # Arrow does not group by lists and the like.
    return len({repr(key) for key in keys.to_pylist()})
