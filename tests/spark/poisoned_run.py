"""Runs on data with a canary in it, on Spark, in a process of its own so that all it prints can be read. Started by test_canary.py."""

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import plume
from plume.engines.spark import Spark
from privacy.test_canary import CANARY, POISONED, asked, complained, damaged, rows, told
from sparks import start

# In the table t, one row has the canary in column c, and a number to look for in column n.
NUMBER = 7.777123e300
FEW: dict[str, str] = {
    "a user": "SELECT coalesce(c, u) AS u, k, v FROM t",
    "a key": "SELECT u, coalesce(c, k) AS k, v FROM t",
    "a cast of a key": "SELECT u, CAST(coalesce(c, '1') AS INT) AS k, v FROM t",
    "a cast of a value": "SELECT u, k, CAST(coalesce(c, '1') AS DOUBLE) AS v FROM t",
    "a cast of a user": "SELECT CAST(coalesce(c, '1') AS BIGINT) AS u, k, v FROM t",
    "an error that is raised": "SELECT u, k, if(c IS NULL, v, raise_error(c)) AS v FROM t",
    "a date": "SELECT u, to_date(coalesce(c, '2026-01-31')) AS k, v FROM t",
    "an element that is not there": "SELECT u, k, element_at(array(v), if(c IS NULL, 1, length(c))) AS v FROM t",
    "a value that overflows": "SELECT u, k, CAST(coalesce(n, 1) AS INT) AS v FROM t",
}


def _of(key: str) -> str:
    return f"SELECT u, {key} AS k, v FROM t"


MANY: dict[str, str] = FEW | {
    "a user and a key": "SELECT coalesce(c, u) AS u, coalesce(c, k) AS k, v FROM t",
    "a list of keys": _of("array(coalesce(c, k))"),
    "a struct of keys": _of("struct(coalesce(c, k) AS a)"),
    "bytes as key": _of("CAST(coalesce(c, k) AS BINARY)"),
    "a key in upper case": _of("upper(coalesce(c, k))"),
    "a cast to decimal": _of("CAST(coalesce(c, '1') AS DECIMAL(10, 2))"),
    "a cast to boolean": _of("CAST(coalesce(c, 'true') AS BOOLEAN)"),
    "a cast to a moment": _of("CAST(coalesce(c, '2026-01-31') AS TIMESTAMP)"),
    "a cast to a date": _of("CAST(coalesce(c, '2026-01-31') AS DATE)"),
    "a cast to an interval": _of("CAST(CAST(coalesce(c, '1') AS INTERVAL DAY) AS STRING)"),
    "a cast to a byte": _of("CAST(coalesce(c, '1') AS TINYINT)"),
    "a moment by a pattern": _of("to_timestamp(coalesce(c, '2026'), 'yyyy')"),
    "seconds by a pattern": _of("unix_timestamp(coalesce(c, '2026'), 'yyyy')"),
    "a number by a pattern": _of("to_number(coalesce(c, '12'), '99')"),
    "an assertion": _of("concat(k, assert_true(c IS NULL, c))"),
    "a key of a map": _of("map('common', 1)[coalesce(c, k)]"),
    "a key of a map twice": _of(
        "map_keys(map_from_arrays(array(coalesce(c, 'a'), if(c IS NULL, 'b', c)), array(1, 2)))[0]"
    ),
    "a text as map": _of("map_keys(str_to_map(if(c IS NULL, 'a:1', concat(c, ':1,', c, ':2'))))[0]"),
    "an address": _of("parse_url(if(c IS NULL, 'http://a/b', concat('http://[', c)), 'HOST')"),
    "an address with percents": _of("url_decode(if(c IS NULL, 'a', concat(c, '%zz')))"),
    "a pattern": _of("regexp_replace(k, if(c IS NULL, 'a', concat('(', c)), '')"),
    "JSON that is broken": _of("CAST(parse_json(if(c IS NULL, '1', concat('{', c))) AS STRING)"),
    "JSON with a schema": _of(
        "from_json(concat('{\"a\":', coalesce(c, '1'), '}'), 'a INT', map('mode', 'FAILFAST')).a"
    ),
    "CSV with a schema": _of("from_csv(coalesce(c, '1'), 'a INT', map('mode', 'FAILFAST')).a"),
    "text as hexadecimal": _of("to_binary(coalesce(c, '00'), 'hex')"),
    "text as base 64": _of("to_binary(coalesce(c, 'AAAA'), 'base64')"),
    "bytes that are no text": _of("validate_utf8(if(c IS NULL, k, CAST(concat(CAST(c AS BINARY), X'ff') AS STRING)))"),
    "text in another encoding": _of("decode(encode(coalesce(c, k), if(c IS NULL, 'UTF-8', c)), 'UTF-8')"),
    "bytes that are decrypted": _of("CAST(aes_decrypt(CAST(coalesce(c, k) AS BINARY), 'abcdefghijklmnop') AS STRING)"),
    "a name of a zone": _of("to_utc_timestamp(TIMESTAMP_NTZ '2026-01-31 00:00:00', coalesce(c, 'UTC'))"),
    "a name of a day": _of("next_day(DATE '2026-01-31', coalesce(c, 'MON'))"),
    "XML": _of("xpath_string(if(c IS NULL, '<a>b</a>', concat('<', c)), 'a')"),
    "a row of another row": _of("(SELECT max(c) FROM t AS s WHERE s.c = t.c)"),
    "a sum that overflows": "SELECT u, k, CAST(coalesce(n, 1) AS DECIMAL(38, 0)) AS v FROM t",
    "a product that overflows": "SELECT u, k, CAST(coalesce(n, 1) * 10 AS BIGINT) AS v FROM t",
    "a division by zero": "SELECT u, k, v / if(n IS NULL, 1, 0) AS v FROM t",
    "a value of text": "SELECT u, k, coalesce(c, '1') AS v FROM t",
    "a value that is very large": "SELECT u, k, coalesce(n, 1) AS v FROM t",
    "a negative length": _of("substr(k, 1, CAST(coalesce(-n, 1) AS INT))"),
    "a date of numbers": _of("make_date(CAST(coalesce(n, 2026) AS INT), 1, 31)"),
    "a piece that is not there": _of("split(coalesce(c, k), '-')[if(c IS NULL, 0, 99)]"),
    "a struct as user": "SELECT struct(coalesce(c, u) AS a) AS u, k, v FROM t",
    "bytes as user": "SELECT CAST(coalesce(c, u) AS BINARY) AS u, k, v FROM t",
    "a column nobody asks for": "SELECT u, k, v, CAST(coalesce(c, '1') AS INT) AS more FROM t",
    "a very long key": _of("repeat(coalesce(c, k), if(c IS NULL, 1, 100000))"),
    "a very long user": "SELECT repeat(coalesce(c, u), if(c IS NULL, 1, 100000)) AS u, k, v FROM t",
    "an array that is too large": _of("size(sequence(1, CAST(coalesce(n, 1) AS BIGINT)))"),
    "many keys of one user": "SELECT coalesce(c, u) AS u, explode(array(k, coalesce(c, k))) AS k, v FROM t",
    "a join on it": "SELECT t.u, coalesce(s.c, t.k) AS k, t.v FROM t LEFT JOIN t AS s ON t.c = s.c",
}


