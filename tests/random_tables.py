"""Random questions on random tables, many tables at once where an engine takes long to start a question.

Tables that are asked together have their own users and their own keys, so each of them is answered as if it were alone.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from strategies import KINDS, Asked, Listed, random_cases

TOGETHER = {"DuckDB": 4, "PostgreSQL": 4, "Spark": 10}


def side_by_side(several: list[Listed]) -> Listed:
    """One table of several: users and keys say which one they are from."""
    return [
        (user if user is None else 1000 * number + user, key if key is None else key + "'" * number, *rest)
        for number, listed in enumerate(several)
        for user, key, *rest in listed
    ]


def on_random_tables(
    engine: Engine, number: int, check: Callable[[Asked, Listed], None], *, kinds: Sequence[str] = KINDS
) -> None:
    """Check a fact on so many random tables, with a random question to every few of them."""
    together = TOGETHER[type(engine).__name__]
    for case, several in random_cases(math.ceil(number / together), kinds=kinds, together=together):
        listed = side_by_side(several)
        failure_of = partial(_failure_of, check, case)
        if (failure := failure_of(listed)) is None:
            continue
        # Looking for the fewest rows that fail takes hundreds of questions, which is too much for Spark.
        fewest = fewest_rows(listed, failure_of) if isinstance(engine, DuckDB) else listed
        failure = failure_of(fewest) or failure
        failure.add_note(f"{case.query}\non {len(fewest)} rows: {fewest}")
        raise failure


def _failure_of(check: Callable[[Asked, Listed], None], case: Asked, listed: Listed) -> Exception | None:
    try:
        check(case, listed)
    except Exception as failure:  # noqa: BLE001 - whatever is wrong is shown, with the rows it is wrong for
        return failure
    return None


def fewest_rows(listed: Listed, failure_of: Callable[[Listed], Exception | None]) -> Listed:
    """Leave rows out, halves first and single ones at last, for as long as the rest fails too."""
    step = len(listed)
    while step := step // 2:
        start = 0
        while start < len(listed):
            fewer = listed[:start] + listed[start + step :]
            if failure_of(fewer):
                listed = fewer
            else:
                start += step
    return listed
