"""A canary in the data: whatever the data is like, nothing that leaves says a word of it."""

import io
import json
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from questions import write_text

CANARY = "alice-7f3a"
BUDGET = plume.Budget(epsilon=1, delta=1e-9)
MANY = 200


def asked(**changes: Any) -> plume.Query:
    query = {
        "user": "u",
        "keys": "k",
        "measures": [plume.count(2), plume.users(), plume.sum("v", 0, 10)],
        "max_keys_per_user": 2,
        "budget": BUDGET,
    }
    return plume.Query(**query | changes)


def rows(*, user: Any = "bob", key: Any = "rare", value: Any = 1.0, **more: Any) -> dict[str, list[Any]]:
    """Many users with a common key, and one row that is poisoned."""
    columns = {"u": [f"user {n}" for n in range(MANY)], "k": ["common"] * MANY, "v": [1.0] * MANY}
    poison = {"u": user, "k": key, "v": value}
    return {name: [*columns[name], poison[name]] for name in columns} | {
        name: [None] * MANY + [one] for name, one in more.items()
    }


def csv(*poison: str, header: str = "u,k,v\n") -> str:
    return header + "".join(f"user {n},common,1\n" for n in range(MANY)) + "".join(poison)


def lines(*poison: str) -> str:
    common = "".join(json.dumps({"u": f"user {n}", "k": "common", "v": 1}) + "\n" for n in range(MANY))
    return common + "".join(poison)


def parquet(path: Path, columns: dict[str, Any], **settings: Any) -> Path:
    pq.write_table(pa.table(columns), path, **settings)
    return path


def damaged(path: Path, where: int) -> Path:
    """Turn some bytes of the pages over, and leave the canary."""
    text = bytearray(path.read_bytes())
    text[where : where + 8] = bytes(byte ^ 0xFF for byte in text[where : where + 8])
    return write_text(path, bytes(text))


def relation(statement: str) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("t", pa.table(rows(key=CANARY)))
    connection.register("c", pa.table({"canary": [CANARY]}))
    return connection.sql(statement)


