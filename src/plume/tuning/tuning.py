"""NOT PRIVATE: which limits and bounds would suit the data, for people who may look at it.

Everything here is computed from exact data without noise. It is for the trusted side only, and says so wherever it appears.
"""

import json
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from plume.arguments import call_checked
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.engines.duckdb import DuckDB
from plume.engines.frames import is_spark_frame
from plume.errors import MeasureError, UsageError
from plume.mechanisms.count import LARGEST_COUNT, CountRecords
from plume.mechanisms.open_bound import open_bounds
from plume.mechanisms.sum import SumOfTotals
from plume.output.csv_rows import write_csv
from plume.output.files import with_not_private_suffix, write_text
from plume.output.text_table import four_digits, show
from plume.plan.nodes import Size
from plume.planning import refuse_other_than_query
from plume.privacy.budget import Budget
from plume.query import Query
from plume.released_number import releases_users
from plume.settings import AUTO
from plume.tuning.chances_on_data import chances_of_keys, keys_that_matter
from plume.tuning.estimates import Estimate, candidate, estimate
from plume.tuning.expectation import refuse_open_numbers
from plume.tuning.pairs import Additive, Floats, Pairs, read_pairs
from plume.tuning.people import refuse_no_list
from plume.tuning.recommendation import NOISE_OF_ESTIMATES, TuningRow, recommend, shared_keys

WARNING = (
    "NOT PRIVATE: computed from the data without noise. Do not share it. "
    "The guarantee of a release does not cover numbers that are chosen by it."
)
USUAL_LIMITS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_USUAL_FACTORS = (0.25, 0.5, 2, 4)
REMARK = (
    f"* recommended: of the settings of this epsilon that show the most keys, to within {NOISE_OF_ESTIMATES:.0%}, "
    "the one with the smallest error\non shared keys, which all of these show. Of other settings only the best bounds are listed; "
    "to_arrow() has all."
)
_WORDS = "NOT PRIVATE"
_ALL_ROWS = 10**6


