"""How long it takes to scale the noise of queries of all kinds, and how near the estimate comes that decides which way to go.

`.venv/bin/python benchmarks/calibration.py`. Times are of the processor, medians of `--repeat` runs, without the import of dp-accounting,
which is timed by itself; the default query is timed before it, and must not import it. What Plume remembers from one query to the next is
forgotten before each run.
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable

import plume
from plume.calibration import tight_composition
from plume.calibration.calibrated_query import calibrate
from plume.calibration.required_parts import shares_by_part
from plume.calibration.shares import shares_of
from plume.calibration.tight_composition import Tight
from plume.planning import make_plan
from plume.privacy import gaussian, losses
from plume.settings import STRATEGIES

LIMITS = (1, 2, 3, 8, 64, 512)
MEASURES = (1, 8)
BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)


def ask(limit: int, measures: int, **settings: object) -> plume.Query:
    """So many counts per key."""
    counts = [plume.count(2, name=f"count_{number}") for number in range(measures)]
    return plume.Query(user="u", keys="k", measures=counts, max_keys_per_user=limit, budget=BUDGET, **settings)


def forget() -> None:
    """Forget what was found for earlier queries, as a new process has."""
    for module in (tight_composition, gaussian, losses):
        for found in vars(module).values():
            if hasattr(found, "cache_clear"):
                found.cache_clear()


def seconds(work: Callable[[], object], repeat: int) -> float:
    """The median time of the processor."""
    times = []
    for _ in range(repeat):
        forget()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def row(name: str, limit: int, measures: int, query: plume.Query, repeat: int) -> str:
    """One line of the table."""
    taken = seconds(lambda: calibrate(query), repeat)
    calibrated = make_plan(query).calibrated
    near = ""
    if name != "default":
        strategy = None if query.public_keys is not None else query.selection
        tight = Tight(query.budget, limit, shares_by_part(query, shares_of(query)), strategy, query.noise)
        near = f"{tight.estimated_size() / tight.smallest_size():.4f}"
    return f"| {name} | {calibrated.parts[0].noise.kind} | {limit} | {measures} | {1000 * taken:.0f} | {near} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    print("| query | noise | keys per user | measures | milliseconds | estimated size of noise / found |")
    print("|---|---|---|---|---|---|")
    for limit in LIMITS:
        for measures in MEASURES:
            print(row("default", limit, measures, ask(limit, measures), repeat))
    print(f"dp-accounting imported by the default: {'dp_accounting' in sys.modules}")
    start = time.process_time()
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401, PLC0415 - timed

    print(f"import of dp-accounting: {1000 * (time.process_time() - start):.0f} ms")
    kinds = [{"selection": strategy, "noise": noise} for strategy in STRATEGIES for noise in ("laplace", "gaussian")]
    for kind in [*kinds, {"public_keys": ["a"], "noise": "laplace"}]:
        if kind["noise"] == "gaussian" and "gaussian" in str(kind.get("selection")):
            continue
        for limit in LIMITS:
            for measures in MEASURES:
                name = f"{kind.get('selection', 'public keys')} with {kind['noise']}"
                print(row(name, limit, measures, ask(limit, measures, **kind), repeat), flush=True)


if __name__ == "__main__":
    main()
