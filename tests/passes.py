"""Plans that are made in one pass and by SQL, to compare: needs the extra, so whoever imports it is skipped without numba."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import plume
from exact import exact_steps
from plume.engines import duckdb_pass
from plume.engines.duckdb import DuckDB
from plume.engines.duckdb_session import DuckDBSession
from plume.engines.engine import Table
from plume.plan.analysis import steps
from plume.plan.nodes import OnePass
from plume.planning import make_plan
from plume.schema import kinds_expected
from plume.selection import pooled_gaussian

pytest.importorskip("numba")  # the extra; all else is tested without it as well
user_loops = pytest.importorskip("plume.engines.user_loops")
orders = pytest.importorskip("plume.engines.order_loops")
payloads = pytest.importorskip("plume.engines.payload_loops")
payload = pytest.importorskip("plume.engines.payload")
packings = pytest.importorskip("plume.engines.row_loops")
texts = pytest.importorskip("plume.engines.text_loops")
numbering = pytest.importorskip("plume.engines.numbering")
passing = pytest.importorskip("plume.engines.passing")

ENOUGH = 10**18
STEPS = ("keyed_weights", "above_limit", "exact")
BUDGET = plume.Budget(epsilon=20, delta=0.5)
# One more than the limit, so that users of four keys are above it and not cut.
KEYS_OF_TRIAL = 4
SELECTIONS = ("weighted_gaussian", "pooled_gaussian", "laplace_threshold", "truncated_geometric")


def query(limit: int, keys: str | list[str] = "key", selection: str = "pooled_gaussian", *measures: Any) -> plume.Query:
    return plume.Query(
        user="person",
        keys=keys,
        measures=list(measures) or [plume.count(max_per_key=3), plume.users()],
        max_keys_per_user=limit,
        budget=BUDGET,
        selection=selection,
        noise="laplace" if selection == "truncated_geometric" else "auto",
    )


def table(rows: list[tuple[int | None, ...]], *types: pa.DataType) -> pa.Table:
    columns = list(map(list, zip(*rows, strict=True))) or [[] for _ in types]
    names = ["person", "key", "day"][: len(columns)]
    kinds = types or (pa.int64(),) * len(columns)
    return pa.table([pa.array(one, kind) for one, kind in zip(columns, kinds, strict=True)], names=names)


def is_in_one_pass(asked: plume.Query, rows: Any) -> bool:
    with DuckDB().open({"input": Table(rows, kinds_expected(asked))}) as session:
        return any(isinstance(step, OnePass) for step in steps(session.rewrite(make_plan(asked).plan)))


def made(asked: plume.Query, rows: Any, monkeypatch: pytest.MonkeyPatch, *, by_pass: bool) -> dict[str, pa.Table]:
    """What steps say, by a pass or by SQL."""
    monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS", 0 if by_pass else ENOUGH)
    monkeypatch.setattr(duckdb_pass, "_FEWEST_ROWS_TO_COMPILE_FOR", 0 if by_pass else ENOUGH)
    keys = tuple(f"key_{number}" for number in range(1, len(asked.keys) + 1))
    found = exact_steps(asked, rows, [name for name in STEPS if name != "above_limit"], engine=DuckDB(threads=2))
    above = exact_steps(asked, rows, ["above_limit"], engine=DuckDB(threads=2), order=("user_id", *keys))
    return found | above


def made_by_pass(asked: plume.Query, rows: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, pa.Table] | None:
    """What steps say that a pass makes; None, if rows do not fit it, or it fails, so that SQL makes them."""
    taken: list[bool] = []
    whole = DuckDBSession.pass_over

    def noted(*given: Any) -> bool:
        taken.append(whole(*given))
        return taken[-1]

    with monkeypatch.context() as patched:
        patched.setattr(DuckDBSession, "pass_over", noted)
        found = made(asked, rows, patched, by_pass=True)
    assert len(taken) == 2
    return found if all(taken) else None


def check_both(asked: plume.Query, rows: Any, monkeypatch: pytest.MonkeyPatch, *, packs: bool | None = True) -> bool:
    """Compare what a pass makes with what SQL makes; `packs` says whether rows fit a pass, None that either may be. Gives which it was."""
    by_pass = made_by_pass(asked, rows, monkeypatch)
    is_packed = by_pass is not None
    assert packs in {None, is_packed}
    by_pass = by_pass or made(asked, rows, monkeypatch, by_pass=True)
    assert by_pass == made(asked, rows, monkeypatch, by_pass=False)
    return is_packed


def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows fill several partitions, pieces and threads."""
    monkeypatch.setattr(passing, "_ROWS_OF_PART", 4)
    monkeypatch.setattr(passing, "_ROWS_OF_PIECE", 16)