class Failing:
    """A stream that says too much when it fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise self._error


def failing_batches() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict(rows())
    raise ValueError(CANARY)


def invalid_text() -> pa.Table:
    """Text that is not UTF-8, with the canary beside."""
    column = pa.array([f"{CANARY}\xff".encode("latin-1")] * (MANY + 1)).view(pa.string())
    return pa.table(rows(value=1.0)).set_column(0, "u", column)


Case = tuple[Callable[[Path], Any], dict[str, Any]]

POISONED: dict[str, Case] = {
    # It is a user, a key, a value or beside them.
    "a user": (lambda _: pa.table(rows(user=CANARY)), {}),
    "a key": (lambda _: pa.table(rows(key=CANARY)), {}),
    "a user and a key": (lambda _: pa.table(rows(user=CANARY, key=CANARY)), {}),
    "a column nobody asks for": (lambda _: pa.table(rows(more=CANARY)), {}),
    "a category": (lambda _: pd.DataFrame(rows(key=CANARY)).astype({"k": "category"}), {}),
    "a category of Polars": (lambda _: pl.DataFrame(rows(key=CANARY), schema_overrides={"k": pl.Categorical}), {}),
    "a category of users": (lambda _: pd.DataFrame(rows(user=CANARY)).astype({"u": "category"}), {}),
    "an enum of DuckDB": (lambda _: relation(f"SELECT u, k::ENUM('common', '{CANARY}') AS k, v FROM t"), {}),
    "a part of a key": (lambda _: pa.table(rows(l=CANARY)), {"keys": ["k", "l"]}),
    "bytes": (lambda _: pa.table(rows() | {"k": [b"common"] * MANY + [CANARY.encode()]}), {}),
    "a list": (lambda _: pa.table(rows() | {"k": [["common"]] * MANY + [[CANARY]]}), {}),
    "a struct": (lambda _: pa.table(rows() | {"k": [{"a": "common"}] * MANY + [{"a": CANARY}]}), {}),
    "a key beside public keys": (lambda _: pa.table(rows(key=CANARY)), {"public_keys": ["common", "absent"]}),
    "a user beside public keys": (lambda _: pa.table(rows(user=CANARY)), {"public_keys": ["common", "absent"]}),
    "a key of a user with many": (
        lambda _: pa.table({"u": ["a"] * 9, "k": [f"{CANARY}{n}" for n in range(9)], "v": [1.0] * 9}),
        {},
    ),
    # It stands where a number should be.
    "a value of text": (lambda _: pa.table(rows() | {"v": ["1"] * MANY + [CANARY]}), {}),
    "a value in a file of text": (lambda f: write_text(f / "r.csv", csv(f"bob,common,{CANARY}\n")), {}),
    "a value in JSON": (lambda f: write_text(f / "r.jsonl", lines(f'{{"u":"bob","k":"common","v":"{CANARY}"}}\n')), {}),
    "a value in Parquet": (lambda f: parquet(f / "r.parquet", rows() | {"v": ["1"] * MANY + [CANARY]}), {}),
    "objects of pandas": (lambda _: pd.DataFrame(rows() | {"v": [1] * MANY + [CANARY]}, dtype=object), {}),
    "users of mixed types": (lambda _: pd.DataFrame(rows() | {"u": [*range(MANY), CANARY]}), {}),
    "keys of mixed types": (lambda _: pd.DataFrame(rows() | {"k": [CANARY, *range(MANY)]}), {}),
    "keys of words and bytes": (lambda _: pd.DataFrame(rows() | {"k": [CANARY, *[b"x"] * MANY]}), {}),
    "lists of mixed types": (lambda _: pd.DataFrame(rows() | {"k": [[CANARY], *[[1]] * MANY]}), {}),
    # Conditions on it.
    "compared with a number": (lambda _: pa.table(rows(more=CANARY)), {"where": "more > 5"}),
    "compared with a day": (lambda _: pa.table(rows(more=CANARY)), {"where": "more > DATE '2026-01-31'"}),
    "compared with a column": (lambda _: pa.table(rows(more=CANARY)), {"where": "more = v"}),
    "as a condition": (lambda _: pa.table(rows(more=CANARY)), {"where": "more"}),
    "compared in CSV": (
        lambda f: write_text(f / "r.csv", csv(f"bob,common,1,{CANARY}\n", header="u,k,v,w\n")),
        {"where": "w > 5"},
    ),
    "a day in CSV": (lambda f: write_text(f / "r.csv", csv(f"bob,{CANARY},1\n")), {"where": "v > 0 AND k <> 'x'"}),
    "compared in JSON": (
        lambda f: write_text(f / "r.jsonl", lines(f'{{"u":"a","k":"b","v":"{CANARY}"}}')),
        {"where": "v < 3"},
    ),
    "found by a pattern": (lambda _: pa.table(rows(key=CANARY)), {"where": f"k LIKE '%{CANARY[6:]}'"}),
    # Files that are not what they should be.
    "CSV without a header": (lambda f: write_text(f / "r.csv", f"{CANARY},common,1\n"), {}),
    "CSV without a header, twice the same": (lambda f: write_text(f / "r.csv", f"{CANARY},{CANARY},1\n"), {}),
    "CSV without a header, and a column's name in its first row": (
        lambda f: write_text(f / "r.csv", f"u,{CANARY},1\nbob,common,1\n"),
        {},
    ),
    "CSV without a header, and all columns' names but one in its first row": (
        lambda f: write_text(f / "r.csv", f"u,k,{CANARY}\nbob,common,1\n"),
        {},
    ),
    "CSV in UTF-16": (lambda f: write_text(f / "r.csv", csv(f"{CANARY},common,1\n").encode("utf-16")), {}),
    "CSV in UTF-16 without a mark": (
        lambda f: write_text(f / "r.csv", csv(f"{CANARY},common,1\n").encode("utf-16-le")),
        {},
    ),
    "a row with too few fields": (lambda f: write_text(f / "r.csv", csv(f"{CANARY}\n")), {}),
    "a row with too many fields": (lambda f: write_text(f / "r.csv", csv(f"bob,common,1,{CANARY},{CANARY}\n")), {}),
    "a broken quote": (lambda f: write_text(f / "r.csv", csv(f'bob,"{CANARY}"x",1\n')), {}),
    "a quote that never ends": (lambda f: write_text(f / "r.csv", csv(f'bob,"{CANARY},1\n')), {}),
    "bytes that are no text": (
        lambda f: write_text(f / "r.csv", csv().encode() + f"{CANARY}\xff,x,1\n".encode("latin-1")),
        {},
    ),
    "bytes of zero": (lambda f: write_text(f / "r.csv", csv(f"{CANARY}\0,common,1\n")), {}),
    "a very long line": (lambda f: write_text(f / "r.csv", csv(f"{CANARY * 500_000},common,1\n")), {}),
    "a very long first line": (lambda f: write_text(f / "r.csv", f"{CANARY}," * 200_000), {}),
    "a first line with a quote": (lambda f: write_text(f / "r.csv", f'"u,k,v\n{CANARY},x,1\n'), {}),
    "two files with different columns": (
        lambda f: [write_text(f / "1.csv", csv()), write_text(f / "2.csv", f"{CANARY},k,v\n")],
        {},
    ),
    "a broken line of JSON": (lambda f: write_text(f / "r.jsonl", lines(f'{{"u":"{CANARY}", oops\n')), {}),
    "JSON with another name": (lambda f: write_text(f / "r.jsonl", lines(f'{{"{CANARY}":1}}\n')), {}),
    "JSON of other names": (lambda f: write_text(f / "r.jsonl", f'{{"{CANARY}":1}}\n'), {}),
    "JSON with half of the names": (lambda f: write_text(f / "r.jsonl", f'{{"u":1,"{CANARY}":1}}\n'), {}),
    "a JSON array that is cut off": (
        lambda f: write_text(f / "r.json", f'[{{"u":"a","k":"x","v":1}},{{"u":"{CANARY}"'),
        {},
    ),
    "JSON with a name twice": (lambda f: write_text(f / "r.json", f'[{{"u":"{CANARY}","u":"b","k":"x","v":1}}]'), {}),
    "JSON that is no table": (lambda f: write_text(f / "r.json", f'"{CANARY}"'), {}),
    "JSON of mixed records": (lambda f: write_text(f / "r.json", f'[{{"u":"a","k":"x","v":1}},"{CANARY}",3]'), {}),
    "text called Parquet": (lambda f: write_text(f / "r.parquet", CANARY * 100), {}),
    "a canary between magic words": (lambda f: write_text(f / "r.parquet", f"PAR1{CANARY}PAR1"), {}),
    "damaged pages": (lambda f: damaged(parquet(f / "r.parquet", rows(user=CANARY), compression="NONE"), 40), {}),
    "damaged compressed pages": (
        lambda f: damaged(parquet(f / "r.parquet", rows(user=CANARY), compression="SNAPPY"), 60),
        {},
    ),
    "a damaged page behind": (
        lambda f: damaged(parquet(f / "r.parquet", rows(key=CANARY), compression="ZSTD"), 1500),
        {},
    ),
    "Parquet of other types": (
        lambda f: [
            parquet(f / "1.parquet", rows() | {"u": range(MANY + 1)}),
            parquet(f / "2.parquet", rows(user=CANARY)),
        ],
        {},
    ),
    "text called gzip": (lambda f: write_text(f / "r.csv.gz", csv(f"{CANARY},x,1\n")), {}),
    "an unknown ending": (lambda f: write_text(f / "r.txt", CANARY), {}),
    # Frames and streams that fail, and say why.
    "a lazy frame": (lambda _: pl.LazyFrame(rows(user=CANARY)).with_columns(pl.col("u").cast(pl.Int64)), {}),
    "a lazy frame on a file": (
        lambda f: pl.scan_csv(write_text(f / "r.csv", csv(f"a,x,{CANARY}\n")), schema={"u": pl.Int64}),
        {},
    ),
    "Python objects": (lambda _: pl.DataFrame(rows() | {"k": pl.Series([CANARY] * (MANY + 1), dtype=pl.Object)}), {}),
    "a relation that casts": (
        lambda _: relation("SELECT u, CASE k WHEN 'common' THEN 1 ELSE k::INTEGER END AS k, v FROM t"),
        {},
    ),
    "a relation that casts values": (
        lambda _: relation("SELECT u, k, CASE k WHEN 'common' THEN 1 ELSE k::DOUBLE END AS v FROM t"),
        {},
    ),
    "a relation that raises": (
        lambda _: relation("SELECT u, k, CASE k WHEN 'common' THEN v ELSE error(k) END AS v FROM t"),
        {},
    ),
    "a relation on a file": (
        lambda f: duckdb.connect().read_csv(
            str(write_text(f / "r.csv", csv(f"a,x,{CANARY}\n"))), dtype={"v": "DOUBLE"}
        ),
        {},
    ),
    "a stream that raises": (lambda _: Failing(ValueError(CANARY)), {}),
    "a stream that raises something else": (lambda _: Failing(KeyError(CANARY)), {}),
    "a stream that raises later": (
        lambda _: pa.RecordBatchReader.from_batches(pa.RecordBatch.from_pydict(rows()).schema, failing_batches()),
        {},
    ),
    "text that is no text": (lambda _: invalid_text(), {}),
    "floats as users": (lambda _: pd.DataFrame(rows() | {"u": [0.5] * (MANY + 1), CANARY: 1}), {}),
    # Public keys that do not fit, beside data with the canary.
    "public keys of another type": (
        lambda _: pa.table(rows(user=CANARY) | {"k": range(MANY + 1)}),
        {"public_keys": ["x"]},
    ),
    "public keys of a file that is not there": (lambda _: pa.table(rows(key=CANARY)), {"public_keys": "absent.csv"}),
}


@pytest.fixture(autouse=True)
def quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files and the working folder are where the test can look at them."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def told(release: plume.Release, folder: Path) -> Iterator[bytes]:
    """Everything that a release says."""
    yield from (
        text.encode()
        for text in (str(release), repr(release), release._repr_html_(), release.to_json(), str(release.to_arrow()))
    )
    yield str(release.to_pandas()).encode()
    for column in release.to_arrow().columns:
        yield from (bytes(buffer) for chunk in column.chunks for buffer in chunk.buffers() if buffer)
    for write in (release.write_parquet, release.write_csv):
        target = folder / "release"
        try:
            write(target)
        except plume.PlumeError as error:
            yield str(error).encode()
        else:
            yield target.read_bytes()
            target.unlink()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, release.to_arrow().schema) as stream:
        stream.write_table(release.to_arrow())
    yield sink.getvalue()


def complained(error: BaseException | None) -> Iterator[bytes]:
    """Everything that an error says, and what came before it."""
    if error is None:
        return
    yield "".join(traceback.format_exception(error)).encode()
    yield repr((error.args, vars(error), getattr(error, "__notes__", ()))).encode()
    yield from complained(error.__cause__)
    yield from complained(error.__context__)


@pytest.mark.parametrize("kind", POISONED)
def test_nothing_of_one_persons_data_leaves(
    kind: str,
    tmp_path: Path,
    quiet_place: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    make, changes = POISONED[kind]
    content = make(tmp_path)
    caplog.set_level(logging.DEBUG)
    capfd.readouterr()
    heard: list[str] = []
    try:
        said = list(told(plume.run(asked(**changes), content, on_step=heard.append), tmp_path))
    except plume.PlumeError as error:
        said = list(complained(error))
    said += [text.encode() for text in (*capfd.readouterr(), *heard, caplog.text)]
    assert not [text for text in said if CANARY.encode() in text]
    assert not list(quiet_place.iterdir())


def test_there_are_at_least_sixty_poisoned_inputs() -> None:
    assert len(POISONED) >= 60


def test_the_test_would_see_a_canary_that_is_released(tmp_path: Path) -> None:
    table = pa.table({"u": range(MANY), "k": [CANARY] * MANY, "v": [1.0] * MANY})
    assert any(CANARY.encode() in text for text in told(plume.run(asked(), table), tmp_path))


def test_the_test_would_see_a_canary_in_the_history_of_an_error() -> None:
    error = plume.PlumeError("something else")
    error.__context__ = ValueError(CANARY)
    error.__suppress_context__ = True
    assert any(CANARY.encode() in text for text in complained(error))
