"""Steps that several others read: computed once, and cut off from the rows they were computed of.

Spark recomputes what it has lost, and what a server did not keep it computes each time. A table may have changed by then, and a user be
within the limit in one reading and above it in the other. So a kept step is there as it was, or the run ends.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from pyspark import StorageLevel

from plume.engines.spark_silence import withheld
from plume.errors import EngineError, PlumeError, SettingError
from plume.redaction import redacting

_SPECULATION = "spark.speculation"
_PROBE = "plume_probe"
# Whether a server keeps is asked once for each session of a caller's: it takes as long as a small question.
_KEEPS: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


class Keeping(Protocol):
    """Where kept steps lie during a run."""

    def keep(self, name: str, frame: Any) -> Any:
        """Compute a step now, and give a frame that reads what was computed."""

    def forget(self) -> None:
        """Remove all that was kept; what fails must not stop the rest."""


@dataclass(frozen=True)
class OnExecutors:
    """On the executors' disks. An executor that is lost takes the run with it, for its rows are never computed again.

    Guarantee: each row of a table is read once for each kept step. docs/guarantees/reading.md.
    """

    frames: list[Any] = field(default_factory=list)

    def keep(self, name: str, frame: Any) -> Any:
        """Compute a step before any other reads it, so that no two tasks compute the same piece of it."""
        kept = withheld(name, lambda: _cut_off(frame))
        self.frames.append(kept)
        return kept

    def forget(self) -> None:
        """Release the frames; a server of Spark Connect removes theirs when it next collects garbage."""
        for frame in self.frames:
            with suppress(Exception):
                frame.unpersist()
        self.frames.clear()


def _cut_off(frame: Any) -> Any:
    """Keep a frame as it is now: a piece that is missing later is an error, and not computed again."""
    if not hasattr(frame, "_jdf"):
        return _of_its_session(
            frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY), frame.sparkSession
        )
    # The same, but the cache keeps columns, and knows by what they lie together; a checkpoint forgets it under adaptive execution.
    frame.persist(StorageLevel.DISK_ONLY)
    pieces = frame._jdf.queryExecution().withCachedData().cacheBuilder().cachedColumnBuffers()  # noqa: SLF001 - PySpark shows no cache
    pieces.localCheckpoint()
    pieces.count()
    if not pieces.isCheckpointed():
        raise EngineError("Spark did not keep a step.")
    return frame


def _of_its_session(kept: Any, session: Any) -> Any:
    """Bind a kept frame to the session that kept it: PySpark binds it to the active one, which does not know it."""
    kept._session = kept._plan._spark_session = session  # noqa: SLF001 - it has no other way
    return kept


@dataclass(frozen=True)
class InFolder:
    """As Parquet in a folder of the caller's, wherever all executors can read and write. Executors may come and go.

    Guarantee: one attempt of each task writes its rows, and these are what is read.
    """

    session: Any
    folder: str
    paths: list[str] = field(default_factory=list)

    def keep(self, name: str, frame: Any) -> Any:
        """Write a step down, and read it; files of Spark say which types their columns had."""
        path = f"{self.folder}/{name}"
        self.paths.append(path)
        refusal = SettingError(
            f"step {name} could not be kept in the folder that keep_in names; check that Spark may write there."
        )
        with redacting(EngineError, to=refusal):
            withheld(name, lambda: frame.write.parquet(path))
        return withheld(name, lambda: self.session.read.parquet(path))

    def forget(self) -> None:
        """Remove the files: here, or where only Spark gets, by writing nothing in their place."""
        here = Path(self.folder.removeprefix("file://"))
        if here.is_dir():
            rmtree(here, ignore_errors=True)
            return
        nothing = self.session.range(0)
        for path in self.paths:
            with suppress(Exception):
                nothing.write.mode("overwrite").parquet(path)


def choose_keeping(caller: Any, session: Any, keep_in: str | None, run: str) -> Keeping:
    """Choose where the kept steps of a run lie, and refuse a Spark that would compute them again."""
    if keep_in is not None:
        return InFolder(session, f"{keep_in.rstrip('/')}/{run}")
    if str(caller.conf.get(_SPECULATION, "false")) == "true":
        raise SettingError(
            f"{_SPECULATION} is on, so two tasks may keep the same rows, each as it read them; "
            "give a folder that all executors can write to, as in plume.Spark(keep_in='s3a://bucket/folder')."
        )
    if not hasattr(caller, "_jvm") and not _keeps(caller, session):
        raise SettingError(
            "this server does not keep what it has computed, and a table may change before it is read again; "
            "give a folder that it can write to, as in plume.Spark(keep_in='s3a://bucket/folder')."
        )
    return OnExecutors()


def _keeps(caller: Any, session: Any) -> bool:
    if caller not in _KEEPS:
        _KEEPS[caller] = _is_same_twice(session, lambda frame: OnExecutors().keep(_PROBE, frame))
    return _KEEPS[caller]


def _is_same_twice(session: Any, keep: Callable[[Any], Any]) -> bool:
    """Keep what differs with each computation, the time of it and a random number, and see if it is the same in two readings."""

    def read_twice() -> bool:
        # A server forgets a kept frame together with this object.
        kept = keep(session.sql("SELECT current_timestamp() AS time, uuid() AS drawn"))
        kept.createOrReplaceTempView(_PROBE)
        first, second = (session.table(_PROBE).toArrow() for _ in range(2))
        session.catalog.dropTempView(_PROBE)
        return bool(first.equals(second))

    with suppress(PlumeError):  # a server that has no way to keep says so by an error
        return withheld(_PROBE, read_twice)
    return False
