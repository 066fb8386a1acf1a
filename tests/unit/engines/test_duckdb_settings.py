"""DuckDB's settings of a run: what operators may take follows threads, files and memory; a setting that is right is left alone."""

from pathlib import Path

import pyarrow as pa
import pytest

from plume.engines import duckdb
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Table
from plume.plan.types import Kind

ROWS = pa.table({"user": ["ann"]})
SMALL, LARGE = 10, 2**31
MIB = 2**20


def operator_memory(engine: DuckDB, size: int, folder: Path) -> float:
    """What operators may take, in megabytes, on a file of a size."""
    path = folder / "rows.csv"
    path.write_text("user\nann\n")
    with path.open("ab") as file:
        file.truncate(size)  # a hole; nothing of it is read
    content: object = str(path) if size else ROWS
    with engine.open({"rows": Table(content, {"user": Kind.TEXT})}) as session:
        [(shown,)] = session.ask("SELECT current_setting('operator_memory_limit')")
    return duckdb._bytes(shown) / 10**6


@pytest.mark.parametrize(("size", "per_thread"), [(SMALL, 32), (0, 256), (2**27, 256), (LARGE, 512)])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_operators_take_memory_by_thread_and_size(size: int, per_thread: int, threads: int, tmp_path: Path) -> None:
    found = operator_memory(DuckDB(threads=threads, memory_limit="100GB"), size, tmp_path)
    assert found == pytest.approx(threads * per_thread, rel=0.02)


@pytest.mark.parametrize("limit", ["400MB", "4GB"])
def test_operators_take_at_most_a_quarter_of_the_memory(limit: str, tmp_path: Path) -> None:
    found = operator_memory(DuckDB(threads=64, memory_limit=limit), 0, tmp_path)
    assert found <= float(limit[:-2]) * (1000 if limit.endswith("GB") else 1) / 4


@pytest.mark.parametrize(("shown", "size"), [("0 bytes", 0), ("512.0 MiB", 512 * MIB), ("1.5 GiB", 1536 * MIB)])
def test_sizes_are_read_as_duckdb_shows_them(shown: str, size: int) -> None:
    assert duckdb._bytes(shown) == size
