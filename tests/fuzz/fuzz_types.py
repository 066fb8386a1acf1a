"""Columns of every type in every role: a table with the rows of one more user ends as it ends without them, released or refused alike.

What one user has is hostile: the extremes of a type and what lies beyond. Statements are looked at more closely: the rows of all other
users in what they select stay the same.
"""

import gzip
import math
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import plume
from fuzz.columns import COLUMNS, DAYS, FIELDS, MOMENTS, ORDINARY_FIELDS, Hostile
from lakes import data_files, delta, iceberg, plain_path, rewrite
from outcomes import RELEASED, outcome
from plume.computed_keys import rows_of_query
from plume.engines import duckdb_pass
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine, Relation, Table
from plume.plan.types import Kind
from plume.settings import CORRELATED
from plume.statement.answering import ask

ENGINE = DuckDB(threads=1)
CHOOSING = "choosing"
ALICE, OTHERS = "alice", ("ann", "bob", "cem")
OPTIONS = "epsilon = 1, delta = 1e-5, max_groups_contributed = 1, privacy_unit_column"
FRAMES = ("pandas", "categories in pandas", "arrow in pandas", "polars", "lazy polars")
LAKES = ("delta", "iceberg", "dataset")
FORMS = ("arrow", "stream", "parquet", "relation", "database", *LAKES, *FRAMES)
SPARK_FORMS = ("arrow", "stream", "frame", "parquet", *FRAMES)
# How keys are selected, or what is asked for beside it.
WAYS = ("auto", "pooled_gaussian", "two_round_pooled_gaussian", "released_users", CORRELATED, CHOOSING)
# What may stand in a pandas column of type object beside the values of a type.
STRANGE: tuple[Any, ...] = (
    10**5000, -(10**400), b"\xff", "\ud800", "x", "", "1_000", "1" * 10**5 + "x", "9999-99-99", [1], {"a": []}, object(), int, 1j,
    Decimal("sNaN"), Decimal("1E+999999999"), float("nan"), float("inf"), timedelta.max, datetime.min.replace(tzinfo=timezone.max),
)  # fmt: skip
# What an index may be labelled with, which passes for attributes of columns.
LABELS: tuple[Any, ...] = ("__arrow_array__", "__arrow_c_array__", "cat", "dtype", 5, b"\xff", None)
# Decimals with more digits than their type has, which no proper writer writes: docs/guarantees/reading.md says that Spark fails on them.
_SPOILT = "by its bits"
# What the two tables are called is not data.
_FILE = re.compile(r"[^ ']*\d+\.(parquet|csv|jsonl|json|duckdb)(\.gz)?")
EXPRESSIONS = (
    "DATE_TRUNC('month', x)", "EXTRACT(YEAR FROM x)", "EXTRACT(EPOCH FROM x)", "CAST(x AS BIGINT)", "CAST(x AS DATE)",
    "CAST(x AS TIMESTAMP)", "CAST(x AS DECIMAL(38,10))", "CAST(x AS BOOLEAN)", "LOWER(x)", "UPPER(x)", "TRIM(x)", "SUBSTR(x, 2, 3)",
    "LENGTH(x)", f"x LIKE '{'_' * 100}%'", "x + 1", "ROUND(x, 2)", "x = x", "x < x", "x IN (1, 2)", "x IN (1, 2, 3, 4, 5, 6, 7)", "x > 5",
    "x < DATE '2020-01-01'",
    "x < TIMESTAMP '9999-12-31 00:00:00'", "COALESCE(x, x)", "GREATEST(x, x)", "NULLIF(x, x)", "x IS NULL", "STARTS_WITH(x, 'a')",
    "CASE WHEN x = x THEN 1 ELSE 0 END", "ABS(x)", "x % 3", "x",
)  # fmt: skip
_KINDS = tuple(dict.fromkeys(column.kind for column in COLUMNS))
# Ids that are one as doubles, and that no column has among its hostile values.
NEAR = 10**38 + 7
NEAR_IDS = tuple(
    Hostile(name, "integer", tuple(str(NEAR + n) for n in range(3)), (str(NEAR + 3),))
    for name in ("HUGEINT", "UHUGEINT")
)


