"""Engines for the tests that run on every one of them: `pytest --engines=duckdb`, `spark`, `spark-connect` or `postgresql`.

A process has one kind of Spark at most: where both are, the second silently is the first. So `make test` runs a process for each engine.

Each question costs Spark a second, so `make test` asks few: those of the tests that are marked `quick_on` an engine. All others are
marked `engines` here, and run by `make test-engines`. It also runs what is marked so by hand, on DuckDB
for example: what says at length what shorter tests say.
"""

import gc
from collections.abc import Iterator

import pytest

from lacking import lacks
from ledgers import ledger_server, new_database, new_place, place  # noqa: F401 - fixtures
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from sparks import start

# The fixtures that a test on each engine may use; what needs none of them runs beside DuckDB.
FIXTURES = {
    "duckdb": {"engine"},
    "spark": {"engine", "session", "classic"},
    "spark-connect": {"engine", "session", "connect"},
    "postgresql": {"engine", "server"},
}
OF_ONE = {"session", "classic", "connect", "server"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engines", default="duckdb", choices=list(FIXTURES), help="the engine to run on")
    parser.addoption("--update-plans", action="store_true", help="rewrite the golden plans in tests/plans")


def pytest_configure(config: pytest.Config) -> None:
    """Tests ask for little privacy and little data on purpose; those of cautions look at them by `pytest.warns`."""
    config.addinivalue_line("filterwarnings", "ignore::plume.errors.PlumeWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    name = config.getoption("--engines")
    config.hook.pytest_deselected(items=[item for item in items if not _runs_on(name, item)])
    items[:] = [item for item in items if _runs_on(name, item)]
    for item in items:
        if name in ("spark", "spark-connect") and item.get_closest_marker("large"):
            item.add_marker("slow")
        if name != "duckdb" and name not in _named_by(item, "quick_on"):
            item.add_marker("engines")


def pytest_collection_finish() -> None:
    """Tell Python not to look for garbage among thousands of tests, which stay until the end, again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def _runs_on(name: str, item: pytest.Item) -> bool:
    if started := _named_by(item, "starts"):
        return name in started
    # An engine that is a test's parameter is not the fixture.
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if lacks(name, item.nodeid):
        return False
    used = (set(getattr(item, "fixturenames", ())) - set(parameters)) & ({"engine"} | OF_ONE)
    return used <= FIXTURES[name] and (bool(used) or name == "duckdb")


def _named_by(item: pytest.Item, marker: str) -> set[str]:
    """Give the kinds of Spark that the markers of a test name."""
    return {name for found in item.iter_markers(marker) for name in found.args}


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
def server() -> Iterator[object]:
    """The one PostgreSQL of this process."""
    import postgresql_servers  # noqa: PLC0415 - the same

    with postgresql_servers.server() as started:
        yield started


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.config.getoption("--engines") == "duckdb":
        return DuckDB(threads=1)
    if request.config.getoption("--engines") == "postgresql":
        from loading import PostgreSQL  # noqa: PLC0415 - other engines do not need it

        return PostgreSQL(request.getfixturevalue("server").url, "")
    from plume.engines.spark import Spark  # noqa: PLC0415 - the other engine does not need it

    return Spark(request.getfixturevalue("session"))
