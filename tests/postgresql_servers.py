"""Real PostgreSQL servers for tests, from the programs of this machine. Run as a program, it succeeds if they are there: `make postgresql`
installs them otherwise.

A server lives in a folder of its own and is gone with it. It listens on a free port of the loopback address, to everybody on it, and
forgets what it wrote if the machine stops. PostgreSQL refuses to run as root, so root lends it to another user of the machine.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

OWNER = "plume"
# A collation by which texts do not sort as their bytes do, so that tests see where one is forgotten.
COLLATION = ("--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
QUICKLY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
# Root runs it as one of these, the first that there is.
OTHERS = ("postgres", "nobody")


class Server:
    """One server, and ways to lose it."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *, initialize: bool = True) -> None:
        self.folder, self.port = folder, _free_port()
        if initialize:
            self._call("initdb", "-D", str(folder), "-U", OWNER, "-A", "trust", "--no-sync", *COLLATION)
        said = QUICKLY | {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""} | dict(settings)
        self._options = [part for name, value in said.items() for part in ("-c", f"{name}={value}")]
        self.start()

    @property
    def url(self) -> str:
        return self.address()

    def address(self, database: str = "postgres", user: str = OWNER) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        command = [_program("postgres"), "-D", str(self.folder), "-p", str(self.port), *self._options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **_as_another())  # noqa: S603
        self._call("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), patiently=True)

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def stop(self) -> None:
        """Close all connections and end."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Lose all processes of the server at once; `start` begins it again."""
        number = self._process.pid
        processes = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        for process in (number, *map(int, processes)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        while any(Path(f"/proc/{process}").exists() for process in processes):
            time.sleep(0.01)

    def copy(self, folder: Path, settings: Mapping[str, str]) -> "Server":
        """Start a hot standby of this server."""
        source = ("-h", "127.0.0.1", "-p", str(self.port), "-U", OWNER)
        self._call("pg_basebackup", "-D", str(folder), "-R", "--no-sync", "-c", "fast", *source)
        return Server(folder, settings, initialize=False)

    def _end(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        self._process.wait()

    def _call(self, name: str, *arguments: str, patiently: bool = False) -> None:
        command = [_program(name), *arguments]
        for _ in range(200 if patiently else 1):
            found = subprocess.run(command, capture_output=True, text=True, check=False, **_as_another())  # noqa: S603
            if found.returncode == 0:
                return
            time.sleep(0.1 if patiently else 0)
        raise AssertionError(f"{name}: {found.stdout}{found.stderr}")


@contextmanager
def server(**settings: str) -> Iterator[Server]:
    """Start a server with settings of its own, such as max_connections="200", and stop it at the end."""
    with folder() as place:
        started = Server(place / "data", settings)
        try:
            yield started
        finally:
            started.stop()


@contextmanager
def standby(primary: Server, **settings: str) -> Iterator[Server]:
    """Start a hot standby of a server."""
    with folder() as place:
        started = primary.copy(place / "data", settings)
        try:
            yield started
        finally:
            started.stop()


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder that the user whom the server runs as may write to, wherever pytest's own are."""
    place = Path(tempfile.mkdtemp(prefix="plume-postgresql-"))
    try:
        if other := _other():
            os.chown(place, other.pw_uid, other.pw_gid)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _as_another() -> dict[str, Any]:
    """Say as whom to start a program, with a process group of its own and without what the environment says of servers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    settings: dict[str, Any] = {"env": environment, "cwd": "/", "start_new_session": True}
    other = _other()
    return settings | ({"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []} if other else {})


def _other() -> pwd.struct_passwd | None:
    """Find a user beside root, if root is who runs this."""
    if os.geteuid() != 0:
        return None
    for name in OTHERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise AssertionError(f"PostgreSQL does not run as root, and there is no user {' or '.join(OTHERS)}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _program(name: str) -> str:
    found = find(name)
    if found is None:
        raise RuntimeError(f"no program {name} of PostgreSQL here; `make postgresql` installs it.")
    return found


def find(name: str) -> str | None:
    """Find a program of PostgreSQL: the newest version of Debian's, which keeps them out of the way, or one that can be called."""
    places = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda place: int(re.sub(r"\D", "", place.parts[4]))
    )
    return str(places[-1]) if places else shutil.which(name)


if __name__ == "__main__":
    sys.exit(find("postgres") is None or find("initdb") is None)
