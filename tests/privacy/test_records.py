"""A file gives one row per record, whatever lies in the record: one user's text with line ends never becomes rows of others."""

import csv
import gzip
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plume
from plume.engines import json_records
from plume.engines.engine import Table
from plume.engines.files import find_files
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


LONGEST = 2**24
OTHERS = [f"u{number}" for number in range(10)]


def json_record(size: int) -> str:
    """A record of so many bytes."""
    begun = '{"key": "k", "user": "big", "note": "'
    return begun + "x" * (size - len(begun) - 2) + '"}'


def csv_record(size: int) -> str:
    """A record of so many bytes, with its line end, whose text looks like records of others."""
    begun, fake = 'big,k,"', "\nfake,k,x"
    rest = size - len(begun) - 2
    return begun + fake * (rest // len(fake)) + "x" * (rest % len(fake)) + '"'


def write_with(path: Path, record: str) -> Path:
    """Write a file with ten ordinary records and, behind the seventh, this one."""
    lines = [json.dumps({"user": user, "key": "k"}) for user in OTHERS]
    if ".csv" in path.suffixes:
        lines = [f"{user},k,x" for user in OTHERS]
    lines.insert(7, record)
    text = f"[{','.join(lines)}]" if ".json" in path.suffixes else "\n".join(lines)
    content = ("user,key,note\n" if ".csv" in path.suffixes else "") + text
    with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as file:
        file.write(content.encode("latin-1"))
    return path


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz", "json", "json.gz"])
@pytest.mark.parametrize(
    ("size", "times"),
    [
        (LONGEST, 1),
        (LONGEST + 1, 0),
        *(pytest.param(size, 0, marks=pytest.mark.engines) for size in (LONGEST + 2**20, 2 * LONGEST, 40_000_000)),
    ],
)
def test_a_record_of_more_than_16_mib_drops_out_of_every_format(
    tmp_path: Path, ending: str, size: int, times: int
) -> None:
    record = csv_record(size) if "csv" in ending else json_record(size)
    found = users(write_with(tmp_path / f"rows.{ending}", record), threads=2)
    assert sorted(filter(None, found)) == sorted(OTHERS + ["big"] * times)


HOSTILE_RECORDS = {
    "half of a surrogate pair, as JavaScript writes it": '{"user": "\\ud800", "key": "k"}',
    "half of a pair in a name": '{"\\udfff": 1, "user": null}',
    "bytes that are not UTF-8": '{"user": "\xff\xfe", "key": "k"}',
    "a control character in a text": '{"user": "\x01", "key": "k"}',
    "a number beyond doubles": '{"user": 1e999999, "key": "k"}',
    "a number of ten thousand digits": f'{{"user": {"9" * 10_000}, "key": "k"}}',
    "no object": '["user", "key"]',
    "null": "null",
    "brackets and quotes in texts": r'{"user": "]}{[,\"\\", "key": "\\\""}',
    "a name twice": '{"user": "a", "user": "b", "key": "k"}',
    "an object as user": '{"user": {"user": "u1"}, "key": {"key": "k"}}',
}


@pytest.mark.parametrize("ending", ["jsonl", "json"])
@pytest.mark.parametrize("hostile", HOSTILE_RECORDS)
def test_a_hostile_record_leaves_all_others_as_they_are(tmp_path: Path, ending: str, hostile: str) -> None:
    found = users(write_with(tmp_path / f"rows.{ending}", HOSTILE_RECORDS[hostile]), threads=2)
    assert len(found) == len(OTHERS) + 1
    assert sorted(user for user in found if user in OTHERS) == OTHERS


@pytest.mark.parametrize("hostile", [name for name in HOSTILE_RECORDS if name != "no object"])
@pytest.mark.parametrize("place", [0, 5, 10])
def test_a_hostile_record_among_records_one_after_the_other(tmp_path: Path, hostile: str, place: int) -> None:
    lines = [json.dumps({"user": user, "key": "k"}) for user in OTHERS]
    lines.insert(place, HOSTILE_RECORDS[hostile])
    path = tmp_path / "rows.json"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    found = users(path, threads=2)
    assert len(found) == len(OTHERS) + 1
    assert sorted(user for user in found if user in OTHERS) == OTHERS


AROUND = {
    "alone": "[{}]",
    "first": "[ {},\n 1]",
    "last": "[1,\n\t{}\n\n ]",
    "spread": "  [1  ,  {}  ,  2]  ",
    "in line": "1\n\n{}\n 2",
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("size", "times"), [(LONGEST, 1), (LONGEST + 1, 0)])
def test_what_stands_around_a_json_record_does_not_decide_whether_it_is_read(
    tmp_path: Path, around: str, size: int, times: int
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(AROUND[around].replace("{}", json_record(size)))
    assert users(path, threads=2).count("big") == times


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize(("size", "times"), [(LONGEST, 1), (LONGEST + 1, 0)])
def test_how_lines_end_does_not_decide_whether_a_record_is_read(
    tmp_path: Path, end: str, size: int, times: int
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes((f'{{"user": "u"}}{end or chr(10)}{json_record(size)}{end}').encode())
    assert users(path, threads=2).count("big") == times


@pytest.mark.parametrize("size", [2**24 + 100, 2**25, 2**25 + 50])
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json", "csv"])
def test_the_last_record_is_read_whatever_the_size_of_a_file_that_does_not_end_its_line(
    tmp_path: Path, ending: str, size: int
) -> None:
    """DuckDB loses it at such sizes, so that the rows of others would decide whether it counts."""
    record, last = b'{"user": "u", "key": "k", "note": "%b"}' % (b"y" * 70), b'{"user": "last", "key": "k"}'
    if ending == "csv":
        record, last = b"u,k," + b"y" * 100, b"last,k,x"
    between = b",\n" if ending == "json" else b"\n"
    records = (size - len(last)) // len(record + between)
    content = between.join([record] * records + [last])
    content = b"user,key,note\n" + content if ending == "csv" else b"[%b]" % content if ending == "json" else content
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(gzip.compress(content, 1) if ending.endswith("gz") else content)
    found = users(path, threads=2)
    assert (len(found), found.count("last")) == (records + 1, 1)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz", "json", "json.gz"])
def test_the_first_record_is_read_behind_the_mark_of_utf_8(tmp_path: Path, ending: str, end: str) -> None:
    """DuckDB loses it in JSON lines, so that a record more in front of it would decide whether it counts."""
    lines = [json.dumps({"user": user, "key": "k"}) for user in OTHERS]
    text = f"[{','.join(lines)}]" if "jsonl" not in ending else "\n".join(lines)
    if "csv" in ending:
        text = "\n".join(["user,key", *(f"{user},k" for user in OTHERS)])
    path = tmp_path / f"rows.{ending}"
    with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as file:
        file.write(f"\ufeff{text}{end}".encode())
    assert sorted(users(path, threads=2)) == OTHERS


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
@pytest.mark.parametrize("column", ["user", "key"])
def test_folders_give_no_values_and_a_long_record_changes_none(tmp_path: Path, ending: str, column: str) -> None:
    folder = tmp_path / f"{column}=H"
    folder.mkdir()
    record = csv_record if ending == "csv" else json_record
    for size in (1000, LONGEST + 1):
        path = write_with(folder / f"rows.{ending}", record(size))
        kinds = {"user": Kind.TEXT, "key": Kind.TEXT}
        with plume.DuckDB(threads=2).open({"rows": Table(str(path), kinds)}) as session:
            rows = session.look_at("rows").to_pylist()
        assert sorted(row["user"] for row in rows if row["user"] in OTHERS) == OTHERS
        assert {row["key"] for row in rows if row["user"] in OTHERS} == {"k"}


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_one_record_does_not_decide_which_columns_there_are(tmp_path: Path, ending: str) -> None:
    """Only one user has a key, behind more records than a reader would look at."""
    others = [json.dumps({"user": f"u{number}"}) for number in range(30_000)]
    query = plume.Query(
        user="user", keys="key", measures=[plume.users()], max_keys_per_user=1, budget=plume.Budget(1, 1e-6)
    )
    for name, records in {"with": [*others, '{"user": "u", "key": "k"}'], "without": others}.items():
        path = tmp_path / f"{name}.{ending}"
        path.write_text(f"[{','.join(records)}]" if ending == "json" else "\n".join(records))
        assert plume.run(query, str(path)).rows.num_rows <= 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\{}[],:\n\r\u00e9\ud800', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\}]', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    records=st.lists(st.fixed_dictionaries({"r": VALUES}), max_size=5),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    array=st.booleans(),
    between=st.sampled_from(["", " ", "\n", "\r\n"]),
    block=st.sampled_from([1, 2, 3, 7, 64, 2**20]),
    longest=st.sampled_from([20, LONGEST]),
)
def test_each_record_of_a_json_file_becomes_one_line_or_drops_out(
    *, records: list[Any], indent: int | None, ascii_only: bool, array: bool, between: str, block: int, longest: int
) -> None:
    written = [json.dumps(record, indent=indent, ensure_ascii=ascii_only) for record in records]
    text = f"{between}[{f'{between},'.join(written)}]{between}" if array else between.join(written)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "rows.json"
        path.write_bytes(text.encode(errors="surrogatepass"))
        patch.setattr(json_records, "_BLOCK", block)
        patch.setattr(json_records, "LONGEST_RECORD", longest)
        [lined] = json_records.with_records_in_lines(find_files(path), Path(folder)).paths
        lines = [line for line in lined.read_bytes().split(b"\n") if line.strip()]
    found = [json.loads(line.decode(errors="surrogatepass")) for line in lines]
    assert len(found) == len(records)
    assert all(line in (record, None) for line, record in zip(found, records, strict=True))
    if longest == LONGEST:
        assert found == records
