"""The store: it holds what was selected and nothing else, on a server and on a cluster, and what it lost is an error."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plume.errors import StoreError
from plume.lookup.store import StoredKeys, ask, connect, encode, load, remove, with_client
from redis_servers import Server, cluster, single

KEYS = [b"key %d" % number for number in range(3000)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with single(tmp_path_factory.mktemp("single")) as made:
        yield made


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def held(stored: StoredKeys, keys: list[bytes]) -> dict[bytes, bool]:
    return with_client(stored.url, lambda client: ask(client, stored, keys))


def test_a_server_holds_what_was_loaded_and_nothing_else(server: Server) -> None:
    stored = load(server.url, KEYS[::2])
    assert stored.buckets > 1
    assert held(stored, KEYS) == {key: number % 2 == 0 for number, key in enumerate(KEYS)}


def test_a_cluster_holds_what_was_loaded_and_nothing_else(nodes: list[Server]) -> None:
    stored = load(nodes[1].url, KEYS[::2])
    assert held(stored, KEYS) == {key: number % 2 == 0 for number, key in enumerate(KEYS)}


def test_no_selected_key_is_an_answer_too(server: Server) -> None:
    assert held(load(server.url, []), KEYS[:3]) == dict.fromkeys(KEYS[:3], False)


def test_runs_do_not_see_each_others_keys(server: Server) -> None:
    first, second = load(server.url, KEYS[:1]), load(server.url, KEYS[1:2])
    assert held(first, KEYS[:2]) == {KEYS[0]: True, KEYS[1]: False}
    assert held(second, KEYS[:2]) == {KEYS[0]: False, KEYS[1]: True}


def test_nothing_is_left_after_a_run(server: Server) -> None:
    server.client().flushall()
    remove(load(server.url, KEYS))
    assert server.client().dbsize() == 0


def test_keys_of_a_driver_that_died_go_by_themselves(server: Server) -> None:
    stored = load(server.url, KEYS)
    assert all(0 < server.client().ttl(stored.name(bucket)) <= 7 * 24 * 3600 for bucket in range(stored.buckets))


def test_a_store_that_was_emptied_is_an_error_and_no_answer(server: Server) -> None:
    stored = load(server.url, KEYS)
    server.client().flushall()
    with pytest.raises(StoreError, match="the store lost selected keys during the run; nothing was released"):
        held(stored, KEYS[:10])


def test_one_bucket_that_was_evicted_is_an_error_and_no_answer(server: Server) -> None:
    stored = load(server.url, KEYS)
    server.client().delete(stored.name(0))
    with pytest.raises(StoreError, match="the store lost selected keys"):
        held(stored, KEYS)


def test_a_node_that_is_lost_is_an_error_and_no_answer(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes:
        stored = load(nodes[0].url, KEYS)
        nodes[2].stop()
        with pytest.raises(StoreError, match="the store could not be asked or written to"):
            held(stored, KEYS)


def test_a_node_that_comes_back_empty_is_an_error_and_no_answer(nodes: list[Server]) -> None:
    stored = load(nodes[0].url, KEYS)
    nodes[2].client().flushall()
    with pytest.raises(StoreError, match="the store lost selected keys"):
        held(stored, KEYS)


def test_a_store_that_is_not_there_is_said_without_its_address() -> None:
    with pytest.raises(
        StoreError, match="the store could not be asked or written to: check that it is running"
    ) as caught:
        load("redis://:secret@127.0.0.1:1", KEYS)
    assert "secret" not in repr(caught.value)
    assert caught.value.__context__ is None


def test_the_place_of_keys_does_not_show_the_address() -> None:
    assert "secret" not in repr(StoredKeys("redis://:secret@host", "plume:1", 1))


def test_a_connection_to_a_node_is_one_to_its_cluster(nodes: list[Server]) -> None:
    with connect(nodes[0].url) as client:
        assert len(client.get_primaries()) == 3


texts = st.text(max_size=4) | st.sampled_from(["1:a", "a1:", "", "1:", ":"])


@given(first=st.tuples(texts, texts), second=st.tuples(texts, texts))
def test_different_keys_never_give_equal_bytes(first: tuple[str, str], second: tuple[str, str]) -> None:
    keys = pa.array([dict(zip("ab", key, strict=True)) for key in (first, second)])
    one, other = encode(keys)
    assert (one == other) == (first == second)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, -1]),
        pa.array([True, False]),
        pa.array([Decimal("1.50"), Decimal("-1.50")]),
        pa.array([date(2026, 1, 31), date(1, 1, 1)]),
        pa.array([datetime(2026, 1, 31, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)]),
        pa.array([b"\xff", b""]),
        pa.array([b"\xff", b"\xfe"]).view(pa.string()),
        pa.array(["é", "e\u0301"], pa.large_string()),
    ],
)
def test_keys_of_flat_types_are_told_apart(values: pa.Array) -> None:
    assert len(set(encode(pa.StructArray.from_arrays([values], names=["key_1"])))) == 2
