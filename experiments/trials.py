"""Trials: a system answers a question once, and its answer is compared with the exact one.

The truth may be looked at here, since data are made up or public. Every finished trial is kept in `build/paper/trials.jsonl` and not done
again: interrupted work resumes, and experiments share the trials they have in common.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from rich.console import Console
from rich.progress import Progress

import plume
from plume.synthetic import write_paper_data

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
NO_PRIVACY = "no privacy"
SYSTEMS = ("naive", "runtime_optimized", "plume")
CONFIGURATIONS: dict[str, Callable[..., plume.Query]] = {
    "paper": plume.Query.paper,
    "Laplace threshold": partial(plume.Query, selection="laplace_threshold"),
    "truncated geometric": partial(plume.Query, selection="truncated_geometric"),
    "Gaussian threshold": partial(plume.Query, selection="gaussian_threshold"),
    "weighted Gaussian": partial(plume.Query, selection="weighted_gaussian"),
    "default": plume.Query,
    "two rounds": partial(plume.Query, selection="two_round_weighted_gaussian"),
}
USERS = [10**5, 10**6, 10**7]
LIMIT = 64
LARGE_KEYS = 200
# Up to how many users there are how many runs.
RUNS = {10**6: 5, 10**7: 3, 10**10: 1}
KEPT = Path(__file__).parents[1] / "build" / "paper" / "trials.jsonl"


@dataclass(frozen=True)
class Question:
    """What is asked of a Parquet file: for each key, an aggregate or the measure that stands for it."""

    name: str
    path: Path
    users: int
    """How many are made up; none if the file is there anyway."""
    user: str
    key: str
    aggregate: str
    measure: Any

    @property
    def exact(self) -> str:
        """The question without privacy, as SQL."""
        return f"SELECT {self.key} AS key, {self.aggregate} AS exact FROM '{self.path}' GROUP BY {self.key}"


@dataclass(frozen=True)
class Trial:
    """One run of a system; with `NO_PRIVACY` for a system, the exact answer is computed."""

    question: Question
    system: str
    run: int = 0
    limit: int = LIMIT
    configuration: str = "paper"

    @property
    def query(self) -> plume.Query:
        """What is asked privately."""
        return CONFIGURATIONS[self.configuration](
            user=self.question.user,
            keys=self.question.key,
            measures=[self.question.measure],
            max_keys_per_user=self.limit,
            budget=BUDGET,
        )

    @property
    def label(self) -> dict[str, Any]:
        """What tells it from others, in files."""
        return {
            "data": self.question.name,
            "configuration": self.configuration,
            "limit": self.limit,
            "system": self.system,
            "run": self.run,
        }


@dataclass(frozen=True)
class Outcome:
    """What came of a trial; errors are means over keys, as the paper defines them."""

    seconds: float
    keys: int
    absolute: float | None
    """Over the keys released: |released - exact|; None without any."""
    relative: float | None
    """Over the keys released: |released - exact| / exact."""
    absolute_all: float
    """Over all keys of the data, where a key that was dropped counts as 0."""
    absolute_large: float
    """The same over the largest keys of the data."""


Outcomes = Mapping[Trial, Outcome]


def synthetic(users: int) -> Question:
    """How many records each key has, at most one of each user, in the paper's synthetic data."""
    path = Path(tempfile.gettempdir()) / f"plume-bench-{users}.parquet"
    return Question(
        f"synthetic-{users}", path, users, "user", "key", "count(*)", plume.count(max_per_key=1, name="released")
    )


def words(path: Path) -> Question:
    """How often each word is used, at most 8 times by each author: the paper's task on its Reddit data."""
    measure = plume.sum("uses", low_total=0, high_total=8, name="released")
    return Question("words", path, 0, "author", "word", "sum(uses)", measure)


