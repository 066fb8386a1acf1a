"""A pass over the rows of each user makes what SQL makes, row for row with the same salt; and a pass that is broken would be seen."""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.engines import duckdb_pass, packed_rows
from plume.engines.packed_rows import Range
from plume.selection import pooled_gaussian

pytest.importorskip("numba")  # the extra; all else is tested without it as well
from passes import (
    ENOUGH,
    SELECTIONS,
    Trial,
    check_both,
    in_small_pieces,
    is_in_one_pass,
    made,
    made_by_pass,
    orders,
    passing,
    people,
    query,
    run_loops_as,
    table,
    trial,
    user_loops,
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_pieces(monkeypatch)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("keys", ["key", ["key", "day"]], ids=["one key", "two keys"])
def test_a_pass_makes_the_rows_that_sql_makes(
    keys: str | list[str], selection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_both(query(4, keys, selection), table(people(1)), monkeypatch)


def test_limits_are_met_to_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users with one key fewer than the limit, as many, one more, and the same at the limit of selection, four times as many here."""
    numbers = (1, 2, 3, 4, 11, 12, 13, 14)
    rows = [(user, key) for user, number in enumerate(numbers) for key in range(number)]
    monkeypatch.setattr(pooled_gaussian, "_KEYS_WHEN_SELECTING", 12)
    for selection in SELECTIONS:
        check_both(query(3, "key", selection), table(rows), monkeypatch)


EDGE = 2**63 - 1
TABLES: dict[str, list[tuple[int | None, ...]]] = {
    "no rows": [],
    "one row": [(7, 7)],
    "nobody's rows": [(None, 1), (1, None)],
    "the same row often": [(1, 2)] * 40 + [(2, 2)],
    "negative numbers": [(-user, -user * key) for user in range(1, 12) for key in range(9)],
    "the ends of 64 bits": [(EDGE - user % 5, -EDGE - 1 + key) for user in range(20) for key in range(user % 7)],
    "more keys than are digested at a time": [(user, key * 97) for user in range(3) for key in range(100 + 100 * user)],
    "keys far apart": [(user % 16, (key % 4) * 2**52) for user in range(80) for key in range(user % 5)],
}


@pytest.mark.parametrize("rows", TABLES)
def test_special_tables_come_out_as_sql_has_them(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for selection in ("pooled_gaussian", "laplace_threshold"):
        check_both(query(2, "key", selection), table(TABLES[rows], pa.int64(), pa.int64()), monkeypatch)


@pytest.mark.parametrize(
    "rows",
    [[(EDGE, 1), (-EDGE - 1, 1)], [(0, 0), (2**62, 3), (5, 1)], [(1, EDGE), (2, -EDGE - 1)]],
    ids=["users", "together", "keys"],
)
def test_what_does_not_fit_64_bits_is_left_to_sql(rows: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """63 bits of users and two of keys: were the range not looked at, users would be merged."""
    check_both(query(2), table(rows * 3), monkeypatch, packs=False)


def test_63_bits_of_users_and_one_of_keys_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    check_both(query(1), table([(0, 0), (2**63 - 1, 1), (0, 1), (5, 0)]), monkeypatch)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32()], ids=str)
def test_integers_of_all_widths_come_out_in_their_type(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(user, key) for user in range(9) for key in range(user)]
    check_both(query(3), table(rows, kind, kind), monkeypatch)


def test_sums_are_found_where_many_keys_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here sums do not lie at the place of their key, and there is room for few of them at first."""
    monkeypatch.setattr(passing, "_FIRST_PLACES", 2)
    rows = [(user, (key * user * 977) % 5000, key % 2) for user in range(60) for key in range(user)]
    check_both(query(20, ["key", "day"], "laplace_threshold"), table(rows), monkeypatch)


def test_a_condition_and_rows_that_are_nobodys_are_left_to_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        (None if user == 3 else user, None if key == 2 else key, user % 3) for user in range(30) for key in range(9)
    ]
    check_both(replace(query(4), where="day <> 1"), table(rows), monkeypatch)


def test_one_user_with_nearly_all_rows_has_three_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 10**6
    user = np.where(np.arange(many) % 1000, 5, np.arange(many))
    rows = pa.table({"person": user, "key": np.arange(many) % 3})
    check_both(query(2, "key", "pooled_gaussian"), rows, monkeypatch)


def test_a_file_is_passed_over_whatever_its_footer_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges are those of the values themselves, and no statistics are read."""
    rows = table(people(2))
    for statistics in (True, False):
        path = tmp_path / f"{statistics}.parquet"
        pq.write_table(rows, path, write_statistics=statistics, row_group_size=100)
        check_both(query(3, ["key", "day"]), path, monkeypatch)


MUTANTS = {
    "the limit is off by one": ("if end - start <= limit:", "if end - start <= limit + 1:"),
    "the limit is off by one below": ("np.flatnonzero(numbers > rule.limit)", "np.flatnonzero(numbers >= rule.limit)"),
    "one key more counts": ("if len(keys) > kept:", "if len(keys) > kept + 1:"),
    "what is double is kept": ("if not end or rows[end - 1] != this:", "if True:"),
    "records are not counted": ("totals[0, key] = ends[key] - start", "totals[0, key] = 1"),
    "the order is ignored": ("if orders[row] < last or (orders[row] == last and equals > 0):", "if row < kept:"),
    "the order is of another user": ("np.full(1, user)", "np.full(1, user + 1)"),
    "the order is without the user": ("texts[row, place] = texts[0, place]", "pass"),
    "the order is without the salt": ("texts[:, : len(rule.salt)] = rule.salt", "pass"),
    "the weight is the user's before": (" weights[user]\n", " weights[user - 1]\n"),
    "the account is the user's before": ("rows[-2] = users.left[user]", "rows[-2] = users.left[user - 1]"),
    "records are the key's before": ("+= counted[each, row]", "+= counted[each, row - 1]"),
    "a charge is forgotten": ("for charge in range(len(rates)):", "for charge in range(len(rates) - 1):"),
    "a charge rounds down": ("math.floor(taken) + 2.0", "math.floor(taken)"),
    "a partition is skipped": ("        if len(given):", "        if len(given) and part > parts[0]:"),
    "rows are in no order": ("counts[digit] += 1\n            rows, other", "counts[digit] += 1\n            other, rows"),
    "some who are cut have no order": ("if keys_of_user > rule.cut_above:", "if keys_of_user > rule.cut_above + 3:"),
    "those who are not cut have one": ("if keys_of_user > rule.cut_above:", "if True:"),
    "users above the limit give all their keys": ("if len(keys) > kept:", "if False:"),
    "users are told apart by part of them": ("shift += np.uint64(_DIGIT)", "break"),
}  # fmt: skip


@pytest.fixture(scope="module")
def tried() -> Trial:
    return trial(partial(query, 3, "key"), crowd())


def crowd() -> pa.Table:
    """Sorting them takes several digits."""
    return table([(user, 3210 * key, day) for user, key, day in people(3, users=24, keys=6, most=16)])


def test_the_loops_say_the_same_as_python_runs_them(tried: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run_loops_as(("+ 2.0", "+ 2.0"), monkeypatch)
    assert tried.is_passed(monkeypatch)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_pass_would_be_seen(mutant: str, tried: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run_loops_as(MUTANTS[mutant], monkeypatch)
    assert not tried.is_passed(monkeypatch)


def test_of_keys_in_the_same_place_of_the_order_the_smaller_ones_count() -> None:
    """Hardly any two digests agree in 48 bits, so no table shows it."""
    keys, places = np.arange(6, dtype=np.uint64), np.array([5, 3, 3, 9, 3, 1])
    for kept, counted in (
        (1, {5}),
        (2, {1, 5}),
        (3, {1, 2, 5}),
        (4, {1, 2, 4, 5}),
        (6, set(range(6))),
        (9, set(range(6))),
    ):
        sums = user_loops.Sums(np.empty(0, np.uint64), np.zeros((8, 1), np.int64), np.zeros(2, np.int64))
        user_loops._add_first(keys, places, 7, kept, sums)
        assert {int(key): int(sums.sums[key, 0]) for key in np.flatnonzero(sums.sums)} == dict.fromkeys(counted, 7)


def test_orders_are_the_beginnings_of_digests() -> None:
    """Of one text, and of many side by side that end in different blocks."""
    random = np.random.default_rng(1)
    for lengths in ([0], [1], [55], [56], [63], [64], [119], [120], list(range(orders.TEXTS))):
        texts = random.integers(0, 256, (len(lengths), 256), np.uint8)
        given = [row[:length].tobytes() for row, length in zip(texts, lengths, strict=True)]
        digests = [hashlib.md5(one, usedforsecurity=False).hexdigest() for one in given]
        found = np.empty(len(lengths), np.int64)
        orders.orders_of(texts, np.array(lengths), found)
        assert found.tolist() == [int(digest[:12], 16) for digest in digests]


def narrower(column: int, side: str) -> Callable[..., list[Range]]:
    """Ranges as a file might claim them, from which the smallest or the largest values of a column are missing."""
    whole = duckdb_pass._ranges

    def found(*given: Any) -> list[Range]:
        ranges = whole(*given)
        low, bits = ranges[column].low, ranges[column].bits
        ranges[column] = Range(low + 1, bits) if side == "low" else Range(low, bits - 1)
        return ranges

    return found


@pytest.mark.parametrize("side", ["low", "high"])
@pytest.mark.parametrize("column", [0, 1, 2], ids=["users", "keys", "days"])
def test_a_value_outside_of_the_range_is_seen_while_it_is_packed(
    column: int, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_pass, "_ranges", narrower(column, side))
    check_both(query(3, ["key", "day"]), table(people(2)), monkeypatch, packs=False)


def test_a_range_that_is_not_looked_at_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_pass, "_ranges", narrower(1, "high"))
    whole = duckdb_pass._print_packed
    monkeypatch.setattr(
        duckdb_pass,
        "_print_packed",
        lambda *given: re.sub(r"CASE WHEN .* = 0 THEN (.*) END", r"\1", whole(*given)),
    )
    with pytest.raises(AssertionError):
        check_both(query(3, ["key", "day"]), table(people(2)), monkeypatch)


def test_statistics_that_lie_do_not_merge_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB believes them; the bytes of the largest user are exchanged for those of a smaller one in the footer, not in the rows."""
    largest, claimed = 0x1122334455, 0x1000
    rows = table([(user, key) for user in (0, 1, 2, largest % claimed, largest) for key in range(5)])
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, use_dictionary=False, compression=None)
    start = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    content = path.read_bytes()
    body, footer = content[: start + 4], content[start + 4 :]
    before, after = (number.to_bytes(8, "little") for number in (largest, claimed))
    assert before in footer
    path.write_bytes(body + footer.replace(before, after))
    assert duckdb.sql(f"SELECT max(person) FROM '{path}'").fetchall() == [(claimed,)]
    assert made_by_pass(query(3), path, monkeypatch) is None


