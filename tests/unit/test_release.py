"""A release: the rows in many forms, files whole or not at all, and strangers' words made harmless."""

import json
import os
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import plume
from plume.errors import ColumnNotFound, OutputError, OutputExists, UsageError
from plume.output.csv_rows import csv_safe
from plume.output.text_table import show
from plume.release import Release
from questions import ENGINE, asking, people


def release(*, keys: Any = ("x", "x", "y", "y"), private: bool = True, **changes: Any) -> Release:
    made = plume.run(asking(**changes), people(k=pa.array(keys)), engine=ENGINE)
    return Release(made.rows, made.explanation, private=private)


def releasing(rows: pa.Table) -> Release:
    return Release(rows, release().explanation, private=True)


@pytest.fixture(scope="module")
def some() -> Release:
    return release()


@pytest.fixture(scope="module")
def none() -> Release:
    return release(keys=["x"], budget=plume.Budget(1, 1e-12))


def test_rows_come_as_pandas(some: Release) -> None:
    assert some.to_pandas().columns.tolist() == ["k", "count"]


def test_rows_come_as_polars(some: Release) -> None:
    assert some.to_polars().schema == {"k": pl.String, "count": pl.Int64}


def test_rows_come_as_arrow(some: Release) -> None:
    assert pa.table(some).equals(some.to_arrow())


def test_pandas_makes_a_frame_of_a_release(some: Release) -> None:
    pd.testing.assert_frame_equal(pd.DataFrame(some), some.to_pandas())


def test_polars_makes_a_frame_of_a_release(some: Release) -> None:
    assert pl.DataFrame(some).equals(some.to_polars())


def test_polars_keeps_the_columns_of_a_release_without_rows(none: Release) -> None:
    assert pl.DataFrame(none).schema == none.to_polars().schema


def test_a_release_gives_its_rows_one_after_another(some: Release) -> None:
    assert list(some) == some.to_arrow().to_pylist()


def test_as_many_rows_come_as_the_length_says(some: Release, none: Release) -> None:
    assert [len(list(release)) for release in (some, none)] == [len(some), len(none)]


def test_rows_can_be_asked_for_again(some: Release) -> None:
    assert list(some) == list(some)


def test_a_column_comes_by_its_name(some: Release) -> None:
    assert some["count"].equals(some.to_arrow()["count"])


def test_an_unknown_column_is_refused_with_the_nearest_one(some: Release) -> None:
    with pytest.raises(ColumnNotFound, match="no column 'Count' in the release; did you mean 'count'"):
        some["Count"]


@pytest.mark.parametrize("place", [0, slice(1), ["count"], None])
def test_a_row_is_not_a_column(some: Release, place: Any) -> None:
    with pytest.raises(UsageError, match=r"list\(release\) for rows"):
        some[place]


def test_a_release_can_be_data_again(some: Release) -> None:
    query = asking(user="k", keys="count", measures=[plume.users()], public_keys=[0])
    assert len(plume.run(query, some)) == 1


def test_a_release_knows_how_many_rows_it_has(some: Release) -> None:
    assert len(some) == 2


def test_a_release_without_rows_still_has_its_columns(none: Release) -> None:
    assert (len(none), none.to_arrow().column_names, len(none.to_pandas()), len(none.to_polars())) == (
        0,
        ["k", "count"],
        0,
        0,
    )


def test_a_release_without_rows_can_be_printed(none: Release) -> None:
    assert str(none).splitlines()[:2] == ["k  count", "no keys were selected"]


def test_a_release_without_rows_can_be_written(none: Release, tmp_path: Path) -> None:
    none.write_csv(tmp_path / "r.csv")
    none.write_parquet(tmp_path / "r.parquet")
    assert (tmp_path / "r.csv").read_text() == '"k","count"\n'
    assert pq.read_table(tmp_path / "r.parquet").num_rows == 0


def test_a_printed_release_says_what_it_guarantees(some: Release) -> None:
    assert "-differential privacy for every u: adding or removing all rows of one u" in str(some)
    assert "noise (95 %): count ± " in repr(some)


def test_a_release_made_by_a_test_says_so() -> None:
    assert "NOT PRIVATE" in str(release(private=False))


def test_the_record_is_json(some: Release) -> None:
    assert json.loads(some.to_json()) == json.loads(json.dumps(some.record()))


def test_the_record_is_in_the_parquet_file(some: Release, tmp_path: Path) -> None:
    some.write_parquet(tmp_path / "r.parquet")
    read = pq.read_table(tmp_path / "r.parquet")
    assert read.equals(some.to_arrow())
    assert json.loads(read.schema.metadata[b"plume"]) == json.loads(some.to_json())


