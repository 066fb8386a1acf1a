"""A connection to a ledger's server that is lost, and a server that is killed: nothing is lost that was charged, nor charged twice.

What is lost is lost on a real wire: a proxy ends connections when it sees a commit, before the server has it, after, or in between.
"""

import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import plume
import postgresql_servers
from ledgers import empty_database, kept, server_in_memory
from plume.errors import BudgetExceeded, LedgerError
from plume.ledger.charge import charge
from plume.ledger.entry import EntryKind
from plume.ledger.price import EPSILONS, Price
from postgresql_servers import Server

ALLOWED = 40
UNIT = Price(EPSILONS // ALLOWED, 0, EPSILONS // ALLOWED, 0, 0)
ROWS = pa.table({"u": [str(n) for n in range(300)], "k": ["x"] * 200 + ["y"] * 100})
QUERY = plume.Query(
    user="u", keys="k", measures=[plume.users()], max_keys_per_user=1, budget=plume.Budget(1), public_keys=["x"]
)
FORK = multiprocessing.get_context("fork")
COMMIT = b"COMMIT\x00"
SECONDS_LATE, LONG = 0.5, 3600


class Proxy:
    """A wire to a server that is cut at every other commit; `lost` counts how often."""

    def __init__(self, port: int, cut: Callable[[socket.socket, bytes], None]) -> None:
        self.port, self.cut, self.commits, self.lost = port, cut, 0, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self.answer, args=(server, client), daemon=True).start()

    def answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while said := server.recv(65536):
                client.sendall(said)

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        with closing(server), closing(client), suppress(OSError):
            while said := client.recv(65536):
                if COMMIT in said:
                    self.commits += 1
                    if self.commits % 2:
                        self.lost += 1
                        client.shutdown(socket.SHUT_RDWR)
                        self.cut(server, said)
                        server.shutdown(socket.SHUT_RDWR)
                        return
                server.sendall(said)


def before(_server: socket.socket, _said: bytes) -> None:
    """The server never gets it."""


def after(server: socket.socket, said: bytes) -> None:
    """The server gets it, and nobody its answer."""
    server.sendall(said)
    server.recv(65536)


def never(_server: socket.socket, _said: bytes) -> None:
    """The server hears nothing for long, not even that the client is gone, as when a machine loses its power."""
    time.sleep(LONG)


def late(server: socket.socket, said: bytes) -> None:
    """The server gets it when the client has begun to look what became of it."""
    time.sleep(SECONDS_LATE)
    after(server, said)


@contextmanager
def cutting(
    server: Server, cut: Callable[[socket.socket, bytes], None]
) -> Iterator[tuple[Proxy, plume.Ledger, plume.Ledger]]:
    address = empty_database(server.url, "wire")
    direct = plume.Ledger.create(address, datasets={"d": plume.Budget(1)})
    proxy = Proxy(server.port, cut)
    with closing(proxy.listening):
        through = plume.Ledger(address.replace(f":{server.port}/", f":{proxy.listening.getsockname()[1]}/"))
        yield proxy, through, direct


@pytest.mark.parametrize("cut", [before, after, late, pytest.param(never, marks=pytest.mark.engines)])
def test_a_charge_whose_answer_is_lost_is_made_once(
    ledger_server: Server, cut: Callable[[socket.socket, bytes], None]
) -> None:
    with cutting(ledger_server, cut) as (proxy, through, direct):
        made = [charge(through.store, "d", f"r{number}", request="q", price=UNIT) for number in range(3)]
        assert proxy.lost >= 2
        assert list(direct.history()[1:]) == made
        direct.verify()


