"""A release as one page that needs nothing else: what was released, what is guaranteed, what was spent, how to repeat it.

Everything on it is made from the release and the query. Choosing the largest released values is post-processing and costs nothing.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from plume.calibration.measure_noise import MeasureNoise
from plume.empty_release import describe_empty
from plume.explanation import (
    Explanation,
    at_most,
    choices,
    deviation,
    limit,
    number_of,
    picture,
    spending,
)
from plume.far_dates import python_rows, python_values
from plume.output.reliability import TOO_NOISY
from plume.output.text_table import four_digits
from plume.query import Query
from plume.report.chart import NARROW, WIDE, Bar, draw_bars, draw_if_possible
from plume.report.rendering import cell, read, render, word
from plume.report.settings import query_call
from plume.version import __version__

LEVEL = 0.95
BARS = 20
_BARS_IN_NOTEBOOKS = 10
CHARTS = 6
_LISTED = 4
ROWS = 5_000
# Beyond it the factor says nothing to anybody.
_TELLING_EPSILON = 20
# What the one row of a query without keys is called in a chart.
_TOTAL = "total"

Drawings = list[tuple[str, str]]
"""The same chart in several layouts, each under its name."""
Draw = Callable[[Sequence[Bar]], Drawings]


class Released(Protocol):
    """What a page shows of a release."""

    @property
    def rows(self) -> pa.Table:
        """The released rows, sorted by key."""

    @property
    def explanation(self) -> Explanation:
        """The plan that ran."""

    @property
    def noise(self) -> tuple[MeasureNoise, ...]:
        """The noise on each released column."""

    @property
    def private(self) -> bool:
        """False if a test drew the noise."""

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in one sentence."""

    @property
    def receipt(self) -> Any:
        """Where it was charged, if it was."""

    @property
    def noise_in_words(self) -> str:
        """How far noise moves each measure."""

    @property
    def repeated_in_words(self) -> str | None:
        """When it was released, if it was not released now."""

    @property
    def rows_to_read(self) -> pa.Table:
        """The rows without the columns that say where others are reliable."""

    @property
    def unreliable(self) -> Mapping[str, pa.ChunkedArray]:
        """Where a column is mostly noise."""

    @property
    def cut_off(self) -> str:
        """What limits and bounds cut off."""

    def widths(self, level: float) -> Mapping[str, float]:
        """How far noise may have moved the values of a column, if that is the same for all of them."""

    def sides(self, level: float) -> Mapping[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]:
        """The ends of the intervals of a column, row by row."""

    def to_json(self) -> str:
        """The record."""


@dataclass(frozen=True)
class ChartedColumn:
    """A released column, drawn for a desk and for a phone."""

    name: str
    bars: int
    has_intervals: bool
    by: str
    """The column whose largest values say which keys are shown."""
    too_noisy: int
    """In how many keys it is mostly noise, and so is not shown."""
    drawings: tuple[tuple[str, Markup], ...]


def make_page(release: Released) -> str:
    """Make the page."""
    query = release.explanation.query
    keys, measured = _columns(query, release.rows.column_names)
    first = _by(query, measured[0], measured) if measured else None
    widths = _widths(release)
    style, script = read("report.css") + read("plan.css"), read("report.js")
    return render(
        "report.html",
        version=__version__,
        policy=policy(style, script),
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        release=release,
        query=query,
        keys=keys,
        measured=measured,
        listed=measured if len(measured) <= _LISTED else measured[: _LISTED - 1],
        numeric=_numbers(release.rows),
        widths=widths,
        level=LEVEL,
        charts=list(_charts(release, keys, measured, BARS, _draw_for_page)),
        names=release.rows_to_read.column_names,
        first=first,
        rows=_cells(release, _largest(release.rows, first, ROWS)),
        epsilon=at_most(release.explanation.spent.epsilon),
        delta=at_most(release.explanation.spent.delta),
        factor=_factor(release.explanation.spent.epsilon),
        choices=choices(release.explanation),
        limit=limit(release.explanation),
        spending=spending(release.explanation),
        noises=list(_noises(release)),
        picture=picture(release.explanation),
        call=query_call(query),
        empty=_empty(release),
    )


def make_summary(release: Released, *, limit: int) -> str:
    """Make what a notebook shows: the first rows, a chart of the largest keys, the noise and the guarantee."""
    rows = _cells(release, pa.array(range(min(limit, len(release.rows))), pa.int64()))
    keys, measured = _columns(release.explanation.query, release.rows.column_names)
    names = release.rows_to_read.column_names
    return render(
        "release.html",
        release=release,
        rows=rows,
        names=names,
        keys=keys,
        numeric=_numbers(release.rows),
        widths=_widths(release),
        level=LEVEL,
        charts=list(islice(_charts(release, keys, measured, _BARS_IN_NOTEBOOKS, _draw_for_notebook), 1)),
        empty=_empty(release),
    )


def _noises(release: Released) -> Iterator[tuple[str, str, str]]:
    """Say of each noised number what it is, which noise is on it, and how wide that is."""
    explanation = release.explanation
    for noise in release.noise:
        number = number_of(noise.measure, noise.part, explanation.query)
        yield number, noise.kind, deviation(explanation, noise)