# What DuckDB's reader of Parquet fails on, so that Arrow reads the file.
SPOILT_TEXT = Hostile(
    "spoilt text", "text", pa.array(["a", "b", "c"]), pa.array([b"\xff"], pa.binary()).view(pa.string())
)


@dataclass(frozen=True)
class Case:
    """Two neighbouring tables, and what is asked of them."""

    told: str
    run: Callable[[Any], Any]
    without: Any
    with_her: Any
    rows: Callable[[Any], Counter[str]] | None = None
    """The rows that a statement makes of the other users', where it is one."""


def check(rng: random.Random, engine: Engine = ENGINE) -> str | None:
    """Make up a case, and say what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        case = rng.choice(ROLES)(rng, Path(folder), engine)
        return wrong(case) if case is not None else None


def wrong(case: Case) -> str | None:
    try:
        ends = [_FILE.sub("", outcome(lambda data=data: case.run(data()))) for data in (case.without, case.with_her)]
        if ends[0] != ends[1]:
            return f"{case.told}: without her {ends[0]!r}, with her {ends[1]!r}"
        if ends[0].startswith("EngineError"):
            return f"{case.told}: the engine failed on a row, without her as with her"
        if ends[0] == RELEASED and case.rows and case.rows(case.without()) != case.rows(case.with_her()):
            return f"{case.told}: the rows of others differ"
    except Exception as error:  # noqa: BLE001 - Plume's own errors are outcomes; all others are flaws
        return f"{case.told}: {type(error).__name__}"
    return None


# Tables


def _table(columns: Mapping[str, Hostile], rows: int, folder: Path, form: str) -> Callable[[], Any] | None:
    """Give a way to make a table of so many rows: three of others, the rest hers. None if the form has no such type."""
    made: Any = None
    if all(column.is_arrow for column in columns.values()) and form not in ("relation", "database"):
        made = pa.table({name: _arrow(column, rows) for name, column in columns.items()} | _fixed(columns, rows))
        if form in FRAMES:
            return _made_of(made, form)
        if form in LAKES:
            return _in_a_lake(made, folder / str(len(list(folder.iterdir()))), form)
        if form == "stream":
            return lambda: pa.RecordBatchReader.from_batches(made.schema, made.to_batches())
        if form == "parquet":
            path = folder / f"{len(list(folder.iterdir()))}.parquet"
            with suppress(pa.ArrowException):
                pq.write_table(made, path)
                return lambda: path
            return None
        return lambda: made
    path = folder / f"{len(list(folder.iterdir()))}.duckdb"
    with suppress(duckdb.Error), duckdb.connect(path) as connection:
        _fill(connection, columns, rows)
        made = path
    if made is None or form == "database":
        return (lambda: str(path)) if made is not None else None
    return lambda: duckdb.connect(path, read_only=True).table("t")


def _in_a_lake(rows: pa.Table, folder: Path, form: str) -> Callable[[], Any] | None:
    """Give a way to open a table of a lake that has such rows, whatever its library would write; None if it has no such types."""
    with suppress(Exception):
        if form == "dataset":
            ds.write_dataset(rows, folder, format="parquet")
            return lambda: ds.dataset(folder)
        ordinary = rows.take([0] * len(rows))
        table = delta(folder, ordinary) if form == "delta" else iceberg(folder, ordinary)
        [path] = folder.glob("*.parquet") if form == "delta" else map(plain_path, data_files(table))
        rewrite(path, rows)
        return lambda: table
    return None


def _made_of(rows: pa.Table, form: str) -> Callable[[], Any] | None:
    """Give a way to make a frame; None if the library cannot hold such types or values."""
    makers = {
        "pandas": _objects,
        "categories in pandas": lambda rows: _labelled(_objects(rows).apply(_categories)),
        "arrow in pandas": lambda rows: _labelled(rows.to_pandas(types_mapper=pd.ArrowDtype)),
        "polars": pl.from_arrow,
        "lazy polars": lambda rows: pl.from_arrow(rows).lazy(),
    }
    if "polars" in form and any(map(pa.types.is_decimal256, rows.schema.types)):
        return None  # Polars panics, and prints where
    with suppress(Exception, pl.exceptions.PanicException):
        frame = makers[form](rows)
        return lambda: frame
    return None


def _categories(column: pd.Series) -> pd.Series:
    """The same values as categories of Python objects, whatever their classes are: pandas itself would choose a type by all of them."""
    known: dict[Any, int] = {}
    codes = [-1 if _is_missing(value) else known.setdefault((type(value), value), len(known)) for value in column]
    categories = pd.Index([value for _, value in known], dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, categories=categories))


def _is_missing(value: Any) -> bool:
    """Whether a value cannot be a category: pandas asks for its hash, and for its equals among the others."""
    if not isinstance(value, Hashable) or value is None:
        return True
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and math.isnan(value)


def _objects(rows: pa.Table) -> pd.DataFrame:
    """The same rows as Python objects; of hers, some are of other classes."""
    columns = {}
    for place, name in enumerate(rows.column_names):
        column = pd.Series([None] * rows.num_rows, dtype=object)
        for row, value in enumerate(rows[name]):
            is_strange = row >= len(OTHERS) and (row + place) % 2 == 0
            column.array[row] = STRANGE[(row + 7 * place) % len(STRANGE)] if is_strange else _python(value)
        columns[name] = column
    return _labelled(pd.DataFrame(columns))


def _labelled(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame an index of labels, of which hers are hostile."""
    frame.index = pd.Index([*OTHERS, *LABELS * len(frame)][: len(frame)], dtype=object)
    return frame


