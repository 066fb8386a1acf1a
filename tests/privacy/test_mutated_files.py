"""Files with bytes turned over: a clean error or an answer, never a crash, and not a word of the data."""

import json
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from entropy import SeededEntropy
from plume.ledger.store import entries_of
from questions import asking

CANARY = "alice-7f3a"
ROWS = pa.table({"u": [*map(str, range(50)), CANARY], "k": ["x"] * 50 + [CANARY], "v": [1.0] * 51})
QUERY = asking(measures=[plume.count(2), plume.sum("v", 0, 5)], budget=plume.Budget(1, 1e-9))


def original(folder: Path, name: str) -> bytes:
    path = folder / name
    match path.suffix:
        case ".parquet":
            pq.write_table(ROWS, path, compression=path.stem)
        case ".csv":
            path.write_text("u,k,v\n" + "".join(f'{row["u"]},"{row["k"]}",{row["v"]}\n' for row in ROWS.to_pylist()))
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()))
        case _:
            path.write_text(json.dumps(ROWS.to_pylist()))
    return path.read_bytes()


def mutated(text: bytes, seed: int) -> bytes:
    """Replace, remove or repeat pieces of up to sixteen bytes in up to eight places."""
    words = [int(word) for word in SeededEntropy(seed).words(32)]
    for place, length, kind, byte in zip(words[::4], words[1::4], words[2::4], words[3::4], strict=True):
        start, size = place % (len(text) + 1), length % 16
        piece = {0: bytes([byte % 256]) * size, 1: b"", 2: text[start : start + size] * 2}[kind % 3]
        text = text[:start] + piece + text[start + size :]
        if byte % 4 == 0:
            break
    return text


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["none.parquet", "snappy.parquet", "zstd.parquet", "rows.csv", "rows.jsonl", "rows.json"]
)
def test_mutated_files_give_a_clean_error_or_an_answer(tmp_path: Path, name: str) -> None:
    text = original(tmp_path, name)
    ledger = plume.Ledger.create(tmp_path / "ledger")
    ledger.add_dataset("d", plume.Budget(10**6, 1e-3))
    for seed in range(750):
        (tmp_path / name).write_bytes(mutated(text, seed))
        try:
            said = str(plume.run(QUERY, tmp_path / name, ledger=ledger, dataset="d", release_id=f"r{seed}"))
        except plume.PlumeError as error:
            said = "".join(traceback.format_exception(error))
            # A file that cannot be opened is not charged; one that fails while it is read was, and nothing was drawn.
            assert [str(entry.kind) for entry in entries_of(ledger.store, f"r{seed}")] in ([], ["reserved"])
        assert CANARY not in said