def _widths(release: Released) -> dict[str, str]:
    """Write how far noise reaches; of whole numbers all digits."""
    widths = release.widths(LEVEL).items()
    return {name: cell(width) if isinstance(width, int) else four_digits(width) for name, width in widths}


def _empty(release: Released) -> list[str]:
    return [] if release.rows.num_rows else describe_empty(release.explanation)


def _columns(query: Query, shown: list[str]) -> tuple[list[str], list[str]]:
    """Find keys and measures among the columns that are shown; a statement may leave out some of either."""
    keys = [name for name in query.keys if name in shown]
    return keys, [name for name in query.released_columns if name in shown and name not in keys]


def policy(style: str, script: str | None = None) -> str:
    """Allow the page its own style and script, by what they are, and nothing from anywhere."""
    scripts = "'none'" if script is None else _fingerprint(script)
    return (
        f"default-src 'none'; style-src {_fingerprint(style)}; script-src {scripts}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _fingerprint(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _numbers(rows: pa.Table) -> list[str]:
    return [field.name for field in rows.schema if _is_number(field.type)]


def _is_number(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _by(query: Query, name: str, measured: list[str]) -> str:
    """Say which column tells how large a key is: of what is computed from several parts, the largest values are those of the most noise."""
    counted = [column for measure in query.measures if measure.counts for column in measure.columns]
    sizes = [column for column in counted if column in measured]
    return sizes[0] if sizes and name in query.computed_columns else name


def _largest(rows: pa.Table, by: str | None, limit: int) -> pa.Array:
    """Find the rows with the largest values in a column, if there are too many; they stay in their order."""
    if len(rows) <= limit or by is None:
        return pa.array(range(min(limit, len(rows))), pa.int64())
    places = pc.sort_indices(rows.select([by]), sort_keys=[(by, "descending")])[:limit]
    return pc.take(places, pc.sort_indices(places))


def _cells(release: Released, places: pa.Array) -> list[tuple[Any, ...]]:
    """Give the rows at some places as values to write; what is mostly noise is said to be."""
    rows, unreliable = release.rows_to_read.take(places), release.unreliable
    noisy = {name: column.take(places).to_pylist() for name, column in unreliable.items()}
    columns = [
        [TOO_NOISY if is_noise else value for value, is_noise in zip(values, noisy[name], strict=True)]
        if name in noisy
        else values
        for name, values in ((name, python_values(rows.column(name))) for name in rows.column_names)
    ]
    return list(zip(*columns, strict=True))


def _draw_for_page(bars: Sequence[Bar]) -> Drawings:
    return [(layout.name, draw_bars(bars, layout)) for layout in (WIDE, NARROW)]


def _draw_for_notebook(bars: Sequence[Bar]) -> Drawings:
    """Draw fewer bars, once, or none where nothing can draw them: the rows stand beside them."""
    drawn = draw_if_possible(lambda: draw_bars(bars, NARROW))
    return [] if drawn is None else [("small", drawn)]


def _charts(release: Released, keys: list[str], measured: list[str], most: int, draw: Draw) -> Iterator[ChartedColumn]:
    """Draw the first columns that are numbers, each for the largest keys in which it is more than noise."""
    numbers, sides = [name for name in _numbers(release.rows) if name in measured], release.sides(LEVEL)
    for name in numbers[:CHARTS]:
        low, high = sides.get(name, (release.rows.column(name),) * 2)
        by = _by(release.explanation.query, name, measured)
        bars = _bars(release, keys, (name, by), pa.table({"low": low, "high": high}))[:most]
        if bars:
            # The drawing holds nothing but what chart.py lets through.
            drawings = tuple((layout, Markup(drawn)) for layout, drawn in draw(bars))  # noqa: S704
            noisy = pc.sum(release.unreliable[name]).as_py() if name in release.unreliable else 0
            yield ChartedColumn(name, len(bars), name in sides, by, noisy, drawings)


def _bars(release: Released, keys: list[str], name_and_by: tuple[str, str], sides: pa.Table) -> list[Bar]:
    rows, (name, by) = release.rows, name_and_by
    known = pc.fill_null(pc.is_finite(pc.cast(rows.column(name), pa.float64())), fill_value=False)
    if name in release.unreliable:
        known = pc.and_(known, pc.invert(release.unreliable[name]))
    order = pc.sort_indices(rows.select([by]).filter(known), sort_keys=[(by, "descending")])[:BARS]
    shown, ends = (python_rows(table.filter(known).take(order)) for table in (rows, sides))
    return [
        _bar(
            place,
            " · ".join(word(row[key]) for key in keys) if release.explanation.query.keys else _TOTAL,
            row[name],
            end,
        )
        for place, (row, end) in enumerate(zip(shown, ends, strict=True))
    ]


def _bar(place: int, label: str, value: Any, end: Mapping[str, Any]) -> Bar:
    return Bar(place, label, float(value), float(end["low"]), float(end["high"]), cell(value))


def _factor(epsilon: float) -> str | None:
    """Say by how much at most the probability of anything changes, rounded up; None if that is beyond telling."""
    if epsilon > _TELLING_EPSILON:
        return None
    factor = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    return f"{math.ceil(factor / unit) * unit:,.3g}"
