"""Noise that keys share, on every engine: exact numbers, one shared draw whatever the batches, and what one user changes."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import SeededEntropy
from exact import exact_release, exact_step, say_nothing
from plume.calibration.calibrated_query import calibrate
from plume.engines import duckdb_session
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.noise.correlated import CorrelatedGaussian
from plume.privacy.correlated import squared_mu
from plume.running import run_with

PAGES = [f"p{number:02}" for number in range(12)]
QUERY = plume.Query(
    user="person",
    keys="page",
    measures=[plume.users(), plume.count(3), plume.sum("seconds", 0, 10), plume.sum("seconds", -4, 0, name="below")],
    max_keys_per_user=3,
    budget=plume.Budget(1, 1e-5),
    public_keys=PAGES,
    noise="correlated",
)
LISTED = {"selected_keys": pa.table({"key_1": PAGES})}


def visits(seed: int, users: int) -> list[tuple[int | None, str, float | None]]:
    """Users with few keys and many, hostile values, and rows of nobody and of other keys."""
    random = Random(seed)  # noqa: S311 - what is drawn here may be guessed, and must come again
    values = (0.5, 3, -3, 1e9, -1e9, float("inf"), float("nan"), None)
    listed = []
    for user in range(users):
        pages = random.sample([*PAGES, "elsewhere"], random.randint(1, 13))
        listed += [(user, page, random.choice(values)) for page in pages for _ in range(random.randint(1, 4))]
    return [*listed, (None, PAGES[0], 1.0)]


def table(rows: list[tuple[int | None, str, float | None]]) -> pa.Table:
    users, pages, seconds = zip(*rows, strict=True)
    columns = [pa.array(users, pa.int64()), pa.array(pages, pa.string()), pa.array(seconds, pa.float64())]
    return pa.table(columns, names=["person", "page", "seconds"])


def test_exact_numbers_are_those_of_a_query_whose_keys_share_nothing(engine: Engine) -> None:
    """Users above the limit aside, whom a secret order and a factor cut; here nobody is."""
    rows = [row for row in visits(1, 20) if row[1] in PAGES[:3]]
    apart = replace(QUERY, noise="gaussian")
    shared = exact_release(QUERY, table(rows), engine=engine)
    assert shared.equals(exact_release(apart, table(rows), engine=engine))


@pytest.mark.quick_on("spark")
def test_all_keys_share_one_draw_and_columns_share_none(engine: Engine) -> None:
    """Without the shared draw, what is left in each key is as wide as its own draws are."""
    few = plume.Query(
        user="person",
        keys="page",
        measures=[plume.sum("seconds", 0, 10, name="one"), plume.sum("seconds", 0, 9, name="other")],
        max_keys_per_user=12,
        budget=plume.Budget(1, 1e-5),
        public_keys=PAGES,
        noise="correlated",
    )
    release = run_with(
        SeededEntropy(3), few, table([(1, "nowhere", 1.0)]), engine=engine, pipeline="plume", on_step=say_nothing
    )
    drawn = np.array([release.to_arrow()[name].to_pylist() for name in ("one", "other")])
    parts = calibrate(few).parts
    entropy = SeededEntropy(3)
    entropy.words(2)  # the salt
    begun = [part.noise.begun(entropy) for part in parts if isinstance(part.noise, CorrelatedGaussian)]
    for noised, noise, part in zip(drawn, begun, parts, strict=True):
        own = noised / float(part.unit) - noise.drawn
        assert np.all(np.abs(own) < 7 * float(noise.own))
        assert np.std(own) > float(noise.own) / 4
    assert begun[0].drawn * begun[1].common != begun[1].drawn * begun[0].common


def test_keys_in_different_batches_share_their_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of them here: the mean of either half of 5,000 keys is next to the one draw that all share."""
    whole = plume.Query(
        user="person",
        keys="page",
        measures=[plume.users()],
        max_keys_per_user=3000,
        budget=plume.Budget(1, 1e-5),
        public_keys=[f"p{number}" for number in range(5000)],
        noise="correlated",
    )
    (part,) = calibrate(whole).parts
    monkeypatch.setattr(duckdb_session, "_ROWS_PER_BATCH", 2048)
    for seed in range(3):
        release = run_with(
            SeededEntropy(seed), whole, table([(1, "p1", 1.0)]), engine=DuckDB(), pipeline="plume", on_step=say_nothing
        )
        counts = np.array(release.to_arrow()["users"].to_pylist(), np.float64)
        entropy = SeededEntropy(seed)
        entropy.words(2)  # the salt
        assert isinstance(part.noise, CorrelatedGaussian)
        shared = part.noise.begun(entropy).drawn * float(part.unit)
        # The mean of 2,500 own draws is within 6 of its standard deviations of the shared one, but for a chance of 2e-9.
        reach = 6 * float(part.noise.own) * float(part.unit) / np.sqrt(2500)
        assert abs(np.mean(counts[:2500]) - shared) < reach
        assert abs(np.mean(counts[2500:]) - shared) < reach


@pytest.mark.parametrize(
    "pipeline", ["plume", *(pytest.param(name, marks=pytest.mark.engines) for name in ("naive", "runtime_optimized"))]
)
def test_one_user_more_changes_no_more_than_the_covariance_pays_for(engine: Engine, pipeline: str) -> None:
    """By the covariance, in fractions, before noise."""
    parts, near = calibrate(QUERY).parts, 0.0
    for seed, many in enumerate([1, 2, 3, 4, 12] if isinstance(engine, DuckDB) else [3, 12]):
        without = [row for row in visits(seed, 12) if row[0] != 0]
        rows = [*without, *((0, page, value) for page in PAGES[:many] for value in (1e9, -1e9)[: 1 + many % 2] * 3)]
        more, less = (
            exact_step(QUERY, table(given), "exact", engine=engine, pipeline=pipeline, prescribed=LISTED).sort_by(
                "key_1"
            )
            for given in (rows, without)
        )
        assert more["key_1"].to_pylist() == less["key_1"].to_pylist() == PAGES
        for part in parts:
            noise, (column,) = part.noise, part.columns
            moved = [a - b for a, b in zip(more[column].to_pylist(), less[column].to_pylist(), strict=True)]
            assert isinstance(noise, CorrelatedGaussian)
            assert min(moved) >= 0 or max(moved) <= 0
            taken = noise.common**2 / (noise.own**2 + len(PAGES) * noise.common**2)
            squares = sum(one * one for one in moved) - taken * Fraction(sum(moved)) ** 2
            most = squared_mu(noise, squared=part.part.squared << 2 * part.bits, max_keys_per_user=3)
            assert squares / noise.own**2 <= most
            near = max(near, float(squares / noise.own**2 / most))
    assert near > 0.97
