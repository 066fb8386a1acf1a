"""A file gives one row per record, whatever lies in the record: one user's text with line ends never becomes rows of others."""

import csv
import gzip
import io
from pathlib import Path

import pytest

import plume
from plume.engines.engine import Table
from plume.plan.types import Kind

# DuckDB reads a CSV file in pieces of this size, in parallel if it may.
PIECE = 8_000_000
USERS = Kind.TEXT
ROW = b"u%07d,k,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"


def forged(rows: int) -> bytes:
    """One record of one user, whose text looks like the records of as many others; written as RFC 4180 has it."""
    written = io.StringIO(newline="")
    csv.writer(written).writerow(["evil", "k", "\n".join(f"fake{number},k,x" for number in range(rows))])
    return written.getvalue().encode()


def write(path: Path, record: bytes, *, before: int, after: int) -> int:
    """Write a CSV file with a record behind `before` bytes of ordinary ones; says how many records there are."""
    opened = gzip.open if path.suffix == ".gz" else open
    lines = [ROW % number for number in range((before + after) // len(ROW % 0))]
    place = before // len(ROW % 0)
    with opened(path, "wb") as file:
        file.write(b"user,key,note\r\n" + b"".join(lines[:place]) + record + b"".join(lines[place:]))
    return len(lines) + 1


def users(path: Path, threads: int) -> list[str]:
    with plume.DuckDB(threads=threads).open({"rows": Table(str(path), {"user": USERS, "key": USERS})}) as session:
        found: list[str] = session.look_at("rows")["user"].to_pylist()
    return found


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("before", [PIECE - 10_000, PIECE - 3_000, PIECE - 1_000, 2 * PIECE - 1_500])
def test_a_text_with_line_ends_across_a_border_of_pieces_is_one_row(
    tmp_path: Path, before: int, ending: str, threads: int
) -> None:
    records = write(tmp_path / f"rows.{ending}", forged(200), before=before, after=1_000_000)
    found = users(tmp_path / f"rows.{ending}", threads)
    assert len(found) == records
    assert not any(user.startswith("fake") for user in found)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("rows", [100_000, 600_000, 1_200_000])
def test_a_text_as_long_as_several_pieces_makes_no_row_of_others(tmp_path: Path, rows: int, threads: int) -> None:
    records = write(tmp_path / "rows.csv", forged(rows), before=1_000, after=1_000)
    found = users(tmp_path / "rows.csv", threads)
    assert records - 1 <= len(found) <= records  # a record may be too large to be read
    assert not any(user.startswith("fake") for user in found)


@pytest.mark.parametrize("levels", [200, 5_000, 1_000_000])
@pytest.mark.parametrize("ending", ["json", "jsonl"])
@pytest.mark.parametrize("column", ["note", "user"])
def test_a_record_that_is_nested_deeply_ends_no_run(tmp_path: Path, column: str, ending: str, levels: int) -> None:
    nested = "[" * levels + "]" * levels
    records = [f'{{"user": "u{number}", "key": "k"}}' for number in range(10)]
    records.insert(5, f'{{"{column}": {nested}, "key": "k"}}')
    path = tmp_path / f"rows.{ending}"
    path.write_text(f"[{','.join(records)}]" if ending == "json" else "\n".join(records))
    found = users(path, threads=2)
    assert {f"u{number}" for number in range(10)} <= set(found)
    assert len(found) == 11
