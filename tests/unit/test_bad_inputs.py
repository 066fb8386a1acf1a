"""Bad inputs: each gives its own clear error, without a history that could hold data, and before data where that is possible."""

import gzip
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.errors import (
    BoundError,
    BudgetError,
    ColumnNotFound,
    ColumnTypeError,
    ConditionError,
    InputError,
    MeasureError,
    PublicKeysError,
    RangeError,
    SettingError,
    UsageError,
)
from questions import asking, people, write_text

NAN, INF = float("nan"), float("inf")


class Untouchable:
    """Data that fails the test as soon as anybody looks at it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"data was touched: {name}")


def run(content: Any = None, **changes: Any) -> plume.Release:
    return plume.run(asking(**changes), Untouchable() if content is None else content)


def budget(epsilon: Any, delta: Any = 1e-6) -> plume.Release:
    return run(budget=plume.Budget(epsilon, delta))


def total(low: Any, high: Any, column: Any = "v", **changes: Any) -> plume.Release:
    return run(measures=[plume.sum(column, low, high)], **changes)


def default(**changes: Any) -> plume.Release:
    """With no other settings than these."""
    asked = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 3}
    return plume.run(plume.Query(**asked | changes), Untouchable())


def open_bounds(number: int) -> plume.Release:
    measures = [plume.count("auto", name=f"c{one}") for one in range(number)]
    return default(measures=measures, budget=plume.Budget(1, 1e-6))


# What is asked: no data is needed to refuse it.
PARAMETERS: dict[str, tuple[Callable[[], object], type[UsageError], str]] = {
    "no epsilon": (lambda: budget(0), BudgetError, "epsilon is 0; it must be a finite number above 0"),
    "negative epsilon": (lambda: budget(-1), BudgetError, "epsilon is -1; it must be"),
    "epsilon that is no number": (lambda: budget(NAN), BudgetError, "epsilon is nan; it must be"),
    "infinite epsilon": (lambda: budget(INF), BudgetError, "epsilon is inf; it must be"),
    "epsilon in words": (lambda: budget("1"), BudgetError, "epsilon is '1'; it must be"),
    "epsilon that is true": (lambda: budget(True), BudgetError, "epsilon is True; it must be"),  # noqa: FBT003
    "epsilon of numpy": (lambda: budget(np.array(1.0)), BudgetError, r"epsilon is array\(1\.\); it must be"),
    "epsilon that is none": (lambda: budget(None), BudgetError, "epsilon is None; it must be"),
    "epsilon beyond floats": (
        lambda: budget(10**400),
        BudgetError,
        r"epsilon is 10{39}\.\.\.; it must be a finite number",
    ),
    "epsilon of 5,000 digits": (lambda: budget(10**5000), BudgetError, "epsilon is a number of thousands of digits"),
    "epsilon of next to nothing": (lambda: budget(5e-324), BudgetError, "epsilon is 5e-324; it must be at least 1e-09"),
    "delta of next to nothing": (
        lambda: budget(1, 5e-324),
        BudgetError,
        "delta is 5e-324; it must be 0, or at least 1e-300",
    ),
    "epsilon too small for two kinds of noise": (
        lambda: default(
            budget=plume.Budget(1e-9, 1e-6), noise="laplace", selection="weighted_gaussian", composition="tight"
        ),
        RangeError,
        "epsilon is 1e-09; noise of two kinds, to which delta leaves 6e-07, needs an epsilon from 6e-07 to 100000",
    ),
    "epsilon too large for two kinds of noise": (
        lambda: default(
            budget=plume.Budget(1e6, 1e-6), noise="laplace", selection="weighted_gaussian", composition="tight"
        ),
        RangeError,
        r"epsilon is 1e\+06; noise of two kinds",
    ),
    "delta too small for coins": (
        lambda: default(budget=plume.Budget(1, 1e-300), selection="truncated_geometric", composition="basic"),
        RangeError,
        "needs a table of more than 1048576 chances",
    ),
    "a hundred open bounds": (
        lambda: open_bounds(100),
        BudgetError,
        "100 numbers are left to be chosen within the budget, .* leave fewer than 100 open, or give each a share",
    ),
    "more than a hundred open bounds": (
        lambda: open_bounds(120),
        BudgetError,
        "120 numbers are left to be chosen",
    ),
    "keys per user of 5,000 digits": (
        lambda: run(max_keys_per_user=10**5000),
        BoundError,
        "max_keys_per_user is a number of thousands of digits",
    ),
    "an edge beyond floats": (
        lambda: run(measures=[plume.histogram("v", [0, 10**400])]),
        RangeError,
        r"an edge is 10{39}\.\.\.; edges are finite numbers",
    ),
    "negative delta": (lambda: budget(1, -1e-9), BudgetError, "delta is -1e-09; it must be at least 0 and below 1"),
    "delta of one": (lambda: budget(1, 1), BudgetError, "delta is 1; it must be"),
    "delta that is no number": (lambda: budget(1, NAN), BudgetError, "delta is nan; it must be"),
    "delta in words": (lambda: budget(1, "tiny"), BudgetError, "delta is 'tiny'; it must be"),
    "private keys without delta": (
        lambda: budget(1, 0),
        BudgetError,
        "delta is 0; selecting keys from data needs a delta",
    ),
    "a number as budget": (lambda: run(budget=1.0), BudgetError, r"budget is 1\.0; it must be a plume\.Budget"),
    "no keys per user": (
        lambda: run(max_keys_per_user=0),
        BoundError,
        "max_keys_per_user is 0; it must be a whole number",
    ),
    "negative keys per user": (lambda: run(max_keys_per_user=-1), BoundError, "max_keys_per_user is -1"),
    "half keys per user": (lambda: run(max_keys_per_user=1.5), BoundError, r"max_keys_per_user is 1\.5"),
    "true keys per user": (lambda: run(max_keys_per_user=True), BoundError, "max_keys_per_user is True"),
    "too many keys per user": (lambda: run(max_keys_per_user=10**12), BoundError, "max_keys_per_user is 1000000000000"),
    "keys per user of numpy": (
        lambda: run(max_keys_per_user=np.int64(3)),
        BoundError,
        r"max_keys_per_user is np\.int64\(3\), a numpy\.int64, which int\(\) or float\(\) converts; it must be a whole number",
    ),
    "epsilon of another kind": (
        lambda: budget(Decimal(1)),
        BudgetError,
        r"epsilon is Decimal\('1'\), a decimal\.Decimal, which int\(\) or float\(\) converts; it must be",
    ),
    "dates as text": (
        lambda: run(measures=[plume.mean("v", "2026-01-01", "2026-12-31")]),
        RangeError,
        r"low is '2026-01-01'; .* a date or a timestamp, such as datetime\.date\(2026, 1, 31\)\.",
    ),
    "keys per user in words": (lambda: run(max_keys_per_user="3"), BoundError, "max_keys_per_user is '3'"),
    "no records per key": (lambda: run(measures=[plume.count(0)]), BoundError, "max_per_key is 0; it must be"),
    "half records per key": (lambda: run(measures=[plume.count(0.5)]), BoundError, r"max_per_key is 0\.5"),
    "true records per key": (lambda: run(measures=[plume.count(True)]), BoundError, "max_per_key is True"),
    "too many records per key": (lambda: run(measures=[plume.count(2**21)]), BoundError, "max_per_key is 2097152"),
    "no minimum of users": (lambda: run(min_users=0), BoundError, "min_users is 0; it must be"),
    "a minimum beside public keys": (
        lambda: run(min_users=5, public_keys=["x"]),
        BoundError,
        "min_users is 5 beside public_keys",
    ),
    "bounds in the wrong order": (
        lambda: total(2, 1),
        RangeError,
        "low_total is 2 and high_total is 1; the first must be below",
    ),
    "equal bounds": (lambda: total(1, 1), RangeError, "low_total is 1 and high_total is 1; the first must be below"),
    "a bound that is no number": (lambda: total(NAN, 1), RangeError, "low_total is nan; it must be a number"),
    "an infinite bound": (lambda: total(0, INF), RangeError, "high_total is inf; it must be a number"),
    "a bound in words": (lambda: total("0", 1), RangeError, "low_total is '0'; it must be a number"),
    "a bound that is true": (lambda: total(0, True), RangeError, "high_total is True; it must be a number"),  # noqa: FBT003
    "too large a bound": (
        lambda: total(0, 1e200),
        RangeError,
        r"high_total is 1e\+200; it must be a number of at most",
    ),
    "too small bounds": (lambda: total(0, 1e-200), RangeError, "both within 1e-150 of zero; rescale the column"),
    "bounds too close": (lambda: total(1e9 + 1, 1e9 + 2), RangeError, "too close to each other for their size"),
    "too much noise to draw": (
        lambda: total(0, 1, max_keys_per_user=10**6, budget=plume.Budget(1e-9, 1e-6)),
        RangeError,
        "more than .* can be drawn exactly; raise epsilon or lower max_keys_per_user",
    ),
    "no measures": (lambda: run(measures=[]), MeasureError, r"measures is \[\]; it must be a list of measures"),
    "measures in words": (
        lambda: run(measures="count"),
        MeasureError,
        "measures is 'count'; it must be a list of measures",
    ),
    "a function as measure": (lambda: run(measures=[plume.count]), MeasureError, "a function that is not called"),
    "a class as measure": (lambda: run(measures=[type(plume.users())]), MeasureError, "a function that is not called"),
    "two measures of one name": (
        lambda: run(measures=[plume.count(1), plume.count(2)]),
        MeasureError,
        "two columns of the result would be called 'count'; give a measure another name",
    ),
    "a measure named like a key": (lambda: run(measures=[plume.users(name="K")]), MeasureError, "would be called 'K'"),
    "a measure without a name": (lambda: run(measures=[plume.users(name="")]), MeasureError, "a measure is named ''"),
    "a measure named by a number": (lambda: run(measures=[plume.users(name=5)]), MeasureError, "a measure is named 5"),
    "half a letter as name": (
        lambda: run(measures=[plume.users(name="\ud800")]),
        MeasureError,
        r"a measure is named '\\ud800'",
    ),
    "no user": (lambda: run(user=""), ColumnNotFound, "user is ''; it must be the name of a column"),
    "several users": (lambda: run(user=["u"]), ColumnNotFound, r"user is \['u'\]; it must be the name of a column"),
    "a number as user": (lambda: run(user=5), ColumnNotFound, "user is 5; it must be the name of a column"),
    "a byte of zero in a name": (lambda: run(user="a\0"), ColumnNotFound, r"user is 'a\\x00'; it must be the name"),
    "half a letter as user": (lambda: run(user="\udcff"), ColumnNotFound, r"user is '\\udcff'; it must be the name"),
    "no keys": (
        lambda: run(keys={}),
        ColumnNotFound,
        r"keys is {}; it must be the name of a column, a list of names, or a mapping of names to expressions",
    ),
    "a number as key": (lambda: run(keys=["k", 5]), ColumnNotFound, "a key is 5; it must be the name of a column"),
    "the user as key": (lambda: run(keys=["k", "U"]), ColumnNotFound, "user and keys both name 'u'"),
    "a key twice": (lambda: run(keys=["k", "K"]), ColumnNotFound, "keys names 'K' twice; engines ignore case"),
    "a number as value column": (lambda: total(0, 1, column=5), ColumnNotFound, "the column of a measure is 5"),
    "arithmetic in where": (
        lambda: run(where="v / 0 > 1"),
        ConditionError,
        "where holds 'v / 0', which is not allowed",
    ),
    "gibberish in where": (lambda: run(where="((("), ConditionError, r"where = '\(\(\(' cannot be read as a condition"),
    "a function as where": (
        lambda: run(where=len),
        ConditionError,
        "where is <built-in function len>; it must be text",
    ),
    "no public keys": (lambda: run(public_keys=[]), PublicKeysError, "public_keys is empty; list at least one key"),
    "public keys twice": (lambda: run(public_keys=["x", "x"]), PublicKeysError, "public_keys holds 1 duplicates"),
    "null as public key": (lambda: run(public_keys=["x", None]), PublicKeysError, "public_keys holds NULL"),
    "public keys of mixed types": (lambda: run(public_keys=["x", 1]), PublicKeysError, "each part of one type"),
    "public keys of too many parts": (lambda: run(public_keys=[("x", "y")]), PublicKeysError, "tuples with 1 parts"),
    "floats as public keys": (
        lambda: run(public_keys=[0.5]),
        PublicKeysError,
        "public_keys holds floating-point numbers",
    ),
    "a number as public keys": (lambda: run(public_keys=5), PublicKeysError, "public_keys must be a list of values"),
    "public keys without the column": (
        lambda: run(public_keys=pd.DataFrame({"other": ["x"]})),
        PublicKeysError,
        "a table with the columns k",
    ),
    "an unknown pipeline": (
        lambda: plume.run(asking(), Untouchable(), pipeline="fast"),
        UsageError,
        "pipeline is 'fast'",
    ),
    "an engine in words": (
        lambda: plume.run(asking(), Untouchable(), engine="duckdb"),
        SettingError,
        "engine is a str",
    ),
    "a query in words": (lambda: plume.run("SELECT 1", Untouchable()), UsageError, "the query is a str; it must be"),
    "data before the query": (lambda: plume.run(Untouchable(), asking()), UsageError, "the query is an Untouchable"),
    "no memory": (lambda: plume.DuckDB(memory_limit="0"), SettingError, "memory_limit = '0'; write it with its unit"),
    "no threads": (lambda: plume.DuckDB(threads=0), SettingError, "threads = 0; it must be a whole number"),
}

ROWS = people(k=["x"] * 3, v=[1.0, 2.0, 3.0])


def parquet(path: Path, rows: pa.Table = ROWS) -> Path:
    pq.write_table(rows, path)
    return path


def cut(path: Path) -> Path:
    return write_text(path, path.read_bytes()[: path.stat().st_size // 2])


def scribbled(path: Path) -> Path:
    text = bytearray(path.read_bytes())
    text[-60:-8] = b"\xff" * 52
    return write_text(path, bytes(text))


def closed() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 'a' AS u, 'x' AS k")
    connection.close()
    return relation


class Failing:
    """A stream that fails when it is asked for."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise LookupError("alice")