@pytest.mark.parametrize("cut", [before, after])
def test_a_release_whose_every_other_answer_is_lost_is_made_once(
    ledger_server: Server, cut: Callable[[socket.socket, bytes], None]
) -> None:
    with cutting(ledger_server, cut) as (proxy, through, direct):
        made = plume.run(QUERY, ROWS, ledger=through, dataset="d", release_id="first")
        assert proxy.lost >= 3
        assert [str(entry.kind) for entry in direct.history()] == [
            "dataset",
            "reserved",
            "drawing",
            "staged",
            "released",
        ]
        assert plume.run(QUERY, ROWS, ledger=direct, dataset="d", release_id="first").rows.equals(made.rows)
        direct.verify()


def test_a_release_whose_lock_was_lost_is_not_written_by_whoever_lost_it(ledger_server: Server) -> None:
    address = empty_database(ledger_server.url, "wire")
    ledger = plume.Ledger.create(address, datasets={"d": plume.Budget(1)})
    with ledger.dataset("d").claimed("first", "q") as claim:
        claim.reserve(UNIT)
        claim.begin_drawing()
        cut_all(address)
        assert ledger.recover() == {"first": "lost"}
        with pytest.raises(LedgerError, match="release 'first' was taken over by another process"):
            claim.stage(b"rows")
    assert kept(ledger) == {}
    ledger.verify()


def test_a_release_whose_lock_was_lost_is_drawn_by_one_process_at_most(ledger_server: Server) -> None:
    address = empty_database(ledger_server.url, "wire")
    ledger = plume.Ledger.create(address, datasets={"d": plume.Budget(1)})
    with ledger.dataset("d").claimed("first", "q") as claim:
        claim.reserve(UNIT)
        cut_all(address)
        with ledger.dataset("d").claimed("first", "q") as other:
            other.begin_drawing()
            with pytest.raises(LedgerError, match="taken over by another process"):
                claim.begin_drawing()


def cut_all(address: str) -> None:
    """End every other connection to a database, and wait for their ends."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
        while connection.execute(f"SELECT {others}").fetchall():
            time.sleep(0.01)


def spend(address: str, racer: int, log: Path) -> None:
    """Charge until nothing is left, and note what was answered."""
    ledger = plume.Ledger(address)
    with log.open("a") as noted, suppress(BudgetExceeded):
        for number in range(1000):
            with suppress(LedgerError):  # a server that is gone for long; the next id is another release
                charge(ledger.store, "d", f"r{racer}-{number}", request="q", price=UNIT)
                noted.write(json.dumps(f"r{racer}-{number}") + "\n")
                noted.flush()


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.engines), pytest.param(30, marks=pytest.mark.slow)]
)
def test_a_server_that_is_killed_forgets_no_charge_it_answered_and_grants_no_more_than_there_is(
    tmp_path: Path, kills: int
) -> None:
    with server_in_memory() as server:
        for number in range(kills):
            address = empty_database(server.url, f"killed_{number}")
            plume.Ledger.create(address, datasets={"d": plume.Budget(1)})
            logs = [tmp_path / f"{number}-{racer}" for racer in range(4)]
            racers = [FORK.Process(target=spend, args=(address, racer, log)) for racer, log in enumerate(logs)]
            for racer in racers:
                racer.start()
            while sum(log.read_text().count("\n") for log in logs if log.exists()) < 10:  # in the middle of it
                time.sleep(0.01)
            server.kill()
            server.start()
            for racer in racers:
                racer.join()
            assert [racer.exitcode for racer in racers] == [0] * len(racers)
            answered = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
            ledger = plume.Ledger(address)
            written = [entry.release_id for entry in ledger.history() if entry.kind == EntryKind.RESERVED]
            assert len(set(written)) == len(written) == ALLOWED
            assert set(answered) <= set(written)
            ledger.verify()


@pytest.mark.engines
def test_a_standby_is_not_taken_for_the_ledger() -> None:
    with postgresql_servers.server(fsync="on") as primary, postgresql_servers.standby(primary) as follower:
        address = empty_database(primary.url, "ledger")
        plume.Ledger.create(address, datasets={"d": plume.Budget(1)})
        with pytest.raises(LedgerError, match="cannot be reached"):
            plume.Ledger(follower.address("ledger"))
