"""A limit that is chosen within the budget: the steps that find out how many keys users have, and the same query with another limit."""

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from plume.errors import PlumeBug
from plume.noise.exact import LARGEST_SCALE
from plume.pipelines import steps
from plume.pipelines.calibrated import CAP, CalibratedQuery, mean_noise
from plume.pipelines.keys_per_user import (
    BUCKET,
    EDGES,
    FULL,
    FULLNESS,
    OFFERS,
    USERS,
    NoiseKeysPerUser,
    buckets,
    choose_limit,
    read_keys_per_user,
)
from plume.plan.aggregates import Count, Max, Sum
from plume.plan.expressions import (
    Bucket,
    Clamp,
    Column,
    Comparator,
    Compare,
    DownWeight,
    Fullness,
    Integer,
    Literal,
)
from plume.plan.nodes import USER, Append, Combine, CountKeys, Lookup, Map, Node, Noise, Scan
from plume.privacy.calibration import drawable
from plume.privacy.gaussian import SAFETY

KEYS_PER_USER = "keys_per_user"
_BUCKETS, _KEYS, _LISTED = "buckets", "keys", "listed"


def public_tables(asked: CalibratedQuery) -> dict[str, pa.Table]:
    """Give the tables that a plan reads and that are the same for all data."""
    return {_BUCKETS: buckets()} if asked.choice else {}


def with_limit(asked: CalibratedQuery, limit: int) -> CalibratedQuery:
    """Scale the noise of measures for another limit, so that they spend what they spent before.

    Guarantee: measures spend no more for any limit than for the one before, so the limit may depend on anything that is released anyway.
    docs/guarantees/auto-limit.md.
    """
    wider = Fraction(SAFETY * math.sqrt(limit / asked.max_keys_per_user))
    parts = tuple(
        replace(part, max_keys_per_user=limit, noise=replace(part.noise, scale=drawable(part.noise.scale * wider)))
        for part in asked.parts
    )
    return replace(asked, parts=parts, max_keys_per_user=limit, chosen=True)


def chosen_limit(asked: CalibratedQuery, rows: pa.Table, *, selected: int) -> int:
    """Choose a limit from the noised histogram and the number of selected keys, which both are known by now."""
    if asked.choice is None:
        raise PlumeBug("a limit is chosen that the query gives")
    widest = max(float(part.noise.scale) for part in asked.parts)
    return choose_limit(
        read_keys_per_user(rows, asked.choice, selected=selected),
        selected=selected,
        noise=mean_noise(asked) / math.sqrt(asked.max_keys_per_user),
        parts=len(asked.parts),
        kept=CAP,
        # Noise must stay drawable, and nobody has more keys than are selected.
        largest=min(_up_to(selected), math.floor(asked.max_keys_per_user * (float(LARGEST_SCALE) / widest / 2) ** 2)),
    )


def _up_to(selected: int) -> int:
    """Find the smallest limit on offer that cuts nobody."""
    return min((offer for offer in OFFERS if offer >= selected), default=OFFERS[-1])


def aggregate_public_keys(asked: CalibratedQuery, choice: NoiseKeysPerUser) -> Noise:
    """Plan a query whose keys are known, and the limit is not."""
    selected = steps.public_keys(asked)
    restricted = steps.restrict(asked, steps.rows(asked), selected, Lookup.BROADCAST)
    return aggregate_chosen(asked, choice, steps.by_user(asked, restricted).source, selected)


def aggregate_chosen(asked: CalibratedQuery, choice: NoiseKeysPerUser, gathered: Node, selected: Node) -> Noise:
    """Apply the measures to rows of selected keys, one per user and key, with a limit that the histogram of the same rows decides."""
    counted = CountKeys("by_user_again", gathered, USER, steps.KEYS_OF_USER, asked.max_keys_per_user)
    released = steps.aggregate(asked, steps.bounded_contributions(asked, counted), selected)
    return replace(released, knowing=(keys_per_user(asked, choice, gathered),))


def keys_per_user(asked: CalibratedQuery, choice: NoiseKeysPerUser, gathered: Node) -> Noise:
    """Put each user into the row of the histogram for as many keys as they have; all rows are there, with or without users."""
    said = Fullness(*steps.sizes(asked), FULL)
    users = Combine("users", gathered, (USER,), ((_KEYS, Count()), (FULLNESS, Sum(said))), gather=(USER,))
    bucket = Bucket(Clamp(Column(_KEYS), EDGES[0], EDGES[-1] - 1), tuple(map(float, EDGES)))
    fullness = Clamp(DownWeight(Column(FULLNESS), Column(_KEYS), 1), 0, FULL)
    placed = Map(
        "users_placed",
        users,
        ((BUCKET, Integer(bucket)), (USERS, Literal(1)), (FULLNESS, fullness), (_LISTED, Literal(0))),
    )
    listed = Map(
        "buckets_listed",
        Scan(_BUCKETS, (BUCKET,), public=True),
        ((BUCKET, Column(BUCKET)), (USERS, Literal(0)), (FULLNESS, Literal(0)), (_LISTED, Literal(1))),
    )
    summed = Combine(
        "histogram",
        Append("users_and_buckets", (placed, listed)),
        (BUCKET,),
        ((USERS, Sum(Column(USERS))), (FULLNESS, Sum(Column(FULLNESS))), (_LISTED, Max(Column(_LISTED)))),
        gather=(BUCKET,),
    )
    exact = Map(
        "histogram_exact",
        summed,
        ((BUCKET, Column(BUCKET)), (USERS, Integer(Column(USERS))), (FULLNESS, Integer(Column(FULLNESS)))),
        where=Compare(Column(_LISTED), Comparator.EQUAL, Literal(1)),
    )
    return Noise(KEYS_PER_USER, exact, choice)
