"""A file of public keys, read before a query is planned: where noise is shared by keys, their number must be known."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Table
from plume.errors import PublicKeysError
from plume.plan.types import Kind

_PUBLIC = "public_keys"


def read_public_keys(path: Path, keys: Sequence[str]) -> pa.Table:
    """Read the key columns of a file, as a run reads them."""
    with DuckDB().open({_PUBLIC: Table(path, dict.fromkeys(keys, Kind.TEXT))}) as session:
        schema = session.schema(_PUBLIC)
        missing = [key for key in keys if key not in schema]
        if missing:
            raise PublicKeysError(
                f"public_keys has no column {missing[0]!r}; it needs the key columns {', '.join(keys)}."
            )
        return session.fetch(_PUBLIC, tuple(keys)).select(list(keys))