# The data: refused by its names and types, or because it cannot be opened.
DATA: dict[str, tuple[Callable[[Path], Any], type[UsageError], str]] = {
    "no data": (lambda _: [], InputError, "the list of files is empty"),
    "nothing": (
        lambda _: 0,
        InputError,
        "data is an int; it must be a path or a list of paths, a pandas or Polars DataFrame",
    ),
    "a dictionary": (lambda _: {"u": ["a"]}, InputError, "data is a dict; it must be"),
    "a generator": (lambda _: (row for row in [1]), InputError, "data is a generator; it must be"),
    "bytes": (lambda _: b"rows.csv", InputError, "data is a bytes; it must be"),
    "a connection": (lambda _: duckdb.connect(), InputError, "data is a DuckDBPyConnection; it must be"),
    "a list of frames": (lambda _: [ROWS], InputError, "a list of files holds a Table; it must hold paths only"),
    "a list of numbers": (lambda _: [1], InputError, "a list of files holds a int; it must hold paths only"),
    "a file that is not there": (
        lambda f: f / "absent.parquet",
        InputError,
        "no file '.*absent.parquet'; give the path",
    ),
    "an empty path": (lambda _: "", InputError, "no file ''; give the path"),
    "a dot": (lambda f: f"{f}/.", InputError, r"no file '.*/\.'; give the path"),
    "a pattern that fits nothing": (lambda f: str(f / "*.csv"), InputError, r"no file '.*\*\.csv'; give the path"),
    "an empty folder": (
        lambda f: f,
        InputError,
        "no file '.*'; give the path of a Parquet, CSV or JSON file, a pattern, or a folder",
    ),
    "a folder of unknown files": (
        lambda f: write_text(f / "rows.xlsx", "u,k\n").parent,
        InputError,
        "or a folder of such files",
    ),
    "a folder of hidden files": (
        lambda f: write_text(f / "_rows.csv", "u,k\n").parent,
        InputError,
        "or a folder of such files",
    ),
    "a folder of two formats": (
        lambda f: [write_text(f / "1.csv", "u,k\n"), write_text(f / "2.jsonl", "{}"), f][-1],
        InputError,
        r"the files are of several formats \(CSV, JSON lines\); give files of one",
    ),
    "CSV files one of which lacks a column": (
        lambda f: [write_text(f / "1.csv", "u,k\n"), write_text(f / "2.csv", "u,n\n")],
        ColumnNotFound,
        r"no column 'k' in one of 2 files \(engine_errors_to says which\); its first line must name",
    ),
    "a web address": (
        lambda _: "https://example.org/rows.parquet",
        InputError,
        "is not a path on this machine; download it",
    ),
    "a bucket of another store": (lambda _: "gs://bucket/rows.parquet", InputError, "is not a path on this machine"),
    "a pattern in a bucket": (lambda _: "s3://bucket/*.parquet", InputError, "an address in a bucket is written s3:"),
    "a file address": (lambda f: f"file://{f}/rows.parquet", InputError, "is not a path on this machine"),
    "a byte of zero in a path": (lambda _: "a\0.csv", InputError, r"'a\\x00.csv' is not a path on this machine"),
    "an unknown ending": (
        lambda f: write_text(f / "rows.xlsx", ""),
        InputError,
        "'rows.xlsx' has no ending Plume knows; use one of",
    ),
    "no ending": (lambda f: write_text(f / "rows", ""), InputError, "'rows' has no ending Plume knows"),
    "only a compression": (lambda f: write_text(f / "rows.gz", ""), InputError, "'rows.gz' has no ending Plume knows"),
    "compressed Parquet": (
        lambda f: write_text(f / "r.parquet.gz", ""),
        InputError,
        "'r.parquet.gz' has no ending Plume knows",
    ),
    "files of two formats": (
        lambda f: [parquet(f / "1.parquet"), write_text(f / "2.csv", "u,k\n")],
        InputError,
        r"the files are of several formats \(CSV, Parquet\); give files of one",
    ),
    "an empty Parquet file": (
        lambda f: write_text(f / "r.parquet", ""),
        InputError,
        "r.parquet could not be read as Parquet",
    ),
    "text called Parquet": (
        lambda f: write_text(f / "r.parquet", "u,k\n"),
        InputError,
        "r.parquet could not be read as Parquet",
    ),
    "half a Parquet file": (
        lambda f: cut(parquet(f / "r.parquet")),
        InputError,
        "r.parquet could not be read as Parquet",
    ),
    "a scribbled footer": (
        lambda f: scribbled(parquet(f / "r.parquet")),
        InputError,
        "r.parquet could not be read as Parquet",
    ),
    "one broken file of two": (
        lambda f: [parquet(f / "1.parquet"), cut(parquet(f / "2.parquet"))],
        InputError,
        r"one of 2 files \(engine_errors_to says which\) could not be read as Parquet",
    ),
    "text called gzip": (
        lambda f: write_text(f / "r.csv.gz", "u,k\na,x\n"),
        InputError,
        r"r\.csv\.gz could not be read as CSV",
    ),
    "half a gzip file": (
        lambda f: write_text(f / "r.csv.gz", gzip.compress(b"u,k\n" + b"a,x\n" * 9)[:15]),
        InputError,
        r"r\.csv\.gz could not be read as CSV",
    ),
    "JSON lines called gzip": (
        lambda f: write_text(f / "r.jsonl.gz", "{}"),
        InputError,
        r"r\.jsonl\.gz could not be read as JSON",
    ),
    "JSON in UTF-16": (
        lambda f: write_text(f / "r.json", '[{"u":1}]'.encode("utf-16")),
        InputError,
        "could not be read as JSON",
    ),
    "an empty CSV file": (
        lambda f: write_text(f / "r.csv", ""),
        ColumnNotFound,
        "no column 'u' in r.csv; its first line must name",
    ),
    "CSV without a header": (
        lambda f: write_text(f / "r.csv", "a,x\n"),
        ColumnNotFound,
        "its first line must name the columns",
    ),
    "CSV in UTF-16": (
        lambda f: write_text(f / "r.csv", "u,k\n".encode("utf-16")),
        ColumnNotFound,
        "the columns, in UTF-8",
    ),
    "CSV with a column twice": (
        lambda f: write_text(f / "r.csv", "u,k,u\n"),
        InputError,
        "columns 'u' and 'u' are one to an engine",
    ),
    "a misspelt column": (
        lambda _: pa.table({"u": ["a"], "kk": ["x"]}),
        ColumnNotFound,
        "no column 'k' in this Table; did you mean 'kk'",
    ),
    "a column in capitals": (
        lambda _: pa.table({"u": ["a"], "K": ["x"]}),
        ColumnNotFound,
        "no column 'k' in this Table; did you mean 'K'",
    ),
    "numbered columns": (
        lambda _: pd.DataFrame([["a", "x"]]),
        ColumnNotFound,
        "no column 'u' in this DataFrame. Columns: 0, 1",
    ),
    "columns of two levels": (
        lambda _: pd.DataFrame([["a", "x"]], columns=pd.MultiIndex.from_tuples([("u", "1"), ("k", "2")])),
        ColumnNotFound,
        "no column 'u' in this DataFrame",
    ),
    "two columns of one name": (
        lambda _: pd.DataFrame([["a", "x", "b"]], columns=["u", "k", "u"]),
        InputError,
        "this DataFrame cannot be read as a table; check that Arrow has a type for each column, and that no two columns have the same name",
    ),
    "a sparse column of pandas": (
        lambda _: pd.DataFrame({"u": ["a", "b"], "k": pd.arrays.SparseArray([1, 1])}),
        InputError,
        "this DataFrame cannot be read as a table; check that Arrow has a type for each column",
    ),
    "complex numbers": (lambda _: pd.DataFrame({"u": [1j], "k": ["x"]}), InputError, "cannot be read as a table"),
    "Python objects in Polars": (
        lambda _: pl.DataFrame({"u": ["a"], "k": [object()]}),
        InputError,
        "this DataFrame cannot be read as a table",
    ),
    "a lazy frame that panics": (
        lambda _: pl.LazyFrame({"u": ["a"], "k": ["x"]}).with_columns(
            k=pl.lit(10**8).cast(pl.Date).dt.strftime("%Y") + pl.col("k")
        ),
        InputError,
        "this LazyFrame cannot be read as a table",
    ),
    "a lazy frame that fails": (
        lambda _: pl.LazyFrame({"u": ["a"], "k": ["x"]}).with_columns(pl.col("u").cast(pl.Int64)),
        InputError,
        "this LazyFrame cannot be read as a table",
    ),
    "a stream that fails": (lambda _: Failing(), InputError, "this Failing cannot be read as a table"),
    "a column of a series": (lambda _: pd.Series(["a"]), InputError, "this Series cannot be read as a table"),
    "a closed connection": (lambda _: closed(), InputError, "this DuckDBPyRelation could not be read"),
    "a relation that fails": (
        lambda _: duckdb.connect().sql("SELECT CAST(t AS INTEGER) AS u, t AS k FROM (VALUES ('alice')) AS v(t)"),
        InputError,
        "this DuckDBPyRelation could not be read",
    ),
    "numbers of 16 bits as keys": (
        lambda _: people(k=pa.array([1.5], pa.float16())),
        InputError,
        "this Table could not be read; check that all of it can be read, and that DuckDB knows the types",
    ),
    "decimals of 40 digits": (
        lambda _: people(k=pa.array([1], pa.decimal256(40, 0))),
        InputError,
        "DuckDB knows the types of its columns",
    ),
    "floats as users": (
        lambda _: pd.DataFrame({"u": [1.0], "k": ["x"]}),
        ColumnTypeError,
        "user column 'u' is floating-point",
    ),
    "floats as keys": (lambda _: people(k=[1.5]), ColumnTypeError, "key column 'k' is floating-point"),
    "lists of floats as keys": (lambda _: people(k=[[1.5]]), ColumnTypeError, r"key column 'k' is DOUBLE\[\]"),
}


