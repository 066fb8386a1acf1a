"""Where columns of two tables meet, equal users are equal and no row fails: the types are brought together without a loss, or refused."""

from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import plume
from exact import exact_release
from outcomes import RELEASED, outcome
from pairs import pairs
from plume.engines.duckdb import DuckDB
from plume.errors import ColumnTypeError
from plume.statement.answering import ask

OPTIONS = "epsilon = 200, delta = 0.5, max_groups_contributed = 1, privacy_unit_column"
SUM = "SUM(b.x, contribution_bounds_per_group => (0, 100000)) AS s"
UNION = (
    f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = r.u) COUNT(r.x, contribution_bounds_per_group => (0, 1)) AS n "
    "FROM (SELECT u, x FROM a UNION ALL SELECT u, x FROM b) r"
)
JOIN = (
    f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = a.u) COUNT(DISTINCT a.u) AS n "
    "FROM a JOIN (SELECT u, {} AS y FROM b) s ON a.u = s.u AND a.x = s.y"
)
INTEGERS = ("TINYINT", "BIGINT", "HUGEINT", "UTINYINT", "UBIGINT", "UHUGEINT")
SIGNED = ("TINYINT", "BIGINT", "HUGEINT")
# Pairs of types, a value of the first, and two of the second: an ordinary one and one that the first type does not hold.
UNLIKE = [
    ("DECIMAL(38,30)", "1.5", "BIGINT", "1", "9000000000000000000"),
    ("DECIMAL(38,30)", "1", "DECIMAL(38,0)", "1", "9" * 38),
    ("TIMESTAMP_NS", "'2020-01-01'", "TIMESTAMP", "'2020-01-01'", "'2300-01-01'"),
    ("TIMESTAMP", "'2020-01-01'", "DATE", "'2020-01-01'", "'5000000-01-01'"),
    ("TIMESTAMP_NS", "'2020-01-01'", "DATE", "'2020-01-01'", "'2300-01-01'"),
    ("BIGINT", "1", "UHUGEINT", "1", str(2**128 - 1)),
    ("TIMESTAMP_NS", "'2020-01-01'", "TIMESTAMP_S", "'2020-01-01'", "'2300-01-01'"),
    ("TIMESTAMPTZ", "'2020-01-01'", "DATE", "'2020-01-01'", "'5000000-01-01'"),
    ("VARCHAR", "'7'", "INTEGER", "7", "8"),
    ("BOOLEAN", "true", "INTEGER", "1", "2"),
    ("JSON", "'7'", "VARCHAR", "'7'", "'hello'"),
    ("JSON", "'7'", "ENUM('7', 'hello')", "'7'", "'hello'"),
]


def database(folder: Path, **tables: tuple[str, list[str]]) -> dict[str, str]:
    """A database of tables, each with its columns and rows."""
    path = folder / f"{len(list(folder.iterdir()))}.duckdb"
    with duckdb.connect(path) as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({row})")
    return dict.fromkeys(tables, str(path))


def exactly(text: str, tables: dict[str, Any]) -> list[dict[str, Any]]:
    engine = DuckDB(threads=1)
    asked = ask(text, engine=engine, tables=tables)
    return exact_release(asked.query, asked.data, engine=engine).to_pylist()


@pytest.mark.parametrize("signed", SIGNED)
def test_privacy_units_of_128_bits_without_a_sign_meet_no_signed_ones(tmp_path: Path, signed: str) -> None:
    """DuckDB compares them as doubles, in which 10**38 and 10**38 + 1 are one, or fails on the larger ones."""
    tables = database(tmp_path, a=(f"u {signed}, k VARCHAR", []), b=("u UHUGEINT, x DOUBLE", []))
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = a.u) a.k AS k, {SUM} FROM a JOIN b ON a.u = b.u GROUP BY a.k"
    with pytest.raises(ColumnTypeError, match="the privacy unit is of several types"):
        plume.sql(text, tables=tables)


@pytest.mark.parametrize(
    ("one", "other"),
    [pair for pair in product(INTEGERS, INTEGERS) if "UHUGEINT" not in pair or not set(pair) & set(SIGNED)],
)
def test_privacy_units_of_all_other_integers_meet_their_equals_and_nobody_else(
    tmp_path: Path, one: str, other: str
) -> None:
    """Ids are next to the largest that both types hold, where doubles would no longer tell them apart."""
    most = min(largest(one), largest(other))
    tables = database(
        tmp_path,
        a=(f"u {one}, k VARCHAR", [f"{most - 1}, 'k'", f"{most - 2}, 'k'"]),
        b=(f"u {other}, x DOUBLE", [f"{most}, 1000", f"{most - 1}, 1", f"{most - 2}, 10"]),
    )
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = a.u) a.k AS k, {SUM} FROM a JOIN b ON a.u = b.u GROUP BY a.k"
    assert exactly(text, tables) == [{"k": "k", "s": pytest.approx(11, abs=0.2)}]


