"""The paper's synthetic dataset D_synth[n], at any number of users n, in bounded memory.

Users come in blocks that do not depend on each other or on n: D_synth[n] is part of every larger one.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.random import SeedSequence, default_rng  # noqa: TID251 - benchmarks need the same data twice

from plume.output.files import whole_file
from plume.synthetic.zipf_mandelbrot import ZipfMandelbrot

RECORDS_PER_USER = ZipfMandelbrot(size=100_000, exponent=4.67, shift=25)
KEYS = ZipfMandelbrot(size=1_000_000, exponent=1.4, shift=1000)
USERS_PER_BLOCK = 100_000
SCHEMA = pa.schema([("user", pa.int64()), ("key", pa.int64())])


def paper_batches(users: int, *, seed: int) -> Iterator[pa.RecordBatch]:
    """Generate D_synth[users]: columns `user` (0..users - 1) and `key` (1..10^6), about ten rows a user.

    A batch holds 100,000 users in random row order, the last one fewer; a user's rows depend on `seed` only.
    """
    if users < 0:
        raise ValueError(f"users is {users}; it must be at least 0, the number of users to make up.")
    return (_users_below(users, _block(index, seed=seed)) for index in range(-(-users // USERS_PER_BLOCK)))


def write_paper_data(
    path: str | os.PathLike[str],
    users: int,
    *,
    seed: int = 0,
    on_block: Callable[[int], None] | None = None,
) -> int:
    """Write D_synth[users] as one Parquet file, which appears whole or not at all; return its rows.

    `on_block` is told after each block how many users are written so far.
    """
    rows = 0
    with whole_file(Path(path)) as partial, _parquet_writer(partial) as writer:
        for index, batch in enumerate(paper_batches(users, seed=seed), start=1):
            writer.write_batch(batch)
            rows += batch.num_rows
            if on_block is not None:
                on_block(min(index * USERS_PER_BLOCK, users))
    return rows


def _block(index: int, *, seed: int) -> pa.RecordBatch:
    generator = default_rng(SeedSequence(seed, spawn_key=(index,)))
    first = index * USERS_PER_BLOCK
    records = RECORDS_PER_USER.sample(USERS_PER_BLOCK, generator)
    rows_of_users = np.repeat(np.arange(first, first + USERS_PER_BLOCK), records)
    # Keys are independent of everything, so shuffling the users alone shuffles the rows.
    generator.shuffle(rows_of_users)
    return pa.record_batch([rows_of_users, KEYS.sample(len(rows_of_users), generator)], schema=SCHEMA)


def _users_below(users: int, block: pa.RecordBatch) -> pa.RecordBatch:
    kept = block["user"].to_numpy() < users
    return block if kept.all() else block.filter(pa.array(kept))


def _parquet_writer(path: Path) -> pq.ParquetWriter:
    # Differences in 17 or 20 bits: a sixth smaller than dictionaries, and quicker to write and to read.
    return pq.ParquetWriter(
        path, SCHEMA, compression="snappy", use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"
    )
