"""Data of every kind: the same rows give the same answer, and files are what they say they are."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import plume
from plume.errors import ColumnNotFound, InputError
from questions import answer, asking, write_text

ROWS = pa.table(
    {
        "u": ["a", "a", "b", "b", "c", None, "d"],
        "k": ["x", "x", "x", "y", "y", "x", None],
        "v": [1.0, 2.0, 3.0, 4.0, None, 5.0, 6.0],
        "more": [[1.5], [], None, [2.5], [], [], []],
    }
)
FLAT = ROWS.drop_columns(["more"])
QUERY = asking(
    measures=[plume.count(max_per_key=2), plume.sum("v", low_total=0, high_total=10)], public_keys=["x", "y", "z"]
)
EXPECTED = {"k": ["x", "y", "z"], "count": [3, 2, 0], "v_sum": [6.0, 4.0, 0.0]}
LINES = "".join(json.dumps(row) + "\n" for row in FLAT.to_pylist())
CSV = "u,k,v\na,x,1\na,x,2\nb,x,3\nb,y,4\nc,y,\n,x,5\nd,,6\n"


class Stream:
    """Something of which nothing is known but that it streams Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ROWS.__arrow_c_stream__(requested_schema)


def parquet(path: Path, rows: pa.Table = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    return path


def halves(folder: Path) -> list[Path]:
    return [parquet(folder / "one.parquet", ROWS.slice(0, 3)), parquet(folder / "two.parquet", ROWS.slice(3))]


def partitioned(folder: Path) -> Path:
    for key, part in (("x", [0, 1, 2, 5]), ("y", [3, 4]), ("__HIVE_DEFAULT_PARTITION__", [6])):
        parquet(folder / f"k={key}" / "part.parquet", ROWS.take(part).drop_columns(["k"]))
    return folder


def turned(text: str) -> str:
    """Put the columns of a CSV file the other way round, and another one between them."""
    return "".join(",0,".join(reversed(line.split(","))) + "\n" for line in text.splitlines())


def compressed(path: Path, codec: str, text: str) -> Path:
    with pa.output_stream(str(path), compression=codec) as stream:
        stream.write(text.encode())
    return path


def linked(path: Path, link: Path) -> Path:
    link.symlink_to(path)
    return link


def relation(statement: str = "SELECT * FROM rows") -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    return connection.sql(statement)


def table_of_a_connection() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("arrow", ROWS)
    connection.execute("CREATE TABLE rows AS SELECT * FROM arrow")
    return connection.table("rows")


KINDS: dict[str, Callable[[Path], Any]] = {
    "a Parquet file": lambda folder: parquet(folder / "rows.parquet"),
    "a Parquet file by text": lambda folder: str(parquet(folder / "rows.parquet")),
    "a .pq file": lambda folder: parquet(folder / "rows.pq"),
    "an ending in capitals": lambda folder: parquet(folder / "ROWS.PARQUET"),
    "a list of Parquet files": halves,
    "a tuple of Parquet files": lambda folder: tuple(str(path) for path in halves(folder)),
    "a pattern": lambda folder: (halves(folder), str(folder / "*.parquet"))[1],
    "a pattern across folders": lambda folder: (halves(folder / "deep" / "deeper"), str(folder / "**" / "*.parquet"))[
        1
    ],
    "a pattern of folders": lambda folder: (halves(folder / "rows.parquet"), str(folder / "*.parquet"))[1],
    "a folder of Parquet files": lambda folder: (halves(folder), folder)[1],
    "a folder with folders": lambda folder: (halves(folder / "deep" / "deeper"), str(folder))[1],
    "a folder of partitions": partitioned,
    "a link to a Parquet file": lambda folder: linked(parquet(folder / "rows.parquet"), folder / "link.parquet"),
    "a CSV file": lambda folder: write_text(folder / "rows.csv", CSV),
    "CSV files": lambda folder: [
        write_text(folder / "1.csv", CSV[:18]),
        write_text(folder / "2.csv", CSV[:6] + CSV[18:]),
    ],
    "a folder of CSV files": lambda folder: [
        write_text(folder / "1.csv", CSV[:18]),
        write_text(folder / "2.csv", CSV[:6] + CSV[18:]),
        folder,
    ][-1],
    "CSV files in another order": lambda folder: [
        write_text(folder / "1.csv", CSV[:18]),
        write_text(folder / "2.csv", turned(CSV[:6] + CSV[18:])),
    ],
    "CSV files with other delimiters": lambda folder: [
        write_text(folder / "1.csv", CSV[:18].replace(",", ";")),
        write_text(folder / "2.csv", CSV[:6] + CSV[18:]),
    ],
    "CSV with semicolons": lambda folder: write_text(folder / "rows.csv", CSV.replace(",", ";")),
    "a TSV file": lambda folder: write_text(folder / "rows.tsv", CSV.replace(",", "\t")),
    "CSV in gzip": lambda folder: compressed(folder / "rows.csv.gz", "gzip", CSV),
    "CSV in gzip in capitals": lambda folder: compressed(folder / "rows.csv.gz", "gzip", CSV).rename(
        folder / "R.CSV.GZ"
    ),
    "CSV in Zstandard": lambda folder: compressed(folder / "rows.csv.zst", "zstd", CSV),
    "CSV by Arrow": lambda folder: (pyarrow.csv.write_csv(FLAT, folder / "rows.csv"), folder / "rows.csv")[1],
    "JSON lines": lambda folder: write_text(folder / "rows.jsonl", LINES),
    "JSON lines called ndjson": lambda folder: write_text(folder / "rows.ndjson", LINES),
    "a folder of JSON lines": lambda folder: write_text(folder / "rows.jsonl", LINES).parent,
    "JSON lines in gzip": lambda folder: write_text(folder / "rows.jsonl.gz", gzip.compress(LINES.encode())),
    "JSON lines called json": lambda folder: write_text(folder / "rows.json", LINES),
    "a JSON array": lambda folder: write_text(folder / "rows.json", json.dumps(FLAT.to_pylist())),
    "JSON in gzip": lambda folder: write_text(
        folder / "rows.json.gz", gzip.compress(json.dumps(FLAT.to_pylist()).encode())
    ),
    "pandas": lambda _: ROWS.to_pandas(),
    "pandas with categories": lambda _: FLAT.to_pandas().astype({"u": "category", "k": "category"}),
    "pandas with an index of users": lambda _: FLAT.to_pandas().set_index("u").reset_index(),
    "pandas on Arrow": lambda _: FLAT.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas of objects": lambda _: FLAT.to_pandas().astype({"u": object, "k": object}),
    "pandas with a column of all sorts": lambda _: FLAT.to_pandas().assign(sorts=[1, "a", None, b"", 2.5, [], {}]),
    "Polars": lambda _: pl.from_arrow(ROWS),
    "Polars with categories": lambda _: pl.from_arrow(FLAT).with_columns(pl.col("k").cast(pl.Categorical)),
    "a lazy Polars frame": lambda _: pl.from_arrow(ROWS).lazy(),
    "a lazy Polars scan": lambda folder: pl.scan_parquet(parquet(folder / "rows.parquet")),
    "an Arrow table": lambda _: ROWS,
    "an Arrow table in pieces": lambda _: pa.concat_tables([ROWS.slice(0, 2), ROWS.slice(2)]),
    "an Arrow table with dictionaries": lambda _: pa.table({n: FLAT[n].dictionary_encode() for n in FLAT.column_names}),
    "an Arrow stream": lambda _: ROWS.to_reader(max_chunksize=2),
    "anything that streams Arrow": lambda _: Stream(),
    "a DuckDB relation": lambda _: relation(),
    "a DuckDB relation with a condition": lambda _: relation("SELECT *, 1 AS one FROM rows WHERE v IS NULL OR v < 100"),
    "a DuckDB table": lambda _: table_of_a_connection(),
    "a DuckDB relation on a file": lambda folder: duckdb.connect().read_parquet(str(parquet(folder / "rows.parquet"))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_give_the_same_answer(tmp_path: Path, kind: str) -> None:
    assert answer(QUERY, KINDS[kind](tmp_path)) == EXPECTED


def test_a_stream_is_read_once_by_a_pipeline_that_reads_its_input_twice() -> None:
    assert answer(QUERY, ROWS.to_reader(), pipeline="naive") == EXPECTED


def test_a_relation_of_the_caller_can_be_used_again() -> None:
    given = relation()
    assert answer(QUERY, given) == answer(QUERY, given) == EXPECTED


def test_settings_of_the_callers_connection_stay_as_they_were() -> None:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    settings = "SELECT * FROM duckdb_settings() ORDER BY name"
    before = connection.execute(settings).fetchall()
    answer(QUERY, connection.table("rows"))
    assert connection.execute(settings).fetchall() == before


@pytest.mark.parametrize("rows", [FLAT.slice(0, 0), FLAT.slice(0, 0).to_pandas(), pl.from_arrow(FLAT.slice(0, 0))])
def test_an_empty_table_gives_an_empty_release(rows: Any) -> None:
    assert answer(asking(), rows) == {"k": [], "count": []}


@pytest.mark.parametrize(
    ("name", "text"),
    [("e.csv", "u,k,v\n"), ("e.csv", "u,k,v"), ("e.json", "[]"), ("e.json", ""), ("e.jsonl", ""), ("e.jsonl", "\n")],
)
def test_a_file_without_rows_gives_an_empty_release(tmp_path: Path, name: str, text: str) -> None:
    assert answer(asking(), write_text(tmp_path / name, text)) == {"k": [], "count": []}


def test_a_parquet_file_without_row_groups_gives_an_empty_release(tmp_path: Path) -> None:
    assert answer(asking(), parquet(tmp_path / "e.parquet", FLAT.slice(0, 0))) == {"k": [], "count": []}


def test_public_keys_are_released_without_any_data() -> None:
    assert answer(QUERY, FLAT.slice(0, 0)) == {"k": ["x", "y", "z"], "count": [0, 0, 0], "v_sum": [0.0, 0.0, 0.0]}


def test_columns_of_nothing_but_none_count_for_nothing() -> None:
    nothing = pd.DataFrame({"u": [None, None], "k": [None, None], "v": [None, None]}, dtype=object)
    assert answer(asking(measures=[plume.sum("v", 0, 1)]), nothing) == {"k": [], "v_sum": []}


def test_columns_of_types_duckdb_does_not_know_do_not_matter_if_nobody_asks_for_them() -> None:
    halves_of_floats = pa.array([1.5] * 7, pa.float16())
    assert answer(QUERY, ROWS.append_column("half", halves_of_floats)) == EXPECTED


@pytest.mark.parametrize("text", ["a=b/rows.parquet", "k=z/rows.parquet", "u=z/rows.parquet"])
def test_the_folder_of_a_single_file_says_nothing_about_its_columns(tmp_path: Path, text: str) -> None:
    assert answer(QUERY, parquet(tmp_path / text)) == EXPECTED


def test_a_folder_above_the_one_that_was_given_says_nothing_about_columns(tmp_path: Path) -> None:
    halves(tmp_path / "k=z" / "rows")
    assert answer(QUERY, tmp_path / "k=z" / "rows") == EXPECTED


def test_a_column_in_files_and_in_names_of_folders_is_refused(tmp_path: Path) -> None:
    parquet(tmp_path / "k=x" / "rows.parquet")
    with pytest.raises(InputError, match="column 'k' is in the files and in the names of their folders"):
        answer(QUERY, tmp_path)


def test_files_that_writers_hide_are_not_read(tmp_path: Path) -> None:
    halves(tmp_path)
    parquet(tmp_path / "_temporary" / "rows.parquet")
    parquet(tmp_path / ".rows.parquet")
    assert answer(QUERY, tmp_path) == EXPECTED


def test_a_file_named_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    halves(tmp_path)
    assert answer(QUERY, parquet(tmp_path / "*.parquet")) == EXPECTED


def test_a_relative_path_with_dots_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(tmp_path / "rows.parquet")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert answer(QUERY, "../here/../rows.parquet") == EXPECTED


def test_parquet_files_may_differ_in_columns_nobody_asks_for(tmp_path: Path) -> None:
    files = [parquet(tmp_path / "1.parquet", ROWS.slice(0, 3)), parquet(tmp_path / "2.parquet", FLAT.slice(3))]
    assert answer(QUERY, files) == EXPECTED


def test_parquet_files_may_order_their_columns_differently(tmp_path: Path) -> None:
    turned = FLAT.slice(3).select(["v", "k", "u"])
    files = [parquet(tmp_path / "1.parquet", FLAT.slice(0, 3)), parquet(tmp_path / "2.parquet", turned)]
    assert answer(QUERY, files) == EXPECTED


@pytest.mark.parametrize(
    "other",
    [
        FLAT.drop_columns(["v"]),
        FLAT.drop_columns(["u"]),
        FLAT.set_column(0, "u", pa.array(range(7))),
        FLAT.set_column(2, "v", pa.array(range(7))),
        FLAT.set_column(1, "k", FLAT["k"].cast(pa.binary())),
    ],
)
def test_parquet_files_that_differ_in_columns_of_the_query_are_refused(tmp_path: Path, other: pa.Table) -> None:
    files = [parquet(tmp_path / "1.parquet", FLAT), parquet(tmp_path / "2.parquet", other)]
    with pytest.raises(InputError, match="the 2 files differ in the columns this query reads, or in their types"):
        answer(QUERY, files)


def test_csv_files_that_lack_a_column_of_the_query_are_refused(tmp_path: Path) -> None:
    files = [write_text(tmp_path / "1.csv", CSV), write_text(tmp_path / "2.csv", "u,v\n")]
    with pytest.raises(ColumnNotFound, match=r"no column 'k' in one of 2 files \(engine_errors_to says which\)"):
        answer(QUERY, files)


@pytest.mark.parametrize("text", ["", "\ufeff", "\n", "\r\n", pd.DataFrame([]).to_csv(), '\ufeff""\r\n', " \n"])
def test_an_empty_csv_file_beside_others_has_no_rows(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "1.csv", CSV)
    write_text(tmp_path / "2.csv", text)
    compressed(tmp_path / "3.csv.gz", "gzip", text)
    assert answer(QUERY, tmp_path) == EXPECTED


@pytest.mark.parametrize("ending", [f"{form}{packed}" for form in ("json", "jsonl") for packed in ("", ".gz", ".zst")])
def test_an_empty_json_file_beside_others_has_no_rows(tmp_path: Path, ending: str) -> None:
    write_text(tmp_path / f"1.{ending.partition('.')[0]}", LINES)
    (tmp_path / f"2.{ending}").touch()
    assert answer(QUERY, tmp_path) == EXPECTED


def test_parquet_files_of_a_folder_are_read_without_the_other_files_in_it(tmp_path: Path) -> None:
    halves(tmp_path)
    write_text(tmp_path / "notes.csv", "a,b\n")
    assert answer(QUERY, tmp_path) == EXPECTED


def test_a_quote_that_never_ends_takes_no_record_of_a_file_in_another_order(tmp_path: Path) -> None:
    query = asking(measures=[plume.users()], public_keys=["x"])
    write_text(tmp_path / "1.csv", 'u,k\na,x\nb,"x\ne,x\n')
    write_text(tmp_path / "2.csv", "k,u\nx,c\nx,d\n")
    assert answer(query, tmp_path) == {"k": ["x"], "users": [3]}


DEFECTS = {
    "mixed line ends": ("u,k\r\na,x\nb,x\r\nc,x\n", 3),
    "old line ends": ("u,k\ra,x\rb,x\rc,x\r", 3),
    "no last line end": ("u,k\na,x\nb,x\nc,x", 3),
    "a byte order mark": (b"\xef\xbb\xbfu,k\na,x\nb,x\nc,x\n", 3),
    "a byte order mark and quotes": (b'\xef\xbb\xbf"u","k"\na,x\nb,x\nc,x\n', 3),
    "blank lines": ("u,k\n\na,x\n\nb,x\n\n\nc,x\n\n", 3),
    "rows with too few fields": ("u,k\na,x\nb\nc,x\nd,x\n", 3),
    "rows with too many fields": ("u,k\na,x,1,2\nb,x\nc,x\n", 3),
    "a quote within a field": ('u,k\na,x\nb"b,x\nc,x\n', 3),
    "a field that goes on after its quote": ('u,k\na,x\nb,"x"\n"c"c,x\n', 3),
    "a quote that never ends": ('u,k\na,x\nb,x\nc,"x\nd,x\n', 2),
    "bytes that are no text": (b"u,k\na,x\nb\xff\xfe,x\nc,x\n", 2),
    "bytes of zero": (b"u,k\na\0a,x\n\0,x\nc,x\n", 3),
    "a line of five megabytes": (b"u,k\na,x\n" + b"b" * 5_000_000 + b",x\nc,x\n", 3),
    "a line of more than 16 MiB": (b"u,k\na,x\n" + b"b" * 2**24 + b",x\nc,x\n", 2),
    "nothing but commas": ("u,k\na,x\n,\n,,,\nb,x\n", 2),
    "words for nothing, which are words": ("u,k\nNULL,x\nNA,x\nnan,x\n", 3),
    "spaces, which count": ("u,k\n a,x\na,x\na ,x\n", 3),
    "comments, which are rows": ("u,k\n#a,x\n--b,x\n//c,x\n", 3),
    "a column without a name": (",u,k\n1,a,x\n2,b,x\n3,c,x\n", 3),
    "two other columns of one name": ("n,u,n,k\n1,a,1,x\n2,b,2,x\n3,c,3,x\n", 3),
    "a header of 200 kilobytes": (
        "u,k," + ",".join(f"{n:0500}" for n in range(400)) + "".join(f"\n{u},x" + "," * 400 for u in "abc"),
        3,
    ),
    "a header over two lines": ('u,"a\nb",k\na,1,x\nb,2,x\nc,3,x\n', 3),
    "a field over two lines": ('u,k\n"a\nb",x\n"a\r\nb",x\nc,x\n', 3),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_csv_with_defects_is_read_by_the_declared_rule(tmp_path: Path, defect: str) -> None:
    text, users = DEFECTS[defect]
    query = asking(measures=[plume.users()], public_keys=["x"])
    assert answer(query, write_text(tmp_path / "rows.csv", text)) == {"k": ["x"], "users": [users]}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\nu,k\na,x\n",
        "u,k\na,x\n".encode("utf-16"),
        "u,k\na,x\n".encode("utf-16-le"),
        b"a,x\nb,x\n",
        b"U,K\na,x\n",
        b"u k\na x\n",
        b"\x00" * 100,
        b"x" * 2**21,
    ],
)
def test_csv_that_does_not_begin_with_the_names_of_columns_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises((ColumnNotFound, InputError), match=r"its first line must name the columns|could not be read"):
        answer(asking(), write_text(tmp_path / "rows.csv", text))


@pytest.mark.parametrize("header", ["u,k,u", "u,k,U", "u,K,k"])
def test_csv_with_two_columns_of_a_wanted_name_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(InputError, match="are one to an engine, which ignores case"):
        answer(asking(), write_text(tmp_path / "rows.csv", f"{header}\na,x,b\n"))


@pytest.mark.parametrize("row", ["u,Jane Roe,1985", "Jane Roe,u", "u", "u,K,Jane Roe"])
def test_csv_whose_first_line_may_be_a_row_says_what_is_missing_and_nothing_that_is_there(
    tmp_path: Path, row: str
) -> None:
    said = r"^no column 'k' in rows\.csv; its first line must name the columns, in UTF-8, spelled exactly like this\.$"
    with pytest.raises(ColumnNotFound, match=said):
        answer(asking(), write_text(tmp_path / "rows.csv", f"{row}\nb,x,1\n"))


def test_csv_with_two_columns_of_a_wanted_name_says_that_name_only(tmp_path: Path) -> None:
    said = r"^columns 'u' and 'u' are one to an engine, which ignores case; rename one of them\.$"
    with pytest.raises(InputError, match=said):
        answer(asking(), write_text(tmp_path / "rows.csv", "u,k,U\na,x,b\n"))


def test_one_row_of_a_csv_file_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """Sniffing would take the semicolons, the quotes or the comment of the many rows for the rule."""
    strange = "".join(f'u;{n};"\n#x;;;\n' for n in range(100))
    query = asking(measures=[plume.users()], public_keys=["x"])
    assert answer(query, write_text(tmp_path / "rows.csv", "u,k\na,x\nb,x\n" + strange))["users"] == [2]


def test_values_of_csv_files_that_are_no_numbers_are_dropped(tmp_path: Path) -> None:
    values = ["1", "+2", " 3 ", "4e0", "", "x", "1,5", "nan", "inf", "-inf", "1e999", "0x10", "NULL", "--1"]
    text = "u,k,v\n" + "".join(f'{n},x,"{value}"\n' for n, value in enumerate(values))
    query = asking(measures=[plume.sum("v", -100, 100)], public_keys=["x"])
    assert answer(query, write_text(tmp_path / "rows.csv", text)) == {"k": ["x"], "v_sum": [10.0]}


JSON_DEFECTS = {
    "a line that is no JSON": '{"u":"a","k":"x"}\n{"u":"b", oops\n{"u":"c","k":"x"}\n',
    "lines that are no objects": '{"u":"a","k":"x"}\n1\n"b"\n[]\nnull\n{"u":"c","k":"x"}\n',
    "blank lines": '\n{"u":"a","k":"x"}\n\n\n{"u":"c","k":"x"}\n',
    "bytes that are no text": b'{"u":"a","k":"x"}\n{"u":"\xff","k":"x"}\n{"u":"c","k":"x"}\n',
    "bytes of zero": b'{"u":"a","k":"x"}\n{"u":"\x00","k":"x"}\n{"u":"c","k":"x"}\n',
    "half a letter": '{"u":"a","k":"x"}\n{"u":"\\ud800","k":"x"}\n{"u":"c","k":"x"}\n',
    "objects without the columns": '{"u":"a","k":"x"}\n{"n":1}\n{"u":"b"}\n{"u":"c","k":"x"}\n',
    "names in capitals": '{"u":"a","k":"x"}\n{"U":"b","K":"x"}\n{"u":"c","k":"x"}\n',
    "a name twice": '{"u":"a","u":"b","k":"x"}\n{"u":"c","k":"x"}\n',
    "old line ends": '{"u":"a","k":"x"}\r\n{"u":"c","k":"x"}\r\n',
}


@pytest.mark.parametrize("defect", JSON_DEFECTS)
def test_json_lines_with_defects_lose_these_lines_only(tmp_path: Path, defect: str) -> None:
    query = asking(measures=[plume.users()], public_keys=["x"])
    assert answer(query, write_text(tmp_path / "rows.jsonl", JSON_DEFECTS[defect]))["users"] == [2]


def test_a_json_array_that_is_cut_off_is_an_error_without_its_words(tmp_path: Path) -> None:
    with pytest.raises(plume.PlumeError, match=r"could not be read as JSON|its message is withheld"):
        answer(asking(), write_text(tmp_path / "rows.json", '[{"u":"a","k":"x"},{"u":"b","k"'))


@pytest.mark.parametrize("text", ['{"n":1}\n', '{"U":"a","K":"x"}\n', '{"u":"a","secret":"x"}\n', ""])
def test_a_column_that_no_json_record_names_is_null_in_all(tmp_path: Path, text: str) -> None:
    """Whether there is a column would depend on the records, perhaps of one user."""
    query = asking(measures=[plume.users()], public_keys=["x"])
    assert answer(query, write_text(tmp_path / "rows.jsonl", text))["users"] == [0]


def test_a_stream_that_is_larger_than_memory_goes_on_in_the_temporary_folder(tmp_path: Path) -> None:
    """120 MB of texts in 60 MB of memory."""
    schema = pa.schema([("u", pa.string()), ("k", pa.string()), ("note", pa.string())])
    notes = (hashlib.shake_128(str(part).encode()).hexdigest(10_000 * 100).encode() for part in range(60))
    batches = (
        pa.record_batch(
            [[f"user {n % 100}" for n in range(10_000)], ["x"] * 10_000, _texts_of(text, 200)], schema=schema
        )
        for text in notes
    )
    largest = []

    def look(_: str) -> None:
        largest.append(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()))

    release = plume.run(
        plume.Query(
            user="u",
            keys="k",
            measures=plume.users(where="note <> 'short'"),
            max_keys_per_user=1,
            budget=plume.Budget(200, 0.5),
            public_keys=["x"],
        ),
        pa.RecordBatchReader.from_batches(schema, batches),
        engine=plume.DuckDB(memory_limit="60MB", threads=1, temp_directory=tmp_path),
        on_step=look,
    )
    assert abs(release.to_arrow().to_pylist()[0]["users"] - 100) < 20
    assert max(largest) > 10_000_000
    assert list(tmp_path.iterdir()) == []


def _texts_of(text: bytes, length: int) -> pa.Array:
    return pa.array([text[place : place + length].decode() for place in range(0, len(text), length)])
