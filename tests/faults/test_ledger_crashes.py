"""Kills, races and full disks: whatever happens, nothing is overspent, drawn twice, or drawn without being charged.

A small part of it runs by default, a tenth in `make test-engines`, all of it in `make test-slow`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faults.crashing import POINTS
from ledgers import SERVER
from postgresql_servers import Server

HERE = Path(__file__).parent
SIZES = ["nothing", "one byte", "a sector", "a page", "two pages", "as large as it is", "a page more", "two pages more"]


def seen_by(program: str, folder: Path, *args: object, server: str | None = None) -> Any:
    """Run a program that forks, as a process of its own, and read what it says."""
    command = [sys.executable, str(HERE / f"{program}.py"), str(folder), *map(str, args)]
    # Who is killed cannot remove the private folder it made, so that goes where pytest cleans up.
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    environment |= {} if server is None else {SERVER: server}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.engines)])
def server(request: pytest.FixtureRequest) -> str | None:
    """Where the ledgers of a program are: in files, or on a server."""
    return request.getfixturevalue("ledger_server").url if request.param == "database" else None


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_at_every_point_leaves_what_the_protocol_says(tmp_path: Path, rounds: int, server: str | None) -> None:
    assert seen_by("crashing", tmp_path, "points", rounds, server=server) == dict.fromkeys(POINTS, rounds)


@pytest.mark.parametrize(
    ("kills", "seed"),
    [pytest.param(100, 1, marks=pytest.mark.engines), pytest.param(1000, 2, marks=pytest.mark.slow)],
)
def test_kills_at_random_moments_break_nothing(tmp_path: Path, kills: int, seed: int, server: str | None) -> None:
    seen = seen_by("crashing", tmp_path, "random", kills, seed, server=server)
    assert sum(seen.values()) == kills
    # The moments are spread over the protocol, or this would show nothing. In 40 runs beside one another each was seen 7 times or more.
    assert {f"killed: {state}" for state in (None, "reserved", "drawing", "staged", "released")} <= seen.keys()


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(5, marks=pytest.mark.engines), pytest.param(50, marks=pytest.mark.slow)]
)
def test_sixteen_processes_at_once_are_granted_exactly_what_there_is(tmp_path: Path, rounds: int) -> None:
    assert seen_by("racing", tmp_path, "ledger", rounds, 16, 20, 100) == [[100, 100]] * rounds


@pytest.mark.parametrize(
    ("rounds", "attempts", "allowed"),
    [
        (1, 1, 10),
        pytest.param(1, 5, 100, marks=pytest.mark.engines),
        pytest.param(20, 20, 100, marks=pytest.mark.slow),
    ],
)
def test_twenty_four_processes_at_once_are_granted_exactly_what_there_is_in_a_database(
    tmp_path: Path, rounds: int, attempts: int, allowed: int, ledger_server: Server
) -> None:
    seen = seen_by("racing", tmp_path, "ledger", rounds, 24, attempts, allowed, server=ledger_server.url)
    assert seen == [[allowed, allowed]] * rounds


def test_a_ledger_that_reads_then_writes_would_be_caught(tmp_path: Path) -> None:
    granted = seen_by("racing", tmp_path, "naive", 5, 16, 20, 100)
    assert max(written for _, written in granted) > 100


@pytest.mark.parametrize("rounds", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_two_processes_with_one_release_id_draw_once(tmp_path: Path, rounds: int, server: str | None) -> None:
    seen = seen_by("crashing", tmp_path, "twins", rounds, server=server)
    assert sum(seen.values()) == 2 * rounds
    assert seen.keys() <= {"released", "busy"}
    assert seen["released"] >= rounds


# By default the smallest, the largest, and those where what is left behind changes.
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(size, marks=[] if place in (0, 3, 4, 5, 7) else pytest.mark.engines)
        for place, size in enumerate(SIZES)
    ],
)
def test_a_full_disk_leaves_the_ledger_as_it_was_or_further_on(tmp_path: Path, size: str) -> None:
    seen = seen_by("filling", tmp_path, SIZES.index(size))
    assert seen["code"] == "ResourceError"
    expected = [None, "released"] if SIZES.index(size) < SIZES.index("as large as it is") else ["drawing", "lost"]
    assert seen["afterwards"] == expected


NAMESPACE = ["unshare", "--map-root-user", "--mount"]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0  # noqa: S603


@pytest.mark.skipif(not can_mount(), reason="this system lets nobody mount a small disk")
def test_a_disk_of_any_size_holds_a_ledger_with_its_dataset_or_none(tmp_path: Path) -> None:
    command = [*NAMESPACE, sys.executable, str(HERE / "creating.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    seen = json.loads(done.stdout)
    assert all(found == ({"l": ["d"]} if made else {}) for made, found in seen)
    # Disks from too small to large enough, or this would show nothing.
    assert {made for made, _ in seen} == {True, False}