def test_csv_holds_the_rows(some: Release, tmp_path: Path) -> None:
    some.write_csv(str(tmp_path / "r.csv"))
    assert pyarrow.csv.read_csv(tmp_path / "r.csv").equals(some.to_arrow())


FORMULAS = [
    "=1+1", "=cmd|' /C calc'!A0", "+1", "-1", "-x", "@SUM(A1)", "\tx", "\rx", "=", "+", "-", "@", '=HYPERLINK("http://x")', "@x", "-2+3",
    "+cmd", "=\n", "\t=1", "\r=1", "--", "-0", "+49 30 123", "@name", "=A1", "-\u00a0x", "==", "+=", "@@", "=IMPORTXML()", "-(1)",
    " =1", "   +1", "\n=1", "\u00a0-x", "\u3000@x", "\ufeff=1", "\u200b=1", "\u202e=1", "\u2028=1", "\0=1", "\x0b=1", " \t =1",
    "\uff1d1+1", "\uff0b1", "\uff0dx", "\uff20SUM(A1)", " \uff1d1", "\u3000\uff1d1", "\ufe661", "\ufe621", "\ufe631", "\ufe6bx",
]  # fmt: skip
HARMLESS = ["x", "", " x", "  ", "1-1", "a=b", "'=1", "x@y", "ä", "\n", "0"]


@pytest.mark.parametrize("key", FORMULAS)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(key: str) -> None:
    assert csv_safe(pa.table({"k": [key]}))["k"].to_pylist() == [f"'{key}"]


@pytest.mark.parametrize("key", HARMLESS)
def test_other_text_stays_as_it_is(key: str) -> None:
    assert csv_safe(pa.table({"k": [key]}))["k"].to_pylist() == [key]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_name_that_a_spreadsheet_would_run_gets_an_apostrophe(name: str) -> None:
    assert csv_safe(pa.table({name: [1], "n": [2]})).column_names == [f"'{name}", "n"]


@pytest.mark.parametrize("name", HARMLESS)
def test_other_names_stay_as_they_are(name: str) -> None:
    assert csv_safe(pa.table({name: [1]})).column_names == [name]


def test_names_are_made_harmless_in_written_csv(tmp_path: Path) -> None:
    releasing(pa.table({"=1+1": ["x"], " @n": [1]})).write_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == '"\'=1+1","\' @n"\n"x",1\n'


def test_words_of_a_dictionary_are_made_harmless() -> None:
    rows = pa.table({"k": pa.array(["=1", "x", None]).dictionary_encode()})
    assert csv_safe(rows)["k"].to_pylist() == ["'=1", "x", None]


def test_text_of_any_layout_is_made_harmless() -> None:
    for kind in (pa.string(), pa.large_string()):
        assert csv_safe(pa.table({"k": pa.array(["=1", None], kind)}))["k"].to_pylist() == ["'=1", None]


def test_negative_numbers_are_no_formulas() -> None:
    rows = pa.table({"n": [-1], "x": [-1.5], "d": [Decimal("-2.5")]})
    assert csv_safe(rows).equals(rows)


def test_bytes_are_hexadecimal_in_csv(tmp_path: Path) -> None:
    releasing(pa.table({"k": [b"=1", b"\xff\x00"]})).write_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == '"k"\n"3d31"\n"ff00"\n'


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb", r"a\nb"),
        ("a\rb", r"a\rb"),
        ("a\tb", r"a\tb"),
        ("\x00", r"\x00"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp", r"\u202egnp"),
        ("\u200b", r"\u200b"),
        ("\u2028", r"\u2028"),
        ("\x07", r"\x07"),
        ("\U000e0001", r"\U000e0001"),
        ("ä \U0001f600", "ä \U0001f600"),
    ],
)
def test_control_characters_are_escaped_in_print(key: str, shown: str) -> None:
    assert show(pa.table({"k": [key]})).splitlines()[1].strip() == shown


def test_names_are_printed_harmlessly_everywhere() -> None:
    name = "\x1b[31mu\n"
    rows = people(k=["x", "x"]).rename_columns([name, "k"])
    printed = str(plume.run(asking(user=name, measures=[plume.count(1, name="\x1b[31mc")]), rows, engine=ENGINE))
    assert "\x1b" not in printed
    assert len(printed.splitlines()) == 7


