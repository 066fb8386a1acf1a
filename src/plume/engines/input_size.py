"""How many bytes of files a run reads, and how many this process has read: what a bar of progress shows to whoever waits for it.

The operating system counts what is read. DuckDB's own progress is a share of rows that it expects, so it tells of the data, and in
notebooks it cannot be asked for; bytes of a file are what the operator sees of it anyway.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plume.engines.engine import Table
from plume.engines.files import find_files
from plume.errors import PlumeError

_COUNTERS = Path("/proc/self/io")
# To open one takes a millisecond, and a bar should not cost what it is to shorten.
_MOST_FILES = 1000


def bytes_to_read(tables: Iterable[Table]) -> int | None:
    """Say how many bytes of files tables take, of Parquet files only their columns that are read; None if that is not known.

    Nothing here may end a run, which will say itself what is wrong with its files.
    """
    with suppress(PlumeError, OSError, ValueError, pa.ArrowException):
        return sum(map(_size, tables)) or None
    return None


def _size(table: Table) -> int:
    if not isinstance(table.content, str | Path | list | tuple):
        return 0
    files = find_files(table.content)
    if files.format != "Parquet":
        return sum(path.stat().st_size for path in files.paths)
    if len(files.paths) > _MOST_FILES:
        return 0
    return sum(_size_of_columns(path, table.kinds) for path in files.paths)


def _size_of_columns(path: Path, wanted: Collection[str]) -> int:
    metadata = pq.read_metadata(path)
    columns = [
        place for place in range(metadata.num_columns) if metadata.schema.column(place).path.split(".")[0] in wanted
    ]
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    return sum(group.column(place).total_compressed_size for group in groups for place in columns)


def bytes_read() -> int | None:
    """Say how many bytes this process has read so far, from files and otherwise; None where the operating system does not count."""
    with suppress(OSError, ValueError, IndexError):
        return int(_COUNTERS.read_text().split()[1])
    return None
