"""Columns of Python objects in pandas state no type: the query decides how each value is read, whatever other values there are."""

# ruff: noqa: DTZ001 - moments of no zone

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import plume
from exact import exact_release
from outcomes import RELEASED, outcome
from pairs import pairs
from plume.engines.engine import Engine
from plume.engines.frames import to_arrow
from plume.plan.types import Kind
from questions import answer, asking


class Hostile:
    """A value of a class of its own, which fails wherever it can."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __hash__ = __float__ = __int__ = __eq__ = __bool__ = __len__ = __iter__ = __str__


class HostileText(str):  # noqa: SLOT000 - as careless as it can be
    """Text of a class of its own."""

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError


class HostileZone(tzinfo):
    """A zone that fails."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        raise RuntimeError


class HostileClass(type):
    """A class of classes that fail wherever they can."""

    def __eq__(cls, _: object) -> bool:
        raise RuntimeError

    __hash__ = __eq__  # type: ignore[assignment]


class Liar(type):
    """A class of classes that say that they are others."""

    def __eq__(cls, _: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(str)


class OfHostileClass(metaclass=HostileClass):
    """A value whose class cannot be compared."""


class OfLiar(metaclass=Liar):
    """A value that is not the text that its class says it is."""

    def encode(self) -> bytes:
        return b"y"


class Timestamp:
    """A class that is called like one of pandas."""

    def to_pydatetime(self, *, warn: bool) -> "Timestamp":
        del warn
        return self


Timestamp.__module__ = "pandas"

HERS: dict[str, Any] = {
    "an integer": 5,
    "an integer of 5,000 digits": 10**5000,
    "a floating-point number": 2.5,
    "NaN": float("nan"),
    "text": "y",
    "text of a class of its own": HostileText("y"),
    "half of a surrogate pair": "\ud800",
    "bytes": b"\xff",
    "a truth value": True,
    "a decimal": Decimal("1E+999999999"),
    "a signalling NaN": Decimal("sNaN"),
    "a date": date(2026, 1, 31),
    "a timestamp": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    "a timestamp of pandas": pd.Timestamp("2026-01-31", tz="Europe/Berlin"),
    "a time": time(23, 59),
    "a span of time": timedelta(days=10**8),
    "a uuid": uuid.UUID(int=7),
    "a number of numpy": np.int8(3),
    "a date of numpy": np.datetime64("nat"),
    "a list": [1],
    "a dictionary": {"a": []},
    "an array": np.array([1, 2]),
    "something": Hostile(),
    "a value whose class fails": OfHostileClass(),
    "a value whose class lies": OfLiar(),
    "a value of a class that is called like another": Timestamp(),
    "digits of no number": "9" * 200_000 + "x",
    "a class": int,
    "not available": pd.NA,
    "no time": pd.NaT,
}
ORDINARY: dict[str, list[Any]] = {
    "text": ["x", "x", "z"],
    "integers": [1, 1, 3],
    "numbers": [1.5, 1.5, 2.0],
    "decimals": [Decimal("1.5"), Decimal("1.5"), Decimal(2)],
    "dates": [date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2)],
    "timestamps": [datetime(2026, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 2)],
    "truth values": [True, True, False],
    "nothing": [None, None, None],
}
ROLES: dict[str, tuple[str, dict[str, Any]]] = {
    "user": ("integers", {"user": "t"}),
    "key": ("dates", {"keys": "t"}),
    "value": ("decimals", {"measures": [plume.sum("t", 0, 10), plume.mean("t", 0, 10)]}),
    "moment": ("timestamps", {"measures": [plume.maximum("t", datetime(2025, 1, 1), datetime(2027, 1, 1))]}),
    "text in where": ("text", {"where": "t <> 'y'"}),
    "number in where": ("numbers", {"where": "t < 2"}),
    "date in where": ("dates", {"where": "t > DATE '2025-01-01'"}),
    "timestamp in where": ("timestamps", {"where": "t > TIMESTAMP '2025-01-01 00:00:00'"}),
    "truth value in where": ("truth values", {"where": "t = TRUE"}),
    "nobody asks": ("nothing", {}),
}
KINDS = (Kind.TEXT, Kind.FLOAT, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)


def objects(values: list[Any]) -> pd.DataFrame:
    """One row per user. Lists and arrays are put in one by one: numpy would make columns of them."""
    column = pd.Series([None] * len(values), dtype=object)
    for place, value in enumerate(values):
        column.array[place] = value
    return pd.DataFrame({"u": ["a", "b", "c", "d"][: len(values)], "k": ["x"] * len(values), "t": column})


@pytest.mark.parametrize("hers", HERS)
def test_what_one_user_has_changes_nothing_of_what_others_have(hers: str) -> None:
    for kind, others in product(KINDS, ORDINARY.values()):
        kinds = {"u": Kind.TEXT, "t": kind}
        assert to_arrow(objects([*others, HERS[hers]]), kinds).slice(0, 3) == to_arrow(objects(others), kinds)


