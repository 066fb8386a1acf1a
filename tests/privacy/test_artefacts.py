"""Non-interference: tables that differ only in what bounding drops give the same files, byte by byte."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import plume
from entropy import ConstantEntropy
from exact import say_nothing
from plume.running import run_with
from questions import ENGINE, asking

ROWS = pa.table(
    {
        "u": [f"user {n}" for n in range(40) for _ in range(2)],
        "k": ["x", "y"] * 20 + ["z", "z"] * 20,
        "v": [float(n % 7) for n in range(80)],
    }
)
QUERY = asking(measures=[plume.count(2), plume.users(), plume.sum("v", 0, 10)], where="v < 100")


def more(**columns: list[object]) -> pa.Table:
    return pa.concat_tables([ROWS, pa.table(columns, schema=ROWS.schema)])


OTHERS: dict[str, Callable[[], pa.Table]] = {
    "another order": lambda: ROWS.take(pa.array(range(80)[::-1])),
    "other pieces": lambda: pa.concat_tables([ROWS.slice(n, 1) for n in range(80)]),
    "rows without a user": lambda: more(u=[None] * 500, k=["x"] * 500, v=[1.0] * 500),
    "rows without a key": lambda: more(u=["new"] * 500, k=[None] * 500, v=[1.0] * 500),
    "rows a condition drops": lambda: more(u=["new"] * 500, k=["w"] * 500, v=[100.0] * 500),
    "keys of too few users": lambda: more(u=["new"] * 2, k=["rare", "rarer"], v=[1.0, 2.0]),
    "many keys of one user": lambda: more(u=["new"] * 500, k=[f"rare {n}" for n in range(500)], v=[1.0] * 500),
    "values that are none, of no user": lambda: more(u=[None] * 2, k=["x", "y"], v=[float("nan"), None]),
    "a column nobody asks for": lambda: ROWS.append_column("more", pa.array(["secret"] * 80)),
    "text in dictionaries": lambda: ROWS.set_column(1, "k", ROWS["k"].dictionary_encode()),
}


def artefacts(rows: pa.Table, folder: Path) -> list[bytes]:
    release = run_with(ConstantEntropy(), QUERY, rows, engine=ENGINE, pipeline="plume", on_step=say_nothing)
    release.write_csv(folder / "release.csv")
    release.write_parquet(folder / "release.parquet")
    release.report(folder / "release.html")
    files = [(folder / name).read_bytes() for name in ("release.csv", "release.parquet", "release.html")]
    return [*files, str(release).encode(), release.to_json().encode(), release._repr_html_().encode()]


@pytest.mark.parametrize("kind", OTHERS)
def test_what_bounding_drops_leaves_no_trace(kind: str, tmp_path: Path) -> None:
    assert artefacts(OTHERS[kind](), tmp_path) == artefacts(ROWS, tmp_path)