def _python(value: pa.Scalar) -> Any:
    with suppress(Exception):
        return value.as_py()
    return object()


def _fixed(columns: Mapping[str, Hostile], rows: int) -> dict[str, list[str]]:
    """The columns beside the hostile ones."""
    names = [*OTHERS, *[ALICE] * (rows - 3)][:rows]
    return {
        name: values for name, values in {"u": names, "name": names, "k": ["x"] * rows}.items() if name not in columns
    }


def _arrow(column: Hostile, rows: int) -> pa.ChunkedArray:
    hers = [column.hostile] * (1 + rows // max(1, len(column.hostile)))
    return pa.chunked_array([column.ordinary, *hers], column.ordinary.type).slice(0, rows).combine_chunks()


def _fill(connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Hostile], rows: int) -> None:
    known = {name: column for name, column in columns.items() if column.is_arrow}
    arrow = pa.table({"row": range(rows)} | {n: _arrow(c, rows) for n, c in known.items()} | _fixed(columns, rows))
    connection.register("arrow", arrow)
    listed = [f'"{name}"' for name in arrow.schema.names[1:]]
    made = {name: column for name, column in columns.items() if not column.is_arrow}
    for name, column in made.items():
        cycle = [*column.ordinary, *(column.hostile * rows)][:rows]
        whens = " ".join(f"WHEN {row} THEN CAST({value} AS {_plain(column)})" for row, value in enumerate(cycle))
        listed.append(f'CASE "row" {whens} END AS "{name}"')
    connection.execute(f"CREATE TABLE t AS SELECT {', '.join(listed)} FROM arrow")
    for name, column in made.items():
        if column.name != _plain(column):
            connection.execute(f'ALTER TABLE t ALTER "{name}" TYPE {column.name}')
    # Whatever a statement calls it.
    connection.execute("CREATE TABLE a AS FROM t; CREATE TABLE b AS FROM t")


def _plain(column: Hostile) -> str:
    return column.name.split(" COLLATE")[0]


