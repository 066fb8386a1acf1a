"""A pass over users and keys of any type makes what SQL makes, row for row with the same salt; no hash merges two of them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import plume
from passes import (
    SELECTIONS,
    Trial,
    check_both,
    in_small_pieces,
    is_in_one_pass,
    made,
    numbering,
    orders,
    people,
    query,
    run_loops_as,
    texts,
    trial,
)
from plume.engines import duckdb_pass, duckdb_session
from plume.engines.duckdb import DuckDB
from plume.engines.duckdb_session import DuckDBSession
from plume.errors import EngineError
from plume.plan.printing import expression_sql
from random_tables import on_random_tables
from strategies import Asked, Listed
from strategies import table as listed_table


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shelves of texts grow, too."""
    in_small_pieces(monkeypatch)
    monkeypatch.setattr(numbering, "_FIRST_SLOTS", 2)
    monkeypatch.setattr(numbering, "_FIRST_WORDS", 2)
    monkeypatch.setattr(duckdb_session, "_ROWS_OF_STREAM", 16)


def rows_of(listed: list[tuple[Any, ...]], *types: pa.DataType) -> pa.Table:
    kinds = types or (pa.string(),) * len(listed[0])
    columns = list(map(list, zip(*listed, strict=True))) or [[] for _ in kinds]
    arrays = [pa.array(one, kind) for one, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=["person", "key", "day"][: len(arrays)])


TWO_TEXTS = (pa.string(), pa.string(), pa.int64())


def in_words(rows: list[tuple[int, ...]]) -> list[tuple[str, ...]]:
    return [tuple(f"{'äx€'[value % 3]}{value}" * (1 + value % 4) for value in row) for row in rows]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("keys", ["key", ["key", "day"]], ids=["one key", "two keys"])
