"""The peers beside us: the same count per key, on the same file, with the same budget and bound, in one table.

`make peers`. Each peer gets an environment of its own in `build/peers/`, since what they pin clashes. An answer that is there is not asked
for again, so interrupted work resumes.
"""

import argparse
import json
import subprocess
import sys
import time
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from results import ERRORS, Estimate, Panel, Point, Result, bars, power
from rich.console import Console
from trials import LIMIT, errors, make_data, synthetic

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "peers"
COLUMNS = ["users", "system", "seconds", "times plume's", "peak memory, GB", *ERRORS, "what it cannot do"]
FIELDS = [
    "users",
    "system",
    "seconds",
    "gigabytes",
    "keys",
    "absolute",
    "relative",
    "absolute_all",
    "absolute_large",
    "failed",
]
OURS = "plume, default"


class NotDone(Exception):  # noqa: N818 - a finding, not a mistake
    """Why a peer gave no answer here, in words for the table."""


@dataclass(frozen=True)
class Peer:
    """A way to ask a system."""

    name: str
    script: str
    cannot: str
    install: tuple[str, ...] = ()
    variant: str = ""

    def python(self) -> str:
        """Python in an environment that has the peer, made now if need be."""
        if not self.install:
            return sys.executable
        home = BUILD / self.script.removesuffix("_count.py")
        if not (home / "ready").exists():
            venv.create(home, with_pip=True, clear=True)
            command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *self.install]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - what peers.toml says
            if done.returncode:
                raise NotDone(f"could not be installed here: {_last_line(done.stderr)}")
            (home / "ready").touch()
        return str(home / "bin" / "python")


def answer(peer: Peer, users: int, most_seconds: float) -> dict[str, Any]:
    """Ask a peer unless it was asked before; return its seconds, memory, keys and errors, or why there are none."""
    stem = BUILD / f"{users}-{peer.script.removesuffix('_count.py')}{peer.variant}"
    kept = stem.with_suffix(".json")
    if not kept.exists():
        target = stem.with_suffix(".parquet")
        try:
            found = _ask(peer, users, target, most_seconds) | _compared(users, target)
        except NotDone as reason:
            found = {"failed": str(reason)}
        kept.write_text(json.dumps(found), encoding="utf-8")
    read: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return dict.fromkeys(FIELDS) | {"users": users, "system": peer.name} | read


def _ask(peer: Peer, users: int, target: Path, most_seconds: float) -> dict[str, Any]:
    command = [peer.python(), str(HERE / peer.script), str(synthetic(users).path), str(target), str(LIMIT)]
    command += [peer.variant] if peer.variant else []
    log = target.with_suffix(".log")
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)  # noqa: S603 - our own
        gigabytes = _peak_memory(process, most_seconds)
    if process.returncode:
        raise NotDone(f"failed: {_last_line(log.read_text(encoding='utf-8'))}")
    told = next(
        line for line in reversed(log.read_text(encoding="utf-8").splitlines()) if line.startswith('{"seconds"')
    )
    return {"seconds": json.loads(told)["seconds"], "gigabytes": gigabytes}


def _peak_memory(process: "subprocess.Popen[bytes]", most_seconds: float) -> float:
    """Wait for a process and return the most memory that it and those it started held together, looked at ten times a second."""
    peak, deadline = 0.0, time.monotonic() + most_seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            subprocess.run(["kill", "-KILL", f"-{process.pid}"], check=False)  # noqa: S603, S607 - the group we started
            process.wait()
            raise NotDone(f"did not finish in {most_seconds:.0f} seconds")
        peak = max(
            peak,
            sum(_resident(int(entry.name)) for entry in Path("/proc").glob("[0-9]*") if _group(entry) == process.pid),
        )
        time.sleep(0.1)
    return peak


def _group(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[2])
    except (OSError, IndexError):
        return 0


def _resident(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 1e9
    except OSError:
        return 0.0


def _compared(users: int, target: Path) -> dict[str, Any]:
    released = pq.read_table(target).select(["key", "count"]).rename_columns(["key", "released"])
    return errors(synthetic(users), released)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


def row(found: dict[str, Any], ours: dict[str, Any], cannot: str) -> list[str]:
    """One line of the table."""
    named = [power(found["users"]), found["system"]]
    if found["failed"]:
        return [*named, *[""] * (len(COLUMNS) - len(named) - 1), found["failed"]]
    return [
        *named,
        f"{found['seconds']:.1f}",
        f"{found['seconds'] / ours['seconds']:.1f}",
        f"{found['gigabytes']:.2f}",
        *[Estimate.of([found[field]]).text(form) for field, form in ERRORS.values()],
        cannot,
    ]


def main() -> None:
    """Ask every peer, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=lambda text: int(float(text)), nargs="+", default=[10**5, 10**6])
    parser.add_argument("--most-seconds", type=float, default=900, help="how long a peer may take")
    given = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    peers = [Peer(name, **settings) for name, settings in tomllib.loads((HERE / "peers.toml").read_text()).items()]
    console = Console(stderr=True)
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for users in given.users:
        make_data(synthetic(users))
        # Otherwise who is asked first waits for the disk, and all others find the file in memory.
        synthetic(users).path.read_bytes()
        for peer in peers:
            console.print(f"{users:,} users: {peer.name} ...")
            found[users, peer.name] = answer(peer, users, given.most_seconds)
    cannot = {peer.name: peer.cannot for peer in peers}
    Result(
        name="peers",
        heading="The peers beside us",
        columns=COLUMNS,
        rows=[row(one, found[users, OURS], cannot[name]) for (users, name), one in found.items()],
        picture=bars(
            [
                Panel(
                    title,
                    [
                        Point(name, f"{power(users)} users", Estimate.of([one[field]]))
                        for (users, name), one in found.items()
                    ],
                )
                for title, field in {"seconds": "seconds", "keys released": "keys"}.items()
            ]
        ),
        runs=list(found.values()),
        command="make peers",
    ).write()


if __name__ == "__main__":
    main()