def test_a_very_long_key_is_cut_in_print() -> None:
    assert show(pa.table({"k": ["x" * 10_000]})).splitlines()[1] == "x" * 77 + "..."


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2.5, "2.5"),
        (123456.7, "123457"),
        (999_999.7, "1000000"),
        (1_234_567.8, "1234568"),
        (-2e9, "-2000000000"),
        (1e15, "1e+15"),
    ],
)
def test_large_numbers_are_printed_without_exponents(number: float, text: str) -> None:
    assert show(pa.table({"sum": [number]})).split() == ["sum", text]


def test_wide_noise_is_printed_without_exponents() -> None:
    wide = release(keys=["x"], measures=[plume.users()], budget=plume.Budget(0.0001, 1e-12))
    assert wide.widths(0.95)["users"] > 10_000
    assert wide.noise_in_words == f"users ± {wide.widths(0.95)['users']:,}"


def test_only_the_first_rows_are_printed() -> None:
    lines = show(pa.table({"k": list(range(100))})).splitlines()
    assert (len(lines), lines[-1]) == (12, "... 100 rows")


@pytest.mark.parametrize("keys", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_a_key_that_csv_cannot_hold_is_said(keys: list[Any], tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"r\.csv' could not be written; this format cannot hold one of the columns"):
        releasing(pa.table({"k": keys})).write_csv(tmp_path / "r.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("writer", ["write_csv", "write_parquet"])
@pytest.mark.parametrize("place", ["absent/r", "file/r", "", "folder", "a\0b", "x" * 300])
def test_a_place_where_nothing_can_be_written_is_said(some: Release, tmp_path: Path, place: str, writer: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(
        OutputError, match="could not be written; check that its folder exists, is writable and has free space"
    ):
        getattr(some, writer)(tmp_path / place)
    assert {path.name for path in tmp_path.rglob("*")} == {"file", "folder"}


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), pa.ArrowInvalid("oops"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize(("writer", "module"), [("write_csv", pyarrow.csv), ("write_parquet", pq)])
def test_a_failing_write_leaves_nothing_behind(
    some: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, writer: str, module: Any
) -> None:
    def fail(rows: pa.Table, file: Any) -> None:
        del rows
        file.write(b"half of it")
        raise failure

    monkeypatch.setattr(module, writer.replace("parquet", "table"), fail)
    with pytest.raises((OutputError, KeyboardInterrupt, MemoryError), match=r"^(.*could not be written.*|)$"):
        getattr(some, writer)(tmp_path / "r")
    assert not list(tmp_path.iterdir())


def test_a_failing_write_leaves_an_older_file_as_it_was(
    some: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "r.csv"
    target.write_text("older")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError))
    with pytest.raises(OutputError, match="could not be written"):
        some.write_csv(target, overwrite=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r.csv", "older")]


WRITERS = ["write_csv", "write_parquet", "report"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_is_there_is_not_replaced(some: Release, tmp_path: Path, writer: str) -> None:
    (tmp_path / "r").write_text("older")
    with pytest.raises(OutputExists, match=r"r' exists; give another name, or overwrite=True to replace it"):
        getattr(some, writer)(tmp_path / "r")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_is_there_is_replaced_where_asked(some: Release, tmp_path: Path, writer: str) -> None:
    (tmp_path / "r").write_text("older")
    getattr(some, writer)(tmp_path / "r", overwrite=True)
    assert [path.read_bytes() == b"older" for path in tmp_path.iterdir()] == [False]


def test_what_python_calls_a_file_that_exists_is_caught_as_such(some: Release, tmp_path: Path) -> None:
    (tmp_path / "r").symlink_to("nowhere")
    with pytest.raises(FileExistsError) as caught:
        some.write_csv(tmp_path / "r")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("there", [False, True])
def test_without_links_nothing_is_replaced_either(
    some: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(95, "no links")))
    if there:
        (tmp_path / "r").write_text("older")
    with pytest.raises(OutputExists) if there else nullcontext():
        some.write_csv(tmp_path / "r")
    assert [(path.name, path.read_text() == "older") for path in tmp_path.iterdir()] == [("r", there)]


def test_a_failure_to_write_has_no_history(some: Release, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="could not be written") as caught:
        some.write_csv(tmp_path / "absent" / "r.csv")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_name_of_the_greatest_length_can_be_written(some: Release, tmp_path: Path) -> None:
    some.write_csv(tmp_path / ("x" * 255))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640), (0, 0o666)])
@pytest.mark.parametrize("writer", ["write_csv", "write_parquet"])
def test_a_written_file_can_be_read_by_those_whom_the_umask_lets(
    some: Release, tmp_path: Path, writer: str, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        getattr(some, writer)(tmp_path / "r")
    finally:
        os.umask(before)
    assert (tmp_path / "r").stat().st_mode & 0o777 == mode
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
