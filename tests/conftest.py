"""Engines for the tests that run on every one of them: `pytest --engines=duckdb`, `spark` or `spark-connect`.

A process has one kind of Spark at most: where both are, the second silently is the first. So `make test` runs three processes.
"""

from collections.abc import Iterator

import pytest

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from sparks import start

# The fixtures that a test on each engine may use; what needs none of them runs beside DuckDB.
FIXTURES = {
    "duckdb": {"engine"},
    "spark": {"engine", "session", "classic"},
    "spark-connect": {"engine", "session", "connect"},
}
OF_SPARK = {"session", "classic", "connect"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engines", default="duckdb", choices=list(FIXTURES), help="the engine to run on")
    parser.addoption("--update-plans", action="store_true", help="rewrite the golden plans in tests/plans")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    name = config.getoption("--engines")
    here = [item for item in items if _runs_on(name, set(getattr(item, "fixturenames", ())))]
    config.hook.pytest_deselected(items=[item for item in items if item not in here])
    items[:] = here
    for item in items:
        if name != "duckdb" and item.get_closest_marker("large"):
            item.add_marker("slow")


def _runs_on(name: str, fixtures: set[str]) -> bool:
    used = fixtures & ({"engine"} | OF_SPARK)
    return used <= FIXTURES[name] and (bool(used) or name == "duckdb")


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> Iterator[object]:
    """The one session of Spark in this process, classic or Connect."""
    started = start(request.config.getoption("--engines"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def classic(session: object) -> object:
    """The same, for tests that look inside of Spark, which Connect does not show."""
    return session


@pytest.fixture(scope="session")
def connect(session: object) -> object:
    """The same, for tests of what Spark Connect alone does."""
    return session


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.config.getoption("--engines") == "duckdb":
        return DuckDB(threads=1)
    from plume.engines.spark import Spark  # noqa: PLC0415 - the other engine does not need it

    return Spark(request.getfixturevalue("session"))
