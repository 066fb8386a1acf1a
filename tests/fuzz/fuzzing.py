"""What all fuzzers share: cases are made from a seed and a number, and each can be made again alone.

`make fuzz SECONDS=3600 SEED=1` runs every fuzzer for its share of the time and ends with 1 if one of them found something.
"""

import argparse
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from plume.engines import compiled
from plume.errors import PlumeWarning

Check = Callable[[random.Random], str | None]
"""Makes up one case and says what is wrong, or None."""


def flaws(check: Check, *, seed: int, numbers: Iterator[int] | range) -> Iterator[str]:
    """Yield what is wrong with cases of a seed, each with what it takes to make it again."""
    for number in numbers:
        found = check(random.Random(f"{seed}/{number}"))
        if found is not None:
            yield f"seed {seed}, case {number}: {found}"


def until(deadline: float) -> Iterator[int]:
    """Count until a time has come."""
    for number in count():
        if time.monotonic() >= deadline:
            return
        yield number


def _fuzzers(stack: ExitStack) -> dict[str, Check]:
    """Find all fuzzers, and start the server that one of them asks; passes need numba, which is an extra."""
    import postgresql_servers  # noqa: PLC0415 - the path must be there first
    from fuzz.fuzz_passes import check as passes  # noqa: PLC0415 - the same
    from fuzz.fuzz_postgresql import prepared  # noqa: PLC0415 - the same
    from fuzz.fuzz_statements import check as statements  # noqa: PLC0415 - the same
    from fuzz.fuzz_types import check as types  # noqa: PLC0415 - the same

    server = stack.enter_context(postgresql_servers.server())
    found: dict[str, Check] = {
        "statements": statements,
        "types": types,
        "postgresql": prepared(server.url),
        "passes": passes,
    }
    if compiled.is_there():
        return found
    print("passes: left out, since numba is not installed", flush=True)
    return {name: check for name, check in found.items() if name != "passes"}


def main() -> int:
    """Run all fuzzers."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="this case alone")
    asked = parser.parse_args()
    # Cases ask for little privacy and little data on purpose.
    warnings.simplefilter("ignore", PlumeWarning)
    with ExitStack() as stack:
        return _run(_fuzzers(stack), asked)


def _run(fuzzers: dict[str, Check], asked: argparse.Namespace) -> int:
    every = 0
    for name, check in fuzzers.items():
        numbers = until(time.monotonic() + asked.seconds / len(fuzzers)) if asked.case is None else iter([asked.case])
        tried, found = [], 0
        for flaw in flaws(check, seed=asked.seed, numbers=(tried.append(number) or number for number in numbers)):
            found += 1
            print(f"{name}: {flaw}", flush=True)
        print(f"{name}: {len(tried)} cases of seed {asked.seed}, {found} flaws", flush=True)
        every += found
    return 1 if every else 0


if __name__ == "__main__":
    sys.exit(main())
