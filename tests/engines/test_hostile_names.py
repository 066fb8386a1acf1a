"""SQL injection: names, values and paths are only ever names, values and paths."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plume
from plume.plan.dialect import constant, identifier
from plume.plan.printing.duckdb import DUCKDB
from questions import answer, asking, write_text

PLANTED = "planted.csv"
INJECTIONS = [
    f"COPY (SELECT 42) TO '{PLANTED}'",
    "ATTACH 'planted.db'",
    f"EXPORT DATABASE '{PLANTED}'",
    "DROP VIEW input",
    "DROP TABLE by_user",
    "SET enable_external_access = true",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA enable_profiling",
    "CREATE TABLE planted AS SELECT 1",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT current_setting('temp_directory')",
]
NAMES = [
    *(f'x"; {statement}; --' for statement in INJECTIONS),
    *(f"x'; {statement}; --" for statement in INJECTIONS),
    *(f'x") AS y FROM input; {statement}; --' for statement in INJECTIONS[:4]),
    *(f"x`; {statement}; --" for statement in INJECTIONS[:2]),
    *(f"{statement};" for statement in INJECTIONS[:4]),
    '"', '""', '"""', "'", "''", "`", "``", "\\", "\\\\", '\\"', "\\'", ";", "--", "-- ", "/*", "*/", "/**/", "x/*y*/z", "#", "$$", "$1",
    "?", ":x", "@x", "%", "%s", "{}", "{0}", "{salt}", "{{", "}}", "%(x)s", "${x}", "*", "x.*", "input.x", "main.input", "(", ")", "()",
    "[", "]", "x[1]", ",", ", ", ".", "..", "/", "=", "<", ">", "!", "&", "|", "~", "^", "+", "-", "0", "1x", "-1", "1e5", "NULL", "null",
    "TRUE", "user", "current_user", "session_user", "rowid", "select", "SELECT", "from", "group by", "order", "table", "key", "values",
    "count(*)",
    'x" or 1=1', 'x" OR ""="', "x' or '1'='1", 'x" UNION ALL SELECT * FROM rows --', "(SELECT 1)", "COLUMNS(*)", "EXCLUDE", "x AS y",
    "user_id", "key_1", "value_1", "weight", "selected", "key_rank", "keys_of_user", "measure_1", "rows", "input", "public_keys",
    " ", "  x", "x  ", "\t", "\n", "\r\n", "a\nb", "\x01", "\x1b[31m", "\x7f", "\u00a0", "\u200b", "\u202e", "\ufeff", "é", "e\u0301", "ß",
    "İ", "ﬀ", "名前", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "a" * 10_000, '"' * 200, "'" * 200,
]  # fmt: skip


def every_second(several: list[str]) -> list[Any]:
    """Some names, of which `make test` tries every second, and `make test-engines` the others."""
    return [pytest.param(name, marks=[pytest.mark.engines] * (number % 2)) for number, name in enumerate(several)]


def every_third(first: int) -> list[Any]:
    """All names, of which every third is quick; three tests that begin at others try all of them between them."""
    slow = [pytest.param(name, marks=pytest.mark.slow) for number, name in enumerate(NAMES) if number % 3 != first]
    return [*every_second(NAMES[first::3]), *slow]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder in which nothing may appear."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.rglob("planted*"))


def test_there_are_at_least_a_hundred_hostile_names() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 100


@pytest.mark.parametrize("name", every_third(0))
def test_a_hostile_name_of_the_user_and_of_a_measure_is_only_a_name(name: str) -> None:
    rows = pa.table({name: ["a", "b", "b"], "k of it": ["x", "x", "y"]})
    query = asking(user=name, keys="k of it", measures=[plume.count(2, name=name)], public_keys=["x", "y"])
    assert answer(query, rows) == {"k of it": ["x", "y"], name: [2, 1]}


@pytest.mark.parametrize("name", every_third(1))
def test_a_hostile_name_of_a_key_a_value_and_in_a_condition_is_only_a_name(name: str) -> None:
    rows = pa.table({"u of it": list("abcde"), name: [1, 1, 2, 2, 9]})
    query = asking(
        user="u of it", keys=name, measures=[plume.sum(name, 0, 5, name="total")], where=f"{quoted(name)} < 9"
    )
    assert answer(query, rows) == {name: [1, 2], "total": [2.0, 4.0]}


@pytest.mark.parametrize("name", every_third(2))
def test_a_hostile_name_adds_no_statement_to_a_plan(name: str) -> None:
    printed = plume.explain(asking(user=name, keys="the key", where=f"{quoted(name)} = 'x'")).sql()
    plain = plume.explain(asking(user="plain", keys="the key", where="plain = 'x'")).sql()
    assert len(duckdb.connect().extract_statements(printed)) == len(duckdb.connect().extract_statements(plain))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


HEADERS = [name for name in NAMES if name.strip("\ufeff")]


@pytest.mark.parametrize("name", every_second(HEADERS[::3]))
def test_a_hostile_name_in_the_first_line_of_csv_is_only_a_name(folder: Path, name: str) -> None:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([[name, "k of it"], ["a", "x"], ["b", "x"]])
    query = asking(user=name, keys="k of it", public_keys=["x"])
    assert answer(query, folder / "rows.csv")["count"] == [2]


@pytest.mark.parametrize("name", every_second(NAMES[::3]))
def test_a_hostile_name_in_json_is_only_a_name(folder: Path, name: str) -> None:
    text = "".join(json.dumps({name: user, "k of it": "x"}) + "\n" for user in "ab")
    query = asking(user=name, keys="k of it", public_keys=["x"])
    assert answer(query, write_text(folder / "rows.jsonl", text))["count"] == [2]


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_hostile_values_are_only_keys(pipeline: str) -> None:
    users = [f"{number} {twice}" for number in range(len(NAMES)) for twice in range(2)]
    rows = pa.table({"u": users, "k": [name for name in NAMES for _ in range(2)]})
    found = answer(asking(), rows, pipeline=pipeline)
    assert dict(zip(found["k"], found["count"], strict=True)) == dict.fromkeys(NAMES, 2)


def test_hostile_values_are_only_public_keys() -> None:
    rows = pa.table({"u": range(len(NAMES)), "k": NAMES})
    found = answer(asking(public_keys=[*NAMES, "not there"]), rows)
    assert dict(zip(found["k"], found["count"], strict=True)) == dict.fromkeys(NAMES, 1) | {"not there": 0}


def test_hostile_values_are_only_users() -> None:
    rows = pa.table({"u": NAMES * 3, "k": ["x"] * len(NAMES) * 3})
    assert answer(asking(measures=[plume.users()]), rows) == {"k": ["x"], "users": [len(NAMES)]}


def test_hostile_names_of_parts_of_a_key_are_only_names() -> None:
    distinct = {name.casefold(): name for name in NAMES}.values()
    keys = pa.array([dict.fromkeys(distinct, "x"), dict.fromkeys(distinct, "y")] * 2)
    found = answer(asking(), pa.table({"u": range(4), "k": keys}))
    assert found == {"k": keys.to_pylist()[:2], "count": [2, 2]}


@pytest.mark.parametrize("name", every_second(NAMES[:60:2]))
def test_hostile_constants_in_a_condition_are_only_constants(name: str) -> None:
    rows = pa.table({"u": ["a", "b", "c"], "k": ["x"] * 3, "t": [name, "other", name]})
    text = name.replace("'", "''")
    assert answer(asking(where=f"t = '{text}'"), rows) == {"k": ["x"], "count": [2]}


PATHS = [
    "it's", 'q"q', "a b", " x", "[x]", "[!a]", "[", "]x[", "[[]x]", "a[1-9]*", "*", "**", "?", "{a,b}", "new\nline", "tab\t", "\x1b[31m",
    "\x7f", "ünïcode", "\U0001f600", "e\u0301", "\u202egnp", "-dash", "--help", "-", "back\\slash", "\\*", "\\", "%00", "%2e%2e%2f",
    "$(touch planted)", "`touch planted`", "$HOME", "~", "~root", ";drop", "'); COPY (SELECT 1) TO 'planted.csv'; --", "http:x",
    "s3:x", "file:x",
    "a=b", "u=z", "x.parquet?y=1", "#frag", "&amp;", "<x>", "^", "a" * 240, "\udcff\udcfe",
]  # fmt: skip


# Each path in one of the formats by default.
@pytest.mark.parametrize(
    ("name", "ending"),
    [
        pytest.param(name, ending, marks=[] if (row + column) % 3 == 0 else pytest.mark.slow)
        for row, name in enumerate(PATHS)
        for column, ending in enumerate([".parquet", ".csv", ".jsonl"])
    ],
)
def test_a_hostile_path_is_only_that_file(folder: Path, name: str, ending: str) -> None:
    for inside, users in (
        (folder / "d [a]*" / f"{name}{ending}", "ab"),
        (folder / "d [a]*" / f"other{ending}", "cdefg"),
    ):
        write_rows(inside, users)
    assert answer(asking(public_keys=["x"]), f"d [a]*/{name}{ending}") == {"k": ["x"], "count": [2]}


def write_rows(path: Path, users: str) -> None:
    path.parent.mkdir(exist_ok=True)
    rows = pa.table({"u": list(users), "k": ["x"] * len(users)})
    match path.suffix:
        case ".parquet":
            with path.open("wb") as file:
                pq.write_table(rows, file)
        case ".csv":
            path.write_text("u,k\n" + "".join(f"{user},x\n" for user in users))
        case _:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
hostile = st.lists(
    st.sampled_from(['"', "'", "\\", ";", "--", "/*", "*/", "$$", "\n", " ", "x", "]", "%"]), min_size=1
).map("".join)
values: st.SearchStrategy[Any] = st.one_of(
    names,
    hostile,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
)


def test_any_name_comes_back_from_duckdb() -> None:
    with duckdb.connect() as connection:

        @settings(max_examples=500, deadline=None)
        @given(several=st.lists(names | hostile, min_size=1, max_size=20, unique_by=str.casefold))
        def come_back(several: list[str]) -> None:
            columns = ", ".join(f"1 AS {identifier(name, DUCKDB)}" for name in several)
            found = connection.execute(f"SELECT {columns}").description
            assert [column[0] for column in found] == several

        come_back()


def test_any_constant_comes_back_from_duckdb() -> None:
    with duckdb.connect() as connection:

        @settings(max_examples=500, deadline=None)
        @given(several=st.lists(values, min_size=1, max_size=20))
        def come_back(several: list[Any]) -> None:
            (found,) = connection.execute(
                f"SELECT {', '.join(constant(value, DUCKDB) for value in several)}"
            ).fetchall()
            assert list(found) == several
            assert list(map(type, found)) == list(map(type, several))

        come_back()
