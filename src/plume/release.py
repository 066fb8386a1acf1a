"""What comes back: the noised rows, and everything a reader needs to judge them. Nothing here is derived from data without noise."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from plume.arguments import methods_checked
from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.measure_noise import MeasureNoise
from plume.cautions import Caution
from plume.choosing.histogram import ABOVE, Share
from plume.cut_off import describe_cut_off
from plume.empty_release import describe_empty
from plume.engines.pinned import SOURCES
from plume.errors import MissingPackage, OutputError, UsageError, printable, shown
from plume.explanation import Explanation, guarantee, recorded_cautions
from plume.far_dates import TOO_FAR, python_rows, python_values
from plume.mechanisms.margins import LEVEL, is_reliable, refuse_bad_level, refuse_intervals
from plume.other_names import OF_RELEASES, column_held, names_pointed_to
from plume.output import reliability
from plume.output.csv_rows import write_csv
from plume.output.files import write_text, write_whole
from plume.output.pieces import pieces_of
from plume.output.reliability import KEEP, NULL, RELIABLE, rows_to_read, unreliable_values, without_unreliable
from plume.output.text_table import SHOWN_ROWS, cell, four_digits, show
from plume.privacy.cost import Spent
from plume.redaction import redacting
from plume.schema import refuse_missing
from plume.version import __version__

RECORD = b"plume"
"""Where Parquet files keep the record."""


@dataclass(frozen=True)
class Receipt:
    """Where a release was charged."""

    dataset: str
    release_id: str
    head: str
    """The hash of the ledger's entry that says so; who keeps it can tell an old copy from the ledger."""


