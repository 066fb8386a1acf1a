import tracemalloc
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from plume.synthetic.dataset import paper_batches, write_paper_data

USERS = 300_000
Integers = NDArray[np.int64]


@pytest.fixture(scope="module")
def batches() -> list[pa.RecordBatch]:
    return list(paper_batches(USERS, seed=1))


@pytest.fixture(scope="module")
def users(batches: list[pa.RecordBatch]) -> Integers:
    return np.concatenate([batch["user"].to_numpy() for batch in batches])


@pytest.fixture(scope="module")
def keys(batches: list[pa.RecordBatch]) -> Integers:
    return np.concatenate([batch["key"].to_numpy() for batch in batches])


@pytest.fixture(scope="module")
def records_per_user(users: Integers) -> Integers:
    return np.bincount(users)


def share_tolerance(share: float, count: int) -> float:
    """Six standard deviations of a share among `count`: false alarms below 10^-8."""
    return 6 * np.sqrt(share * (1 - share) / count)


def test_columns_are_user_and_key(batches: list[pa.RecordBatch]) -> None:
    assert batches[0].schema == pa.schema([("user", pa.int64()), ("key", pa.int64())])


def test_every_user_has_a_record(records_per_user: Integers) -> None:
    assert len(records_per_user) == USERS
    assert records_per_user.min() == 1


def test_keys_are_from_one_to_a_million(keys: Integers) -> None:
    assert 1 <= keys.min() < keys.max() <= 1_000_000


def test_a_user_has_ten_records_on_average(records_per_user: Integers) -> None:
    # Ten standard deviations, since the tail is heavy: one user with 75,000 records has odds of 4 * 10^-8.
    assert records_per_user.mean() == pytest.approx(10.067, abs=0.25)


@pytest.mark.parametrize(("records", "share"), [(10, 0.29709), (64, 0.0099827)])
def test_some_users_have_many_records(records_per_user: Integers, records: int, share: float) -> None:
    tolerance = share_tolerance(share, USERS)
    assert (records_per_user > records).mean() == pytest.approx(share, abs=tolerance)


def test_a_thousand_keys_have_a_quarter_of_the_records(keys: Integers) -> None:
    assert (keys <= 1000).mean() == pytest.approx(0.25836, abs=share_tolerance(0.25836, len(keys)))


def test_users_with_many_records_have_the_same_keys_as_others(
    users: Integers, keys: Integers, records_per_user: Integers
) -> None:
    keys_of_busy = keys[records_per_user[users] > 64]
    tolerance = share_tolerance(0.25836, len(keys_of_busy))
    assert (keys_of_busy <= 1000).mean() == pytest.approx(0.25836, abs=tolerance)


def test_rows_of_a_user_are_not_together(users: Integers) -> None:
    # About 30 in a million follow a row of the same user; 900,000 would if rows were in order.
    assert (users[1:] == users[:-1]).mean() < 0.001


def test_the_same_seed_gives_the_same_rows(batches: list[pa.RecordBatch]) -> None:
    assert next(paper_batches(USERS, seed=1)).equals(batches[0])


def test_another_seed_gives_other_rows(batches: list[pa.RecordBatch]) -> None:
    assert not next(paper_batches(USERS, seed=2)).equals(batches[0])


def test_a_block_does_not_depend_on_the_number_of_users(batches: list[pa.RecordBatch]) -> None:
    assert list(paper_batches(200_000, seed=1)) == batches[:2]


def test_fewer_users_are_a_part_of_more(batches: list[pa.RecordBatch]) -> None:
    (_, part) = paper_batches(150_000, seed=1)
    assert part.equals(batches[1].filter(pc.field("user") < 150_000))


def test_blocks_are_drawn_independently(batches: list[pa.RecordBatch]) -> None:
    # Two keys agree with odds of about 10^-4; in blocks drawn alike all would.
    first, second = (batch["key"].to_numpy()[:100_000] for batch in batches[:2])
    assert (first == second).mean() < 0.01


def test_memory_does_not_grow_with_the_number_of_users() -> None:
    def peak(blocks: int) -> int:
        tracemalloc.start()
        for _ in islice(paper_batches(10**9, seed=1), blocks):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(4) < 1.2 * peak(2)


def test_a_negative_number_of_users_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"users is -1; it must be at least 0"):
        paper_batches(-1, seed=1)


def test_the_file_holds_the_rows_in_snappy_parquet(tmp_path: Path, batches: list[pa.RecordBatch]) -> None:
    path = tmp_path / "paper.parquet"
    rows = write_paper_data(path, 200_000, seed=1)
    assert pq.read_table(path).equals(pa.Table.from_batches(batches[:2]))
    metadata = pq.read_metadata(path)
    assert metadata.num_rows == rows
    assert metadata.row_group(0).column(0).compression == "SNAPPY"


def test_no_users_make_an_empty_file(tmp_path: Path) -> None:
    assert write_paper_data(tmp_path / "paper.parquet", 0) == 0
    assert pq.read_table(tmp_path / "paper.parquet").column_names == ["user", "key"]


def test_progress_is_told_in_users(tmp_path: Path) -> None:
    told = []
    write_paper_data(tmp_path / "paper.parquet", 150_000, on_block=told.append)
    assert told == [100_000, 150_000]


def test_the_file_has_its_name_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "paper.parquet"
    seen = []
    write_paper_data(path, 1000, on_block=lambda _: seen.append(path.exists()))
    assert seen == [False]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_no_file(tmp_path: Path, failure: type[BaseException]) -> None:
    def fail(users: int) -> None:
        raise failure(f"after {users} users")

    with pytest.raises(failure, match="after 1000 users"):
        write_paper_data(tmp_path / "paper.parquet", 1000, on_block=fail)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_an_older_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "paper.parquet"
    path.write_text("older")

    def fail(users: int) -> None:
        raise OSError(f"after {users} users")

    with pytest.raises(OSError, match="after 1000 users"):
        write_paper_data(path, 1000, on_block=fail)
    assert path.read_text() == "older"
