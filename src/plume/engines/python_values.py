"""Columns of pandas whose type is `object`: any Python values, which no type describes.

Arrow would guess the type from all values together, so that a single one decides how, and whether, the others are read. Here the query
says what a column holds, as it does for CSV files, and each value is read by itself. Only exact classes of a closed list are read, since
a class of somebody's own may do anything where it is asked for its text. All other values are NULL.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from plume.plan.types import Kind

TYPES = {
    Kind.TEXT: pa.string(),
    Kind.FLOAT: pa.float64(),
    Kind.INTEGER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
# Python writes out no integer with more digits.
_MOST_DIGITS = 4_300
# Read in one pass: with digits that two parts of it may take, one long text would hold up the whole run.
_NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIMESTAMP = re.compile(
    rf"{_DATE.pattern}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?", re.ASCII
)
_BOOLEANS = {"true": True, "false": False}
# By identity, here and below: a dictionary of classes would ask a class whether it equals another, and it may lie, or fail.
_OF_NUMPY = frozenset(map(id, (
    np.bool_, np.str_, np.bytes_, np.float16, np.float32, np.float64,
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)))  # fmt: skip

Readers = Mapping[int, Callable[[Any], Any]]
"""How values of a class are read, by the identity of the class."""


def read_values(values: Iterable[Any], kind: Kind) -> pa.Array:
    """Read Python values as what a query needs, each by itself."""
    listed = list(values)
    if kind is Kind.TEXT and all(value is None or type(value) is str for value in listed):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair, which UTF-8 does not have
            return pa.array(listed, pa.string())
    read = _READERS[kind]
    return pa.array([_read(value, read) for value in listed], TYPES[kind])


def is_of_pandas(kind: type) -> bool:
    """Return whether a class is one of pandas' own, without importing pandas."""
    return kind.__module__.split(".")[0] == "pandas"


def _read(value: Any, readers: Readers) -> Any:
    with suppress(Exception):  # what does not fit, such as 10**400 as a number, or a zone that fails
        plain = _without_library(value)
        return readers[id(type(plain))](plain)
    return None


def _without_library(value: Any) -> Any:
    """Give Python's own value for one of numpy or pandas, and the text of a UUID, whose module nothing here imports: it draws them."""
    kind = type(value)
    if id(kind) in _OF_NUMPY:
        return value.item()
    if kind is _loaded("pandas", "Timestamp"):
        return value.to_pydatetime(warn=False)
    return str(value) if kind is _loaded("uuid", "UUID") else value


def _loaded(module: str, name: str) -> Any:
    """Give a class of a module if the module is loaded; else no value is of that class."""
    return getattr(sys.modules.get(module), name, None)


# Text. Numbers that are equal have the same text, so that 7, 7.0 and Decimal("7.00") are one user.


def _text(value: str) -> str:
    value.encode()  # refuses halves of surrogate pairs
    return value


def _float_text(value: float) -> str | None:
    if value != value:  # noqa: PLR0124 - NaN
        return None
    return str(int(value)) if value.is_integer() else repr(value)


def _decimal_text(value: Decimal) -> str | None:
    if not value.is_finite():
        return None if value.is_nan() else _float_text(float(value))
    if max(abs(value.adjusted()) + 1, len(value.as_tuple().digits)) > _MOST_DIGITS:
        return None
    near = float(value)
    if near == value:
        return _float_text(near)
    written = format(value, "f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def _timestamp_text(value: datetime) -> str:
    return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat(sep=" ")


# Numbers


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


# Dates and timestamps


def _date(text: str) -> date | None:
    return date.fromisoformat(text) if _DATE.fullmatch(text) else None


def _timestamp(value: datetime) -> datetime:
    """Give a timestamp without a zone, which is that of UTC if it had one."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _timestamp_in(text: str) -> datetime | None:
    if _DATE.fullmatch(text):
        return _midnight(date.fromisoformat(text))
    return _timestamp(datetime.fromisoformat(text)) if _TIMESTAMP.fullmatch(text) else None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a day has no zone


def _by_identity(readers: Mapping[type, Callable[[Any], Any]]) -> Readers:
    return {id(kind): read for kind, read in readers.items()}


_NUMBERS = _by_identity({**dict.fromkeys((bool, int, float, Decimal), float), str: _number})
_READERS: Mapping[Kind, Readers] = {
    Kind.TEXT: _by_identity(
        {
            str: _text,
            bool: lambda value: "true" if value else "false",
            int: str,
            float: _float_text,
            Decimal: _decimal_text,
            date: date.isoformat,
            datetime: _timestamp_text,
            time: time.isoformat,
            bytes: lambda value: value.decode("ascii", "backslashreplace"),
        }
    ),
    Kind.FLOAT: _NUMBERS,
    Kind.INTEGER: _NUMBERS,
    Kind.BOOLEAN: _by_identity({bool: bool, str: lambda text: _BOOLEANS.get(text.strip(" \t").lower())}),
    Kind.DATE: _by_identity({date: lambda day: day, datetime: datetime.date, str: _date}),
    Kind.TIMESTAMP: _by_identity({date: _midnight, datetime: _timestamp, str: _timestamp_in}),
}
