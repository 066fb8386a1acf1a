"""Published attacks, tried on whole releases: forked processes, a source of randomness that fails, float noise, orders of rows.

Nothing here fails a correct build but by chance: the forked releases with a probability below 1e-50, the others never.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import SeededEntropy
from exact import exact_release, say_nothing
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.errors import EntropyError
from plume.ledger.store import entries_of
from plume.noise.entropy import SystemEntropy
from plume.running import run_with
from questions import ENGINE, asking

KEYS = [f"key {number}" for number in range(32)]
NOBODY = pa.table({"u": pa.array([], pa.string()), "k": pa.array([], pa.string()), "v": pa.array([], pa.float64())})

# Python warns of forks while other threads run; here there are none that matter.
FORKS = """
import json, os, sys, warnings
sys.path.insert(0, sys.argv[1])
from privacy.test_attacks import noise_alone
warnings.simplefilter("ignore")
print(json.dumps(noise_alone()), flush=True)
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        print(json.dumps(noise_alone()), flush=True)
        os._exit(0)
    os.wait()
"""


def noise_alone() -> list[float]:
    """A release in which there is nothing but noise, on 32 keys."""
    query = asking(measures=[plume.sum("v", 0, 1000)], public_keys=KEYS, budget=plume.Budget(0.01))
    return plume.run(query, NOBODY, engine=ENGINE).to_arrow()["v_sum"].to_pylist()


@pytest.mark.parametrize("forks", [16, pytest.param(64, marks=pytest.mark.engines)])
def test_releases_of_forked_processes_share_no_noise(forks: int) -> None:
    # Two draws of a scale of 10^11 steps are the same with a chance of 2e-12 or so; two releases have 32 of them.
    command = [sys.executable, "-c", FORKS, str(Path(__file__).parents[1]), str(forks)]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout  # noqa: S603
    drawn = [json.loads(line) for line in output.splitlines()]
    assert len(drawn) == forks + 1
    assert len({value for values in drawn for value in values}) > 0.99 * len(drawn) * 32
    assert len({tuple(values) for values in drawn}) == len(drawn)


class Failing:
    """The system's source, until the word that fails."""

    private = True

    def __init__(self, calls: int) -> None:
        self.left = calls

    def urandom(self, count: int) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise OSError("no entropy")
        return self.system(count)

    system = staticmethod(os.urandom)


CROWD = pa.table({"u": [str(n) for n in range(300)], "k": ["x", "y", "z"] * 100, "v": [1.0] * 300})
ASKED = plume.Query(
    user="u",
    keys="k",
    measures=[plume.count(2), plume.sum("v", 0, 2)],
    max_keys_per_user=2,
    budget=plume.Budget(1, 1e-6),
)


def calls_of_a_release(monkeypatch: pytest.MonkeyPatch) -> int:
    failing = Failing(10**6)
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", failing.urandom)
        plume.run(ASKED, CROWD, engine=ENGINE)
    return 10**6 - failing.left


def test_a_source_that_fails_at_any_moment_gives_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("d", plume.Budget(100, 1e-3))
    states = []
    for calls in range(calls_of_a_release(monkeypatch)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "urandom", Failing(calls).urandom)
            with pytest.raises(EntropyError, match="the operating system gave no random bytes"):
                plume.run(ASKED, CROWD, engine=ENGINE, ledger=ledger, dataset="d", release_id=f"r{calls}")
        found = entries_of(ledger.store, f"r{calls}")
        states.append(str(found[-1].kind) if found else None)
    # The first call is for the secret order of keys, before anything is charged; whatever was begun to be drawn is never used.
    assert states[0] is None
    assert set(states[1:]) == {"drawing"}
    assert ledger.recover() == {f"r{calls}": "lost" for calls in range(1, len(states))}
    assert not list(ledger.shelf.folder.glob("*.parquet"))


