"""A program that makes a release while no file may grow beyond a size: `filling.py FOLDER SIZE`, SIZE being one of eight.

Run by the tests as a process of its own, since the limit cannot be lifted again. It prints how the release failed, what the ledger then
said, and what became of the same release once there was room.
"""

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

import crashing

import plume

PAGE = 4096
# So many rows that the released file outgrows all limits, while the ledger itself stays below the larger ones.
QUERY = plume.Query(
    user="u",
    keys="k",
    measures=[plume.users()],
    max_keys_per_user=1,
    budget=plume.Budget(epsilon=1),
    public_keys=[str(number) for number in range(20_000)],
)
crashing.QUERY = QUERY


def limits(ledger: plume.Ledger) -> list[int]:
    size = ledger.path.stat().st_size
    return [0, 1, 512, PAGE, 2 * PAGE, size, size + PAGE, size + 2 * PAGE]


def fail(ledger: plume.Ledger, limit: int) -> str:
    """Try to release in a process of its own that may not write beyond the limit."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            plume.run(QUERY, crashing.ROWS, ledger=ledger, dataset="d", release_id="r")
            said = "released"
        except BaseException as error:  # noqa: BLE001
            said = type(error).__name__
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    return os.read(reads, 100).decode()


if __name__ == "__main__":
    tempfile.gettempdir()  # tries to write, once
    ledger, log = crashing.new_ledger(Path(sys.argv[1]), 0, 10**6)
    said = fail(ledger, limits(ledger)[int(sys.argv[2])])
    crashing.check(ledger, log)
    before = crashing.state(ledger, "r")
    crashing.outcome(crashing.release(ledger, "r", log))
    crashing.check(ledger, log)
    print(json.dumps({"code": said, "afterwards": [before, crashing.state(ledger, "r")]}))