def _neighbours(
    rng: random.Random, columns: Mapping[str, Hostile], folder: Path, form: str, engine: Engine
) -> tuple[Any, Any] | None:
    """Make two tables, without her and with her; she has every hostile value, or one of them."""
    hers = rng.choice([1, max(len(column.hostile) for column in columns.values())])
    if hers == 1:
        columns = {name: _one(rng, column) for name, column in columns.items()}
    tables = [_table(columns, rows, folder, form) for rows in (3, 3 + hers)]
    if form == "frame":
        tables = [_frame(table, engine) for table in tables]
    return (tables[0], tables[1]) if all(tables) else None


def _frame(table: Callable[[], Any] | None, engine: Engine) -> Callable[[], Any] | None:
    """Make a Spark DataFrame of an Arrow table; None if Spark has no such types, or cannot hold such values."""
    if table is None:
        return None
    with suppress(Exception):
        frame = engine.session.createDataFrame(table())
        frame.count()
        return lambda: frame
    return None


def _one(rng: random.Random, column: Hostile) -> Hostile:
    place = rng.randrange(len(column.hostile))
    return Hostile(column.name, column.kind, column.ordinary, column.hostile[place : place + 1])


# Queries


def _query(
    rng: random.Random, folder: Path, engine: Engine, columns: Mapping[str, Hostile], **asked: Any
) -> Case | None:
    form = rng.choice(FORMS if isinstance(engine, DuckDB) else SPARK_FORMS)
    spoilt = any(_SPOILT in column.name for column in columns.values())
    if spoilt and form == "parquet" and not isinstance(engine, DuckDB):
        return None
    found = _neighbours(rng, columns, folder, form, engine)
    if found is None:
        return None
    way = rng.choice(WAYS)
    # Statements know of no noise, and what is made up of keys need not be text.
    if way == CORRELATED and (form == "database" or "keys" in asked):
        return None
    settings = _asked_in(way, asked)
    try:
        query = plume.Query(**settings, budget=plume.Budget(epsilon=1, delta=1e-5))
    except plume.PlumeError:
        return None
    if form == "database" and (query.key_expressions or not query.keys):
        return None
    told = f"{form}, {', '.join(f'{name} {column.name}' for name, column in columns.items())}, {way}, {asked}"
    if form != "database":
        looked = _keys_of_others(query, engine) if query.key_expressions and isinstance(engine, DuckDB) else None
        return Case(told, lambda data: plume.run(query, data, engine=engine), *found, looked)
    text = _as_statement(query)
    return Case(f"{told}: {text}", lambda data: plume.sql(text, tables={"t": data}), *found)


