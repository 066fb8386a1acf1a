"""Runs for an audit: real ones, with the system's randomness, and noise-free ones, which say NOT PRIVATE and see made-up data only."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plume.auditing.finding import Answered
from plume.auditing.made_up_tables import Row, table
from plume.auditing.watching import Noised, Replaying, Watching
from plume.engines.engine import Engine
from plume.engines.execute import draw
from plume.explanation import Explanation
from plume.noise.entropy import Entropy, SystemEntropy
from plume.query import Query
from plume.release import Release
from plume.running import explain, run_with

_MIDDLE_WORD = 2**63
# Rows that share noise must share it in batches of any size.
_PIECES = 5


class NoEntropy:
    """The same word for ever, which makes all noise zero."""

    private = False

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return the word `size` times."""
        return np.full(size, _MIDDLE_WORD, dtype=np.uint64)


@dataclass(frozen=True)
class Trial:
    """A query, and how it is run."""

    query: Query
    engine: Engine
    pipeline: str

    def explain(self) -> Explanation:
        """Say what the query claims."""
        return explain(self.query, pipeline=self.pipeline)

    def release(self, rows: Iterable[Row]) -> Answered:
        """Release made-up rows with real noise."""
        return self._answered(self._run(SystemEntropy(), table(self.query, rows), self.engine))

    def choose(self, what: str, step: str, rows: Iterable[Row], *, times: int) -> list[tuple[float, Noised]]:
        """Release the same made-up rows with real noise `times` times, and say what was chosen, and from what."""
        content = table(self.query, rows)
        return [self._chosen(what, step, content) for _ in range(times)]

    def _chosen(self, what: str, step: str, content: pa.Table) -> tuple[float, Noised]:
        watching = Watching(self.engine)
        release = self._run(SystemEntropy(), content, watching)
        return release.chosen[what], watching.noised(step)

    def exact(self, rows: Iterable[Row]) -> Answered:
        """Release made-up rows without noise."""
        return self._answered(self._run(NoEntropy(), table(self.query, rows), self.engine))

    def given(self, step: str, rows: Iterable[Row]) -> pa.Table:
        """Give what a noiser of made-up rows would add its noise to."""
        watching = Watching(self.engine)
        replace(self, engine=watching).exact(rows)
        return watching.noised(step).exact

    def drawn_again(self, rows: Iterable[Row], *, times: int) -> NDArray[np.float64]:
        """Noise the same made-up rows of known keys many times, as a run does: by draw, key in their order, and released column.

        They come in the engine's own batches in the first half of the draws, and in smaller ones in the second.
        """
        explanation, watching = self.explain(), Watching(self.engine)
        step, key = explanation.plan[-1], explanation.calibrated.keys[0]
        self._run(SystemEntropy(), table(self.query, rows), watching)
        replaying = Replaying(tuple(exact for exact, _ in watching.batches[step.name]))
        order = np.argsort(np.array(pa.Table.from_batches(replaying.batches)[key].to_pylist()))
        columns = [column for measure in explanation.calibrated.measures for column in measure.released.values()]
        drawn = np.empty((times, len(order), len(columns)))
        for number in range(times):
            replaying = replaying.in_pieces(max(1, len(order) // _PIECES)) if number == times // 2 else replaying
            draw(step, replaying, SystemEntropy())
            released = replaying.taken()
            drawn[number] = np.array([released[column].to_numpy() for column in columns]).T[order]
        return drawn

    def _run(self, entropy: Entropy, content: pa.Table, engine: Engine) -> Release:
        """Run without the cautions of `run`: what a trial asks is the audit's, not the caller's."""
        return run_with(entropy, self.query, content, engine=engine, pipeline=self.pipeline, on_step=lambda _: None)

    def _answered(self, release: Release) -> Answered:
        rows: pa.Table = release.to_arrow()
        keys = tuple(rows.column(self.query.keys[0]).to_pylist())
        names = [column for measure in self.query.measures for column in measure.columns]
        columns = [_numbers(rows.column(name)) for name in names]
        values = zip(*columns, strict=True)
        return Answered(dict(zip(keys, values, strict=True)), keys)


def _numbers(column: pa.ChunkedArray) -> list[float]:
    """Read released values as numbers; dates and timestamps are counted from 1970."""
    whole = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}
    read: list[float] = column.cast(whole.get(column.type, column.type)).cast(pa.float64()).to_pylist()
    return read
