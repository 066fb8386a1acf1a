"""The largest released values: post-processing, and nothing else."""

import pyarrow as pa
import pytest

import plume
from plume.errors import UsageError
from questions import asking, people

KEYS = ["a"] * 40 + ["b"] * 90 + ["c"] * 10 + ["d"] * 90


@pytest.fixture(scope="module")
def release() -> plume.Release:
    query = asking(measures=[plume.users(), plume.median("v", 0, 10)], budget=plume.Budget(epsilon=400, delta=0.5))
    return plume.run(query, people(k=KEYS, v=[float(len(key)) for key in KEYS]))


def test_the_column_may_be_given_by_position(release: plume.Release) -> None:
    assert release.top(2, "users").rows.equals(release.top(2, by="users").rows)


def test_the_largest_come_first_and_equal_ones_in_the_order_of_keys(release: plume.Release) -> None:
    assert release.top(3, by="users").to_arrow()["k"].to_pylist() == ["b", "d", "a"]


def test_more_than_there_are_gives_all(release: plume.Release) -> None:
    assert len(release.top(100, by="users")) == 4
    assert len(release.top(10**30, by="users")) == 4


def test_guarantee_and_noise_stay_what_they_were(release: plume.Release) -> None:
    first = release.top(1, by="users")
    assert (first.guarantee, first.noise, first.spent) == (release.guarantee, release.noise, release.spent)
    assert len(release) == 4


def test_it_sorts_by_keys_as_well(release: plume.Release) -> None:
    assert release.top(2, by="k").to_arrow()["k"].to_pylist() == ["d", "c"]


def test_values_that_are_mostly_noise_come_behind_all_others() -> None:
    query = asking(measures=[plume.users(), plume.median("v", 0, 10)], public_keys=["a", "b", "c", "d", "e", "f"])
    content = people(k=["a"] * 3_000 + ["b"] * 3_000, v=[1.0] * 3_000 + [2.0] * 3_000)
    first = plume.run(query, content).top(6, by="v_median").to_arrow()
    assert first["k"].to_pylist()[:2] == ["b", "a"]
    assert first["v_median_reliable"].to_pylist() == [True] * 2 + [False] * 4


def test_of_no_rows_there_are_none_at_the_top() -> None:
    empty = plume.run(asking(), pa.table({"u": pa.array([], pa.string()), "k": pa.array([], pa.string())}))
    assert len(empty.top(3, by="count")) == 0


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", None])
def test_a_number_of_rows_that_is_none_is_refused(release: plume.Release, n) -> None:
    with pytest.raises(UsageError, match=r"n is .*; it must be a positive whole number"):
        release.top(n, by="users")


def test_a_column_that_is_not_released_is_refused(release: plume.Release) -> None:
    with pytest.raises(UsageError, match="by is 'v'; it must be one of 'k', 'users', 'v_median'"):
        release.top(1, by="v")
