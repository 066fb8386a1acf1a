"""What a pass adds up for measures is what SQL adds up, row for row, whatever values rows have; and a pass that is broken would be seen."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from math import inf, nan
from typing import Any

import pyarrow as pa
import pytest

import plume
from passes import (
    SELECTIONS,
    Trial,
    check_both,
    in_small_pieces,
    is_in_one_pass,
    passing,
    people,
    query,
    run_loops_as,
    trial,
)
from plume.engines import duckdb_pass
from plume.engines.duckdb import DuckDB
from random_tables import on_random_tables
from strategies import Asked, Listed, with_numbers
from strategies import table as listed_table

EDGE = 2**63 - 1
MEASURES: dict[str, Callable[[], Any]] = {
    "a sum": lambda: plume.sum("day", low_total=-1, high_total=4),
    "a sum far from zero": lambda: plume.sum("value", low_total=1, high_total=2.5),
    "records with a value": lambda: plume.count(2, column="value"),
    "records that meet a condition": lambda: plume.count(2, where="day > 0", name="some"),
    "users who meet a condition": lambda: plume.users(where="value > 1", name="who"),
    "a mean": lambda: plume.mean("value", low=-3, high=9),
    "a mean of several values": lambda: plume.mean("value", low=-3, high=10, max_per_key=3, name="of_several"),
    "a mean under a condition": lambda: plume.mean("value", low=0, high=9, where="day = 1", name="of_some"),
    "a variance": lambda: plume.variance("value", low=-3, high=8),
    "a deviation of several values": lambda: plume.stddev("value", low=0, high=60, max_per_key=2),
}
VALUES = (None, 0.5, -1.25, 7, nan, 1e9, -inf, 3, 2.75, inf)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_pieces(monkeypatch)


def crowd(seed: int = 1, values: tuple[Any, ...] = VALUES, kind: pa.DataType | None = None, **numbers: int) -> pa.Table:
    """People with values, each of which is met in a different order by each user."""
    rows = [
        (user, key, day, values[(7 * place + user + key) % len(values)])
        for place, (user, key, day) in enumerate(people(seed, **numbers))
    ]
    columns = list(zip(*rows, strict=True))
    kinds = (pa.int64(), pa.int64(), pa.int64(), kind or pa.float64())
    arrays = [pa.array(column, one) for column, one in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=["person", "key", "day", "value"])


@pytest.mark.parametrize("what", MEASURES)
def test_a_measure_comes_out_as_sql_has_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for selection in SELECTIONS:
        check_both(query(3, "key", selection, MEASURES[what]()), crowd(), monkeypatch)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("keys", ["key", ["key", "day"]], ids=["one key", "two keys"])
def test_all_measures_together_come_out_as_sql_has_them(
    keys: str | list[str], selection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More numbers than SQL would carry before keys are selected."""
    measures = [plume.users(), plume.count(3), *(make() for make in MEASURES.values())]
    check_both(query(4, keys, selection, *measures), crowd(2), monkeypatch)


