"""Where a run and a ledger meet: charged before the first step, marked when the first noise is drawn, seen when all is written."""

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from plume.choosing.histogram import ABOVE
from plume.engines.pinned import SOURCES
from plume.errors import OutputError
from plume.explanation import Explanation, decide
from plume.ledger.claim import Claim
from plume.ledger.entry import Entry
from plume.ledger.price import Price, price_of
from plume.noise.entropy import Entropy
from plume.plan.analysis import costs
from plume.redaction import redacting
from plume.release import RECORD, Receipt, Release, release_of


class ChargedDraw:
    """The randomness of one run, watched by its claim: drawing begins with the first random word after the charge."""

    def __init__(self, entropy: Entropy, claim: Claim) -> None:
        self._entropy, self._claim = entropy, claim
        self._charged = False
        self._drawing: Entry | None = None

    @property
    def private(self) -> bool:
        """As private as the source behind it."""
        return self._entropy.private

    def charge(self, price: Price) -> None:
        """Charge the dataset; the run calls this when its data is open, before the first step."""
        self._claim.reserve(price)
        self._charged = True

    def words(self, size: int) -> NDArray[np.uint64]:
        """Mark the release as being drawn before its first noise; the secret order of keys, drawn before any step, is not noise."""
        if size and self._charged:
            self.begin_drawing()
        return self._entropy.words(size)

    def begin_drawing(self) -> Entry:
        """Mark the release, once."""
        self._drawing = self._drawing or self._claim.begin_drawing()
        return self._drawing


def publish(claim: Claim, release: Release, draw: ChargedDraw) -> Release:
    """Write a release down for good, then hand it over as everybody will read it."""
    drawn = draw.begin_drawing()
    receipt = Receipt(claim.dataset, claim.release_id, drawn.hash)
    claim.stage(_bytes(replace(release, receipt=receipt)))
    claim.publish()
    return released(claim, release.explanation)


def released(claim: Claim, explanation: Explanation) -> Release:
    """Read a release back, the same bytes each time."""
    # In this thread alone: a thread of Arrow's that still holds these bytes of Python's when the process ends would abort it.
    rows = pyarrow.parquet.ParquetFile(pa.BufferReader(claim.read()), pre_buffer=False).read(use_threads=False)
    metadata = dict(rows.schema.metadata)
    record = json.loads(metadata.pop(RECORD))
    receipt = Receipt(**record["ledger"])
    decided = decide(explanation, record.get("chosen", {}))
    # What was released for a statement without GROUP BY once began with a key that nobody had asked for.
    unnamed = rows.column_names[: len(record["query"]["keys"]) - len(explanation.query.keys)]
    kept = rows.drop_columns(unnamed).replace_schema_metadata(metadata or None)
    above = {what: (low, high) for what, (low, high) in record.get(ABOVE, {}).items()}
    release = release_of(kept, decided, private=record["private"], receipt=receipt, above=above)
    return replace(release, sources=tuple(record.get(SOURCES, ())))


def _bytes(release: Release) -> bytes:
    sink = io.BytesIO()
    failure = OutputError("Parquet cannot hold one of the key columns, so a ledger cannot keep this release.")
    with redacting(pa.ArrowException, to=failure):
        replace(release, rows=_with_margins(release)).write_into(sink)
    return sink.getvalue()


def _with_margins(release: Release) -> pa.Table:
    """Put the margins behind the measures, where they are read back by position; what follows from them is not kept."""
    rows = release.rows.select(release.explanation.query.released_columns)
    tables = [rows] if release.margins is None else [rows, release.margins]
    columns = [column for table in tables for column in table.columns]
    return pa.Table.from_arrays(columns, names=[name for table in tables for name in table.column_names])


def price_for(explanation: Explanation) -> Price:
    """Price what an explanation says will be drawn."""
    return price_of(costs(explanation.plan), explanation.spent, explanation.query.budget)