def repeated(kinds: Sequence[Trial], times: int) -> list[Trial]:
    """Run each kind of trial several times; they take turns, so that what slows the machine for a while slows all of them."""
    return [replace(kind, run=run) for run in range(times) for kind in kinds]


def by_users(users: Iterable[int], systems: Sequence[str], configurations: Sequence[str] = ("paper",)) -> list[Trial]:
    """Ask the same of more and more users: the more there are, the less one run differs from the next, and the fewer there are."""
    return [
        trial
        for number in users
        for trial in repeated(
            [Trial(synthetic(number), system, configuration=name) for system in systems for name in configurations],
            next(times for most, times in RUNS.items() if number <= most),
        )
    ]


def arguments(description: str | None, *, users: Sequence[int]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--users", type=lambda text: int(float(text)), nargs="+", default=users, help="numbers of made-up users"
    )
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--memory-limit", help="the most memory DuckDB may use, such as 18GB")
    return parser.parse_args()


def conduct(trials: Sequence[Trial], *, memory_limit: str | None = None) -> dict[Trial, Outcome]:
    """Do the trials that are not done yet, in turn, and return what came of all."""
    kept = _kept()
    answer = _privately(plume.DuckDB(memory_limit=memory_limit))
    missing = [trial for trial in trials if _name(trial) not in kept]
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(missing))
        for trial in missing:
            progress.update(task, description=" ".join(str(word) for word in trial.label.values()))
            kept[_name(trial)] = outcome = _outcome(trial, answer)
            _keep(trial, outcome)
            progress.advance(task)
    return {trial: kept[_name(trial)] for trial in trials}


def make_data(question: Question) -> None:
    """Make up the users of a question unless they are there; they are always the same."""
    if question.users and not question.path.exists():
        Console(stderr=True).print(f"making up {question.users:,} users ...")
        write_paper_data(question.path, question.users, seed=1)


def _privately(engine: plume.DuckDB) -> Callable[[Trial], pa.Table]:
    return lambda trial: plume.run(trial.query, trial.question.path, engine=engine, pipeline=trial.system).to_arrow()


def _exactly(trial: Trial) -> pa.Table:
    with duckdb.connect() as connection:
        return connection.sql(trial.question.exact).to_arrow_table()


def _outcome(trial: Trial, privately: Callable[[Trial], pa.Table]) -> Outcome:
    make_data(trial.question)
    answer = _exactly if trial.system == NO_PRIVACY else privately
    start = time.perf_counter()
    answered = answer(trial)
    seconds = time.perf_counter() - start
    return Outcome(seconds=seconds, **errors(trial.question, answered.rename_columns(["key", "released"])))


def errors(question: Question, release: pa.Table) -> dict[str, Any]:
    """Compare what was released, in the columns `key` and `released`, with the truth."""
    truth = _truth(question)
    truth.register("release", release)
    compared = truth.sql(f"""
        SELECT count(released) AS keys,
               avg(abs(released - exact)) AS absolute,
               avg(abs(released - exact) / exact) AS relative,
               avg(abs(coalesce(released, 0) - exact)) AS absolute_all,
               avg(abs(coalesce(released, 0) - exact)) FILTER (place <= {LARGE_KEYS}) AS absolute_large
        FROM truth LEFT JOIN release USING (key)
    """).to_arrow_table()
    truth.unregister("release")
    found: dict[str, Any] = compared.to_pylist()[0]
    return found


@cache
def _truth(question: Question) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE truth AS SELECT *, row_number() OVER (ORDER BY exact DESC) AS place FROM ({question.exact})"
    )
    return connection


def _name(trial: Trial) -> str:
    return json.dumps(trial.label)


def _kept() -> dict[str, Outcome]:
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    outcomes = (json.loads(line) for line in lines)
    return {json.dumps(kept["trial"]): Outcome(**kept["outcome"]) for kept in outcomes}


def _keep(trial: Trial, outcome: Outcome) -> None:
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"trial": trial.label, "outcome": asdict(outcome)}) + "\n")