COLUMNS: dict[str, tuple[tuple[Any, ...], pa.DataType]] = {
    "no value at all": ((None,), pa.float64()),
    "NaN and infinities alone": ((nan, inf, -inf), pa.float64()),
    "one value": ((5.0,), pa.float64()),
    "truth": ((True, None, False), pa.bool_()),
    "decimals": ((Decimal("-9.99"), Decimal("0.07"), None, Decimal("123456.78")), pa.decimal128(38, 2)),
    "small integers": ((-128, 127, 3), pa.int8()),
    "integers without a sign": ((0, 2**32 - 1, None), pa.uint32()),
    "halves": ((0.1, 0.2, 0.30000001), pa.float32()),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_values_of_all_types_come_out_as_sql_has_them(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, kind = COLUMNS[what]
    measures = [
        plume.sum("value", low_total=-1, high_total=2),
        plume.variance("value", low=-1, high=2),
        plume.count(1, column="value"),
    ]
    check_both(query(3, "key", "pooled_gaussian", *measures), crowd(3, values, kind), monkeypatch)


HUGE: dict[str, tuple[tuple[Any, ...], pa.DataType]] = {
    "the ends of 64 bits": ((EDGE, -EDGE - 1, 3), pa.int64()),
    "the largest numbers": ((1e308, -1e308, 1e300, None), pa.float64()),
}


@pytest.mark.parametrize("what", HUGE)
def test_totals_that_may_leave_64_bits_are_left_to_sql(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = crowd(4, *HUGE[what])
    bounded = [plume.mean("value", low=0, high=5), plume.variance("value", low=0, high=5)]
    check_both(query(3, "key", "pooled_gaussian", *bounded), rows, monkeypatch)
    unbounded = plume.sum("value", low_total=-1, high_total=2)
    check_both(query(3, "key", "pooled_gaussian", unbounded), rows, monkeypatch, packs=False)


def test_a_total_that_is_not_looked_at_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = crowd(4, (1e300,))
    asked = query(3, "key", "pooled_gaussian", plume.sum("value", low_total=-1, high_total=2))
    monkeypatch.setattr(passing, "totals_fit", lambda *_: True)
    with pytest.raises(AssertionError):
        check_both(asked, rows, monkeypatch)


def test_places_that_do_not_fit_beside_users_and_keys_are_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users and keys take 63 bits and one, so no bit is left to say where a row of many lies."""
    rows = pa.table(
        {"person": [0, 2**63 - 1, 0, 5] * 9, "key": [0, 1, 1, 0] * 9, "day": [0] * 36, "value": [1.0, 2.0, None] * 12}
    )
    assert check_both(query(1), rows, monkeypatch)
    check_both(query(1, "key", "pooled_gaussian", plume.mean("value", low=0, high=3)), rows, monkeypatch, packs=False)


def test_more_numbers_than_places_of_sums_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "_MOST_SUMS", 8)
    monkeypatch.setattr(passing, "_FIRST_PLACES", 2)
    measures = [make() for make in MEASURES.values()]
    check_both(query(4, "key", "weighted_gaussian", *measures), crowd(5, keys=40), monkeypatch)


@pytest.mark.parametrize("rows", [0, 1], ids=["no rows", "one row"])
def test_hardly_any_rows_come_out_as_sql_has_them(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    measures = [make() for make in MEASURES.values()]
    check_both(query(2, "key", "pooled_gaussian", *measures), crowd().slice(0, rows), monkeypatch)


def test_random_tables_come_out_as_sql_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[bool] = []

    def look(case: Asked, listed: Listed) -> None:
        for asked in (case.query, replace(case.query, selection="pooled_gaussian", noise="auto", composition="tight")):
            rows = listed_table(with_numbers(listed), pa.int64())
            monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS", 0)
            monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS_TO_COMPILE_FOR", 0)
            if is_in_one_pass(asked, rows):
                packed.append(check_both(asked, rows, monkeypatch, packs=None))

    on_random_tables(DuckDB(), 160, look, kinds=["users", "count", "sum", "mean", "variance", "stddev"])
    assert sum(packed) >= 12


MUTANTS = {
    "values are those of rows as they lay": ("carried[first + places[row], word]", "carried[first + row, word]"),
    "values are those of another partition": ("carried[first + places[row], word]", "carried[places[row], word]"),
    "values are the partition's before": ("moved[places[into], word] =", "moved[places[into] - 1, word] ="),
    "values are cut to another field": ("added = (of[start] >> shift) & mask", "added = of[start] >> shift"),
    "fields lie on each other": ("np.uint64(low)) << shift", "np.uint64(low))"),
    "only the first value of a key counts": ("for row in range(start + 1, end):", "for row in range(start + 1, start):"),
    "the smallest value is forgotten": ("+ low * (end - start)", "+ low"),
    "many values are not weighted down": ("if values[row] > limit:", "if values[row] > limit + 1:"),
    "few values are weighted down": ("_cut(numbers[row] * limit, values[row])", "_cut(numbers[row], values[row])"),
    "totals are cut down": ("return total // parts if total >= 0 else -(-total // parts)", "return total // parts"),
    "totals are not bounded from above": ("min(max(numbers[row], low), high)", "max(numbers[row], low)"),
    "totals are not bounded from below": ("min(max(numbers[row], low), high)", "min(numbers[row], high)"),
    "no value counts as the nearest one": ("if present[row] == 0:", "if False:"),
    "a charge is that of another measure": ("squares, size = np.int64(0), charged[charge]", "squares, size = np.int64(0), 0"),
    "squares of a charge are no squares": ("counted[size, row] * counted[size, row]", "counted[size, row]"),
    "a contribution is another's": ("+= counted[each, row]", "+= counted[max(each - 1, 0), row]"),
    "totals are those of another user": ("users.totals[:, start:end]", "users.totals[:, : end - start]"),
    "the order of rows is lost": ("rows[row] = (rows[row] << place_bits) | np.uint64(row)", "rows[row] = rows[row] << place_bits"),
}  # fmt: skip


@pytest.fixture(scope="module")
def tried() -> Trial:
    return trial(
        lambda selection: query(3, "key", selection, *(make() for make in MEASURES.values())),
        crowd(6, users=24, keys=6, most=16),
    )


def test_the_loops_say_the_same_as_python_runs_them(tried: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run_loops_as(("+ 2.0", "+ 2.0"), monkeypatch)
    assert tried.is_passed(monkeypatch)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_pass_would_be_seen(mutant: str, tried: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run_loops_as(MUTANTS[mutant], monkeypatch)
    assert not tried.is_passed(monkeypatch)
