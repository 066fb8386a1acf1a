"""Numbers that are chosen within the budget: the steps that find out what they depend on, and the same query with what was chosen."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import pyarrow as pa

from plume.mechanisms.open_bound import open_bounds, until_chosen, with_bounds
from plume.noise.exact import LARGEST_SCALE
from plume.pipelines import steps
from plume.pipelines.calibrated import CAP, CalibratedQuery, Scaled, calibrate, mean_noise
from plume.pipelines.choices import Choice
from plume.pipelines.columns import MeasureColumns
from plume.pipelines.keys_per_user import (
    EDGES,
    FULL,
    FULLNESS,
    OFFERS,
    USERS,
    NoiseKeysPerUser,
    choose_limit,
    read_keys_per_user,
)
from plume.pipelines.offers import BUCKET, buckets
from plume.pipelines.sizes import PAIRS, NoiseSizes, choose_bound
from plume.plan.aggregates import Count, Max, Sum
from plume.plan.expressions import (
    Bucket,
    Clamp,
    Column,
    Comparator,
    Compare,
    DownWeight,
    Expression,
    Fullness,
    Integer,
    Literal,
)
from plume.plan.nodes import USER, Append, Combine, CountKeys, Lookup, Map, Node, Noise, Scan
from plume.plan.trees import rename
from plume.privacy.calibration import LIMIT, drawable
from plume.privacy.gaussian import SAFETY
from plume.query import Query

_KEYS, _LISTED = "keys", "listed"
# One part in so many.
_OFTEN_FULL = 4
_Noise = TypeVar("_Noise", bound=Scaled)


def public_tables(asked: CalibratedQuery) -> dict[str, pa.Table]:
    """Give the tables that a plan reads and that are the same for all data."""
    return {_buckets(choice): buckets(choice.rows) for choice in asked.choices}


def _buckets(choice: Choice) -> str:
    return f"{choice.step}_buckets"


def calibrate_chosen(query: Query, chosen: Mapping[str, float]) -> CalibratedQuery:
    """Scale all noise for what was chosen, so that every part spends what it would have spent for anything else.

    Guarantee: nothing spends more than before the choice, so what is chosen may depend on anything that is released anyway.
    docs/guarantees/auto-limit.md, docs/guarantees/auto-bounds.md.
    """
    asked = calibrate(replace(query, measures=with_bounds(query.measures, chosen)))
    if not chosen:
        return asked
    limit = int(chosen.get(LIMIT, asked.max_keys_per_user))
    wider = limit / asked.max_keys_per_user
    parts = tuple(
        replace(part, max_keys_per_user=limit, noise=_wider(part.noise, math.sqrt(wider))) for part in asked.parts
    )
    choices = tuple(_for_limit(choice, limit) for choice in asked.choices) if LIMIT in chosen else asked.choices
    return replace(asked, parts=parts, choices=choices, max_keys_per_user=limit, chosen=dict(chosen))


def _wider(noise: _Noise, factor: float) -> _Noise:
    return replace(noise, scale=drawable(noise.scale * Fraction(SAFETY * factor)))


def _for_limit(choice: Choice, limit: int) -> Choice:
    """Scale the noise on sizes of rows for another number of rows of one user; of users themselves there is one row each anyway."""
    if isinstance(choice, NoiseKeysPerUser):
        return choice
    pairs = _wider(choice.pairs, limit / choice.max_keys_per_user)
    return replace(choice, pairs=pairs, max_keys_per_user=limit)


def choose(asked: CalibratedQuery, choice: Choice, rows: pa.Table, *, selected: int) -> float:
    """Choose a number from its noised histogram and the number of selected keys, which both are known by now."""
    if isinstance(choice, NoiseKeysPerUser):
        return _choose_limit(asked, choice, rows, selected=selected)
    measure = asked.measures[choice.measure]
    (part,) = (part for part in asked.parts_of(measure) if part.part.name == choice.bound.part)
    mean = part.mean_noise * float(part.unit) / until_chosen(None)
    return choose_bound(rows, choice, selected=selected, noise=mean, kept=CAP)


def _choose_limit(asked: CalibratedQuery, choice: NoiseKeysPerUser, rows: pa.Table, *, selected: int) -> int:
    return choose_limit(
        read_keys_per_user(rows, choice, selected=selected),
        selected=selected,
        noise=mean_noise(asked) / math.sqrt(asked.max_keys_per_user),
        parts=len(asked.parts),
        kept=CAP,
        # Nobody has more keys than are selected.
        largest=min(_up_to(selected), _most_drawable(asked)),
    )


def _up_to(selected: int) -> int:
    """Find the smallest limit on offer that cuts nobody."""
    return min((offer for offer in OFFERS if offer >= selected), default=OFFERS[-1])


def _most_drawable(asked: CalibratedQuery) -> int:
    """Find up to which limit all noise can be drawn: that on measures grows with its root, that on sizes of rows with the limit."""
    room = [(float(LARGEST_SCALE) / float(part.noise.scale) / 2) ** 2 for part in asked.parts]
    room += [float(LARGEST_SCALE) / float(c.pairs.scale) / 2 for c in asked.choices if isinstance(c, NoiseSizes)]
    return math.floor(asked.max_keys_per_user * min(room))


def aggregate_public_keys(asked: CalibratedQuery) -> Noise:
    """Plan a query whose keys are known, and whose limit or bounds are not."""
    selected = steps.public_keys(asked)
    restricted = steps.restrict(asked, steps.rows(asked), selected, Lookup.BROADCAST)
    return aggregate_chosen(asked, steps.by_user(asked, restricted).source, selected)


def aggregate_chosen(asked: CalibratedQuery, gathered: Node, selected: Node) -> Noise:
    """Apply the measures to rows of selected keys, one per user and key, with numbers that histograms of the same rows decide."""
    counted = CountKeys("by_user_again", gathered, USER, steps.KEYS_OF_USER, asked.max_keys_per_user)
    released = steps.aggregate(asked, steps.bounded_contributions(asked, counted), selected)
    knowing = (
        _keys_per_user(asked, choice, gathered)
        if isinstance(choice, NoiseKeysPerUser)
        else _sizes(asked, choice, counted)
        for choice in asked.choices
    )
    return replace(released, knowing=tuple(knowing))


def _keys_per_user(asked: CalibratedQuery, choice: NoiseKeysPerUser, gathered: Node) -> Noise:
    """Put each user into the row of the histogram for as many keys as they have."""
    said, most = zip(*(pair for measure in asked.measures for pair in _parts_of_size(measure)), strict=True)
    users = Combine(
        "users", gathered, (USER,), ((_KEYS, Count()), (FULLNESS, Sum(Fullness(said, most, FULL)))), gather=(USER,)
    )
    fullness = Clamp(DownWeight(Column(FULLNESS), Column(_KEYS), 1), 0, FULL)
    counted: dict[str, Expression] = {USERS: Literal(1), FULLNESS: fullness}
    return _histogram(choice, users, _row_of(Column(_KEYS), EDGES), counted)


def _parts_of_size(measure: MeasureColumns) -> list[tuple[Expression, int]]:
    """What a row says to a measure, in one number or several, and the most that each of them can be."""
    if any(bound.clips for _, bound in open_bounds([measure.mechanism]).values()):
        # Where the bound is not known yet, rows are taken to be as full as they often are of a bound that is well chosen.
        return [(Literal(1), _OFTEN_FULL)]
    size = steps.size(measure)
    return [(expression, math.isqrt(size.squared)) for expression in size.of]


def _sizes(asked: CalibratedQuery, choice: NoiseSizes, counted: CountKeys) -> Noise:
    """Put each row of a user, of as many keys as the limit has, into the row of the histogram for its size."""
    size = rename(choice.bound.size, asked.measures[choice.measure].raw)
    edges = (1, *(step + 1 for step in choice.bound.steps))
    return _histogram(choice, steps.bound(asked, counted, name="few_keys"), _row_of(size, edges), {PAIRS: Literal(1)})


def _row_of(size: Expression, edges: tuple[int, ...]) -> Expression:
    """Find the row of a histogram, of which the last one is open."""
    return Integer(Bucket(Clamp(size, 0, edges[-1] - 1), tuple(map(float, edges))))


def _histogram(choice: Choice, source: Node, row: Expression, counted: Mapping[str, Expression]) -> Noise:
    """Add up what is counted by the rows of a histogram; all of them are there, whoever is in them."""
    name = choice.step
    placed = Map(f"{name}_placed", source, ((BUCKET, row), *counted.items(), (_LISTED, Literal(0))))
    listed = Map(
        f"{name}_listed",
        Scan(_buckets(choice), (BUCKET,), public=True),
        ((BUCKET, Column(BUCKET)), *((column, Literal(0)) for column in counted), (_LISTED, Literal(1))),
    )
    summed = Combine(
        f"{name}_histogram",
        Append(f"{name}_with_buckets", (placed, listed)),
        (BUCKET,),
        (*((column, Sum(Column(column))) for column in counted), (_LISTED, Max(Column(_LISTED)))),
        gather=(BUCKET,),
    )
    exact = Map(
        f"{name}_exact",
        summed,
        ((BUCKET, Column(BUCKET)), *((column, Integer(Column(column))) for column in counted)),
        where=Compare(Column(_LISTED), Comparator.EQUAL, Literal(1)),
    )
    return Noise(name, exact, choice)
