"""People with known numbers of keys, to compare ways of selection on: how many keys users have decides which way is best.

Beside `defaults.py`, which compares. Nobody here is real but the authors of words; made-up data is drawn from a seed.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import default_rng  # noqa: TID251 - an experiment must be repeatable, and hides nobody
from numpy.typing import NDArray
from trials import make_data, synthetic

import plume
from plume.plan.nodes import Size
from plume.tuning.pairs import Floats, Pairs, read_pairs

SEED = 1
USES = plume.count(8, name="uses")
PLACES = 20_000
"""How many keys there are, where they are made up."""
HOMES, LANDMARKS = 3_000, 300
# A share of users, and how many keys each of them has.
MIXED = ((0.05, 500), (0.15, 32), (0.3, 4), (0.5, 1))

PairsFor = Callable[[int, Collection[Size]], Pairs]


@dataclass(frozen=True)
class Population:
    """Users and what is asked of them."""

    name: str
    measure: Any
    pairs: PairsFor
    """The users for a limit, and the sizes that their accounts are charged by."""
    user: str = "user"
    key: str = "key"
    by_limit: bool = False
    """Whether they are others for each limit."""
    limits: tuple[int, ...] = ()
    """The only limits that it is for, if not all."""


def populations(words: Path | None) -> list[Population]:
    """List all of them, with words if there is a file of them."""
    return [
        Population("D_synth", plume.users(), _synthetic),
        *(_words(words) if words else []),
        Population("one key each", plume.users(), lambda _, sizes: made_up([_drawn(100_000, 1)], sizes)),
        Population(
            "one key each, at most 8 uses", USES, lambda _, sizes: _used([_drawn(100_000, 1)], sizes), limits=(1,)
        ),
        Population("home and landmark", plume.users(), lambda _, sizes: made_up([_homes_and_landmarks(20_000)], sizes)),
        Population(
            "mixed",
            plume.users(),
            lambda _, sizes: made_up([_drawn(round(50_000 * share), keys) for share, keys in MIXED], sizes),
        ),
        Population(
            "everybody at the limit",
            plume.users(),
            lambda limit, sizes: made_up([_drawn(10_000, limit)], sizes),
            by_limit=True,
        ),
    ]


def _synthetic(limit: int, sizes: Collection[Size]) -> Pairs:
    del limit
    question = synthetic(10**6)
    make_data(question)
    return read_pairs(_asked("user", "key", plume.users()), question.path, plume.DuckDB(), sizes)


def _words(path: Path) -> list[Population]:
    measures = {"words, authors": plume.users(), "words, at most 8 uses": plume.sum("uses", 0, 8)}
    return [
        Population(
            name,
            measure,
            lambda _, sizes, measure=measure: read_pairs(  # type: ignore[misc]
                _asked("author", "word", measure), path, plume.DuckDB(), sizes
            ),
            user="author",
            key="word",
        )
        for name, measure in measures.items()
    ]


def _asked(user: str, key: str, measure: Any) -> plume.Query:
    """What is read does not depend on limit and budget."""
    return plume.Query(user=user, keys=key, measures=measure, max_keys_per_user=1, budget=plume.Budget(1.0, 1e-5))


def made_up(groups: list[NDArray[np.int64]], sizes: Collection[Size]) -> Pairs:
    """Make users of groups, those with most keys first: a row of keys for each of them. Each counts for one in each key."""
    degrees = np.concatenate([np.full(len(keys), keys.shape[1], np.int64) for keys in groups])
    names, key = np.unique(np.concatenate([keys.ravel() for keys in groups]), return_inverse=True)
    return Pairs(
        key.astype(np.int32),
        {"users": np.ones(len(key))},
        np.concatenate(([0], np.cumsum(degrees))),
        degrees,
        keys=len(names),
        everything={"users": float(len(key))},
        squares={size: degrees.astype(np.float64) for size in sizes},
    )


def _used(groups: list[NDArray[np.int64]], sizes: Collection[Size]) -> Pairs:
    """Let users with one key each use it from 1 to 8 times, as many of them as often."""
    pairs = made_up(groups, sizes)
    uses = default_rng([SEED, len(pairs.key)]).integers(1, 8, endpoint=True, size=len(pairs.key)).astype(np.float64)
    return replace(
        pairs,
        values={USES.name: uses},
        everything={USES.name: float(uses.sum())},
        squares=dict.fromkeys(sizes, uses**2),
    )


def _homes_and_landmarks(users: int) -> NDArray[np.int64]:
    """Two keys for each user."""
    return np.hstack([_drawn(users, 1, HOMES), HOMES + _drawn(users, 1, LANDMARKS)])


def _drawn(users: int, keys: int, places: int = PLACES) -> NDArray[np.int64]:
    """Draw different keys for each user: popular ones are those of more users, and each user's begin at a place of their own."""
    generator = default_rng([SEED, users, keys, places])
    reach = np.concatenate(([0.0], np.cumsum(_chances(keys, places))))
    at = generator.random(users)[:, np.newaxis] + np.arange(keys)
    drawn: NDArray[np.int64] = np.searchsorted(reach, at * (reach[-1] / keys), side="right") - 1
    return np.minimum(drawn, places - 1)


def _chances(keys: int, places: int) -> Floats:
    """How likely a user has each of the places, of which they have so many: as in Zipf's law, but at most surely."""
    popularity = 1 / (np.arange(places) + 10.0)
    low, high = 0.0, keys / popularity.min()
    while high - low > high * 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(np.minimum(1, middle * popularity)) < keys else (low, middle)
    found: Floats = np.minimum(1, high * popularity)
    return found