def raising(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise ValueError(CANARY)


def cases(session: Any, folder: Path, selects: dict[str, str]) -> dict[str, Callable[[], Any]]:
    session.createDataFrame(pa.table(rows(c=CANARY, n=NUMBER))).createOrReplaceTempView("t")
    made: dict[str, Callable[[], Any]] = {
        name: lambda select=select: session.sql(select) for name, select in selects.items()
    }
    path = folder / "r.parquet"
    pq.write_table(pa.table(rows(user=CANARY)), path, compression="NONE")
    return made | {
        "an Arrow table": lambda: pa.table(rows(key=CANARY)),
        "Python that raises": lambda: (
            session.table("t").select("u", "k", "v").mapInArrow(raising, "u string, k string, v double")
        ),
        "a damaged file": lambda: str(damaged(path, 40)),
        "a file of text": lambda: _text(folder / "x.parquet"),
    }


def _text(path: Path) -> str:
    path.write_text(CANARY)
    return str(path)


def of_memory(folder: Path) -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    """The inputs that are poisoned for DuckDB: tables, frames, streams and files of all kinds."""
    return {
        f"{name}, as on DuckDB": (lambda make=make: make(folder), changes) for name, (make, changes) in POISONED.items()
    }


def main(kind: str, much: str) -> None:
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    session = start(kind)
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        inputs = {name: (make, {}) for name, make in cases(session, folder, MANY if much == "many" else FEW).items()}
        for name, (make, changes) in (inputs | (of_memory(folder) if much == "many" else {})).items():
            try:
                said = list(told(plume.run(asked(**changes), make(), engine=Spark(session)), folder))
            except plume.PlumeError as error:
                failed += 1
                said = list(complained(error))
            leaks = [text for text in said if CANARY.encode() in text or b"777123" in text]
            print("leak" if leaks else "clean", name, flush=True)  # noqa: T201 - the result
    print("failed", failed)  # noqa: T201
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