@pytest.mark.parametrize(("role", "hers"), pairs(ROLES, HERS))
def test_what_one_user_has_does_not_decide_how_a_run_ends(role: str, hers: str) -> None:
    others, asked = ROLES[role]
    for rows in (objects(ORDINARY[others]), objects([*ORDINARY[others], HERS[hers]])):
        assert outcome(lambda: plume.run(asking(**asked), rows)) == RELEASED  # noqa: B023 - called at once


READ: dict[Kind, list[tuple[Any, Any]]] = {
    Kind.TEXT: [
        ("x", "x"),
        ("", ""),
        (7, "7"),
        (True, "true"),
        (1.5, "1.5"),
        (float("nan"), None),
        (7.0, "7"),
        (-0.0, "0"),
        (1e300, str(int(1e300))),
        (Decimal("7.00"), "7"),
        (Decimal("-0.00"), "0"),
        (Decimal("1.50"), "1.5"),
        (Decimal("7E+2"), "700"),
        (Decimal("1E-999999999"), None),
        (2.0**-20, "9.5367431640625e-07"),
        (Decimal(2.0**-20), "9.5367431640625e-07"),
        (0.1, "0.1"),
        (Decimal(1 / 10), "0.1"),
        (Decimal("1E+4300"), None),
        (10**4300, None),
        (float("inf"), "inf"),
        (Decimal("Infinity"), "inf"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 8), "2026-01-31 08:00:00"),
        (datetime(2026, 1, 31, 8, tzinfo=timezone(timedelta(hours=2))), "2026-01-31 06:00:00+00:00"),
        (datetime(2026, 1, 31, 8, tzinfo=HostileZone()), None),
        (time(8, 30), "08:30:00"),
        (b"a\xff", "a\\xff"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (np.int64(7), "7"),
        (np.str_("x"), "x"),
        (pd.Timestamp("2026-01-31 08:00"), "2026-01-31 08:00:00"),
        (10**5000, None),
        ([1], None),
        (pd.NaT, None),
        ("\ud800", None),
    ],
    Kind.FLOAT: [
        (7, 7.0),
        (True, 1.0),
        (1.5, 1.5),
        (Decimal("1.5"), 1.5),
        ("1.5e1", 15.0),
        (" -2 ", -2.0),
        ("1_000", None),
        ("٣", None),
        ("x", None),
        (10**400, None),
        (Decimal("sNaN"), None),
        (np.float32(0.5), 0.5),
        (date(2026, 1, 31), None),
    ],
    Kind.BOOLEAN: [(True, True), (np.bool_(0), False), ("TRUE", True), ("false", False), ("x", None), (7, None)],
    Kind.DATE: [
        (date(2026, 1, 31), date(2026, 1, 31)),
        (datetime(2026, 1, 31, 8), date(2026, 1, 31)),
        ("2026-01-31", date(2026, 1, 31)),
        ("2026-02-31", None),
        ("20260131", None),
        (7, None),
    ],
    Kind.TIMESTAMP: [
        (datetime(2026, 1, 31, 8), datetime(2026, 1, 31, 8)),
        (datetime(2026, 1, 31, 8, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 31, 6)),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), None),
        (pd.Timestamp("2026-01-31 08:00"), datetime(2026, 1, 31, 8)),
        (date(2026, 1, 31), datetime(2026, 1, 31)),
        ("2026-01-31 08:00:00", datetime(2026, 1, 31, 8)),
        ("2026-01-31T08:00:00.5+02:00", datetime(2026, 1, 31, 6, microsecond=500000)),
        ("2026-W05", None),
        (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31)),
    ],
}


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.name)
def test_each_value_is_read_by_its_class_and_by_what_the_query_needs(kind: Kind) -> None:
    given, expected = zip(*READ[kind], strict=True)
    frame = pd.DataFrame({"t": pd.Series(list(given), dtype=object)})
    assert to_arrow(frame, {"t": kind})["t"].to_pylist() == list(expected)
    for value, read in READ[kind]:
        alone = pd.DataFrame({"t": pd.Series([value], dtype=object)})
        assert to_arrow(alone, {"t": kind})["t"].to_pylist() == [read]


@pytest.mark.parametrize("piece", ["1", ".1", "1e", " ", "+"])
def test_a_long_text_that_is_nearly_a_number_does_not_hold_up_the_others(piece: str) -> None:
    """With a look at all digits for each of them this would take hours."""
    rows = objects([1, 2, piece * 10**6 + "x"])
    assert to_arrow(rows, {"t": Kind.FLOAT})["t"].to_pylist() == [1, 2, None]


