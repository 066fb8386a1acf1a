"""Which way to select keys and draw noise is best without a hint, by how many keys users have: what the default should be.

Expected from exact contributions, as `plume.tune` does it: nothing is run, and only made-up data is drawn, from a seed. With a file of
words, on words too. Writes docs/results/defaults*.md.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from populations import Population, populations
from results import Estimate, Panel, Point, Result, bars, curves
from rich.console import Console
from trials import BUDGET, LARGE_KEYS

import plume
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.calibration.default import earlier_defaults
from plume.errors import PlumeError
from plume.selection.pooled_gaussian import PooledGaussian, lowest_threshold
from plume.selection.threshold import on_grid
from plume.selection.weighted_gaussian import UNIT
from plume.settings import STRATEGIES
from plume.tuning.chances_on_data import chances_of_keys, keys_that_matter
from plume.tuning.estimates import candidate, estimate
from plume.tuning.pairs import Floats, Pairs
from plume.tuning.tuning import sizes_of_accounts

LIMITS = (1, 2, 4, 8, 16, 64, 256, 1_000)
DEFAULT, BEFORE = "default", "default before"
# What selection weighs beside one measure, by the share of measures, where both are charged to accounts.
SHARES = {"1/2": 1.0, "3/4": 1 / 3, "9/10": 1 / 9}
COMMAND = "make defaults"
EXPLAINED = "[accuracy](../accuracy.md#what-the-default-should-be)"
# As if a strategy counted this many keys of a user in selection, where it counts as many as the limit.
FEWEST = 64
NARROW = f", {FEWEST} keys"
# As if users above the limit kept this many of their keys, and were clipped then.
CAPS: Mapping[str, Callable[[int], int]] = {
    "L": lambda limit: limit,
    "4 L": lambda limit: 4 * limit,
    "4 L, at least 64": lambda limit: max(4 * limit, FEWEST),
    "16 L": lambda limit: 16 * limit,
}
ALL_KEYS = "all"
# A cell where no way shows a key says nothing of which is best.
A_KEY = 1.0

# From which limit on a rule takes which way: the last one that there is for the limit and the measures.
Choices = Sequence[tuple[int, str]]
HALF, MORE, ONE_KEY = "pooled gaussian, 1/2", "pooled gaussian, 3/4", "released users"
RULES: Mapping[str, Choices] = {
    "before": ((1, BEFORE),),
    "weighted": ((1, "weighted gaussian"),),
    "pooled 1/2, 64 keys": ((1, f"{HALF}{NARROW}"),),
    "pooled 1/2": ((1, HALF),),
    "pooled 3/4": ((1, MORE),),
    "pooled 9/10": ((1, "pooled gaussian, 9/10"),),
    "pooled 1/2, 3/4 from 64": ((1, HALF), (64, MORE)),
    "before at 1, pooled 1/2": ((1, BEFORE), (2, HALF)),
    "released users at 1, pooled 1/2": ((1, HALF), (1, ONE_KEY)),
    "released users at 1, pooled 1/2, 3/4 from 16": ((1, HALF), (1, ONE_KEY), (16, MORE)),
    "released users at 1, pooled 1/2, 3/4 from 64": ((1, HALF), (1, ONE_KEY), (64, MORE)),
    "default": ((1, DEFAULT),),
}


@dataclass(frozen=True)
class Capped(CalibratedQuery):
    """A query with Gaussian noise, as if users above the limit kept some of their keys alone."""

    kept: int

    @property
    def most_keys(self) -> float:
        """How many keys of a user count at all."""
        return self.kept if self.clips else super().most_keys


@dataclass(frozen=True)
class Cell:
    """What one way would give on one population with one limit."""

    data: str
    limit: int
    way: str
    keys: float
    """How many would be released, on average."""
    standard_deviation: float
    """Of the noise of the measure."""
    absolute: float
    """The mean error over released keys; what is lost to bounding is part of it."""
    absolute_large: float
    """The mean error of the largest keys, where one that is not released counts as 0."""


def ways(population: Population, limit: int) -> dict[str, CalibratedQuery]:
    """List all ways in one round, by the rules of strategies; what cannot be planned for this limit is left out."""
    asked = _query(population, limit)
    default = calibrate(asked)
    found = {DEFAULT: default, BEFORE: _before(asked)}
    found |= {_with_cap(name): _capped(default, cap(limit)) for name, cap in CAPS.items()}
    for name in STRATEGIES:
        with suppress(PlumeError):
            one = calibrate(_query(population, limit, selection=name))
            label = name.replace("_", " ")
            if len(one.rounds) > 1:
                continue  # costs a shuffle more
            if one.rounds[0].account is None:
                found[label] = one
            else:
                for share, weight in SHARES.items():
                    shared = calibrate(_query(population, limit, selection=name, shares={"selection": weight}))
                    found[f"{label}, {share}"] = shared
                    found |= {f"{label}, {share}{NARROW}": narrow for narrow in _counting_fewer(shared)}
    return found


def _capped(calibrated: CalibratedQuery, kept: int) -> CalibratedQuery:
    return Capped(**{one.name: getattr(calibrated, one.name) for one in fields(CalibratedQuery)}, kept=kept)


def _with_cap(name: str) -> str:
    return f"{DEFAULT}, from {name} keys"


def _before(asked: plume.Query) -> CalibratedQuery:
    """Take the default of 0.1.0, which had one of two ways, and was the first of them where a query may have both.

    Users above the limit counted in up to four times as many keys then.
    """
    *_, first = [calibrate(asked), *(calibrate(replace(asked, **settings)) for settings in earlier_defaults(asked))]
    return _capped(first, CAPS["4 L"](first.max_keys_per_user))


def _counting_fewer(calibrated: CalibratedQuery) -> Iterator[CalibratedQuery]:
    """Count 64 keys of each user in selection, if more count; thresholds are up to a tenth lower then."""
    [strategy] = calibrated.rounds
    if isinstance(strategy, PooledGaussian) and strategy.max_keys_per_user > FEWEST:
        threshold = lowest_threshold(1 / strategy.cost.mu, FEWEST, strategy.charges, BUDGET.epsilon, BUDGET.delta)
        narrow = replace(strategy, max_keys_per_user=FEWEST, threshold=on_grid(threshold, unit=UNIT))
        yield replace(calibrated, rounds=(narrow,))


def _query(population: Population, limit: int, **settings: Any) -> plume.Query:
    asked: dict[str, Any] = {
        "user": population.user,
        "keys": population.key,
        "measures": population.measure,
        "max_keys_per_user": limit,
        "budget": BUDGET,
    }
    return plume.Query(**asked | settings)


def expected(population: Population) -> Iterator[Cell]:
    """Work out what each way would give, limit by limit."""
    settings = {limit: ways(population, limit) for limit in population.limits or LIMITS}
    sizes = sizes_of_accounts([one for of_limit in settings.values() for one in of_limit.values()])
    pairs = None
    for limit, of_limit in settings.items():
        if pairs is None or population.by_limit:
            pairs = population.pairs(limit, sizes)
        yield from _cells(population, limit, of_limit, pairs)


def _cells(population: Population, limit: int, of_limit: Mapping[str, CalibratedQuery], pairs: Pairs) -> Iterator[Cell]:
    size = pairs.size[population.measure.name]
    large = size >= np.sort(size)[-min(LARGE_KEYS, len(size))]
    chances = {way: chances_of_keys(one, pairs) for way, one in of_limit.items()}
    matter = np.logical_or.reduce([large, *(keys_that_matter(shown) for shown in chances.values())])
    fewer = pairs.of_keys(matter)
    for way, one in of_limit.items():
        shown, of_large = chances[way][matter], large[matter]
        [part] = one.parts
        [found] = estimate(one, fewer, shown, [candidate(population.measure, fewer)], shown * of_large)
        yield Cell(
            population.name,
            limit,
            way,
            keys=float(chances[way].sum()),
            standard_deviation=part.standard_deviation,
            absolute=found.absolute_error,
            absolute_large=_with_dropped(found.error_on_shared_keys or 0.0, shown, size[matter], of_large),
        )


def _with_dropped(error: float, shown: Floats, size: Floats, large: Any) -> float:
    """Add to the error of the largest keys that are released what is missing where one is not."""
    dropped = float(np.sum(((1 - shown) * size)[large]))
    return (error * float(shown[large].sum()) + dropped) / int(large.sum())


def results(cells: Sequence[Cell]) -> list[Result]:
    """Make all tables of what was worked out but that of caps, which no release has."""
    capped = {_with_cap(name) for name in CAPS}
    uncapped = [cell for cell in cells if cell.way not in capped]
    return [_every_way(uncapped), _every_rule(uncapped), _both_defaults(uncapped)]


def _by_place(cells: Sequence[Cell]) -> dict[tuple[str, int], dict[str, Cell]]:
    found: dict[tuple[str, int], dict[str, Cell]] = {}
    for cell in cells:
        found.setdefault((cell.data, cell.limit), {})[cell.way] = cell
    return found


def _taken(rule: Choices, limit: int, of_ways: Mapping[str, Cell]) -> Cell:
    """Say what the way gives that a rule takes."""
    names = (name for least, way in reversed(rule) if limit >= least for name in (way, way.removesuffix(NARROW)))
    return next(of_ways[name] for name in names if name in of_ways)


def _figures(cell: Cell) -> list[str]:
    return [
        f"{cell.keys:,.1f}",
        f"{cell.standard_deviation:,.1f}",
        f"{cell.absolute:,.1f}" if cell.keys >= A_KEY else "none",
        f"{cell.absolute_large:,.1f}",
    ]


_TITLES = ("keys", "standard deviation of the noise", "absolute", f"absolute, {LARGE_KEYS} largest keys")


def _every_way(cells: Sequence[Cell]) -> Result:
    shown = [
        cell
        for cell in cells
        if cell.data == "D_synth" and cell.way not in (DEFAULT, BEFORE) and not cell.way.endswith(NARROW)
    ]
    return Result(
        name="defaults_ways",
        heading="Every way to select keys, by how many keys users have",
        columns=["data", "L", "way", *_TITLES],
        rows=[[cell.data, f"{cell.limit:,}", cell.way, *_figures(cell)] for cell in cells],
        picture=curves(
            [Panel("keys, D_synth", [Point(cell.way, cell.limit, _exactly(cell.keys)) for cell in shown])], "L"
        ),
        runs=[asdict(cell) for cell in cells],
        command=COMMAND,
        explained=EXPLAINED,
    )


def _exactly(value: float) -> Estimate:
    return Estimate(value, math.nan, value)


@dataclass(frozen=True)
class _Score:
    """How near a rule is to the best way, over all populations and limits."""

    keys: Sequence[float]
    """Of the most keys that any way releases."""
    errors: Sequence[float]
    """How many times the smallest error of any way on the largest keys."""


def _score(rule: Choices, cells: Sequence[Cell]) -> _Score:
    keys, errors = [], []
    for (_, limit), of_ways in _by_place(cells).items():
        most = max(cell.keys for cell in of_ways.values())
        if most >= A_KEY:
            taken = _taken(rule, limit, of_ways)
            keys.append(taken.keys / most)
            errors.append(taken.absolute_large / min(cell.absolute_large for cell in of_ways.values()))
    return _Score(keys, errors)


def _every_rule(cells: Sequence[Cell]) -> Result:
    scores = {name: _score(rule, cells) for name, rule in RULES.items()}
    titles = ("keys, on average", "keys, at worst", "error, on average", "error, at worst")
    rows = {
        name: [f"{fmean(one.keys):.2f}", f"{min(one.keys):.2f}", f"{fmean(one.errors):.2f}", f"{max(one.errors):.2f}"]
        for name, one in scores.items()
    }
    points = [
        (name, group, _exactly(value))
        for name, one in scores.items()
        for group, value in (("on average", fmean(one.keys)), ("at worst", min(one.keys)))
    ]
    return Result(
        name="defaults_rules",
        heading="Rules for a default, beside the best way in each place",
        columns=["rule", *titles],
        rows=[[name, *figures] for name, figures in rows.items()],
        picture=bars(
            [Panel("keys, of the most that any way releases", [Point(*point) for point in points], form=".2f")]
        ),
        runs=[{"rule": name} | dict(zip(titles, figures, strict=True)) for name, figures in rows.items()],
        command=COMMAND,
        explained=EXPLAINED,
    )


def _both_defaults(cells: Sequence[Cell]) -> Result:
    compared = {"before": RULES["before"], "now": RULES["default"]}
    rows = [
        [
            data,
            f"{limit:,}",
            *(figure for rule in compared.values() for figure in _figures(_taken(rule, limit, of_ways))),
        ]
        for (data, limit), of_ways in _by_place(cells).items()
    ]
    columns = [
        "data",
        "L",
        *(f"{title}, {name}" for name in compared for title in ("keys", "deviation", "error", "large")),
    ]
    panels = [
        Panel(
            f"keys, {data}",
            [
                Point(name, limit, _exactly(_taken(rule, limit, of_ways).keys))
                for name, rule in compared.items()
                for (each, limit), of_ways in _by_place(cells).items()
                if each == data
            ],
        )
        for data in ("D_synth", "home and landmark")
    ]
    return Result(
        name="defaults",
        heading="The default, and the one before it",
        columns=columns,
        rows=rows,
        picture=curves(panels, "L"),
        runs=[dict(zip(columns, row, strict=True)) for row in rows],
        command=COMMAND,
        explained=EXPLAINED,
    )


def every_cap(cells: Sequence[Cell]) -> Result:
    """Compare how many keys users above the limit count in, wherever it makes a difference."""
    shown: dict[tuple[str, int], dict[str, Cell]] = {}
    for place, of_ways in _by_place(cells).items():
        by_cap = {name: of_ways[_with_cap(name)] for name in CAPS} | {ALL_KEYS: of_ways[DEFAULT]}
        if len({f"{cell.absolute_large:,.1f}" for cell in by_cap.values()}) > 1:
            shown[place] = by_cap
    names = (*CAPS, ALL_KEYS)
    rows = [
        [
            data,
            f"{limit:,}",
            *(f"{by_cap[name].absolute:,.1f}" for name in names),
            *(f"{by_cap[name].absolute_large:,.1f}" for name in names),
        ]
        for (data, limit), by_cap in shown.items()
    ]
    points = [
        Point(name, limit, _exactly(by_cap[name].absolute_large))
        for name in names
        for (data, limit), by_cap in shown.items()
        if data == "D_synth"
    ]
    columns = ["data", "L", *(f"{title}, {name}" for title in ("error", "large") for name in names)]
    return Result(
        name="defaults_caps",
        heading="In how many keys users above the limit count, with the default",
        columns=columns,
        rows=rows,
        picture=curves([Panel(f"absolute, {LARGE_KEYS} largest keys, D_synth", points)], "L"),
        runs=[dict(zip(columns, row, strict=True)) for row in rows],
        command=COMMAND,
        explained=EXPLAINED,
    )


def main() -> None:
    """Compare on all populations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", type=Path, nargs="?")
    cells: list[Cell] = []
    for population in populations(parser.parse_args().words):
        Console(stderr=True).print(population.name)
        cells += expected(population)
    for result in (*results(cells), every_cap(cells)):
        result.write()


if __name__ == "__main__":
    main()
