"""Tell how long a peer took, from the file to the rows; imports and Spark's start are left out."""

import json
import sys
import time
from collections.abc import Callable


def main(count: Callable[..., None]) -> None:
    """Call `count(input file, output file, limit, ...)` with the arguments of the command line, and print its seconds."""
    source, target, limit, *variant = sys.argv[1:]
    start = time.perf_counter()
    count(source, target, int(limit), *variant)
    print(json.dumps({"seconds": time.perf_counter() - start}))