def test_texts_among_python_objects_are_numbers_where_a_number_is_needed(engine: Engine) -> None:
    rows = objects(["1", 2, Decimal(3), "four"])
    query = asking(measures=[plume.sum("t", 0, 10)], public_keys=["x"])
    assert exact_release(query, rows, engine=engine).to_pydict() == {"k": ["x"], "t_sum": [6.0]}


@pytest.mark.parametrize("hers", ["y", 5, b"\xff", None])
def test_categories_of_several_classes_are_read_alike(hers: Any) -> None:
    column = pd.Series(pd.Categorical.from_codes([0, 0, 1], pd.Index(["x", hers or "y"], dtype=object)))
    rows = pd.DataFrame({"u": ["a", "b", "c"], "k": column})
    query = asking(public_keys=["x"])
    assert answer(query, rows) == answer(query, rows[:2]) == {"k": ["x"], "count": [2]}


@pytest.mark.parametrize("index", [["a", "b", 5], ["a", "b", b"\xff"], [1, 2, Hostile]])
def test_an_index_of_several_classes_is_not_read(index: list[Any]) -> None:
    rows = pd.DataFrame({"u": ["a", "b", "c"], "k": ["x"] * 3}, index=pd.Index(index, dtype=object))
    assert answer(asking(), rows) == {"k": ["x"], "count": [3]}


@pytest.mark.parametrize("hers", [5, datetime(1, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), None])
def test_dates_in_an_index_are_read_one_by_one(hers: Any) -> None:
    moments = [datetime(2026, 1, 31, 8), datetime(2026, 1, 31, 9)]
    for labels in (moments, [*moments, hers]):
        rows = pd.DataFrame({"u": ["a", "b", "c"][: len(labels)]}, index=pd.Index(labels, dtype=object, name="k"))
        found = to_arrow(rows, {"u": Kind.TEXT, "k": Kind.TEXT})["k"].to_pylist()
        assert found[:2] == ["2026-01-31 08:00:00", "2026-01-31 09:00:00"]


@pytest.mark.parametrize("hers", ["c", 5, b"\xff"])
def test_an_index_with_a_name_is_a_column(hers: Any) -> None:
    rows = pd.DataFrame({"k": ["x"] * 3}, index=pd.Index(["a", "b", hers], dtype=object, name="u"))
    assert answer(asking(), rows) == {"k": ["x"], "count": [3]}


@pytest.mark.parametrize("hers", [1, "c", b"\xff", [1], Hostile()])
def test_what_is_in_other_columns_does_not_decide_how_a_missing_one_is_refused(hers: Any) -> None:
    rows = objects([1, 1, hers]).drop(columns="u")
    assert outcome(lambda: plume.run(asking(), rows)) == (
        "ColumnNotFound: no column 'u' in this DataFrame. Columns: k, t."
    )


def test_a_frame_keeps_its_values() -> None:
    rows = objects(["\ud800", 5, b"x"])
    before = rows.copy(deep=True)
    plume.run(asking(keys="t"), rows)
    pd.testing.assert_frame_equal(rows, before)


def test_columns_of_nothing_and_no_rows_are_read_as_the_query_needs_them() -> None:
    kinds = {"u": Kind.TEXT, "t": Kind.FLOAT}
    expected = pa.schema({"u": pa.string(), "t": pa.float64()})
    for values in ([], [None], [5]):
        frame = pd.DataFrame({"u": pd.Series(values, dtype=object), "t": pd.Series(values, dtype=object)})
        assert to_arrow(frame, kinds).schema.equals(expected)


@pytest.mark.parametrize("hers", ["cat", "__arrow_array__", "__arrow_c_array__", "dtype"])
def test_a_label_in_an_index_is_not_taken_for_an_attribute_of_a_column(hers: str) -> None:
    rows = pd.DataFrame({"u": ["a", "b", "c"], "k": pd.Categorical(["x"] * 3)}, index=["d", "e", hers])
    assert answer(asking(), rows) == {"k": ["x"], "count": [3]}
    rows = rows.set_index(pd.Index(["d", "e", hers], dtype="category", name="u"))[["k"]]
    assert answer(asking(), rows) == {"k": ["x"], "count": [3]}


class HostileLetters(str):  # noqa: SLOT000 - as careless as it can be
    """Text whose letters cannot be asked for."""

    def __iter__(self) -> Any:
        raise RuntimeError

    encode = __len__ = __str__ = __iter__


@pytest.mark.parametrize("found", [str, HostileLetters])
def test_texts_of_python_in_a_column_of_texts_are_read_one_by_one(found: type[str]) -> None:
    words = pd.array(["x", "x", found("\ud800"), found("x")], dtype="string[python]")
    rows = pd.DataFrame({"u": ["a", "b", "c", "d"], "k": words})
    assert answer(asking(public_keys=["x"]), rows) == {"k": ["x"], "count": [3]}