def test_a_pass_over_texts_makes_the_rows_that_sql_makes(
    keys: str | list[str], selection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_both(query(4, keys, selection), rows_of(in_words(people(1))), monkeypatch)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_integers_of_measures_travel_beside_texts(selection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measures = [
        plume.count(2, where="day > 0"),
        plume.sum("day", low_total=-1, high_total=3),
        plume.mean("day", low=0, high=2, max_per_key=2),
        plume.variance("day", low=0, high=2, name="spread"),
    ]
    rows = [(user, key, (None, 2, -1, 5)[day + place % 2]) for place, (user, key, day) in enumerate(people(4))]
    worded = [(f"{user}!", "ä" * (key % 9) + str(key), day) for user, key, day in rows]
    check_both(query(3, "key", selection, *measures), rows_of(worded, *TWO_TEXTS), monkeypatch)


@pytest.mark.parametrize("mixed", [(0, 1, 0), (1, 0, 0), (0, 0, 1), (1, 1, 0)], ids=str)
def test_texts_and_numbers_stand_beside_each_other(mixed: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    listed, worded = people(2), in_words(people(2))
    rows = [
        tuple(w if text else n for w, n, text in zip(*both, mixed, strict=True))
        for both in zip(worded, listed, strict=True)
    ]
    kinds = [pa.string() if text else pa.int64() for text in mixed]
    for selection in ("pooled_gaussian", "laplace_threshold"):
        check_both(query(3, ["key", "day"], selection), rows_of(rows, *kinds), monkeypatch)


TEXTS: dict[str, list[str | None]] = {
    "of every length": ["x" * length for length in range(40)],
    "that differ at one place": ["0" * place + "1" + "0" * (23 - place) for place in range(24)],
    "with nothing behind them": ["", "\0", "\0\0", "\0" * 8, "\0" * 9, "\0" * 16, "a\0", "a"],
    "of many bytes to a character": ["ä", "€", "😀", "ä€", "e\u0301", "é", "👨‍👩‍👧", "ä" * 9],
    "that encode like two": ["1:a", "a:1", "1:1:a", ":", "2:ab", "12", "1", "2"],
    "with blanks and letters of both kinds": ["a", "A", "a ", " a", "a\t", "a\n"],
    "and rows that are nobody's": ["a", None, "", None, "b"],
    "of one character and of very many": ["x", "x" * 100_000, "x" * 99_999 + "y"],
}


@pytest.mark.parametrize("among", TEXTS)
def test_texts_are_equal_where_sql_has_them_equal(among: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = TEXTS[among]
    rows = [
        (user, key, str(place))
        for place, user in enumerate(found)
        for key in found[: 1 + place % 9] + found[place - 2 :][:3]
    ]
    for selection in ("pooled_gaussian", "laplace_threshold"):
        check_both(query(3, ["key", "day"], selection), rows_of(rows * 2), monkeypatch)


TYPES = {
    "BOOLEAN": ["true", "false"],
    "DATE": ["'0001-01-01'", "'2026-01-31'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'5877642-06-25 (BC)'", "'10000-01-01'"],
    "TIMESTAMP": ["'1969-12-31 23:59:59.999999'", "'infinity'", "'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54.775806'"],
    "TIMESTAMPTZ": ["'1969-12-31 23:59:59.999999+00'", "'2026-01-31 12:00:00+05'", "'infinity'", "'-infinity'"],
    "DECIMAL(4,1)": ["-2.5", "1.5", "0.0", "999.9"],
    "DECIMAL(38,10)": ["-2.5", "0.0000000001", "9999999999999999999999999999.9999999999"],
    "UUID": ["'00000000-0000-0000-0000-000000000001'", "'3f2504e0-4f89-11d3-9a0c-0305e82c3301'"],
    "HUGEINT": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", "0"],
    "UBIGINT": ["0", "18446744073709551615", "9223372036854775808"],
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_other_types_come_out_as_they_were(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ", ".join(f"({number}, CAST({value} AS {kind}))" for number, value in enumerate(TYPES[kind]))
    of_each = f"(VALUES {values}) AS v(n, x)"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        asked = f"SELECT {{}} FROM {of_each}, range(6) AS r(i) WHERE i >= n"
        for columns in ("x AS person, CAST(i AS VARCHAR) AS key", "CAST(i AS VARCHAR) AS person, x AS key"):
            rows = connection.sql(asked.format(columns))
            check_both(query(2), rows, monkeypatch)


@pytest.mark.parametrize("kind", ["DOUBLE", "JSON", "INTEGER[]", "BLOB", "TIME", "TIMESTAMP_NS"])
def test_other_types_are_left_to_sql(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS", 0)
    monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS_TO_COMPILE_FOR", 0)
    for name, taken in (("VARCHAR", True), (kind, False)):
        path = tmp_path / f"{taken}.parquet"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT 'a' AS person, CAST(NULL AS {name}) AS key) TO '{path}'")
        assert is_in_one_pass(query(2), path) == taken


def crowd() -> pa.Table:
    return rows_of(in_words(people(3, users=24, keys=6, most=16)))


def test_random_tables_with_texts_come_out_as_sql_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[bool] = []

    def look(case: Asked, listed: Listed) -> None:
        pooled = replace(case.query, selection="pooled_gaussian", noise="auto", composition="tight")
        named = [(None if user is None else f"{user}'s", *rest) for user, *rest in listed]
        rows = listed_table(listed).set_column(0, "person", pa.array([row[0] for row in named], pa.string()))
        for asked in (case.query, pooled):
            monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS", 0)
            monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS_TO_COMPILE_FOR", 0)
            if is_in_one_pass(asked, rows):
                passes.append(check_both(asked, rows, monkeypatch, packs=None))

    on_random_tables(DuckDB(), 160, look, kinds=["users", "count", "sum", "mean", "variance", "stddev"])
    assert sum(passes) >= 12


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_texts_with_one_hash_stay_apart(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were they told apart by their hashes alone, users would be merged here."""
    weak = partial(hash_weakly, texts.hash_texts, bits)
    monkeypatch.setattr(numbering, "loops", replaced(texts, hash_texts=weak))
    check_both(query(3), crowd(), monkeypatch)


def hash_weakly(real: Any, bits: int, column: Any, *secret: np.uint64) -> None:
    real(column, *secret)
    column.hashes[:] &= np.uint64(2**bits - 1) << np.uint64(64 - bits) | np.uint64(2**bits - 1)


def replaced(module: Any, **functions: Any) -> Any:
    class With:
        def __getattr__(self, name: str) -> Any:
            return functions.get(name, getattr(module, name))

    return With()


def test_hashes_are_siphash_1_3() -> None:
    """Python's own are, with a key of zeros where it is told to use none."""
    if sys.hash_info.algorithm != "siphash13":
        pytest.skip("this Python hashes in another way")
    given = [bytes((7 * place + 3) % 256 for place in range(length)) for length in range(1, 40)]
    asked = f"print([hash(one) % 2**64 for one in {given!r}])"
    answer = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", asked], env={**os.environ, "PYTHONHASHSEED": "0"}, check=True, capture_output=True, text=True
    ).stdout  # fmt: skip
    starts = np.cumsum([0, *map(len, given)]).astype(np.int32)
    column = texts.Column(starts, np.frombuffer(b"".join(given), np.uint8), np.empty(len(given), np.uint64))
    texts.hash_texts(column, np.uint64(0), np.uint64(0))
    assert column.hashes.tolist() == eval(answer)  # noqa: S307 - our own numbers


def test_each_run_and_each_column_hashes_by_a_key_of_its_own() -> None:
    secrets = [numbering._Shelves(salt, column, 1)._secret.tobytes() for salt in ("a", "b") for column in (0, 1)]
    assert len(set(secrets)) == 4


def test_which_of_two_keys_is_smaller_is_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers are not in the order of their texts. Hardly any two digests agree, so here an order has four bits."""
    monkeypatch.setattr(expression_sql, "_ORDER_DIGITS", 1)
    run_loops_as(("orders[row] = np.int64(", "orders[row] = 0 * np.int64("), monkeypatch)
    check_both(query(2, "key", "laplace_threshold"), crowd(), monkeypatch, packs=False)


@pytest.mark.parametrize(("length", "number"), [(0, 128), (2000, 128), (2**14, 15), (2**18, 1), (2**22, 1)])
def test_long_texts_are_digested_with_fewer_side_by_side(length: int, number: int) -> None:
    room = orders.room_for_texts(length)
    assert len(room) == number
    assert room.shape[1] >= length + 9
    assert room.nbytes <= max(2**18, length + 128)


def test_more_different_texts_than_there_is_room_for_are_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, rows = query(3), crowd()
    by_sql = made(asked, rows, monkeypatch, by_pass=False)
    taken: list[Any] = []
    whole = numbering.numbered

    def without_room(
        batches: Iterator[pa.RecordBatch], are_texts: list[bool], salt: str, threads: int, room: int
    ) -> Any:
        taken.append(whole(batches, are_texts, salt, threads, 5000 if room > 0 else room))
        return taken[-1]

    monkeypatch.setattr(numbering, "numbered", without_room)
    assert made(asked, rows, monkeypatch, by_pass=True) == by_sql
    assert taken == [None, None]


def test_rows_that_cannot_be_handed_over_are_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a text of gigabytes cannot."""
    asked, rows = query(3), crowd()
    by_sql = made(asked, rows, monkeypatch, by_pass=False)

    def failing(*_: Any) -> Iterator[pa.RecordBatch]:
        raise EngineError("too long")
        yield

    monkeypatch.setattr(DuckDBSession, "stream", failing)
    assert made(asked, rows, monkeypatch, by_pass=True) == by_sql


MUTANTS = {
    "bytes are not compared": ("number += differs != _NONE", "number += found[row] == _NONE"),
    "the last bytes are not compared": ("differs |= store[place + _ONE] ^ _word(data, last)", "pass"),
    "all but the last bytes are not compared": ("differs |= store[place] ^ _word(data, at)", "pass"),
    "short texts are not compared": ("differs |= (word & _LAST_BYTE) ^ np.uint64(data[at])", "pass"),
    "lengths are not compared": ("differs = store[place] ^ (end - at)", "differs = np.uint64(found[row] == _NONE)"),
    "a text is added twice": ("if slots[slot, 1] != _NONE or found[row] != _NONE:", "if found[row] != _NONE:"),
    "shelves have the same numbers": ("<< shape[0]) | shape[1]\n    return", "<< shape[0])\n    return"),
    "bytes are counted as characters": ("found += (text[place] & _KIND) != _CONTINUES", "found += 1"),
    "a larger table loses texts": ("for old in range(len(shelf.slots)):", "for old in range(1, len(shelf.slots)):"),
    "places are those of one shelf": ("places[(number << shape[0]) | shape[1]]", "places[number << shape[0]]"),
}  # fmt: skip


def hostile() -> pa.Table:
    """Users and keys that differ in their last bytes, in all but the last ones, in their lengths, or in one byte."""
    random = np.random.default_rng(5)
    among = [
        "a",
        "b",
        "\0",
        "\0\0",
        "äa",
        "ä" * 5,
        "x" * 12 + "y",
        "x" * 13,
        "y" + "x" * 12,
        "x" * 12,
        "y" * 20,
        "x" * 20,
    ]
    return rows_of([
        (among[user], among[int(random.integers(12))], among[int(random.integers(12))])
        for user in range(12)
        for _ in range(int(random.integers(1, 16)))
    ])  # fmt: skip


@pytest.fixture(scope="module")
def tried() -> Trial:
    return trial(partial(query, 3, ["key", "day"]), hostile())


def run_text_loops_as(change: tuple[str, str], patched: pytest.MonkeyPatch) -> None:
    """The hash is weak here: its first bit and its last one are left."""
    run_loops_as(change, patched)
    broken = numbering.loops
    patched.setattr(numbering, "loops", replaced(broken, hash_texts=partial(hash_weakly, broken.hash_texts, 1)))


def test_the_loops_over_texts_say_the_same_as_python_runs_them(tried: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run_text_loops_as(("hashes[row] += _ONE", "hashes[row] += _ONE"), monkeypatch)
    assert tried.is_passed(monkeypatch)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_loops_over_texts_would_be_seen(mutant: str, tried: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run_text_loops_as(MUTANTS[mutant], monkeypatch)
    assert not tried.is_passed(monkeypatch)
