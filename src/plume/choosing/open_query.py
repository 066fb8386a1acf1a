"""A query that leaves numbers open, stage by stage: a histogram for each of them, what is chosen from it, and what is planned with that.

Keys are selected first. Each stage reads the rows of selected keys, which are the same rows in all of them; so nothing that ran is planned
again. docs/guarantees/auto-limit.md, docs/guarantees/auto-bounds.md.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa

from plume.calibration.calibrated_query import CalibratedQuery, calibrate, mean_noise, with_other_numbers
from plume.calibration.columns import MeasureColumns
from plume.calibration.shares import Shares, shares_of
from plume.choosing.calibrated_choice import Choice, calibrate_choice
from plume.choosing.histogram import Share, bucket_of, list_buckets, noise_histogram, table_of_buckets
from plume.choosing.keys_per_user import (
    CANDIDATES,
    EDGES,
    FULL,
    FULLNESS,
    USERS,
    NoiseKeysPerUser,
    choose_limit,
    read_keys_per_user,
    share_above_limit,
)
from plume.choosing.open_numbers import example_numbers, with_numbers
from plume.choosing.sizes import PAIRS, NoiseSizes, choose_bound, share_above_bound
from plume.errors import PlumeBug, UsageError
from plume.mechanisms.open_bound import open_bounds
from plume.noise.exact import LARGEST_SCALE
from plume.pipelines import steps
from plume.pipelines.pipeline import SELECTING_FIRST, PlannedQuery, checked
from plume.plan.aggregates import Count, Sum
from plume.plan.analysis import noisers
from plume.plan.expressions import GUARD, Clamp, Column, DownWeight, Expression, Fullness, Literal, Times
from plume.plan.nodes import USER, Append, Combine, CountKeys, KeepFew, Map, Node, Noise
from plume.plan.trees import rename
from plume.privacy.gaussian import SAFETY
from plume.query import Query
from plume.settings import AUTO

_KEYS, _SMALLNESS = "keys", "smallness"
# One contribution in four is taken to be as large as it can be.
_OFTEN_FULL = 4


@dataclass(frozen=True, kw_only=True)
class OpenQuery(PlannedQuery):
    """A planned query some of whose numbers are still to be chosen; the stages after the next choice are planned with placeholders."""

    rows: steps.SelectedRows
    """What all stages after selection read."""

    @property
    def open(self) -> tuple[str, ...]:
        """What is still to be chosen, in this order."""
        return tuple(what for what in self.query.choices if what not in self.chosen)

    @property
    def deciding(self) -> Noise:
        """The stage from whose rows the next number is chosen."""
        return self.plan[-1 - len(self.open)]

    @property
    def choice(self) -> Choice:
        """The noiser of that stage."""
        if not isinstance(self.deciding.noiser, Choice):
            raise PlumeBug("the next stage of an open query decides nothing")
        return self.deciding.noiser


def plan_open(query: Query, pipeline: str) -> OpenQuery:
    """Plan a query before anything is chosen: with examples, whose noise spends as much as that of all other candidates."""
    shares = shares_of(query)
    calibrated = calibrate(with_numbers(query, example_numbers(query)), shares)
    rows = _select_rows(query, calibrated, pipeline)
    plan = (*noisers(rows.selected), *_stages(query, calibrated, shares, rows, query.choices))
    return checked(OpenQuery(query, pipeline, calibrated, plan, rows=rows))


def _select_rows(query: Query, calibrated: CalibratedQuery, pipeline: str) -> steps.SelectedRows:
    if pipeline in SELECTING_FIRST:
        return SELECTING_FIRST[pipeline](calibrated)
    if not query.has_public_keys:
        raise UsageError(
            f"{pipeline} bounds once, before keys are selected, and {query.choices[0]} = {AUTO!r} is chosen after that; "
            "use pipeline='plume', or give a number."
        )
    return steps.select_public_rows(calibrated)


def public_tables(planned: PlannedQuery) -> dict[str, pa.Table]:
    """Give the tables that stages read and that are the same for all data."""
    choices = (stage.noiser for stage in planned.plan if isinstance(stage.noiser, Choice))
    return {table_of_buckets(choice.step): list_buckets(choice.buckets) for choice in choices}


def decide(planned: OpenQuery, number: float) -> PlannedQuery:
    """Replace the query by one that has the next number, and plan the stages that are still to run.

    Guarantee: no stage spends more than before the choice, so what is chosen may depend on anything that is released anyway.
    docs/guarantees/auto-limit.md, docs/guarantees/auto-bounds.md.
    """
    what, *still_open = planned.open
    query, chosen = planned.query, {**planned.chosen, what: number}
    shares = _lessened(shares_of(query))
    numbers = with_numbers(query, example_numbers(query) | chosen)
    calibrated = with_other_numbers(planned.calibrated, numbers, shares)
    ran = planned.plan[: -len(planned.open)]
    plan = (*ran, *_stages(query, calibrated, shares, planned.rows, tuple(still_open)))
    if still_open:
        return checked(replace(planned, calibrated=calibrated, plan=plan, chosen=chosen))
    return checked(PlannedQuery(query, planned.pipeline, calibrated, plan, chosen))


def decide_all(planned: PlannedQuery, chosen: Mapping[str, float]) -> PlannedQuery:
    """Plan a query with all numbers that were chosen for it."""
    while isinstance(planned, OpenQuery):
        planned = decide(planned, chosen[planned.open[0]])
    return planned


def _lessened(shares: Shares) -> Shares:
    """Leave what floating point may be off by, so that no number makes anything spend more than was priced."""
    factor = Fraction(SAFETY) ** -2
    measures, choices = (tuple(share * factor for share in of) for of in (shares.measures, shares.choices))
    return replace(shares, measures=measures, choices=choices)


def choose(planned: OpenQuery, histogram: pa.Table, *, selected: int) -> float:
    """Choose the next number from its noised histogram and the number of selected keys, which both are known by now."""
    choice, calibrated = planned.choice, planned.calibrated
    if isinstance(choice, NoiseKeysPerUser):
        return _choose_limit(planned, choice, histogram, selected=selected)
    measure = calibrated.measures[choice.measure]
    (part,) = (part for part in calibrated.parts_of(measure) if part.part.name == choice.bound.part)
    mean = part.mean_noise * float(part.unit) / example_numbers(planned.query)[choice.what]
    return choose_bound(histogram, choice, selected=selected, noise=mean)


def share_above(planned: OpenQuery, histogram: pa.Table, number: float, *, selected: int) -> Share:
    """Bound which share of what was looked at lies above the number that was chosen, from the same noised histogram."""
    if isinstance(planned.choice, NoiseKeysPerUser):
        return share_above_limit(histogram, planned.choice, int(number), selected=selected)
    return share_above_bound(histogram, planned.choice, number)


def _choose_limit(planned: OpenQuery, choice: NoiseKeysPerUser, histogram: pa.Table, *, selected: int) -> int:
    calibrated = planned.calibrated
    return choose_limit(
        read_keys_per_user(histogram, choice, selected=selected),
        selected=selected,
        noise=mean_noise(calibrated) / math.sqrt(calibrated.max_keys_per_user),
        parts=len(calibrated.parts),
        # Nobody has more keys than are selected.
        largest=min(_up_to(selected), _most_drawable(planned)),
    )


def _up_to(selected: int) -> int:
    """Find the smallest candidate that cuts nobody."""
    return min((one for one in CANDIDATES if one >= selected), default=CANDIDATES[-1])


def _most_drawable(planned: OpenQuery) -> int:
    """Find up to which limit all noise can be drawn: that on measures grows with its root, that on sizes with the limit."""
    calibrated = planned.calibrated
    room = [(float(LARGEST_SCALE) / float(part.noise.scale) / 2) ** 2 for part in calibrated.parts]
    sizes = (stage.noiser for stage in planned.plan if isinstance(stage.noiser, NoiseSizes))
    room += [float(LARGEST_SCALE) / float(noiser.pairs.scale) / 2 for noiser in sizes]
    return math.floor(calibrated.max_keys_per_user * min(room))


def _stages(
    query: Query, calibrated: CalibratedQuery, shares: Shares, rows: steps.SelectedRows, still_open: tuple[str, ...]
) -> Iterator[Noise]:
    """Plan what is still to run: a histogram for each open number, and the release. All of them read the same rows of selected keys."""
    counted = CountKeys("by_user_again", rows.gathered, USER, steps.KEYS_OF_USER, calibrated.max_keys_per_user)
    share_of = dict(zip(query.choices, shares.choices, strict=True))
    for what in still_open:
        choice = calibrate_choice(query, what, calibrated, share_of[what])
        if isinstance(choice, NoiseKeysPerUser):
            yield _keys_per_user(query, calibrated, choice, rows.gathered)
        else:
            yield _sizes(calibrated, choice, counted)
    yield steps.aggregate(calibrated, steps.bounded_contributions(calibrated, counted), rows.selected)


def _keys_per_user(query: Query, calibrated: CalibratedQuery, choice: NoiseKeysPerUser, gathered: Node) -> Noise:
    """Put each user into the bucket for as many keys as they have."""
    open_measures = {number for number, bound in open_bounds(query.measures).values() if bound.clips}
    sizes = (
        # Where the bound is not known yet, contributions are taken to be as full as they often are of a bound that is well chosen.
        [(Literal(1), _OFTEN_FULL)] if number in open_measures else _size(measure)
        for number, measure in enumerate(calibrated.measures)
    )
    contributions, most = zip(*(pair for of_measure in sizes for pair in of_measure), strict=True)
    fullness = Sum(Fullness(contributions, most, FULL))
    users = Combine("users", gathered, (USER,), ((_KEYS, Count()), (FULLNESS, fullness)), gather=(USER,))
    mean = Clamp(DownWeight(Column(FULLNESS), Column(_KEYS), 1), 0, FULL)
    counted: dict[str, Expression] = {USERS: Literal(1), FULLNESS: mean}
    return noise_histogram(choice.step, users, bucket_of(Column(_KEYS), EDGES), counted, choice)


def _size(measure: MeasureColumns) -> list[tuple[Expression, int]]:
    """A contribution to a measure, in one number or several, and the most that each of them can be."""
    size = measure.size
    return [(expression, math.isqrt(size.squared)) for expression in size.of]


def _sizes(calibrated: CalibratedQuery, choice: NoiseSizes, counted: CountKeys) -> Noise:
    """Put contributions into buckets for their size: of users above the limit, as many as it allows, the largest."""
    size = rename(choice.bound.size, calibrated.measures[choice.measure].raw)
    edges = (1, *(step + 1 for step in choice.bound.steps))
    within = steps.uncut(calibrated, counted)
    largest = _keep_largest(calibrated, choice.step, size, steps.above_limit(calibrated, counted))
    looked_at = Append(
        f"{choice.step}_looked_at", (within, Map(f"{choice.step}_cut", largest, steps.as_they_are(within)))
    )
    return noise_histogram(choice.step, looked_at, bucket_of(size, edges), {PAIRS: Literal(1)}, choice)


def _keep_largest(calibrated: CalibratedQuery, name: str, size: Expression, above: Node) -> KeepFew:
    """Of the keys of a user, keep as many as the limit: those to which the user contributes most."""
    smallness = Times(Clamp(size, 0, GUARD), -1)
    ordered = Map(f"{name}_by_size", above, (*steps.as_they_are(above), (_SMALLNESS, smallness)))
    order = (_SMALLNESS, steps.KEY_ORDER, *calibrated.keys)
    return KeepFew(f"{name}_largest", ordered, USER, order, calibrated.max_keys_per_user)
