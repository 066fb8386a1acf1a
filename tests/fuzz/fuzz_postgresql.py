"""Types of PostgreSQL in every role: a table with the rows of one more user ends as it ends without them, released or refused alike.

What one user has is written as PostgreSQL writes it, so that it reaches what no other format holds: infinite dates, numbers of a hundred
thousand digits, NaN among decimals, texts that a collation takes for others.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg

import plume
from fuzz.columns import DAYS, Hostile
from fuzz.fuzz_types import ALICE, MOMENTS, OTHERS, Case, condition, wrong

_NUMBERS = ("0", "-0.0", "1", "NaN", "1e-5", "99999", "-99999")
_DOUBLES = (
    *_NUMBERS,
    "Infinity",
    "-Infinity",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "5e-324",
    "-5e-324",
)
_MOMENTS = (
    "infinity",
    "-infinity",
    "4713-01-01 BC",
    "0001-01-01 BC",
    "9999-12-31",
    "294276-12-31",
    "1969-12-31 23:59:59",
)
_TEXTS = ("", " ", "a", "A", "a ", "é", "e\u0301", "ß", "'", '"', "\\", "%", "x" * 10**5, "\U0001f600", "7", "7.0")
_UUIDS = ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")
COLUMNS = (
    Hostile("text", "text", ("a", "b", "7"), _TEXTS),
    Hostile("varchar", "text", ("a", "b", "7"), _TEXTS),
    Hostile('text COLLATE "en-x-icu"', "text", ("a", "b", "7"), _TEXTS),
    Hostile("char(8)", "other", ("a", "b", "7"), _TEXTS[:-6]),
    Hostile("citext", "other", ("a", "b", "7"), _TEXTS),
    Hostile("never_empty", "other", ("a", "b", "7"), _TEXTS[1:]),
    Hostile("smallint", "integer", ("1", "2", "3"), ("32767", "-32768", "0")),
    Hostile("integer", "integer", ("1", "2", "3"), ("2147483647", "-2147483648", "0")),
    Hostile("bigint", "integer", ("1", "2", "3"), ("9223372036854775807", "-9223372036854775808", "0")),
    Hostile("numeric", "decimal", ("1", "2", "3.5"), (*_DOUBLES[:-2], "1e131071", "-1e131071", "1e-16383", "-1e-16383")),
    Hostile("numeric(10, 2)", "decimal", ("1", "2", "3.5"), _NUMBERS),
    Hostile("numeric(38, 38)", "decimal", ("0.1", "0.2", "0.35"), ("NaN", "0", "-0.1", "1e-38")),
    Hostile("numeric(1000, 900)", "decimal", ("1", "2", "3.5"), (*_NUMBERS, "9" * 100, "1e-900")),
    Hostile("numeric(3, -5)", "decimal", ("100000", "200000", "300000"), ("99900000", "NaN", "0")),
    Hostile("real", "float", ("1", "2", "3.5"), (*_NUMBERS, "Infinity", "3.4e38", "1e-45")),
    Hostile("double precision", "float", ("1", "2", "3.5"), _DOUBLES),
    Hostile("boolean", "boolean", ("true", "false", "true"), ("true", "false")),
    Hostile("date", "date", ("2020-01-01", "2021-01-01", "2022-01-01"), (*_MOMENTS, "5874897-12-31")),
    Hostile("timestamp", "timestamp", ("2020-01-01", "2021-01-01", "2022-01-01"), _MOMENTS),
    Hostile("timestamptz", "timestamp", ("2020-01-01", "2021-01-01", "2022-01-01"), _MOMENTS),
    Hostile("uuid", "uuid", tuple(f"{number:032x}" for number in range(3)), _UUIDS),
    Hostile("interval", "other", ("1 day", "2 days", "3 days"), ("1 month", "30 days", "178000000 years")),
    Hostile("bytea", "other", ("a", "b", "c"), ("\\x00", "")),
    Hostile("jsonb", "other", ("1", "2", "3"), ("null", '{"a": [1]}')),
)  # fmt: skip


def prepared(url: str) -> Callable[[random.Random], str | None]:
    """Give the fuzzer for a server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS citext; DROP DOMAIN IF EXISTS never_empty CASCADE")
        connection.execute("CREATE DOMAIN never_empty AS text CHECK (VALUE <> '')")
    return partial(check, url=url)


def check(rng: random.Random, *, url: str) -> str | None:
    """Make up a case, and say what is wrong with it."""
    column = rng.choice(COLUMNS)
    settings = _asked(rng, column)
    try:
        query = plume.Query(**settings, budget=plume.Budget(epsilon=1, delta=1e-5))
    except plume.PlumeError:
        return None
    hers = rng.choice([column.hostile, (rng.choice(column.hostile),)])
    with psycopg.connect(url, autocommit=True) as connection:
        for name, rows in (("without", ()), ("with_her", hers)):
            _write(connection, name, column, rows)
    tables = (partial(plume.PostgreSQL, url, f"public.{name}") for name in ("without", "with_her"))
    told = f"{column.name} {hers!r:.200}, {settings}"
    return wrong(Case(told, lambda table: plume.run(query, table), *tables))


def _write(connection: Any, name: str, column: Hostile, hers: tuple[Any, ...]) -> None:
    connection.execute(
        f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (u text, name text, k text, x {column.name}, y text)"
    )
    rows = [*zip(OTHERS, column.ordinary, strict=True), *((ALICE, value) for value in (*hers, None) if hers)]
    for user, value in rows:
        connection.execute(
            f"INSERT INTO {name} VALUES (%s, %s, 'k', CAST(%s AS {column.name.split(' COLLATE')[0]}), 'b')",
            (user, user, value),
        )


def _asked(rng: random.Random, column: Hostile) -> dict[str, Any]:
    asked = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 1}
    role = rng.choice(["user", "key", "value", "value", "where", "where", "where of a measure", "total", "public key"])
    match role:
        case "user":
            return asked | {"user": "x"}
        case "key":
            return asked | {"keys": rng.choice(["x", ["x", "k"]])}
        case "public key":
            return asked | {"keys": "x", "public_keys": list(column.ordinary)}
        case "value":
            return asked | {"measures": _measures(rng, column)}
        case "where":
            return asked | {"where": condition(rng, {"x": column})}
        case "where of a measure":
            return asked | {"measures": [plume.users(where=condition(rng, {"x": column}))]}
        case _:
            return asked | {"keys": [], "measures": [plume.count(1, column="x")]}


def _measures(rng: random.Random, column: Hostile) -> list[Any]:
    if column.kind in ("timestamp", "date"):
        low, high = sorted(rng.sample(MOMENTS if rng.random() < 0.5 else DAYS, 2))
    else:
        low, high = rng.choice([(0, 10), (-1e150, 1e150), (-1e-150, 1e-150), (0, 1e9), (-1e9, 1)])
    measures = [plume.mean("x", low, high), plume.quantiles("x", [0.5], low, high), plume.maximum("x", low, high)]
    if column.kind not in ("timestamp", "date"):
        measures += [
            plume.sum("x", low, high), plume.variance("x", low, high), plume.histogram("x", [low, high]),
            plume.vector_sum(["x"], norm=abs(high)), plume.sum("x", "auto", "auto"), plume.mean("x", 0, "auto"),
        ]  # fmt: skip
    return rng.sample(measures, rng.choice([1, 2]))