def refused(call: Callable[[], object], error: type[UsageError], match: str) -> None:
    """Expect exactly this error; what a library said before is neither its cause nor its context, and not printed."""
    with pytest.raises(error, match=match) as caught:
        call()
    found = caught.value
    assert type(found) is error
    assert (found.__cause__, found.__context__) == (None, None)
    assert "During handling" not in "".join(traceback.format_exception(found))


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_bad_parameter_is_refused_before_data_is_touched(kind: str) -> None:
    call, error, match = PARAMETERS[kind]
    refused(call, error, match)


@pytest.mark.parametrize("kind", DATA)
def test_bad_data_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, error, match = DATA[kind]
    content = make(tmp_path)
    refused(lambda: run(content), error, match)


def test_there_are_at_least_a_hundred_bad_inputs() -> None:
    assert len(PARAMETERS) + len(DATA) >= 100


FINE_AS_KEYS = {"a list of numbers", "a column of a series", "floats as users", "Python objects in Polars"}


@pytest.mark.parametrize("kind", sorted(DATA.keys() - FINE_AS_KEYS))
def test_bad_data_is_refused_as_public_keys(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = DATA[kind][0](tmp_path)
    with pytest.raises(UsageError, match=r"public_keys|no file|no column|file|ending|path|read as|read;|columns"):
        run(ROWS, public_keys=content)