@pytest.mark.parametrize("release_id", ["named", None])
def test_a_source_that_fails_at_once_costs_nothing(
    release_id: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where a name must be drawn for the release, nor where only the secret order of keys is."""
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("d", plume.Budget(100, 1e-3))
    before = ledger.path.read_bytes()
    monkeypatch.setattr(os, "urandom", Failing(0).urandom)
    with pytest.raises(EntropyError, match="nothing was released"):
        plume.run(ASKED, CROWD, engine=ENGINE, ledger=ledger, dataset="d", release_id=release_id)
    assert ledger.path.read_bytes() == before
    assert not list(ledger.shelf.folder.glob("*.parquet"))


def test_noise_is_drawn_once_however_often_a_release_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(10**6)
    monkeypatch.setattr(os, "urandom", failing.urandom)
    release = plume.run(ASKED, CROWD, engine=ENGINE)
    drawn, rows = failing.left, release.to_arrow()
    for _ in range(100):
        assert release.to_arrow().equals(rows)
        assert release.to_polars().to_arrow().to_pydict() == rows.to_pydict()
    for name in ("first", "second"):
        release.write_parquet(tmp_path / f"{name}.parquet")
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "second.parquet").read_bytes()
    assert failing.left == drawn


CENTRES = (0.0, 1.0, 2.0**10, 2.0**52)
DRAWS = 250_000
"""Of each centre: a million together."""


def test_no_value_is_finer_than_the_grid_whatever_it_is_noise_around() -> None:
    rows = pa.table(
        {
            "u": np.arange(4 * DRAWS),
            "k": np.arange(4 * DRAWS),
            "v": np.repeat(CENTRES, DRAWS),
        }
    )
    measure = plume.sum("v", 0, 2.0**52)
    query = asking(measures=[measure], public_keys=pa.table({"k": rows["k"]}), budget=plume.Budget(1))
    released = plume.run(query, rows).to_arrow()["v_sum"].to_numpy()
    steps = released / float(measure._grid().unit)
    assert np.count_nonzero(np.rint(steps) != steps) == 0
    # Values are of any size, so that it is not their size that keeps them on the grid.
    assert np.abs(released).min() < 2.0**40
    assert np.abs(released).max() > 2.0**54


def test_float_noise_would_be_seen_by_what_it_is_finer_than() -> None:
    """Mironov 2012; Haney, Desfontaines, Hartman, Shrestha and Hay 2022: zero plus float noise is finer than one plus it ever is."""
    noise = np.random.default_rng(1).laplace(size=DRAWS)
    finer = [np.mean(np.rint((centre + noise) * 2.0**53) != (centre + noise) * 2.0**53) for centre in CENTRES[:2]]
    assert finer[0] > 0.2
    assert finer[1] < 0.001


# Sums of floats of these depend on their order: 2^53 + 1 is 2^53, and what is added to a large value and taken off again is lost.
VALUES = [2.0**53, 1.0, -(2.0**53), 0.5, 1e16, 1e-9, -1e16, 0.1, 0.2, 0.3, 2.0**-30, 1e300, -1e300]
ORDERED = pa.table(
    {
        "u": [f"u{number % 7}" for number in range(700)],
        "k": [f"k{number % 5}" for number in range(700)],
        "v": [VALUES[number * number % len(VALUES)] for number in range(700)],
    }
)
REORDERED = asking(measures=[plume.sum("v", -1e6, 1e6), plume.mean("v", -10, 10)], max_keys_per_user=2)


def orders(number: int) -> list[pa.Table]:
    """The same rows in random orders."""
    dice = np.random.default_rng(20261115)
    return [ORDERED.take(pa.array(dice.permutation(len(ORDERED)))) for _ in range(number)]


def in_pieces(rows: pa.Table, pieces: int) -> pa.Table:
    size = -(-len(rows) // pieces)
    return pa.concat_tables([rows.slice(start, size) for start in range(0, len(rows), size)])


PIECES = (1, 2, 3, 7, 50, 350, 700)


@pytest.mark.parametrize("ways", [1, pytest.param(len(PIECES), marks=pytest.mark.slow)])
@pytest.mark.parametrize("threads", [1, *(pytest.param(threads, marks=pytest.mark.engines) for threads in (2, 3)), 8])
def test_no_order_of_rows_and_no_number_of_threads_or_pieces_changes_a_sum(threads: int, ways: int) -> None:
    """Casacuberta, Shoemate, Vadhan and Wagaman 2022: 20 orders in 7 kinds of pieces on 4 numbers of threads are one answer."""
    expected = exact_release(REORDERED, ORDERED, engine=ENGINE)
    for number, rows in enumerate(orders(20)):
        for way in range(ways):
            cut = in_pieces(rows, PIECES[(number + way) % len(PIECES)])
            assert exact_release(REORDERED, cut, engine=DuckDB(threads=threads)).equals(expected)


def test_float_sums_of_the_same_rows_would_change() -> None:
    assert len({float(np.sum(rows["v"].to_numpy())) for rows in orders(20)}) > 1


@pytest.mark.large
def test_no_order_of_rows_changes_a_sum_on_any_engine(engine: Engine) -> None:
    expected = exact_release(REORDERED, ORDERED, engine=ENGINE)
    for rows in orders(20 if isinstance(engine, DuckDB) else 4):
        assert exact_release(REORDERED, rows, engine=engine).equals(expected)


def test_the_same_seed_gives_the_same_release_and_the_system_never_does() -> None:
    """What makes the other tests here worth something: noise is all that differs between runs, and it does."""
    first, again = (
        run_with(SeededEntropy(1), ASKED, CROWD, engine=ENGINE, pipeline="plume", on_step=say_nothing).to_arrow()
        for _ in range(2)
    )
    assert first.equals(again)
    drawn = [
        run_with(SystemEntropy(), ASKED, CROWD, engine=ENGINE, pipeline="plume", on_step=say_nothing).to_arrow()
        for _ in range(2)
    ]
    # The noise of sums has 10^6 steps in a standard deviation, on three keys.
    assert not drawn[0].equals(drawn[1])