@dataclass(frozen=True, repr=False)
class NotPrivateTuning:
    """NOT PRIVATE: what was tried, and what is recommended for each epsilon; `print` it."""

    query: Query
    keys: int
    """How many keys there are in the data."""
    tried: tuple[TuningRow, ...]

    @property
    def recommended(self) -> tuple[TuningRow, ...]:
        """For each epsilon the setting with the smallest errors of those that show most keys, and with it the bounds of each measure."""
        return tuple(tried for tried in self.tried if tried.recommended)

    def to_arrow(self) -> pa.Table:
        """Give one row for everything tried, each with the words NOT PRIVATE, which rows keep wherever they are copied."""
        return pa.Table.from_pylist([{"warning": _WORDS} | asdict(tried) for tried in self.tried])

    def record(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return {"warning": WARNING, "keys": self.keys, "tried": [asdict(tried) for tried in self.tried]}

    def to_json(self) -> str:
        """Give the record as JSON."""
        return json.dumps(self.record(), indent=2)

    def write_csv(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the rows; the file's name gets the words NOT-PRIVATE if it lacks them, and is returned."""
        target = with_not_private_suffix(Path(path))
        write_csv(target, self.to_arrow(), overwrite=overwrite)
        return target

    def write_json(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the record; the file's name gets the words NOT-PRIVATE if it lacks them, and is returned."""
        target = with_not_private_suffix(Path(path))
        write_text(target, f"{self.to_json()}\n", overwrite=overwrite)
        return target

    def report(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a page of curves, which says NOT PRIVATE as its file's name does; needs the extra `report`."""
        from plume.tuning.curves import draw_tuning  # noqa: PLC0415 - slow to import, and an extra

        target = with_not_private_suffix(Path(path))
        write_text(target, draw_tuning(self), overwrite=overwrite)
        return target

    def __str__(self) -> str:
        drawn = pa.Table.from_pylist([line(tried) for tried in telling(self.tried)])
        return "\n".join([WARNING, "", show(drawn, _ALL_ROWS, leading=4), "", REMARK, WARNING])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show itself in a notebook, and that it is NOT PRIVATE."""
        from plume.tuning.notebook import show_tuning  # noqa: PLC0415 - for notebooks only

        return show_tuning(self)


@call_checked()
def tune(  # noqa: PLR0913 - all of them are the caller's
    query: Query,
    data: Any,
    *,
    limits: Sequence[int] = USUAL_LIMITS,
    epsilons: Sequence[float] = (),
    selections: Sequence[str] = (),
    measures: Sequence[Any] = (),
    engine: DuckDB | None = None,
) -> NotPrivateTuning:
    """NOT PRIVATE: estimate errors and losses over a grid, from exact data, without drawing noise. For people who may see it.

    Beside the query's own, all further `limits`, `epsilons` and `selections` are tried, each with each. `measures` are those of the query
    with other bounds; without any, bounds from a quarter to four times the query's are tried. Only users, counts and sums are estimated.
    Data is read once, by DuckDB. Public keys are not estimated yet.
    """
    _refuse_wrong_arguments(query, data, engine)
    refuse_no_list("[4, 16]", limits=limits)
    refuse_no_list("[0.5, 2]", epsilons=epsilons)
    refuse_no_list("['weighted_gaussian']", selections=selections)
    refuse_no_list("[plume.count(max_per_key=5)]", measures=measures)
    bounds = _candidates(query, measures)
    settings = [calibrate(one) for one in _grid(query, limits, epsilons, selections)]
    pairs = read_pairs(query, data, engine or DuckDB(), sizes_of_accounts(settings))
    tried = _try(settings, pairs, [measure for tried in bounds.values() for measure in tried])
    # Epsilon varies first in the grid, so the rows of one are neighbours.
    groups = groupby((row for rows in tried for row in rows), key=lambda row: row.epsilon)
    return NotPrivateTuning(query, pairs.keys, tuple(row for _, rows in groups for row in recommend(list(rows))))


def _refuse_wrong_arguments(query: Any, data: Any, engine: Any) -> None:
    refuse_other_than_query(query, ", and come before the data")
    if is_spark_frame(data) or not isinstance(engine, DuckDB | None):
        raise UsageError("tuning works on DuckDB only; give it a file or a frame, or a sample of users.")
    refuse_open_numbers(query)
    if not query.keys:
        raise UsageError("tuning estimates which keys would be shown, and keys is empty; use plume.expect for a total.")
    if query.public_keys is not None:
        raise UsageError("tuning estimates which keys would be shown; leave public_keys out.")


def _candidates(query: Query, given: Sequence[Any]) -> dict[str, list[Additive]]:
    """List the bounds to try for each measure that can be estimated, the query's own among them."""
    candidates: dict[str, list[Additive]] = {
        measure.name: [measure] for measure in query.measures if isinstance(measure, Additive)
    }
    if not candidates:
        raise MeasureError("none of the measures can be estimated; tuning knows users, count and sum.")
    for measure in given:
        own = candidates.get(getattr(measure, "name", ""), [None])[0]
        if own is None or _without_bounds(own) != _without_bounds(measure) or open_bounds([measure]):
            raise MeasureError(
                f"{measure!r} is not one of the query's measures with other bounds; name and column must agree, and bounds be numbers."
            )
        candidates[own.name] = [*candidates[own.name], measure]
    return {name: _sorted(of if len(of) > 1 else [*of, *_other_bounds(of[0])]) for name, of in candidates.items()}


def _without_bounds(measure: Any) -> tuple[Any, ...]:
    return type(measure), measure.name, getattr(measure, "column", None), getattr(measure, "where", None)


def _other_bounds(measure: Additive) -> Iterator[Additive]:
    for factor in _USUAL_FACTORS:
        match measure:
            case CountRecords():
                yield replace(measure, max_per_key=min(max(1, math.ceil(measure.most_per_key * factor)), LARGEST_COUNT))
            case SumOfTotals():
                low, high = float(measure.low_total) * factor, float(measure.high_total) * factor
                yield replace(measure, low_total=low, high_total=high)


def _sorted(measures: list[Additive]) -> list[Additive]:
    return sorted(dict.fromkeys(measures), key=_reach)


def _reach(measure: Additive) -> float:
    part = measure.parts()[0]
    return float(part.absolute * part.unit)


def _grid(query: Query, limits: Sequence[int], epsilons: Sequence[float], selections: Sequence[str]) -> Iterator[Query]:
    budgets = [Budget(epsilon=epsilon, delta=query.budget.delta) for epsilon in (query.budget.epsilon, *epsilons)]
    # Some selections are for one key per user alone, and are tried with that limit and no other.
    chosen = [replace(query, selection=name, max_keys_per_user=1) for name in (query.selection, *selections)]
    ones = [1] if any(releases_users(one.selection) for one in chosen) else []
    limited = [
        replace(query, selection=AUTO, max_keys_per_user=limit, shares=())
        for limit in (query.selection_limit, *limits, *ones)
    ]
    for one in limited:
        refuse_open_numbers(one)
    for budget, named, limit in product(
        sorted(dict.fromkeys(budgets), key=lambda budget: budget.epsilon),
        dict.fromkeys(one.selection for one in chosen),
        sorted({one.selection_limit for one in limited}),
    ):
        if limit == 1 or not releases_users(named):
            yield replace(query, budget=budget, selection=named, max_keys_per_user=limit)


def sizes_of_accounts(settings: Sequence[CalibratedQuery]) -> set[Size]:
    """Say by which sizes of rows accounts are charged, in any of the settings."""
    accounts = (strategy.account for one in settings for strategy in one.rounds)
    return {size for account in accounts if account is not None for size, _ in account.charges}


def _try(settings: Sequence[CalibratedQuery], pairs: Pairs, measures: Sequence[Additive]) -> Iterator[list[TuningRow]]:
    """Try everything, several settings at a time: numpy lets others work while it does."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        chances = list(threads.map(lambda calibrated: chances_of_keys(calibrated, pairs), settings))
        matter = np.logical_or.reduce([keys_that_matter(shown) for shown in chances])
        fewer = pairs.of_keys(matter)
        tried = list(threads.map(lambda measure: candidate(measure, fewer), measures))
        shared = shared_keys(settings, [shown[matter] for shown in chances])
        estimates = threads.map(
            lambda calibrated, shown, weights: estimate(calibrated, fewer, shown[matter], tried, weights),
            settings,
            chances,
            shared,
        )
        for calibrated, shown, of_setting in zip(settings, chances, estimates, strict=True):
            yield [_tried(calibrated, shown, *one) for one in zip(measures, of_setting, strict=True)]


def _tried(calibrated: CalibratedQuery, shown: Floats, measure: Additive, estimated: Estimate) -> TuningRow:
    return TuningRow(
        calibrated.query.budget.epsilon,
        calibrated.query.selection,
        calibrated.max_keys_per_user,
        float(shown.sum()),
        measure.name,
        _bounds(measure),
        **asdict(estimated),
    )


def _bounds(measure: Additive) -> str:
    match measure:
        case CountRecords():
            return f"max_per_key={measure.max_per_key}"
        case SumOfTotals():
            return f"{measure.low_total:g} to {measure.high_total:g}"
        case _:
            return "one each"


def telling(rows: Sequence[TuningRow]) -> Iterator[TuningRow]:
    """Of recommended settings show all bounds, of others the best."""
    recommended = {_setting(row) for row in rows if row.recommended}
    for (setting, _), group in groupby(rows, key=lambda row: (_setting(row), row.measure)):
        listed = list(group)
        yield from listed if setting in recommended else [min(listed, key=lambda row: row.absolute_error)]


def _setting(row: TuningRow) -> tuple[float, str, int]:
    return row.epsilon, row.selection, row.max_keys_per_user


def line(tried: TuningRow) -> dict[str, Any]:
    """What a table shows of a row."""
    return {
        "": "*" if tried.recommended else "",
        "epsilon": tried.epsilon,
        "selection": tried.selection,
        "max_keys_per_user": tried.max_keys_per_user,
        "keys shown": f"{tried.keys_shown:.1f}",
        "measure": tried.measure,
        "bounds": tried.bounds,
        "absolute error": four_digits(tried.absolute_error),
        "on shared keys": "fewer keys"
        if tried.error_on_shared_keys is None
        else four_digits(tried.error_on_shared_keys),
        "lost to bounding": f"{tried.lost_to_bounding:.1%}",
        "lost to selection": f"{tried.lost_to_selection:.1%}",
    }