def _asked_in(way: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Ask with a selection, or with noise that known keys share."""
    settings = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 1} | asked
    if way == CORRELATED:
        return settings | {"noise": CORRELATED, "public_keys": ["x", "y", "z"], "max_keys_per_user": 3}
    if way == CHOOSING and settings["keys"]:
        settings["measures"] = [*settings["measures"], plume.count("auto", name="records")]
        return settings | {"max_keys_per_user": "auto"}
    if way == "released_users":
        settings["measures"] = [plume.users(name="everybody"), *settings["measures"]]
    return settings | ({"selection": way} if way != CHOOSING else {})


def _keys_of_others(query: plume.Query, engine: Engine) -> Callable[[Any], Counter[str]]:
    """Look at what a query with computed keys makes of the rows of others."""
    return lambda data: _rows_of(rows_of_query(query, data, engine.dialect), query.user, engine)


def _as_statement(query: plume.Query) -> str:
    """Ask for the users as a statement, which can read a database."""
    where = f" WHERE {query.where}" if query.where else ""
    return (
        f'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = "{query.user}") "{query.keys[0]}" AS g, '
        f'COUNT(DISTINCT "{query.user}") AS n FROM t{where} GROUP BY "{query.keys[0]}"'
    )


def as_user(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    return _query(rng, folder, engine, {"x": rng.choice(COLUMNS)}, user="x")


def as_key(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    keys = rng.choice(["x", ["x", "k"]])
    return _query(rng, folder, engine, {"x": rng.choice(COLUMNS)}, keys=keys)


def in_one_pass(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    """Users and keys of any type in a pass over the rows of each user, however few rows there are."""
    case = rng.choice([as_user, as_key])(rng, folder, engine)
    if case is None or not isinstance(engine, DuckDB):
        return None

    def run(data: Any) -> Any:
        with patch.multiple(duckdb_pass, _FEWEST_ROWS=0, _FEWEST_ROWS_TO_COMPILE_FOR=0):
            return case.run(data)

    return replace(case, told=f"in one pass: {case.told}", run=run)


def as_value(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    column = rng.choice([column for column in COLUMNS if column.kind not in ("text", "other")])
    low, high = (
        rng.sample(MOMENTS if column.kind == "timestamp" else DAYS, 2)
        if column.kind in ("timestamp", "date")
        else (0, 10)
    )
    low, high = sorted((low, high))
    measures = [
        plume.mean("x", low, high), plume.quantiles("x", [0.5], low, high), plume.maximum("x", low, high),
    ]  # fmt: skip
    if column.kind not in ("timestamp", "date"):
        measures += [
            plume.sum("x", low_total=-1, high_total=1e12), plume.variance("x", 0, 1e9), plume.histogram("x", [0, 1, 1e9]),
            plume.vector_sum(["x"], norm=3), plume.stddev("x", -1e9, 1), plume.sum("x", low_total=0, high_total=1e-9),
        ]  # fmt: skip
    return _query(rng, folder, engine, {"x": column}, measures=rng.sample(measures, rng.choice([1, 2])))


def in_a_key_expression(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    columns = {"x": rng.choice(COLUMNS), "y": rng.choice(COLUMNS)}
    keys = {
        rng.choice(["e", "x", "k"]): rng.choice(EXPRESSIONS),
        rng.choice(["f", "name"]): rng.choice(["k", "k", "y", *EXPRESSIONS]),
    }
    where = {"where": condition(rng, columns)} if rng.random() < 0.3 else {}
    return _query(rng, folder, engine, columns, keys=keys, **where)


def as_a_total(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    """All rows are in the one key, whatever is in them; the database form asks by a key and is left out."""
    measures = rng.choice([[plume.count(1, column="x")], [plume.users(), plume.sum("x", low_total=0, high_total=9)]])
    return _query(rng, folder, engine, {"x": rng.choice(COLUMNS)}, keys=[], measures=measures)


def in_where(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    columns = {"x": rng.choice(COLUMNS), "y": rng.choice(COLUMNS)}
    return _query(rng, folder, engine, columns, where=condition(rng, columns))


def in_the_condition_of_a_measure(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    columns = {"x": rng.choice(COLUMNS), "y": rng.choice(COLUMNS)}
    return _query(rng, folder, engine, columns, measures=[plume.users(where=condition(rng, columns))])


def condition(rng: random.Random, columns: Mapping[str, Hostile]) -> str:
    """Make up a condition on a column, which is reached on her rows alone, or on all."""
    constants = _constants(columns["x"].kind)
    one, other = rng.choice(constants), rng.choice(constants)
    own = rng.choice([
        f"x {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {one}", f"{one} < x", f"x IN ({one}, {other})", f"x BETWEEN {one} AND {other}",
        "x IS NULL", "x = y", "x < y", f"NOT (x = {one})", "x LIKE '%a_'", "x",
    ])  # fmt: skip
    return rng.choice(["{}", "name = 'alice' AND {}", "name <> 'alice' OR {}", "{} AND name = 'alice'"]).format(own)


def _constants(kind: str) -> list[str]:
    numbers = ["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "1.5", "1e308", "-1e-300", "99999999999"]
    known = {
        "text": ["'a'", "''", "'é'", "'7'", "'%'"],
        "timestamp": [f"TIMESTAMP '{moment.isoformat(sep=' ')}'" for moment in MOMENTS],
        "date": [f"DATE '{day.isoformat()}'" for day in DAYS],
        "boolean": ["TRUE", "FALSE"],
    }
    return known.get(kind, numbers)


def beside_a_spoilt_text(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    """Any column of a Parquet file: where a text of hers beside it is not UTF-8, another reader must read it as the first one does."""
    if not isinstance(engine, DuckDB):
        return None
    column = rng.choice([column for column in COLUMNS if column.is_arrow])
    columns = {"x": replace(column, hostile=column.ordinary), "y": SPOILT_TEXT}
    found = [_table(columns, rows, folder, "parquet") for rows in (3, 4)]
    if not all(found):
        return None
    asked = {"where": "x IS NULL OR y IS NOT NULL"} if rng.random() < 0.5 else {"keys": ["x", "k"], "where": "y <> 'z'"}
    settings = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 1} | asked
    query = plume.Query(**settings, budget=plume.Budget(epsilon=1, delta=1e-5))

    def others(path: Path) -> Counter[str]:
        kinds = dict.fromkeys(("u", "x", "y"), Kind.TEXT)
        with engine.open({"t": Table(str(path), kinds, grouped=frozenset({"x"}))}) as session:
            rows = session._connection.sql("SELECT u, hash(x), typeof(x), y FROM t").fetchall()
        return Counter(str(row) for row in rows if row[0] in OTHERS)

    told = f"parquet, {column.name} beside a spoilt text, {asked}"
    return Case(told, lambda path: plume.run(query, path, engine=engine), *found, others)


# Statements


def _statement(
    rng: random.Random,
    folder: Path,
    engine: Engine,
    text: str,
    columns: Mapping[str, Mapping[str, Hostile]],
) -> Case | None:
    tables = {}
    for name, own in columns.items():
        forms = FORMS if isinstance(engine, DuckDB) else ("arrow", "frame")
        found = _neighbours(rng, own, folder, rng.choice(forms), engine)
        if found is None:
            return None
        tables[name] = found
    told = f"{text} with {', '.join(f'{t}.{n} {c.name}' for t, own in columns.items() for n, c in own.items())}"

    def given(place: int) -> Callable[[], dict[str, Any]]:
        return lambda: {name: found[place]() for name, found in tables.items()}

    def others(data: dict[str, Any]) -> Counter[str]:
        return _rows_of_others(text, data, engine)

    looked = others if isinstance(engine, DuckDB) else None
    return Case(told, lambda data: plume.sql(text, tables=data, engine=engine), given(0), given(1), looked)


def _rows_of_others(text: str, data: dict[str, Any], engine: Engine) -> Counter[str]:
    asked = ask(text, engine=engine, tables=data)
    if not isinstance(asked.data, Relation):
        return Counter()
    return _rows_of(asked.data, asked.query.user, engine)


def _rows_of(relation: Relation, user: str, engine: Engine) -> Counter[str]:
    known = set(OTHERS) | {str(NEAR + n) for n in range(3)} | {str(n) for n in (1, 2, 3)}
    with engine.open(relation.tables) as session:
        session.define_relation("input", relation.select)
        found = session._connection.sql('SELECT columns(*)::VARCHAR FROM "input"').fetchall()
        names = session._connection.table("input").columns
    return Counter(str(row) for row in found if row[names.index(user)] in known)


def in_a_join(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    computed = rng.choice(
        ["x", "COALESCE(x, x)", "x + 1", "CAST(x AS DATE)", "CAST(x AS DECIMAL(18,3))", "LOWER(x)", "CAST(x AS BIGINT)"]
    )
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = a.u) COUNT(DISTINCT a.u) AS n "
        f"FROM a {rng.choice(['', 'LEFT ', 'FULL '])}JOIN (SELECT u, {computed} AS y FROM b) s ON a.u = s.u AND a.x = s.y"
    )
    return _statement(rng, folder, engine, text, _alike(rng, "ab"))


def in_a_union(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = r.u) COUNT(r.x, contribution_bounds_per_group => (0, 1)) AS n "
        "FROM (SELECT u, x FROM a UNION ALL SELECT u, x FROM b) r"
    )
    return _statement(rng, folder, engine, text, _alike(rng, "ab"))


def as_units(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = a.x) COUNT(DISTINCT a.x) AS n, "
        "COUNT(b.k, contribution_bounds_per_group => (0, 9)) AS m FROM a JOIN b ON a.x = b.x"
    )
    near = rng.random() < 0.3
    units = NEAR_IDS if near else [column for column in COLUMNS if column.kind in ("integer", "text", "uuid")]
    return _statement(rng, folder, engine, text, {name: {"x": rng.choice(units)} for name in "ab"})


def in_an_expression(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    expression = rng.choice(EXPRESSIONS)
    inner = rng.choice([
        f"SELECT u, {expression} AS e FROM t", f"SELECT u, MAX({expression}) AS e FROM t GROUP BY u",
        f"SELECT u, COUNT(DISTINCT {expression}) AS e FROM t GROUP BY u", f"SELECT u, SUM({expression}) AS e FROM t GROUP BY u",
        f"SELECT u, RANK() OVER (PARTITION BY u ORDER BY {expression}) AS e FROM t", f"SELECT DISTINCT u, {expression} AS e FROM t",
        f"SELECT u, k AS e FROM t WHERE {expression} = {expression}",
    ])  # fmt: skip
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = u) e, COUNT(DISTINCT u) AS n FROM ({inner}) GROUP BY e"
    )
    return _statement(rng, folder, engine, text, _alike(rng, "t"))


def _alike(rng: random.Random, names: str) -> dict[str, dict[str, Hostile]]:
    """Choose a column for each table: any ones, or ones that an engine would bring together."""
    among = rng.choice(
        [_KINDS, ("integer", "decimal", "float"), ("date", "timestamp"), ("text", "integer", "float", "date")]
    )
    return {name: {"x": rng.choice([column for column in COLUMNS if column.kind in among])} for name in names}


# One table under two names


def under_two_names(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    """Join a table with itself by another column than its unit: in her rows, that column names the others."""
    if not isinstance(engine, DuckDB):
        return None
    tables = []
    for place, hers in enumerate((0, 3)):
        below = folder / str(place)
        below.mkdir()
        rows = pa.table({"u": [*OTHERS, *[ALICE] * hers], "x": [*OTHERS, *OTHERS[:hers]]})
        pq.write_table(rows, below / "t.parquet")
        (below / "link.parquet").symlink_to(below / "t.parquet")
        (below / "hard.parquet").hardlink_to(below / "t.parquet")
        with duckdb.connect(below / "t.duckdb") as connection:
            connection.execute("CREATE TABLE t AS FROM rows; CREATE VIEW v AS FROM t")
        tables.append(below)
    files = (
        "t.parquet",
        "*.parquet",
        ".",
        "./t.parquet",
        "link.parquet",
        "hard.parquet",
        "../{}/t.parquet",
        "[t].parquet",
        "**/t.parquet",
    )
    one, other = rng.choice(files), rng.choice(files)
    names = [('"a"', '"b"'), ("t", "main.t"), ("T", "t.t"), ("t", "memory.t")][rng.choice([0, 0, 1, 2, 3])]
    declared = getattr(plume, "private", None) if rng.random() < 0.3 else None
    unit = rng.choice(["x", "u"])
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS} = a.u) COUNT(DISTINCT a.u) AS n, "
        f"COUNT(b.x, contribution_bounds_per_group => (0, 9)) AS m FROM {names[0]} AS a JOIN {names[1]} AS b ON a.u = b.{unit}"
    )

    def given(below: Path) -> dict[str, Any]:
        if names[0] != '"a"':
            return {name.strip('"'): str(below / "t.duckdb") for name in names}
        paths = [str(below / name.format(below.name)) for name in (one, other)]
        if declared is None:
            return dict(zip("ab", paths, strict=True))
        return {name: declared(path, unit=own) for name, path, own in zip("ab", paths, ("u", unit), strict=True)}

    def others(data: dict[str, Any]) -> Counter[str]:
        return _rows_of_others(text, data, engine)

    told = f"{text} with {one} and {other}{', declared' if declared else ''}"
    ways = [lambda below=below: given(below) for below in tables]
    return Case(told, lambda data: plume.sql(text, tables=data, engine=engine), *ways, others)


# Files without types


def in_a_file(rng: random.Random, folder: Path, engine: Engine) -> Case | None:
    if not isinstance(engine, DuckDB):
        return None
    ending = rng.choice(list(FIELDS))
    hers = rng.choice([FIELDS[ending], [rng.choice(FIELDS[ending])]])
    paths = [_written(folder / f"{place}.{ending}", ending, rows) for place, rows in enumerate(([], hers))]
    if ending == "csv" and rng.random() < 0.5:
        paths = [_with_a_turned_file(path) for path in paths]
    elif rng.random() < 0.3:
        paths = list(map(_compressed, paths))
    role = rng.choice(["user", "keys", "key expression", "where", "value"])
    asked: dict[str, Any] = {
        "user": {"user": "x"},
        "keys": {"keys": "x"},
        "key expression": {"keys": {"e": rng.choice(EXPRESSIONS)}},
        "where": {
            "where": condition(
                rng, {"x": Hostile("field", rng.choice(["text", "float", "date", "timestamp", "boolean"]), (), ())}
            )
        },
        "value": {"measures": [plume.mean("x", 0, 10), plume.count(1, where="x > 1")]},
    }[role]
    settings = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 1} | asked
    if "y" in str(asked.get("where")):
        return None
    try:
        query = plume.Query(**settings, budget=plume.Budget(epsilon=1, delta=1e-5))
    except plume.PlumeError:
        return None
    return Case(
        f"{paths[0].name} {hers!r:.200}, {asked}",
        lambda path: plume.run(query, path),
        lambda: paths[0],
        lambda: paths[1],
    )


def _written(path: Path, ending: str, hers: list[bytes]) -> Path:
    rows = [*zip(OTHERS, ORDINARY_FIELDS, strict=True), *((ALICE, field) for field in hers)]
    if ending == "csv":
        lines = [b"u,name,k,x", *(b"%b,%b,k,%b" % (name.encode(), name.encode(), field) for name, field in rows)]
    else:
        lines = [
            b'{"u": "%b", "name": "%b", "k": "k", "x": %b}' % (name.encode(), name.encode(), field)
            for name, field in rows
        ]
    path.write_bytes(b"[%b]" % b",\n".join(lines) if ending == "json" else b"\n".join(lines) + b"\n")
    return path


def _compressed(path: Path) -> Path:
    (packed := path.with_name(f"{path.name}.gz")).write_bytes(gzip.compress(path.read_bytes()))
    return packed


def _with_a_turned_file(path: Path) -> Path:
    """Make a folder of a CSV file and of another one, whose columns are in another order."""
    folder = path.with_suffix("")
    folder.mkdir()
    (folder / "0.csv").write_bytes(b"x;k;name;u\n2;k;dia;dia\n")
    return path.rename(folder / "1.csv").parent


ROLES = (
    as_user, as_key, as_key, in_one_pass, in_a_key_expression, in_a_key_expression, as_a_total, as_value,
    in_where, in_where, in_the_condition_of_a_measure, beside_a_spoilt_text, in_a_join, in_a_union, as_units, in_an_expression,
    in_an_expression, in_a_file, under_two_names,
)  # fmt: skip