@dataclass(frozen=True)
class Trial:
    """What broken loops are tried on: questions about a table, and what SQL says of it."""

    asked: tuple[plume.Query, ...]
    rows: pa.Table
    by_sql: tuple[dict[str, pa.Table], ...]

    def is_passed(self, patched: pytest.MonkeyPatch) -> bool:
        """Return whether a pass takes the table and says what SQL says, with several users in a partition, and several partitions."""
        patched.setattr(passing, "_ROWS_OF_PART", 64)
        patched.setattr(pooled_gaussian, "_KEYS_WHEN_SELECTING", KEYS_OF_TRIAL)
        return all(
            made_by_pass(one, self.rows, patched) == found for one, found in zip(self.asked, self.by_sql, strict=True)
        )


def trial(ask: Callable[[str], plume.Query], rows: pa.Table) -> Trial:
    """Ask once with each of two ways to select keys, of which one cuts nobody with four keys or fewer."""
    asked = tuple(map(ask, SELECTIONS[1:3]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pooled_gaussian, "_KEYS_WHEN_SELECTING", KEYS_OF_TRIAL)
        return Trial(asked, rows, tuple(made(one, rows, patched, by_pass=False) for one in asked))


def people(seed: int, users: int = 60, keys: int = 12, most: int = 30) -> list[tuple[int, int, int]]:
    random = np.random.default_rng(seed)
    return [
        (int(user) * 7 - 200, int(random.zipf(1.5) % keys) - 5, int(random.integers(3)))
        for user in range(users)
        for _ in range(random.integers(1, most))
    ]


# Python warns where integers wrap around, in each thread anew.
_AS_PYTHON = "def compiled(loop): return np.errstate(over='ignore')(loop)\n"
LOOPS = {
    loops.__name__: Path(loops.__file__).read_text(encoding="utf-8")
    for loops in (orders, texts, payloads, packings, user_loops)
}


def run_loops_as(change: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python run the loops, with a change."""
    before, after = change
    assert sum(text.count(before) for text in LOOPS.values()) >= 1
    found: dict[str, ModuleType] = {}
    for name, own in LOOPS.items():
        text = own.replace("from plume.engines.compiled import compiled\n", _AS_PYTHON)
        module = ModuleType(_broken(name))
        for other in LOOPS:
            text = text.replace(f"from {other} import", f"from {_broken(other)} import")
        with pytest.MonkeyPatch.context() as patched:
            for other in found.values():
                patched.setitem(sys.modules, other.__name__, other)
            exec(compile(text.replace(before, after), name, "exec"), module.__dict__)  # noqa: S102 - our own text
        found[name] = module
    for reader in (passing, payload):
        monkeypatch.setattr(reader, "row_loops", found[packings.__name__])
    monkeypatch.setattr(passing, "loops", found[user_loops.__name__])
    monkeypatch.setattr(payload, "loops", found[payloads.__name__])
    monkeypatch.setattr(numbering, "loops", found[texts.__name__])


def _broken(name: str) -> str:
    return f"broken_{name.rpartition('.')[2]}"
