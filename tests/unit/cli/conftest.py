from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from plume.cli.main import main

USERS = 300
Invoke = Callable[..., Result]


@pytest.fixture
def searches(tmp_path: Path) -> Path:
    """300 users with three recipes each: at epsilon 50 all three are released but for a chance below 10^-100."""
    recipes = ["lasagna", "=1+1", "red\x1b[31m"]
    rows = {"user_id": [user for user in range(USERS) for _ in recipes], "recipe": recipes * USERS}
    path = tmp_path / "searches.parquet"
    pq.write_table(pa.table(rows | {"seconds": [2.0] * USERS * len(recipes)}), path)
    return path


@pytest.fixture
def asked() -> list[str]:
    """What `plume run` needs beside data."""
    query = "--user user_id --key recipe --measure count(3) --epsilon 50 --delta 1e-5 --max-keys-per-user 4"
    return query.split()


@pytest.fixture
def invoke() -> Invoke:
    """Call the command in this process."""

    def call(*args: object) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args])

    return call


@pytest.fixture
def run(invoke: Invoke, searches: Path, asked: list[str]) -> Invoke:
    """Call `plume run` on the searches, with what it needs and more."""
    return lambda *more: invoke("run", searches, *asked, *more)