def test_numbers_and_integers_that_do_not_fit_together_are_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table([(str(user), key * 2**59) for user in range(4) for key in range(16)], pa.string(), pa.int64())
    check_both(query(2), rows, monkeypatch, packs=False)
    monkeypatch.setattr(packed_rows, "BITS", 80)
    with pytest.raises(AssertionError):
        check_both(query(2), rows, monkeypatch)


def test_loops_take_no_more_threads_than_there_are_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    whole = passing.pass_over

    def noted(*given: Any) -> Any:
        taken.append(given[-2])
        return whole(*given)

    monkeypatch.setattr(passing, "pass_over", noted)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    made(query(4), table(people(1)), monkeypatch, by_pass=True)
    assert taken == [1, 1]


def test_without_the_extra_plans_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS", 0)
    monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS_TO_COMPILE_FOR", 0)
    rows = table(people(1))
    assert is_in_one_pass(query(4), rows)
    monkeypatch.setattr(duckdb_pass.compiled, "is_there", lambda: False)
    assert not is_in_one_pass(query(4), rows)


def test_where_numba_does_not_load_sql_makes_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(people(1))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "plume.engines.passing", None)
        without = made(query(4), rows, patched, by_pass=True)
    assert without == made(query(4), rows, monkeypatch, by_pass=False)