def largest(name: str) -> int:
    bits = {"TINYINT": 7, "UTINYINT": 8, "BIGINT": 63, "UBIGINT": 64, "HUGEINT": 127, "UHUGEINT": 128}
    return 2 ** bits[name] - 1


TEXTS = {"union": UNION, "join": JOIN.format("COALESCE(x, x)"), "plain": JOIN.format("x")}
NAMES = {f"{one} and {other}": (one, value, other, *rows) for one, value, other, *rows in UNLIKE}


@pytest.mark.parametrize(("types", "form"), pairs(NAMES, TEXTS))
def test_unlike_types_are_refused_whatever_the_rows(tmp_path: Path, types: str, form: str) -> None:
    (one, value, other, *rows), text = NAMES[types], TEXTS[form]
    ends = {
        outcome(lambda tables=tables: plume.sql(text, tables=tables))
        for tables in (
            database(tmp_path, a=(f"u INT, x {one}", [f"1, {value}"]), b=(f"u INT, x {other}", [f"1, {found}"]))
            for found in rows
        )
    }
    assert len(ends) == 1
    assert "both must be of one type" in ends.pop()


@pytest.mark.parametrize(("expression", "found"), [("x + 1", 6), ("CAST(x AS DATE)", "2020-01-01")])
def test_text_is_not_joined_with_what_is_computed_from_another_type(expression: str, found: Any) -> None:
    b = pa.table({"u": [1, 2], "x": [found, found]})
    ends = {
        outcome(
            lambda word=word: plume.sql(
                JOIN.format(expression), tables={"a": pa.table({"u": [1, 2], "x": ["7", word]}), "b": b}
            )
        )
        for word in ("7", "hello")
    }
    assert len(ends) == 1
    assert "a join compares column 'x', which is VARCHAR, with 'y'" in ends.pop()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("INTEGER", "BIGINT"),
        ("BIGINT", "DOUBLE"),
        ("DECIMAL(10,2)", "DECIMAL(12,4)"),
        ("BIGINT", "DECIMAL(18,3)"),
        ("VARCHAR", "ENUM('1')"),
    ],
)
@pytest.mark.parametrize("text", [UNION, JOIN.format("x")], ids=["union", "join"])
def test_types_that_hold_each_other_meet(tmp_path: Path, text: str, one: str, other: str) -> None:
    tables = database(tmp_path, a=(f"u INT, x {one}", ["1, '1'"]), b=(f"u INT, x {other}", ["1, '1'"]))
    assert outcome(lambda: plume.sql(text, tables=tables)) == RELEASED


def test_a_part_of_a_union_may_have_no_values(tmp_path: Path) -> None:
    tables = database(tmp_path, a=("u INT, x DATE", ["1, '2020-01-01'"]), b=("u INT, x INT", ["1, 1"]))
    assert outcome(lambda: plume.sql(UNION.replace("u, x FROM b", "u, NULL AS x FROM b"), tables=tables)) == RELEASED


@pytest.mark.parametrize("condition", ["x", "LOWER(x)", "COALESCE(x, x)", "CASE WHEN u > 0 THEN x END", "x AND u > 0"])
@pytest.mark.parametrize("word", ["no", "{}"])
def test_what_stands_as_a_condition_and_is_none_never_fails(condition: str, word: str) -> None:
    """DuckDB would cast it outside of TRY."""
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = u) COUNT(DISTINCT u) AS n FROM (SELECT u, x FROM a) WHERE {condition}"
    ends = [
        outcome(lambda words=words: plume.sql(text, tables={"a": pa.table({"u": [1, 2], "x": words})}))
        for words in (["true", "false"], ["true", word])
    ]
    assert ends == [RELEASED, RELEASED]


@pytest.mark.parametrize("size", [2, 5, 6, 40])
@pytest.mark.parametrize(
    ("constants", "column", "hostile"),
    [
        ("{}", ["1", "2"], "hello"),
        ("TIMESTAMP '2020-01-01 00:00:{:02}'", pa.array([1, 2], pa.int32()).view(pa.date32()), 2**31 - 2),
    ],
    ids=["text beside numbers", "dates beside moments"],
)
def test_a_long_list_of_constants_never_fails(size: int, constants: str, column: Any, hostile: Any) -> None:
    """DuckDB makes a join of it, whose sides it would cast outside of TRY."""
    listed = ", ".join(constants.format(number) for number in range(size))
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = u) COUNT(DISTINCT u) AS n FROM a WHERE x IN ({listed})"
    )
    ordinary = pa.array(column)
    hers = pa.array([hostile], pa.int32()).view(pa.date32()) if isinstance(hostile, int) else pa.array([hostile])
    ends = [
        outcome(lambda x=x: plume.sql(text, tables={"a": pa.table({"u": range(len(x)), "x": x})}))
        for x in (ordinary, pa.concat_arrays([ordinary, hers]))
    ]
    assert ends == [RELEASED, RELEASED]
