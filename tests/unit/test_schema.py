"""A table is checked against a query by the names and types of its columns, before a row is read."""

from pathlib import Path

import pytest

import plume
from plume.errors import ColumnNotFound, ColumnTypeError
from plume.plan.types import ColumnType, Kind
from plume.schema import check_schema, columns_used, described, kinds_expected
from questions import asking

TEXT = ColumnType(Kind.TEXT, "VARCHAR")
NUMBER = ColumnType(Kind.FLOAT, "DOUBLE", exact=False)


def check(query: plume.Query, **columns: ColumnType) -> None:
    check_schema(query, columns, source="rows.parquet")


def test_a_table_that_fits_passes() -> None:
    check(asking(measures=[plume.sum("v", 0, 1)]), u=TEXT, k=TEXT, v=NUMBER)


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.INTEGER, Kind.UUID])
def test_identifiers_are_text_integers_or_uuids(kind: Kind) -> None:
    check(asking(), u=ColumnType(kind, "anything"), k=TEXT)


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.TEXT, Kind.INTEGER, Kind.UUID}, key=lambda kind: kind.value))
def test_anything_else_is_no_identifier(kind: Kind) -> None:
    with pytest.raises(ColumnTypeError, match=r"user column 'u' is .*; an identifier must be text, integer or uuid"):
        check(asking(), u=ColumnType(kind, "anything"), k=TEXT)


@pytest.mark.parametrize("kind", Kind)
def test_any_exact_type_can_be_a_key(kind: Kind) -> None:
    check(asking(), u=TEXT, k=ColumnType(kind, "anything"))


def test_keys_must_be_exact() -> None:
    with pytest.raises(
        ColumnTypeError, match="key column 'k' is floating-point, and equal values of this type can differ"
    ):
        check(asking(), u=TEXT, k=NUMBER)


def test_every_part_of_a_key_must_be_exact() -> None:
    with pytest.raises(ColumnTypeError, match="key column 'l' is floating-point"):
        check(asking(keys=["k", "l"]), u=TEXT, k=TEXT, l=NUMBER)


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.BOOLEAN])
def test_values_are_numbers_or_booleans(kind: Kind) -> None:
    check(asking(measures=[plume.sum("v", 0, 1)]), u=TEXT, k=TEXT, v=ColumnType(kind, "anything"))


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.DATE, Kind.TIMESTAMP, Kind.UUID, Kind.OTHER])
def test_anything_else_is_no_value(kind: Kind) -> None:
    with pytest.raises(ColumnTypeError, match=r"column 'v' is .*; a value must be a number"):
        check(asking(measures=[plume.sum("v", 0, 1)]), u=TEXT, k=TEXT, v=ColumnType(kind, "anything"))


def test_a_missing_column_is_named_with_the_nearest_and_all_others() -> None:
    with pytest.raises(
        ColumnNotFound,
        match=r"^no column 'recipie' in rows\.parquet; did you mean 'recipe'\? Columns: u, recipe, day\.$",
    ):
        check(asking(keys="recipie"), u=TEXT, recipe=TEXT, day=TEXT)


def test_a_name_in_other_letters_is_found_as_the_nearest() -> None:
    with pytest.raises(ColumnNotFound, match=r"no column 'U' in rows\.parquet; did you mean 'u'\?"):
        check(asking(user="U"), u=TEXT, k=TEXT)


def test_a_name_unlike_any_other_gets_no_hint() -> None:
    with pytest.raises(ColumnNotFound, match=r"^no column 'zzz' in rows\.parquet\. Columns: u, k\.$"):
        check(asking(user="zzz"), u=TEXT, k=TEXT)


def test_of_many_columns_only_some_are_listed() -> None:
    many = {f"c{number}": TEXT for number in range(1000)}
    with pytest.raises(ColumnNotFound, match=r"c18, c19 and 980 more\.$"):
        check(asking(), **many)


def test_names_of_columns_are_printed_harmlessly() -> None:
    with pytest.raises(ColumnNotFound, match=r"Columns: \\x1b\[31mred\\n\."):
        check(asking(), **{"\x1b[31mred\n": TEXT})


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("folder/rows.csv", "rows.csv"),
        (["folder/rows.csv"], "rows.csv"),
        (["a.csv", "b.csv"], "these 2 files"),
        ("a\nb.csv", r"a\nb.csv"),
        (b"", "this bytes"),
    ],
)
def test_data_has_a_name_for_messages(data: object, name: str) -> None:
    assert described(data) == name


def test_columns_used_are_listed_once() -> None:
    query = asking(measures=[plume.sum("v", 0, 1)], where="v > 1 AND w IS NULL AND u <> 'a' AND y = z")
    assert columns_used(query) == ("u", "k", "v", "w", "y", "z")


def test_files_without_types_are_read_as_the_query_needs() -> None:
    query = asking(
        measures=[plume.sum("v", 0, 1)],
        where="v > 1 AND n = 1 AND 2.5 < x AND b AND d = DATE '2026-01-31' AND t LIKE 'a%' AND e IS NULL AND k = 'x'",
    )
    assert kinds_expected(query) == {
        "u": Kind.TEXT,
        "k": Kind.TEXT,
        "v": Kind.FLOAT,
        "n": Kind.INTEGER,
        "x": Kind.FLOAT,
        "b": Kind.BOOLEAN,
        "d": Kind.DATE,
        "t": Kind.TEXT,
        "e": Kind.TEXT,
    }


def test_data_is_called_by_the_name_of_its_file_or_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [described(data) for data in ("rows.csv", "data/rows.csv", ".")] == ["rows.csv", "rows.csv", tmp_path.name]
