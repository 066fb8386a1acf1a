"""Runs on a small cluster of real executors, during each of which something goes wrong; prints what came out. Started by test_faults.py."""

import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import plume
from exact import ENTROPY, SALT
from plume.engines.engine import Table
from plume.engines.execute import run_step
from plume.engines.spark import Spark
from plume.engines.spark_session import start_session
from plume.errors import PlumeError
from plume.pipelines.steps import INPUT, KEY_ORDER
from plume.plan.analysis import steps
from plume.plan.nodes import Noise
from plume.plan.printing.plan_sql import print_plan
from plume.planning import make_plan
from plume.schema import kinds_expected
from sparks import BRIEF_JAVA

QUERY = plume.Query.paper(
    user="person",
    keys="key",
    measures=[plume.count(max_per_key=2), plume.users()],
    max_keys_per_user=4,
    budget=plume.Budget(epsilon=20, delta=0.1),
)
CLUSTER = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.cores.max": "2",
    "spark.driver.extraJavaOptions": BRIEF_JAVA,
    "spark.executor.extraJavaOptions": BRIEF_JAVA,
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
}
USERS, KEYS = 4000, 300


def write_rows(path: Path) -> None:
    random = np.random.default_rng(1)
    people = np.repeat(np.arange(USERS), random.integers(1, 24, USERS))
    keys = random.zipf(1.3, len(people)) % KEYS
    path.mkdir()
    for part in range(4):
        pq.write_table(pa.table({"person": people[part::4], "key": keys[part::4]}), path / f"{part}.parquet")


class Cluster:
    """Two executors of this very application, as processes that can be killed."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.seen: list[int] = []

    def executors(self) -> list[int]:
        name = self.session.sparkContext.applicationId.encode()
        return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit() and _runs(folder, name)]

    def kill_one(self) -> None:
        os.kill(self.executors()[0], signal.SIGKILL)

    def lose_shuffle_files(self) -> None:
        """Delete what executors wrote for each other, and lose one of them, so that what it kept must be computed again."""
        folders = Path(self.session.conf.get("spark.local.dir")).rglob("shuffle_*")
        for file in list(folders):
            file.unlink(missing_ok=True)
        self.kill_one()

    def kill_in_stage(self, number: int) -> threading.Thread:
        """Kill an executor as soon as the stage of this number has a task under way, counted from 1 in the order they begin."""
        watcher = threading.Thread(target=self._watch, args=(number,), daemon=True)
        watcher.start()
        return watcher

    def _watch(self, number: int) -> None:
        tracker = self.session.sparkContext.statusTracker()
        while len(self.seen) < number:
            for stage in tracker.getActiveStageIds():
                found = tracker.getStageInfo(stage)
                if stage not in self.seen and found is not None and found.numActiveTasks > 0:
                    self.seen.append(stage)
            time.sleep(0.002)
        self.kill_one()


def _runs(folder: Path, application: bytes) -> bool:
    try:
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return False
    return b"CoarseGrainedExecutorBackend" in command and application in command


def failing_at_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext  # noqa: PLC0415 - on the executor

    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")
    yield from batches


def slow_at_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext  # noqa: PLC0415 - on the executor

    context = TaskContext.get()
    if context.partitionId() == 0 and context.attemptNumber() == 0:
        time.sleep(15)
    yield from batches


KEPT = "kept on executors"
INPUTS = {"first attempt": failing_at_first, "speculation": slow_at_first}
SETTINGS = {
    "speculation": {
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.interval": "50ms",
    }
}


def digest(rows: pa.Table) -> str:
    """Sum a table up, whatever the order of its rows, and however an engine writes the secret order of keys."""
    columns = [name for name in rows.column_names if name != KEY_ORDER]
    listed = sorted(repr(tuple(row.values())) for row in rows.select(columns).to_pylist())
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()


def run(fault: str, engine: Spark, content: Any) -> dict[str, Any]:
    """Run the plan to its end with the fault in it, and sum up what was bounded and what came out."""
    planned = make_plan(QUERY)
    plan = planned.plan
    cluster, noised = Cluster(engine.session), Counter[str]()

    def noise(step: Noise, batch: pa.RecordBatch) -> pa.RecordBatch:
        noised[step.name] += batch.num_rows
        return step.noiser.noise(batch, ENTROPY)

    before = set(cluster.executors())
    if fault.startswith("stage"):
        cluster.kill_in_stage(int(fault.split()[1]))
    with engine.open({INPUT: Table(content, kinds_expected(QUERY))}) as opened:
        printed = print_plan(plan, opened.printer(SALT))
        for step in steps(plan):
            if isinstance(step, Noise):
                opened.noise(step.name, step.source.name, partial(noise, step))
                if fault == "shuffle files" and step is not plan[-1]:
                    cluster.lose_shuffle_files()
            else:
                run_step(step, opened, printed, SALT)
        rows = {
            name: opened.fetch(name, planned.calibrated.keys) for name in ("bounded", "safe", "exact", plan[-1].name)
        }
    lost = len(before - set(cluster.executors()))
    return {"digests": {name: digest(table) for name, table in rows.items()}, "noised": noised, "lost": lost}


def lose_what_was_kept(session: Any, content: Any) -> dict[str, Any]:
    """Kill all executors of a run that keeps its steps on them, before the last stage, and say how it ends."""
    cluster = Cluster(session)

    def lose(step: str) -> None:
        if step == "release":
            for executor in cluster.executors():
                os.kill(executor, signal.SIGKILL)

    try:
        plume.run(QUERY, content, engine=Spark(session), on_step=lose)
    except PlumeError as error:
        return {"said": f"{type(error).__name__}: {error}"}
    return {"said": "nothing"}


def main(folder: str, *faults: str) -> None:
    """Start a cluster of two, run once for each fault, and print what came out as JSON, by fault."""
    settings = CLUSTER | {"spark.local.dir": f"{folder}/local"} | SETTINGS.get(faults[0], {})
    session = start_session(master="local-cluster[2,1,1024]", settings=settings)
    rows = session.read.parquet(f"{folder}/rows")
    found = {}
    for fault in faults:
        content = rows.mapInArrow(INPUTS[fault], "person long, key long") if fault in INPUTS else f"{folder}/rows"
        if fault == KEPT:
            found[fault] = lose_what_was_kept(session, content)
        else:
            found[fault] = run(fault, Spark(session, keep_in=f"{folder}/kept"), content)
    print(json.dumps(found))  # noqa: T201 - the result
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