@names_pointed_to("release", OF_RELEASES, column_held)
@methods_checked(
    "release", path="where to write it", n="how many rows to keep", by="the column whose largest values are kept"
)
@dataclass(frozen=True, repr=False)
class Release:
    """Released rows, sorted by key, with the guarantee they carry."""

    rows: pa.Table
    explanation: Explanation
    private: bool
    """False if a test drew the noise from a source that is not secret."""
    receipt: Receipt | None = None
    """Where it was charged, if it was."""
    statement: str | None = None
    """The SQL that asked for it, if any did, to the letter."""
    margins: pa.Table | None = None
    """For each row and each column that is computed from several noised parts, `<column>_low` and `<column>_high`: where the value before
    noise lies, with a probability of 0.95. None of a release that a ledger kept for a version before them."""
    above: Mapping[str, Share] = field(default_factory=dict)
    """For each number that was chosen within the budget, between which shares of what it limits lie above it, with a probability of 0.95.
    Of a release that a ledger kept for a version before them nothing is known."""
    released_before: str | None = None
    """When it was released, in UTC, if its release id was answered with rows that were there: then nothing was read or charged."""
    sources: tuple[Mapping[str, Any], ...] = ()
    """Of each table that has versions, such as a Delta table: which one was read."""

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in one sentence."""
        return guarantee(self.explanation) if self.private else "NOT PRIVATE: made by a test with known randomness"

    @property
    def spent(self) -> Spent:
        """What this release spent."""
        return self.explanation.spent

    @property
    def noise(self) -> tuple[MeasureNoise, ...]:
        """The noise on each released column."""
        return self.explanation.noise

    @property
    def chosen(self) -> dict[str, float]:
        """What was chosen within the budget, such as max_keys_per_user; nothing, if the query left nothing open."""
        return self.explanation.chosen

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What to be careful about, each with a next step; none of it comes from the rows."""
        return self.explanation.cautions

    @property
    def cut_off(self) -> str:
        """What limits and bounds cut off, beside the noise; how much of it, as far as noised numbers tell."""
        return describe_cut_off(self.explanation, self.above)

    def record(self) -> dict[str, Any]:
        """Give everything but the rows as plain values."""
        charged = {"ledger": asdict(self.receipt)} if self.receipt else {}
        stated = {"statement": self.statement} if self.statement is not None else {}
        made = {"plume": __version__, "private": self.private, "rows": len(self)}
        above = {ABOVE: {what: list(share) for what, share in self.above.items()}} if self.above else {}
        cut = {"cut_off": self.cut_off} if self.cut_off else {}
        read = {SOURCES: list(map(dict, self.sources))} if self.sources else {}
        facts, cautions = self.explanation.facts(), recorded_cautions(self.explanation)
        return made | charged | stated | read | facts | above | cut | cautions

    def intervals(self, level: float = LEVEL) -> "Release":
        """Add `<measure>_low` and `<measure>_high`: where the value before noise lies, with a probability of at least `level` each.

        They cover the noise, not what bounding cut away: values of users above the limits are missing from both. Columns that are
        computed from several noised parts, as means and quantiles are, have intervals of the level 0.95 only, and another one is
        refused beside them. docs/guarantees/intervals.md.
        """
        refuse_intervals(level, self.rows.column_names, self.explanation.query.computed_columns)
        rows = self.rows
        for name, (low, high) in self.sides(level).items():
            rows = rows.append_column(f"{name}_low", low).append_column(f"{name}_high", high)
        return replace(self, rows=rows)

    def sides(self, level: float) -> dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]:
        """Give, for each measure with intervals of this level, the lower and the upper end of each row's."""
        rows, widths, ends = self.rows, self.widths(level), dict(self._sides_of_compared(level))
        computed = self.margins if self.margins is not None and level == LEVEL else rows.select([])
        for name in rows.column_names:
            if name in widths:
                ends[name] = pc.subtract(rows.column(name), widths[name]), pc.add(rows.column(name), widths[name])
            elif f"{name}_low" in computed.column_names:
                ends[name] = computed.column(f"{name}_low"), computed.column(f"{name}_high")
        return ends

    def _sides_of_compared(self, level: float) -> Iterator[tuple[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]]:
        """Give the same for numbers that keys were selected by: the smallest of them are shown only if noise made them larger."""
        strategy = self.explanation.calibrated.releasing
        for name, part in self._plain_columns():
            if strategy and self._was_compared(part) and name in self.rows.column_names:
                low, high = strategy.sides(self.rows.column(name).to_numpy(), level)
                yield name, (pa.chunked_array([low]), pa.chunked_array([high]))

    def _was_compared(self, part: CalibratedPart) -> bool:
        return bool(set(part.columns) & set(self.explanation.calibrated.released_by_selection))

    def widths(self, level: float) -> dict[str, int | float]:
        """Say for each measure whose intervals reach as far in all keys how far that is to either side: noise alone decides.

        Those of a number that keys were selected by are wider near the threshold, and not among them.
        """
        refuse_bad_level(level)
        plain = ((name, part) for name, part in self._plain_columns() if not self._was_compared(part))
        return {name: self._width(name, part, level) for name, part in plain if name in self.rows.column_names}

    def _width(self, name: str, part: CalibratedPart, level: float) -> int | float:
        """Reach half a step further where a sum was rounded to whole numbers after the noise."""
        width = part.half_width(level)
        is_whole = pa.types.is_integer(self.rows.schema.field(name).type)
        return math.ceil(width + 1 / 2) if is_whole and part.unit < 1 and not part.rounded else width

    def _plain_columns(self) -> Iterator[tuple[str, CalibratedPart]]:
        """The released columns that are one part with its noise, and that part."""
        calibrated = self.explanation.calibrated
        for measure in calibrated.measures:
            parts = {part.part.name: part for part in calibrated.parts_of(measure)}
            yield from ((name, parts[part]) for name, part in measure.mechanism.columns.items() if part is not None)

    def top(self, n: int, by: str) -> "Release":
        """Keep the n rows with the largest released values in a column, largest first.

        Post-processing: it reads released rows only and costs nothing. Noise has a say in which rows these are, and those that come
        first are more often the ones that noise made larger. Where a value is too noisy its row comes behind all others.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise UsageError(f"n is {shown(n)}; it must be a positive whole number: how many rows to keep.")
        if by not in self.rows.column_names:
            raise UsageError(f"by is {by!r}; it must be one of {', '.join(map(repr, self.rows.column_names))}.")
        # Equal ones stay in the order of keys.
        sorting = [f"{by}{RELIABLE}", by] if by in self.unreliable else [by]
        order = pc.sort_indices(self.rows.select(sorting), sort_keys=[(name, "descending") for name in sorting])
        return self.taken(order.slice(0, min(n, len(self))))

    def taken(self, places: pa.Array) -> "Release":
        """Keep the rows at these places, in this order."""
        margins = None if self.margins is None else self.margins.take(places)
        return replace(self, rows=self.rows.take(places), margins=margins)

    @property
    def repeated_in_words(self) -> str | None:
        """When these rows were released and that they cost nothing now, if the release id had been used before."""
        if self.receipt is None or self.released_before is None:
            return None
        at = f"{self.released_before[:19].replace('T', ' ')} UTC"
        return printable(
            f"release {self.receipt.release_id} of {self.receipt.dataset} was released at {at}; these are its rows. "
            "No data was read and nothing was charged."
        )

    def to_json(self) -> str:
        """Give the record as JSON."""
        return json.dumps(self.record(), indent=2)

    @property
    def noise_in_words(self) -> str:
        """How far noise moves each measure in 95 % of all cases, at most; of what is computed from several parts, in how many too far."""
        calibrated = self.explanation.calibrated
        plain = ((one.mechanism.name, calibrated.parts_of(one)[0]) for one in calibrated.measures if not one.margins)
        words = [
            ", ".join(
                f"{name} ± {four_digits(part.half_width(LEVEL))}{self._near_threshold(part)}" for name, part in plain
            )
        ]
        words += [self._noise_by_key(name, noisy) for name, noisy in self.unreliable.items()]
        if any(noise.standard_deviation_of_total is not None for noise in self.noise):
            words.append("keys share a part of it, so that totals over keys are noisier")
        return printable("; ".join(filter(None, words)))

    def _noise_by_key(self, name: str, noisy: pa.ChunkedArray) -> str:
        if self.margins is None or not len(self):
            return f"{name} differs by key"
        if not self.explanation.query.keys:  # a total is one row
            low, high = (cell(python_values(self.margins.column(f"{name}_{side}"))[0]) for side in ("low", "high"))
            return f"{name} from {low} to {high}"
        return f"{name} differs by key, {reliability.noisy_keys(noisy)}"

    def _near_threshold(self, part: CalibratedPart) -> str:
        return " and more near the threshold" if self._was_compared(part) else ""

    @property
    def unreliable(self) -> dict[str, pa.ChunkedArray]:
        """Say of each column with a column `<name>_reliable` where it is unreliable; nowhere, if nothing is known of its noise."""
        return unreliable_values(self.rows, self.explanation.query.computed_columns)

    @property
    def rows_to_read(self) -> pa.Table:
        """The rows without the columns `<name>_reliable`, for texts and pages, which have "too noisy" where a value is unreliable."""
        return rows_to_read(self.rows, self.explanation.query.computed_columns)

    def to_arrow(self, *, unreliable: str = KEEP) -> pa.Table:
        """Give the rows as an Arrow table; with `unreliable="null"` values whose `<name>_reliable` is false are NULL."""
        if unreliable not in (KEEP, NULL):
            raise UsageError(f"unreliable is {shown(unreliable)}; it must be {KEEP!r} or {NULL!r}.")
        return (
            self.rows if unreliable == KEEP else without_unreliable(self.rows, self.explanation.query.computed_columns)
        )

    def to_pandas(self, *, unreliable: str = KEEP) -> Any:
        """Give the rows as a pandas DataFrame; `unreliable` is as in `to_arrow`."""
        rows = self.to_arrow(unreliable=unreliable)
        for dates_as_objects in (True, False):  # dates that Python cannot hold become pandas' own
            with redacting(ModuleNotFoundError, to=MissingPackage("to_pandas", "pandas")), suppress(*TOO_FAR):
                return rows.to_pandas(date_as_object=dates_as_objects)
        raise OutputError(
            "pandas cannot hold a date before the year 1 or after 9999 inside of another value; use to_arrow or to_polars."
        )

    def to_polars(self, *, unreliable: str = KEEP) -> Any:
        """Give the rows as a Polars DataFrame; `unreliable` is as in `to_arrow`."""
        with redacting(ModuleNotFoundError, to=MissingPackage("to_polars", "Polars")):
            import polars  # noqa: PLC0415, ICN001 - not everybody has it
        return polars.from_arrow(self.to_arrow(unreliable=unreliable))

    def to_spark(self, session: Any = None, *, unreliable: str = KEEP) -> Any:
        """Give the rows as a Spark DataFrame of plain data, in a session or else the active one; `unreliable` is as in `to_arrow`."""
        with redacting(ModuleNotFoundError, to=MissingPackage("to_spark", "PySpark")):
            from plume.engines.spark_rows import make_frame  # noqa: PLC0415 - an extra
        return make_frame(self.to_arrow(unreliable=unreliable), session)

    def write_parquet(self, path: str | Path, *, overwrite: bool = False, unreliable: str = KEEP) -> None:
        """Write the rows as Parquet, with the record in the file's metadata; the file appears whole or not at all.

        A file that is there is replaced only with `overwrite=True`; `unreliable` is as in `to_arrow`.
        A path with a scheme, such as s3a://bucket/folder, is written by Spark, as a folder that must not exist, without the record.
        """
        if isinstance(path, str) and "://" in path:
            with redacting(ModuleNotFoundError, to=MissingPackage("writing to an address", "PySpark")):
                from plume.engines.spark_rows import write_folder  # noqa: PLC0415 - an extra
            write_folder(self.to_arrow(unreliable=unreliable), path)
            return
        written = replace(self, rows=self.to_arrow(unreliable=unreliable))
        write_whole(Path(path), written.write_into, overwrite=overwrite)

    def write_into(self, file: Any) -> None:
        """Write the same into a file that is open."""
        metadata = (self.rows.schema.metadata or {}) | {RECORD: self.to_json().encode()}
        pyarrow.parquet.write_table(self.rows.replace_schema_metadata(metadata), file)

    def write_csv(self, path: str | Path, *, overwrite: bool = False, unreliable: str = KEEP) -> None:
        """Write the rows as CSV; the file appears whole or not at all.

        Text that a spreadsheet would run as a formula gets an apostrophe in front. A file that is there is replaced only with
        `overwrite=True`; `unreliable` is as in `to_arrow`.
        """
        write_csv(Path(path), self.to_arrow(unreliable=unreliable), overwrite=overwrite)

    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a page to look at: values, guarantee, what was spent, the plan. It is one file that needs nothing else.

        Needs the extra `report`, for the charts. The file appears whole or not at all, and replaces one that is there only with
        `overwrite=True`.
        """
        from plume.report.page import make_page  # noqa: PLC0415 - slow to import, and an extra

        write_text(Path(path), make_page(self), overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the first rows, the guarantee and the noise."""
        from plume.report.page import make_summary  # noqa: PLC0415 - for notebooks only

        return make_summary(self, limit=SHOWN_ROWS)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        """Give a column by its name, as Arrow has it."""
        if not isinstance(column, str):
            raise UsageError(
                f'release[{shown(column)}] is not a column; write release["name"] for a column and list(release) for rows.'
            )
        refuse_missing(column, self.rows.column_names, source="the release")
        return self.rows.column(column)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give the rows one after another, as dictionaries by the names of columns; dates that Python cannot hold are text."""
        return (row for piece in pieces_of(self.rows) for row in python_rows(piece))

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __str__(self) -> str:
        return "\n".join([draw(self, SHOWN_ROWS), *map(printable, summarize(self))])

    def __repr__(self) -> str:
        return str(self)


def release_of(
    rows: pa.Table,
    explanation: Explanation,
    *,
    private: bool,
    receipt: Receipt | None = None,
    above: Mapping[str, Share] = MappingProxyType({}),
) -> Release:
    """Make a release of the columns that a plan ends with, by position: keys, measures and, unless they are missing, margins."""
    names = explanation.query.released_columns
    measures = explanation.calibrated.measures
    sides = [f"{name}_{side}" for measure in measures for name in measure.margins for side in ("low", "high")]
    places = list(range(rows.num_columns))
    released, behind = (rows.select(some) for some in (places[: len(names)], places[len(names) :]))
    margins = behind.rename_columns(sides) if behind.num_columns else None
    rows = released.rename_columns(names)
    for measure in measures:
        for name in measure.margins:
            rows = rows.append_column(
                f"{name}{RELIABLE}", _reliability(name, len(rows), margins, measure.mechanism.extent)
            )
    return Release(rows, explanation, private=private, receipt=receipt, margins=margins, above=above)


def _reliability(name: str, rows: int, margins: pa.Table | None, extent: float) -> pa.ChunkedArray | pa.Array:
    """Say where a column is reliable; NULL if nothing is known of its noise, so that a query has the same columns each time."""
    if margins is None:
        return pa.nulls(rows, pa.bool_())
    return is_reliable(margins.column(f"{name}_low"), margins.column(f"{name}_high"), extent)


def draw(release: Release, limit: int) -> str:
    """Draw the first rows as plain text."""
    keys = len(release.explanation.query.keys)
    return show(release.rows_to_read, limit, unreliable=release.unreliable, leading=keys)


def summarize(release: Release) -> list[str]:
    """Say in a few lines what is guaranteed, what was chosen, how wide noise is, what to be careful about, and why there may be no key."""
    chosen = (f"chosen within the budget: {name} = {value:.10g}" for name, value in release.chosen.items())
    noise = f"noise ({LEVEL:.0%}): {release.noise_in_words}".replace("%", " %")
    empty = [] if len(release) else describe_empty(release.explanation)
    cut_off = [f"cut off: {release.cut_off}"] if len(release) and release.cut_off else []
    return [
        release.guarantee,
        *chosen,
        noise,
        *cut_off,
        *map(str, release.cautions),
        *empty,
        *filter(None, [release.repeated_in_words]),
    ]
