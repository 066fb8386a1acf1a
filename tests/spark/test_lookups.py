"""Broadcast, store and join: whichever way rows find out whether their key was selected, the answer before noise is the same."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import exact_release
from plume.engines.duckdb import DuckDB
from plume.engines.spark import Spark
from plume.errors import SettingError, StoreError
from questions import asking
from redis_servers import Server, cluster, single
from sparks import run_script

QUERY = asking(keys=["k", "day"], measures=[plume.count(2), plume.users()], max_keys_per_user=3)


def make_rows() -> pa.Table:
    """Users with up to a dozen keys, most of which are selected, and rare keys, which are not."""
    random = np.random.default_rng(3)
    users = np.repeat(np.arange(300), random.integers(1, 13, 300))
    keys = [
        f"é {key}" if key < 12 else f"rare {key} of {user}"
        for key, user in zip(random.integers(0, 15, len(users)), users, strict=True)
    ]
    return pa.table({"u": users, "k": keys, "day": random.integers(0, 2, len(users))})


ROWS = make_rows()


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    found = exact_release(QUERY, ROWS, engine=DuckDB())
    assert found.num_rows > 10
    return found


RELEASED = replace(
    asking(keys=["k", "day"], measures=[plume.users(), plume.sum("day", 0, 3)], max_keys_per_user=1),
    selection="released_users",
)


@pytest.mark.parametrize("lookup", ["broadcast", "join", "store"])
def test_keys_are_looked_up_without_the_numbers_released_with_them(session: Any, server: Server, lookup: str) -> None:
    on_duckdb = exact_release(RELEASED, ROWS, engine=DuckDB())
    engine = Spark(session, lookup=lookup, store=server.url if lookup == "store" else None)
    assert exact_release(RELEASED, ROWS, engine=engine).equals(on_duckdb)
    assert sum(row["day_sum"] > 0 for row in on_duckdb.to_pylist()) > 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with single(tmp_path_factory.mktemp("single")) as made:
        yield made


@pytest.mark.quick_on("spark")
@pytest.mark.parametrize("lookup", ["auto", "broadcast", "join"])
def test_a_lookup_gives_the_answer_of_every_other(session: Any, expected: pa.Table, lookup: str) -> None:
    assert exact_release(QUERY, ROWS, engine=Spark(session, lookup=lookup)).equals(expected)


@pytest.mark.quick_on("spark", "spark-connect")
def test_a_store_gives_the_same_answer_and_is_empty_again_afterwards(
    session: Any, server: Server, expected: pa.Table
) -> None:
    engine = Spark(session, lookup="store", store=server.url)
    assert exact_release(QUERY, ROWS, engine=engine).equals(expected)
    assert server.client().info("commandstats")["cmdstat_smismember"]["calls"] > 0
    assert server.client().dbsize() == 0


def test_a_cluster_gives_the_same_answer_and_a_node_that_is_lost_gives_an_error(
    session: Any, tmp_path: Path, expected: pa.Table
) -> None:
    with cluster(tmp_path) as nodes:
        engine = Spark(session, lookup="store", store=nodes[0].url)
        assert exact_release(QUERY, ROWS, engine=engine).equals(expected)

        def lose(step: str) -> None:
            if step == "clipped":
                next(node for node in nodes if node.client().dbsize()).stop()

        with pytest.raises(StoreError, match="the store of selected keys failed at step release; nothing was released"):
            plume.run(QUERY, ROWS, engine=engine, on_step=lose)


def test_a_store_that_loses_its_keys_gives_an_error(session: Any, server: Server) -> None:
    def lose(step: str) -> None:
        if step == "clipped":
            server.client().flushall()

    with pytest.raises(StoreError, match="the store of selected keys failed at step release; nothing was released"):
        plume.run(QUERY, ROWS, engine=Spark(session, lookup="store", store=server.url), on_step=lose)


def test_a_small_set_is_broadcast_even_where_there_is_a_store(session: Any, server: Server, expected: pa.Table) -> None:
    server.client().config_resetstat()
    assert exact_release(QUERY, ROWS, engine=Spark(session, store=server.url)).equals(expected)
    assert "cmdstat_sadd" not in server.client().info("commandstats")


@pytest.mark.quick_on("spark")
def test_a_store_that_executors_cannot_reach_is_said_before_any_work(session: Any) -> None:
    steps: list[str] = []
    with pytest.raises(SettingError, match="executors cannot reach the store"):
        plume.run(QUERY, ROWS, engine=Spark(session, store="redis://:secret@127.0.0.1:1"), on_step=steps.append)
    assert steps == []


@pytest.mark.starts("spark")
def test_executors_without_plume_are_found_out_before_any_work(server: Server) -> None:
    done = run_script("bare_run.py", server.url)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["said"].startswith(
        "SettingError: executors cannot ask the store: Plume or redis is not installed there"
    )
    assert found["steps"] == []


@pytest.mark.quick_on("spark")
def test_keys_of_nested_types_are_refused_by_the_store(session: Any, server: Server) -> None:
    rows = pa.table({"u": [1, 2, 3, 3], "k": [["a"], ["a"], ["a"], ["b"]]})
    query = asking(max_keys_per_user=1)
    with pytest.raises(SettingError, match="the store holds keys of flat types only"):
        plume.run(query, rows, engine=Spark(session, lookup="store", store=server.url))
