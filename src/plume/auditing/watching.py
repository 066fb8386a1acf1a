"""An engine that is watched where noise is drawn: what noisers are given, on made-up data, is what one user must not change by much."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from plume.engines.engine import Engine, Noising, Session, Table
from plume.plan.dialect import Dialect

_Batches = dict[str, list[tuple[pa.RecordBatch, pa.RecordBatch]]]


@dataclass(frozen=True)
class Noised:
    """What a noiser was given, and what it made of it."""

    exact: pa.Table
    released: pa.Table


@dataclass(frozen=True)
class Watching:
    """An engine, and what its noisers did."""

    engine: Engine
    batches: _Batches = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """The SQL it speaks."""
        return self.engine.dialect

    @property
    def reads_here(self) -> bool:
        """Whether this process reads the data."""
        return self.engine.reads_here

    @contextmanager
    def open(self, tables: Mapping[str, Table]) -> Iterator[Session]:
        """Open the engine, with an eye on its noisers."""
        with self.engine.open(tables) as session:
            watched: Any = _Watched(session, self.batches)
            yield watched

    def noised(self, step: str) -> Noised:
        """Put together what was seen of one step."""
        exact, released = (pa.Table.from_batches(seen) for seen in zip(*self.batches[step], strict=True))
        return Noised(exact, released)


@dataclass(frozen=True)
class Replaying:
    """A session whose noisers are given what was seen before, batch by batch; what they make of it is kept until it is taken."""

    batches: tuple[pa.RecordBatch, ...]
    noised: list[pa.RecordBatch] = field(default_factory=list)

    def in_pieces(self, rows: int) -> "Replaying":
        """Give the same rows in smaller batches."""
        whole = pa.Table.from_batches(self.batches)
        return Replaying(tuple(whole.combine_chunks().to_batches(max_chunksize=rows)))

    def noise(self, name: str, source: str, noising: Noising) -> None:
        """Give every batch to a noiser, once."""
        del name, source
        self.noised.extend(map(noising, self.batches))

    def taken(self) -> pa.Table:
        """Take what the noiser made of all batches."""
        made = pa.Table.from_batches(self.noised)
        self.noised.clear()
        return made


class _Watched:
    """A session that writes down what goes into noisers and what comes out, and is the engine's own in all else."""

    def __init__(self, session: Session, batches: _Batches) -> None:
        self._session, self._batches = session, batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def noise(self, name: str, source: str, noising: Noising) -> None:
        seen = self._batches.setdefault(name, [])

        def watched(batch: pa.RecordBatch) -> pa.RecordBatch:
            seen.append((batch, noising(batch)))
            return seen[-1][1]

        self._session.noise(name, source, watched)