def fail_with(error: Exception) -> Any:
    def fail(*_: Any) -> Any:
        raise error

    return fail


# A full disk while numba keeps what it compiled, a kept file that a crash cut short, numba beside a numpy that it does not know.
FAILURES = {
    "no space": OSError(28, "No space left on device"),
    "damaged": EOFError("Ran out of input"),
    "unknown": RuntimeError("cannot cache function"),
    "memory": MemoryError(),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("where", ["loading", "running"])
def test_where_a_pass_fails_sql_makes_the_steps(where: str, failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run would end with an error as soon as a table has enough rows for a pass, and one row can be the last of them."""
    rows, of = table(people(1)), {"loading": (duckdb_pass, "_load"), "running": (passing, "pass_over")}
    with monkeypatch.context() as patched:
        patched.setattr(*of[where], fail_with(FAILURES[failure]))
        without = made(query(4), rows, patched, by_pass=True)
    assert without == made(query(4), rows, monkeypatch, by_pass=False)


@pytest.mark.parametrize("counts", [1, 5], ids=["few numbers", "more than are carried"])
def test_the_steps_that_are_told_are_the_same_with_a_pass(counts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of a pass would tell that a table has so many rows."""
    asked = query(
        4, "key", "pooled_gaussian", *(plume.count(number + 2, name=f"c{number}") for number in range(counts))
    )
    told: dict[int, list[str]] = {}
    for fewest in (0, ENOUGH):
        monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS", fewest)
        monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS_TO_COMPILE_FOR", fewest)
        told[fewest] = []
        assert is_in_one_pass(asked, table(people(1))) == (fewest == 0)
        plume.run(asked, table(people(1)), on_step=told[fewest].append)
    assert told[0] == told[ENOUGH]
