"""Which curves to look at before numbers are chosen: of what to expect of a query, and of what was tried on data."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from plume.report.chart import Figure, Point
from plume.tuning.expectation import Expectation, Prospect, expect
from plume.tuning.page import Page, make_page
from plume.tuning.recommendation import TuningRow
from plume.tuning.tuning import WARNING, NotPrivateTuning

_CURVE_POINTS = 60
_LIMIT = "max_keys_per_user"


def draw_expectation(expectation: Expectation) -> str:
    """Make the page of what to expect."""
    lead = "Expected from the query alone: no data was read, nothing is spent. What limits cut comes on top of noise."
    figures = figures_of_expectation(expectation)
    return make_page(Page("what to expect", lead, "", expectation.query, figures, expectation.to_arrow()))


def figures_of_expectation(expectation: Expectation) -> tuple[Figure, ...]:
    """Choose the curves of what to expect."""
    prospects = _drawn(expectation)
    # Public keys are always shown.
    chances = () if expectation.query.public_keys is not None else _chances(prospects)
    return (*chances, *_noise(prospects))


def _drawn(expectation: Expectation) -> tuple[Prospect, ...]:
    """The same prospects, with chances at enough numbers of users to draw curves through."""
    prospects = expectation.prospects
    most = max(2, 2 * max(prospect.users_for_95_percent for prospect in prospects))
    return expect(
        expectation.query,
        limits=[prospect.max_keys_per_user for prospect in prospects],
        epsilons=[prospect.epsilon for prospect in prospects],
        users=sorted({round(number) for number in np.geomspace(1, most, _CURVE_POINTS)}),
        keys_of_user=expectation.keys_of_user,
    ).prospects


def _chances(prospects: Sequence[Prospect]) -> Iterator[Figure]:
    for epsilon in sorted({prospect.epsilon for prospect in prospects}):
        points = tuple(
            Point(f"{_LIMIT} = {prospect.max_keys_per_user}", users, 100 * chance)
            for prospect in prospects
            if prospect.epsilon == epsilon
            for users, chance in prospect.chances
        )
        caption = f"The chance that a key is shown, by its number of users, at epsilon = {epsilon:g}"
        yield Figure(caption, "users of the key", "shown, %", points)


def _noise(prospects: Sequence[Prospect]) -> Iterator[Figure]:
    """Noise by limit, if there are several."""
    if len({prospect.max_keys_per_user for prospect in prospects}) == 1:
        return
    for number, noise in enumerate(prospects[0].noise):
        points = tuple(
            Point(f"epsilon = {one.epsilon:g}", one.max_keys_per_user, one.noise[number].standard_deviation)
            for one in prospects
        )
        yield Figure(f"Noise on {noise.column}, by the limit", _LIMIT, "standard deviation", points)


def draw_tuning(tuning: NotPrivateTuning) -> str:
    """Make the page of what was tried; NOT PRIVATE, and it says so."""
    lead = "Estimated from exact data, for people who may look at it. Rings mark what is recommended."
    figures = figures_of_tuning(tuning)
    return make_page(Page("NOT PRIVATE: tuning", lead, WARNING, tuning.query, figures, tuning.to_arrow()))


def figures_of_tuning(tuning: NotPrivateTuning) -> tuple[Figure, ...]:
    """Choose the curves of what was tried."""
    best = [
        min(rows, key=lambda row: (not row.recommended, row.absolute_error))
        for _, rows in groupby(tuning.tried, key=lambda row: (row.epsilon, row.selection, _place(row)))
    ]
    return (*_errors(best), *_losses(best), *_keys(best))


def _place(row: TuningRow) -> tuple[int, str]:
    return row.max_keys_per_user, row.measure


def _measures(rows: Sequence[TuningRow]) -> Iterator[tuple[str, list[TuningRow]]]:
    for measure in dict.fromkeys(row.measure for row in rows):
        yield measure, [row for row in rows if row.measure == measure]


def _errors(best: Sequence[TuningRow]) -> Iterator[Figure]:
    for measure, rows in _measures(best):
        points = tuple(
            Point(_series(row), row.max_keys_per_user, row.absolute_error, marked=row.recommended) for row in rows
        )
        yield Figure(f"Error of {measure} by the limit, with its best bounds", _LIMIT, "mean absolute error", points)


def _losses(best: Sequence[TuningRow]) -> Iterator[Figure]:
    """What is lost, of the first epsilon and selection."""
    for measure, rows in _measures([row for row in best if _series(row) == _series(best[0])]):
        lost = {
            "to limits and bounds": [row.lost_to_bounding for row in rows],
            "to keys that are not shown": [row.lost_to_selection for row in rows],
        }
        points = tuple(
            Point(what, row.max_keys_per_user, 100 * share)
            for what, shares in lost.items()
            for row, share in zip(rows, shares, strict=True)
        )
        yield Figure(f"What is lost of {measure}, at {_series(best[0])}", _LIMIT, "lost, %", points)


def _keys(best: Sequence[TuningRow]) -> Iterator[Figure]:
    """Keys by epsilon, if there are several."""
    if len({row.epsilon for row in best}) == 1:
        return
    points = tuple(
        Point(f"{_LIMIT} = {row.max_keys_per_user}, {row.selection}", row.epsilon, row.keys_shown)
        for row in next(rows for _, rows in _measures(best))
    )
    yield Figure("Keys shown, by epsilon", "epsilon", "keys", points)


def _series(row: TuningRow) -> str:
    return f"epsilon = {row.epsilon:g}, selection {row.selection}"
