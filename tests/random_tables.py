"""Random questions on random tables, many tables at once where an engine takes long to start a question.

Tables that are asked together have their own users and their own keys, so each of them is answered as if it were alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from strategies import KINDS, Asked, asked, tables

SETTINGS = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
TOGETHER = {"DuckDB": 4, "Spark": 10}

Listed = list[tuple[Any, ...]]


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

    # Looking for the smallest table that fails takes hundreds of questions.
    phases = list(Phase) if isinstance(engine, DuckDB) else [Phase.generate]
    # Hypothesis gives some up without a word, since so many tables at once can be too much data for it.
    examples, asked_about = math.ceil(1.25 * number / together), 0

    @settings(SETTINGS, max_examples=examples, phases=phases)
    # Without the filter the first example of all is empty tables, of which nothing is to be learnt several at a time.
    @given(case=asked(kinds), several=st.lists(tables, min_size=together, max_size=together).filter(any))
    def look(case: Asked, several: list[Listed]) -> None:
        nonlocal asked_about
        asked_about += together
        check(case, side_by_side(several))

    look()
    assert asked_about >= number
